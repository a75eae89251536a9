"""COPY … TO: the rows of a query or a table in files that DuckDB writes."""

from __future__ import annotations

from frazil.errors import InvalidInput
from frazil.filter.text.sql_values import string_text
from frazil.sql.output.query_result import Result, one_row
from frazil.sql.parse import statements as st
from frazil.sql.run.execution import Execution


def run(statement: st.Copy, at: Execution) -> Result:
    """Write files, if the caller allows it."""
    if not at.allows_files:
        raise at.source.unsupported(
            statement.start,
            "COPY writes files, which catalog.sql(…, allow_files=True) permits in Python; "
            "frazil sql --to rows.parquet writes the rows of a query in the terminal",
            feature="COPY",
        )
    file = at.constant(statement.file)
    if not isinstance(file, str):
        with at.place(statement.file.start):
            raise InvalidInput(f"{file!r} is not the name of a file")
    options = "" if statement.options is None else at.binder.constant_text(statement.options)
    ran = at.binder.query(*statement.parts, prefix=statement.prefix, between=statement.between)
    at.relation(ran)  # what is wrong with the query is said with its place
    return one_row(copied=at.copied(ran, f"{string_text(file)} {options}"))

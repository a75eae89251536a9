"""Where the problem of a row-level change stands: the engine is asked about each expression."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from frazil.data.metadata_columns import METADATA_COLUMNS
from frazil.errors import FrazilError, InvalidInput
from frazil.expr.quotes import quoted
from frazil.expr.sql_text import SOURCE, TARGET
from frazil.expr.tokens import TextProblem
from frazil.rows.duckdb_types import type_text
from frazil.sql.binding import expression_text
from frazil.sql.duckdb_calls import failure
from frazil.table.table import Table

if TYPE_CHECKING:
    from frazil.sql.execution import Statement
    from frazil.sql.rewriting import EngineText

_EMPTY = "frazil_empty_source"


@contextmanager
def placed(
    at: Statement,
    offset: int,
    table: Table,
    names: Mapping[str, str],
    source: pa.Schema | None = None,
) -> Iterator[None]:
    """Errors inside are reported at the expression that causes them, or else at the offset.

    `names` is what the user calls the rows of the table and of the source.
    """
    try:
        with at.place(offset):
            yield
    except InvalidInput as error:
        told = _judged(at, table, names, source) or _shortened(at, error)
        if told is None:
            raise
        if isinstance(error, TextProblem):  # it knows the table's columns
            place = str(told).partition(": ")[0]
            told = InvalidInput(f"{place}: {_renamed(error.problem, names)}")
        raise told from error


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """Columns of a message under the names that the user gave to their tables."""
    return re.sub(
        rf"(?<![\w.])({TARGET}|{SOURCE})\.",
        lambda found: f"{names.get(found[1], found[1])}.",
        text,
    )


def _judged(
    at: Statement, table: Table, names: Mapping[str, str], source: pa.Schema | None
) -> FrazilError | None:
    """What the engine finds wrong with the first expression it refuses on empty tables."""
    try:
        rows = [f"{_no_rows(table)} {TARGET}"]
    except FrazilError:
        return None
    connection = at.row_binder.engine.connection
    if source is not None:
        connection.register(_EMPTY, source.empty_table())
        rows.append(f"{_EMPTY} {SOURCE}")
    shown = dict(at.row_binder.engine.shown)
    for alias, name in names.items():
        shown |= {f'"{alias}"': f'"{name}"', f'"{alias}.': f'"{name}.'}
    try:
        for _, ran in at.row_binder.expressions:
            try:
                connection.execute(f"{ran.text}\nFROM {', '.join(rows)} LIMIT 0")
            except Exception as error:
                return _told(at, error, shown, ran)
    finally:
        if source is not None:
            connection.unregister(_EMPTY)
    return None


def _told(
    at: Statement, error: Exception, shown: Mapping[str, str], ran: EngineText
) -> FrazilError | None:
    told = failure(error, at.source, shown, ran)
    return told if str(told).startswith("line ") else None


def _no_rows(table: Table) -> str:
    columns = [
        f"CAST(NULL AS {type_text(field.field_type)}) AS {quoted(field.name)}"
        for field in (*table.schema.fields, *METADATA_COLUMNS.values())
    ]
    return f"(SELECT {', '.join(columns)} WHERE false)"


def _shortened(at: Statement, error: InvalidInput) -> FrazilError | None:
    """An error of the filter without its text, which has the tables' files in it by now."""
    for part, ran in at.row_binder.expressions:
        _, found, after = str(error).partition(f"filter {expression_text(ran)!r}: ")
        if found:
            return at.source.problem(part.start, after)
    return None

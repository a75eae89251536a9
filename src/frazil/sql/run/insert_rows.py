"""The rows that INSERT writes, in the types of the table's columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from frazil.filter.text.quotes import quoted
from frazil.filter.text.sql_values import type_text, value_text
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import NestedField
from frazil.parser.cursor import Cursor, Name
from frazil.parser.edits import EngineText
from frazil.parser.tokens import Kind, Part, Token
from frazil.rows.duckdb.duckdb_types import literal
from frazil.sql.bind.change_text import at_origin, known_columns
from frazil.sql.parse import statements as st
from frazil.text_format import counted
from frazil.value_classes import dataclass

if TYPE_CHECKING:
    from frazil.sql.run.execution import Execution


def inserted_rows(statement: st.Insert, schema: Schema, at: Execution) -> pa.RecordBatchReader:
    """The rows to insert, in the table's types."""
    if statement.only_defaults:
        if statement.columns is not None or statement.fixed:
            raise at.source.problem(statement.query.start, "DEFAULT VALUES fills every column")
        values = ", ".join(f"{_default(f)} AS {quoted(f.name)}" for f in schema.fields)
        return at.stream(EngineText(f"SELECT {values}", ()))
    values_list = _values(statement, at)
    if values_list is not None:
        ran = _typed(values_list, statement, schema, at)
    else:
        parts = [part for part in (statement.ctes, statement.query) if part is not None]
        ran = at.binder.query(*parts)
    columns = list(at.relation(ran).columns)
    targets = _targets(statement, schema, columns, at)
    with at.place(statement.query.start):
        return _cast(ran, columns, targets, schema, at)


def _default(field: NestedField) -> str:
    return literal(field.write_default, field.field_type)


# VALUES


@dataclass(frozen=True, slots=True)
class _Values:
    """The cells of VALUES, row by row, and what is after them."""

    rows: list[list[Part]]
    rest: Part | None
    tokens: Sequence[Token]


def _values(statement: st.Insert, at: Execution) -> _Values | None:
    """The cells, if the query is VALUES."""
    start, end = statement.query.start, statement.query.end
    inside = [token for token in at.tokens if start <= token.start < end]
    if not inside or not inside[0].is_word("values"):
        return None
    cursor = Cursor(at.source, inside)
    cursor.expect("values")
    rows = cursor.listed(lambda: cursor.bracketed("a value"))
    rest = None if cursor.token is None else cursor.rest("more")
    return _Values(rows, rest, inside)


def _typed(values: _Values, statement: st.Insert, schema: Schema, at: Execution) -> EngineText:
    """VALUES with each cell cast to its column: DuckDB would find one type for all cells of a
    column first, and 9007199254740993 is no double."""
    fields = _filled(statement, schema, at)
    for row in values.rows:
        if len(row) != len(fields):
            raise at.source.problem(
                row[0].start,
                f"the row has {counted(len(row), 'value')} for {counted(len(fields), 'column')}: "
                f"{', '.join(field.name for field in fields)}",
            )
    by_start = {token.start: number for number, token in enumerate(values.tokens)}
    kinds = [
        {_kind(cell, values.tokens, by_start) for cell in column}
        for column in zip(*values.rows, strict=True)
    ]
    slices = at.slices()
    if statement.ctes is not None:
        slices.slice(statement.ctes)
        slices.add("\n")
    slices.add("VALUES ")
    for number, row in enumerate(values.rows):
        slices.add(", (" if number else "(")
        for at_column, (cell, field) in enumerate(zip(row, fields, strict=True)):
            slices.add(", " if at_column else "")
            if at.source.of(cell).strip().lower() == "default":
                slices.add(_default(field), cell.start)
            elif _is_one(kinds[at_column]):
                slices.slice(cell)
            else:
                slices.add("CAST(")
                slices.expression(cell)
                slices.add(f" AS {type_text(field.field_type)})")
        slices.add(")")
    if values.rest is not None:
        slices.add("\n")
        slices.slice(values.rest)
    typed = slices.text
    with at_origin(typed, at.source):
        ran = at.binder_of(typed).query(Part(0, len(typed.text)))
    return ran.through(typed)


def _kind(cell: Part, tokens: Sequence[Token], by_start: dict[int, int]) -> str:
    """What a cell surely is: a text, a whole number, or something else."""
    token = tokens[by_start[cell.start]]
    if token.end != cell.end:
        return "other"
    if token.kind is Kind.STRING:
        return "text"
    if token.kind is Kind.NUMBER and token.value.isdigit():
        return "number"
    return "null" if token.is_word("null") else "other"


def _is_one(kinds: set[str]) -> bool:
    """Whether one type holds all cells of a column as they are, so that one cast does for all."""
    return "other" not in kinds and len(kinds - {"null"}) <= 1


def _filled(statement: st.Insert, schema: Schema, at: Execution) -> list[NestedField]:
    """The columns that the cells of a row are for."""
    fixed = known_columns([name for name, _ in statement.fixed], schema, at)
    if statement.columns is None:
        return [field for field in schema.fields if field.name not in fixed]
    return [schema.find_field(name) for name in known_columns(statement.columns, schema, at)]


# Columns


def _targets(
    statement: st.Insert, schema: Schema, columns: Sequence[str], at: Execution
) -> list[tuple[str, str]]:
    """Pairs of a column of the table and the SQL that fills it, from columns c0, c1, … ."""
    fixed = dict(
        zip(
            known_columns([name for name, _ in statement.fixed], schema, at),
            (value_text(at.constant(part)) for _, part in statement.fixed),
            strict=True,
        )
    )
    start = statement.query.start
    if statement.by_name:
        names = known_columns([Name((name,), start, start) for name in columns], schema, at)
    elif statement.columns is not None:
        names = known_columns(statement.columns, schema, at)
    else:
        names = [field.name for field in schema.fields if field.name not in fixed]
    uses = Counter([*names, *fixed])
    twice = next((name for name, number in uses.items() if number > 1), None)
    if twice is not None:
        raise at.source.problem(statement.table.end, f"column {twice} is filled twice")
    if len(names) != len(columns):
        raise at.source.problem(
            start,
            f"the query gives {counted(len(columns), 'column')} for {len(names)} of "
            f"{statement.table}: {', '.join(names)}",
        )
    return [(name, f"c{number}") for number, name in enumerate(names)] + list(fixed.items())


def _cast(
    ran: EngineText,
    columns: Sequence[str],
    targets: Sequence[tuple[str, str]],
    schema: Schema,
    at: Execution,
) -> pa.RecordBatchReader:
    """The query's rows in the types of the table's columns."""
    types = {field.name: field.field_type for field in schema.fields}
    outputs = ", ".join(
        f"CAST({source} AS {type_text(types[name])}) AS {quoted(name)}" for name, source in targets
    )
    names = ", ".join(f"c{number}" for number in range(len(columns)))
    return at.stream(ran.inside(f"SELECT {outputs} FROM (\n", f") AS q({names})"))

"""Bound filters as DuckDB conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from frazil.errors import InvalidInput
from frazil.filter.bind.file_predicates import is_of_files
from frazil.filter.condition import Condition
from frazil.filter.text.quotes import quoted
from frazil.filter.text.sql_values import string_text
from frazil.iceberg.expressions import (
    ORDERED,
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    Column,
    Op,
    Or,
    literals_of,
    operator_of,
)
from frazil.rows.duckdb.duckdb_types import literal

_FORMS: Final = {
    Op.EQ: "{column} = {values}",
    Op.NE: "{column} <> {values}",
    **{op: f"{{column}} {op.value} {{values}}" for op in ORDERED},
    Op.IS_NULL: "{column} IS NULL",
    Op.NOT_NULL: "{column} IS NOT NULL",
    Op.IS_NAN: "isnan({column})",
    Op.NOT_NAN: "({column} IS NULL OR NOT isnan({column}))",
    Op.IN: "{column} IN ({values})",
    Op.NOT_IN: "{column} NOT IN ({values})",
    Op.STARTS_WITH: "prefix({column}, {values})",
    Op.NOT_STARTS_WITH: "NOT prefix({column}, {values})",
}


def path_text(path: tuple[str, ...]) -> str:
    """A column, or a part of one, by its path of names."""
    expression = quoted(path[0])
    for name in path[1:]:
        expression = f"struct_extract({expression}, {string_text(name)})"
    return expression


def matching(said: Condition) -> str:
    """What a condition says, as SQL over rows that are called as it calls them."""
    return condition(said.filter) if said.sql is None else f"({said.sql.text}\n)"


def condition(
    expression: BooleanExpression, *, name: Callable[[tuple[str, ...]], str] = path_text
) -> str:
    """The filter as SQL; true exactly for the rows it matches."""
    if isinstance(expression, AlwaysTrue):
        return "true"
    if is_of_files(expression):
        # True for every row. The text says which files, as plans are kept by it.
        return f"({string_text(str(expression))} IS NOT NULL)"
    if isinstance(expression, AlwaysFalse):
        return "false"
    if isinstance(expression, And | Or):
        word = "AND" if isinstance(expression, And) else "OR"
        left, right = condition(expression.left, name=name), condition(expression.right, name=name)
        return f"({left} {word} {right})"
    op, column = operator_of(expression), getattr(expression, "term", None)
    if op is None or not isinstance(column, Column):
        raise InvalidInput(
            f"the filter is not bound: {expression}; bind it with frazil.filter.text.filter_text"
        )
    kind = column.field.field_type
    values = ", ".join(literal(value, kind) for value in literals_of(expression))
    return _FORMS[op].format(column=name(column.path), values=values)

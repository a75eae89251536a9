"""Bound filters as DuckDB conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, And, BooleanExpression, Or

from frazil.errors import InvalidInput
from frazil.expr.condition import Condition
from frazil.expr.filter_columns import Column
from frazil.expr.operators import ORDERED, Op, literals_of, operator_of
from frazil.expr.quotes import quoted
from frazil.rows.duckdb_types import literal, text

_SIGNS: Final = {Op.EQ: "=", Op.NE: "<>", **{op: op.value for op in ORDERED}}


def path_text(path: tuple[str, ...]) -> str:
    """A column, or a part of one, by its path of names."""
    found = quoted(path[0])
    for name in path[1:]:
        found = f"struct_extract({found}, {text(name)})"
    return found


def matching(found: Condition) -> str:
    """What a condition says, as SQL over rows with the alias `t`."""
    return condition(found.filter) if found.sql is None else f"({found.sql.text}\n)"


def condition(
    expression: BooleanExpression, *, name: Callable[[tuple[str, ...]], str] = path_text
) -> str:
    """The filter as SQL; true exactly for the rows it matches."""
    if isinstance(expression, AlwaysTrue):
        return "true"
    if isinstance(expression, AlwaysFalse):
        return "false"
    if isinstance(expression, And | Or):
        word = "AND" if isinstance(expression, And) else "OR"
        left, right = condition(expression.left, name=name), condition(expression.right, name=name)
        return f"({left} {word} {right})"
    op, column = operator_of(expression), getattr(expression, "term", None)
    if op is None or not isinstance(column, Column):
        raise InvalidInput(f"the filter is not bound: {expression}; bind it with frazil.expr.parse")
    kind = column.field.field_type
    values = [literal(value, kind) for value in literals_of(expression)]
    return _predicate(op, name(column.path), values)


def _predicate(op: Op, column: str, values: list[str]) -> str:
    match op:
        case Op.IS_NULL:
            return f"{column} IS NULL"
        case Op.NOT_NULL:
            return f"{column} IS NOT NULL"
        case Op.IS_NAN:
            return f"isnan({column})"
        case Op.NOT_NAN:
            return f"({column} IS NULL OR NOT isnan({column}))"
        case Op.IN:
            return f"{column} IN ({', '.join(values)})"
        case Op.NOT_IN:
            return f"{column} NOT IN ({', '.join(values)})"
        case Op.STARTS_WITH:
            return f"prefix({column}, {values[0]})"
        case Op.NOT_STARTS_WITH:
            return f"NOT prefix({column}, {values[0]})"
    return f"{column} {_SIGNS[op]} {values[0]}"

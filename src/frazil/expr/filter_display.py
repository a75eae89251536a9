"""A filter as text for people, in the spelling that `filter_text` reads."""

from __future__ import annotations

from typing import Any

from pyiceberg import expressions as ice
from pyiceberg.expressions import BooleanExpression
from pyiceberg.expressions.literals import Literal
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BooleanType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
)

from frazil.expr import quotes
from frazil.expr.operators import PREFIX, SETS, UNARY, Op, literals_of, operator_of

_MOST_VALUES = 5
_BARE = (BooleanType, DecimalType, DoubleType, FloatType, IntegerType, LongType)


def shown(expression: BooleanExpression) -> str:
    """The filter in words; long lists of values are cut."""
    match expression:
        case ice.AlwaysTrue():
            return "true"
        case ice.AlwaysFalse():
            return "false"
        case ice.And():
            return f"{_inner(expression.left)} and {_inner(expression.right)}"
        case ice.Or():
            return f"{_inner(expression.left)} or {_inner(expression.right)}"
        case ice.Not():
            return f"not {_inner(expression.child)}"
    op = operator_of(expression)
    if op is None:
        return str(expression)
    name, kind = _column(expression)
    if op in UNARY:
        return f"{name} {op.value}"
    literals = sorted(literals_of(expression), key=lambda literal: literal.value)
    values = [_value(literal, kind) for literal in literals]
    if op in SETS:
        return f"{name} {op.value} ({_listed(values)})"
    if op in PREFIX:
        negation = "not " if op is Op.NOT_STARTS_WITH else ""
        return f"{name} {negation}like {values[0][:-1]}%'"
    return f"{name} {op.value} {values[0]}"


def _inner(expression: BooleanExpression) -> str:
    text = shown(expression)
    return f"({text})" if isinstance(expression, ice.Or) else text


def _column(predicate: Any) -> tuple[str, IcebergType | None]:
    reference = predicate.term
    name = getattr(reference, "name", None)
    field = getattr(reference, "field", None)
    if name is None:
        name = str(reference) if field is None else field.name
    return str(name), None if field is None else field.field_type


def _value(literal: Literal[Any], kind: IcebergType | None) -> str:
    value = literal.value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float) and kind is None:
        return str(value)
    if isinstance(kind, _BARE):
        return str(value)
    text = str(value) if kind is None else IdentityTransform().to_human_string(kind, value)
    return quotes.literal(text)


def _listed(values: list[str]) -> str:
    more = len(values) - _MOST_VALUES
    text = ", ".join(values[:_MOST_VALUES])
    return f"{text}, … {more} more" if more > 0 else text

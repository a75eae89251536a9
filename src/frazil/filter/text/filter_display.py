"""A filter as text for people, in the spelling that `filter_text` reads."""

from __future__ import annotations

from typing import Any

import numpy as np

from frazil.filter.text import quotes
from frazil.iceberg import expressions as ice
from frazil.iceberg.expressions import (
    PREFIX,
    SETS,
    UNARY,
    BooleanExpression,
    Op,
    literals_of,
    operator_of,
)
from frazil.iceberg.literals import Literal
from frazil.iceberg.transforms import IdentityTransform, Transform
from frazil.iceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
)

_MAX_VALUES = 5
_JOINED = (ice.And, ice.Or)
_IDENTITY: Transform = IdentityTransform()
_UNITS: dict[type[IcebergType], str] = {
    DateType: "D",
    TimestampType: "us",
    TimestamptzType: "us",
    TimestampNanoType: "ns",
    TimestamptzNanoType: "ns",
}
_BARE = (BooleanType, DecimalType, DoubleType, FloatType, IntegerType, LongType)


def filter_text(expression: BooleanExpression) -> str:
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
            child = filter_text(expression.child)
            return f"not ({child})" if isinstance(expression.child, _JOINED) else f"not {child}"
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
        if set(values[0]) & {"%", "_"}:  # which LIKE takes for wildcards
            return f"{name} {negation}starts with {values[0]}"
        return f"{name} {negation}like {values[0][:-1]}%'"
    return f"{name} {op.value} {values[0]}"


def _inner(expression: BooleanExpression) -> str:
    text = filter_text(expression)
    return f"({text})" if isinstance(expression, ice.Or) else text


def _column(predicate: Any) -> tuple[str, IcebergType | None]:
    reference = predicate.term
    name = getattr(reference, "name", None)
    field = getattr(reference, "field", None)
    if name is None:
        name = str(reference) if field is None else field.name
    return str(name), None if field is None else field.field_type


def _value(literal: Literal, kind: IcebergType | None) -> str:
    value = literal.value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float) and kind is None:
        return str(value)
    if isinstance(kind, _BARE):
        return str(value)
    return quotes.literal(str(value) if kind is None else human(value, kind))


def human(value: Any, kind: IcebergType, transform: Transform = _IDENTITY) -> str:
    """A value, or that of a partition, as people write it. Python's calendar ends with the year
    9999, which days and microseconds do not."""
    try:
        return str(transform.to_human_string(kind, value))
    except (OverflowError, ValueError):
        unit = next((unit for of, unit in _UNITS.items() if isinstance(kind, of)), None)
        if unit is None or not isinstance(value, int):
            return str(value)
        moment: Any = np.datetime64(value, unit)  # type: ignore[call-overload]
        return str(moment).replace("+", "")


def _listed(values: list[str]) -> str:
    more = len(values) - _MAX_VALUES
    text = ", ".join(values[:_MAX_VALUES])
    return f"{text}, … {more} more" if more > 0 else text

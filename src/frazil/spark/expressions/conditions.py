"""Filters and expressions of users as Spark columns; filters mean what they mean elsewhere.

A null matches nothing but IS NULL and IS NOT NAN. NaN equals itself and is greater than every
number, as Spark has it.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as sql

from frazil.errors import InvalidInput, Unsupported
from frazil.filter.bind.file_predicates import is_of_files
from frazil.format.values.types import is_floating
from frazil.iceberg import types as ice
from frazil.iceberg.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    Op,
    Or,
    literals_of,
    operator_of,
)
from frazil.iceberg.expressions import Column as Reference

Values = Callable[[Reference], Column]


def condition(expression: BooleanExpression, values: Values) -> Column:
    """A bound filter as a Spark condition; `values` gives the column of a reference."""
    if isinstance(expression, AlwaysTrue) or is_of_files(expression):
        return F.lit(True)
    if isinstance(expression, AlwaysFalse):
        return F.lit(False)
    if isinstance(expression, And):
        return condition(expression.left, values) & condition(expression.right, values)
    if isinstance(expression, Or):
        return condition(expression.left, values) | condition(expression.right, values)
    return _predicate(expression, values)


def _predicate(expression: Any, values: Values) -> Column:
    op = operator_of(expression)
    reference: Reference = expression.term
    column = values(reference)
    kind = reference.field.field_type
    if op is Op.IS_NULL:
        return column.isNull()
    if op is Op.NOT_NULL:
        return column.isNotNull()
    if op is Op.IS_NAN:
        return F.isnan(column)
    if op is Op.NOT_NAN:
        return ~F.isnan(column)  # false, not null, where the value is null
    literals = [literal.value for literal in literals_of(expression)]
    if op is Op.STARTS_WITH:
        return column.startswith(literals[0])
    if op is Op.NOT_STARTS_WITH:
        return ~column.startswith(literals[0])
    floating = is_floating(kind)
    if op in (Op.IN, Op.NOT_IN):
        if floating and 0.0 in literals:
            literals = [value for value in literals if value != 0.0] + [0.0, -0.0]
        inside = column.isin([literal(value, kind) for value in literals])
        return inside if op is Op.IN else ~inside
    value = literal(literals[0], kind)
    match op:
        case Op.EQ:
            return column == value
        case Op.NE:
            return column != value
        case Op.LT:
            return column < value
        case Op.LE:
            return column <= value
        case Op.GT:
            return column > value
        case Op.GE:
            return column >= value
    raise Unsupported(f"Spark has no condition for {expression}", feature="filter expression")


def literal(value: Any, kind: ice.IcebergType) -> Column:
    """A plain value of a table type as a Spark literal, whatever the session's time zone."""
    match kind:
        case ice.DateType():
            return F.date_from_unix_date(F.lit(int(value)))
        case ice.TimestamptzType():
            return F.timestamp_micros(F.lit(int(value)).cast("long"))
        case ice.TimestampType():
            return F.expr(f"timestamp_ntz'{_iso(int(value))}'")
        case ice.TimeType():
            return F.expr(f"time'{_clock(int(value))}'")
        case ice.UUIDType():
            text = str(uuid.UUID(bytes=bytes(value))) if isinstance(value, bytes) else str(value)
            return F.lit(text)
        case ice.DecimalType():
            return F.lit(value).cast(sql.DecimalType(kind.precision, kind.scale))
        case ice.IntegerType():
            return F.lit(int(value)).cast("int")
        case ice.LongType():
            return F.lit(int(value)).cast("long")
        case ice.FloatType():
            return F.lit(float(value)).cast("float")
        case ice.DoubleType():
            return _double(float(value))
        case ice.BinaryType() | ice.FixedType():
            return F.lit(bytes(value))
        case ice.StringType() | ice.BooleanType():
            return F.lit(value)
    raise Unsupported(f"Spark has no literal of type {kind}", feature=str(kind))


def _double(value: float) -> Column:
    if math.isinf(value):
        return F.lit("Infinity" if value > 0 else "-Infinity").cast("double")
    return F.lit(value)


def _iso(micros: int) -> str:
    text = str(np.datetime64(micros, "us"))
    year = text.split("-", 2)[1] if text.startswith("-") else text.split("-", 1)[0]
    return f"+{text}" if not text.startswith("-") and len(year) > 4 else text


def _clock(micros: int) -> str:
    seconds, fraction = divmod(micros, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02}:{minute:02}:{second:02}.{fraction:06}"


# Expressions of users


def value_of(value: Any) -> Column:
    """A value in an assignment: columns and `frazil.expr(…)` are expressions, others are values."""
    if isinstance(value, Column):
        return value
    from frazil.filter.text.sql_text import Expression

    if isinstance(value, Expression):
        return F.expr(str(value))
    return F.lit(value)


def quoted(*path: str, alias: str | None = None) -> str:
    """A column's name, level by level, as Spark's SQL takes it."""
    name = ".".join(f"`{name.replace('`', '``')}`" for name in path)
    return name if alias is None else f"{alias}.{name}"


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Spark's refusals of an expression as our own error."""
    try:
        yield
    except (AnalysisException, ParseException) as error:
        raise InvalidInput(f"{what}: {error}") from error

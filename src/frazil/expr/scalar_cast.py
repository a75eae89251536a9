"""Values of one type as values of another: what CAST does, and which casts happen unasked.

Nothing is lost in silence: a value that does not fit is an Arrow error, which the caller words.
Only two roundings exist: decimals to a smaller scale (half up), and CAST of a fraction to a whole
number (towards zero).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import time
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)

from frazil.errors import InvalidInput
from frazil.format.types import arrow_type, is_floating

Values = Any
"""An Arrow array, or a scalar that stands for the same value in every row."""

_WIDE_DIGITS: Final = 76
_MAX_DIGITS: Final = 38
_WHOLE: Final = (IntegerType, LongType)
_TEMPORAL: Final = (
    DateType,
    TimeType,
    TimestampType,
    TimestamptzType,
    TimestampNanoType,
    TimestamptzNanoType,
)

_UNASKED: Final[frozenset[tuple[type[IcebergType], type[IcebergType]]]] = frozenset(
    {
        (IntegerType, LongType),
        (IntegerType, FloatType),
        (IntegerType, DoubleType),
        (IntegerType, DecimalType),
        (LongType, FloatType),
        (LongType, DoubleType),
        (LongType, DecimalType),
        (DecimalType, DecimalType),
        (DecimalType, FloatType),
        (DecimalType, DoubleType),
        (FloatType, DoubleType),
        (DateType, TimestampType),
        (DateType, TimestampNanoType),
        (TimestampType, TimestampNanoType),
        (TimestamptzType, TimestamptzNanoType),
        (FixedType, BinaryType),
        (UUIDType, BinaryType),
    }
)


def is_number(kind: IcebergType) -> bool:
    """Whether one can calculate with the type."""
    return isinstance(kind, IntegerType | LongType | FloatType | DoubleType | DecimalType)


def happens_unasked(found: IcebergType, wanted: IcebergType) -> bool:
    """Whether a value of one type may be put where the other is expected, without CAST."""
    return found == wanted or (type(found), type(wanted)) in _UNASKED


def as_decimal(kind: IcebergType) -> DecimalType:
    """The decimal type that holds every value of an exact number type."""
    if isinstance(kind, DecimalType):
        return kind
    return DecimalType(10 if isinstance(kind, IntegerType) else 19, 0)


def capped(precision: int, scale: int) -> DecimalType:
    """A decimal type of at most 38 digits: fraction digits go first, down to six."""
    if precision <= _MAX_DIGITS:
        return DecimalType(precision, scale)
    whole = precision - scale
    return DecimalType(_MAX_DIGITS, max(_MAX_DIGITS - whole, min(scale, 6)))


def common_type(left: IcebergType, right: IcebergType) -> IcebergType | None:
    """The narrowest type that values of both can be put into; None when there is none."""
    if left == right or isinstance(right, UnknownType):
        return left
    if isinstance(left, UnknownType):
        return right
    if is_number(left) and is_number(right):
        if is_floating(left) or is_floating(right):
            return DoubleType()
        if isinstance(left, _WHOLE) and isinstance(right, _WHOLE):
            return LongType()
        a, b = as_decimal(left), as_decimal(right)
        scale = max(a.scale, b.scale)
        return capped(max(a.precision - a.scale, b.precision - b.scale) + scale, scale)
    for narrow, wide in ((left, right), (right, left)):
        if happens_unasked(narrow, wide):
            return wide
    if isinstance(left, UUIDType | FixedType) and isinstance(right, UUIDType | FixedType):
        return BinaryType()
    return None


def converter(found: IcebergType, wanted: IcebergType) -> Callable[[Values], Values]:
    """The function that casts values; refuses types that have no cast."""
    if found == wanted:
        return lambda values: values
    if not isinstance(found, PrimitiveType) or not isinstance(wanted, PrimitiveType):
        raise InvalidInput(f"a {found} cannot be cast to {wanted}")
    for one, other in ((found, wanted), (wanted, found)):
        if is_number(one) and isinstance(other, _TEMPORAL):  # days or microseconds? Say neither
            raise InvalidInput(f"a {found} cannot be cast to {wanted}")
    target = arrow_type(wanted)
    chosen = _chosen(found, wanted, target)
    try:
        chosen(pa.array([], arrow_type(found)))
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        raise InvalidInput(f"a {found} cannot be cast to {wanted}") from None
    return chosen


def _chosen(
    found: IcebergType, wanted: IcebergType, target: pa.DataType
) -> Callable[[Values], Values]:
    if isinstance(found, UnknownType):
        return lambda values: values.cast(target)
    if isinstance(wanted, DecimalType):
        return _to_decimal(found, wanted)
    if isinstance(found, StringType):
        return _from_text(wanted, target)
    if isinstance(wanted, StringType) and isinstance(found, UUIDType):
        return _each(lambda value: str(uuid.UUID(bytes=value)), target)
    if isinstance(wanted, StringType) and isinstance(found, BooleanType):
        return lambda values: values.cast(target)
    if isinstance(wanted, _WHOLE) and (is_floating(found) or isinstance(found, DecimalType)):
        return lambda values: pc.trunc(values).cast(target)
    if isinstance(wanted, FloatType) and isinstance(found, DoubleType | DecimalType):
        return _to_float
    if isinstance(wanted, BooleanType) and isinstance(found, DecimalType):
        return lambda values: pc.not_equal(values, pa.scalar(0, pa.int32()))
    if isinstance(found, DateType) and isinstance(wanted, TimestamptzType | TimestamptzNanoType):
        return lambda values: values.cast(pa.timestamp(target.unit)).cast(target)
    if isinstance(wanted, UUIDType | FixedType) and not isinstance(
        found, BinaryType | UUIDType | FixedType
    ):
        raise InvalidInput(f"a {found} cannot be cast to {wanted}")
    if isinstance(found, TimestampNanoType | TimestamptzNanoType):
        return lambda values: pc.cast(values, target, safe=False)
    return lambda values: values.cast(target)


def rounded(values: Values, wanted: DecimalType) -> Values:
    """Decimals at a scale, ties away from zero; refuses values of too many digits."""
    wide = values.cast(pa.decimal256(_WIDE_DIGITS, values.type.scale))
    if values.type.scale > wanted.scale:
        wide = pc.round(wide, ndigits=wanted.scale, round_mode="half_towards_infinity")
    return wide.cast(arrow_type(wanted))


def _to_decimal(found: IcebergType, wanted: DecimalType) -> Callable[[Values], Values]:
    if isinstance(found, DecimalType):
        return lambda values: rounded(values, wanted)
    if isinstance(found, _WHOLE):
        whole = pa.decimal256(_WIDE_DIGITS, 0)
        return lambda values: rounded(values.cast(whole), wanted)
    if isinstance(found, BooleanType):
        return lambda values: rounded(
            values.cast(pa.int32()).cast(pa.decimal256(_WIDE_DIGITS, 0)), wanted
        )
    if isinstance(found, StringType):
        fine = pa.decimal256(_WIDE_DIGITS, _MAX_DIGITS)
        return lambda values: rounded(pc.utf8_trim_whitespace(values).cast(fine), wanted)
    return lambda values: values.cast(arrow_type(wanted))


def _to_float(values: Values) -> Values:
    wide = values.cast(pa.float64())
    narrow = wide.cast(pa.float32())
    beyond = pc.and_(pc.is_finite(wide), pc.invert(pc.is_finite(narrow)))
    if pc.any(beyond if isinstance(beyond, pa.Array) else pa.array([beyond.as_py()])).as_py():
        raise pa.ArrowInvalid("a value is beyond the range of float")
    return narrow


def _from_text(wanted: IcebergType, target: pa.DataType) -> Callable[[Values], Values]:
    if isinstance(wanted, TimeType):
        return _each(lambda text: time.fromisoformat(text.strip()), target)
    if isinstance(wanted, UUIDType):
        return _each(lambda text: uuid.UUID(text.strip()).bytes, target)
    if isinstance(wanted, BinaryType | FixedType):
        return lambda values: values.cast(pa.binary()).cast(target)
    return lambda values: pc.utf8_trim_whitespace(values).cast(target)


def _each(convert: Callable[[Any], Any], target: pa.DataType) -> Callable[[Values], Values]:
    """A conversion that Arrow does not have, value by value."""

    def run(values: Values) -> Values:
        try:
            if isinstance(values, pa.Scalar):
                value = values.as_py()
                return pa.scalar(None if value is None else convert(value), target)
            found = [None if value is None else convert(value) for value in values.to_pylist()]
            return pa.array(found, target)
        except ValueError as problem:
            raise pa.ArrowInvalid(str(problem)) from None

    return run

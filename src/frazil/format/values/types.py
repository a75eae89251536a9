"""Iceberg types as Arrow types, single values of them, and their promotion.

Knows how a value of each Iceberg primitive is held in a statistics or partition column, and which
promotions schema evolution allows. Knows nothing of schemas, statistics, files, or the binary form
of bounds in v1 to v3 (`frazil.format.values.single_value`).

A *plain value* is what a flat column takes from Python: bool, int, float, str, bytes or Decimal.
Dates, times and timestamps are plain ints (days, microseconds or nanoseconds), as in literals:
every stored value fits, also those Python's datetime cannot hold.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.argument_checks import short_repr
from frazil.errors import InvalidInput, Unsupported
from frazil.iceberg import types as ice
from frazil.iceberg.literals import Literal

Column = TypeVar("Column", pa.Array, pa.ChunkedArray)

STORAGE: Final = pa.struct(
    [
        pa.field("metadata", pa.binary(), nullable=False),
        pa.field("value", pa.binary(), nullable=False),
    ]
)
"""The Arrow type of variants."""

_ARROW: Final[dict[type[ice.IcebergType], pa.DataType]] = {
    ice.BooleanType: pa.bool_(),
    ice.IntegerType: pa.int32(),
    ice.LongType: pa.int64(),
    ice.FloatType: pa.float32(),
    ice.DoubleType: pa.float64(),
    ice.DateType: pa.date32(),
    ice.TimeType: pa.time64("us"),
    ice.TimestampType: pa.timestamp("us"),
    ice.TimestamptzType: pa.timestamp("us", "UTC"),
    ice.TimestampNanoType: pa.timestamp("ns"),
    ice.TimestamptzNanoType: pa.timestamp("ns", "UTC"),
    ice.StringType: pa.string(),
    ice.UUIDType: pa.binary(16),
    ice.BinaryType: pa.binary(),
    ice.GeometryType: pa.binary(),
    ice.GeographyType: pa.binary(),
    ice.UnknownType: pa.null(),
    ice.VariantType: STORAGE,
}

_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
_EPOCH: Final = datetime(1970, 1, 1)
_MICROSECOND: Final = timedelta(microseconds=1)
_DAY_US: Final = 86_400_000_000


def arrow_type(iceberg_type: ice.IcebergType) -> pa.DataType:
    """The Arrow type that holds values of a primitive in statistics and partition columns."""
    if isinstance(iceberg_type, ice.DecimalType):
        return pa.decimal128(iceberg_type.precision, iceberg_type.scale)
    if isinstance(iceberg_type, ice.FixedType):
        return pa.binary(len(iceberg_type))
    arrow = _ARROW.get(type(iceberg_type))
    if arrow is None:
        raise Unsupported(
            f"{iceberg_type} is not a primitive type Frazil knows", feature=str(iceberg_type)
        )
    return arrow


def is_geo(iceberg_type: ice.IcebergType) -> bool:
    """Whether bounds of the type are points (x, y, z, m) rather than values."""
    return isinstance(iceberg_type, ice.GeometryType | ice.GeographyType)


def is_floating(iceberg_type: ice.IcebergType) -> bool:
    """Whether values can be NaN."""
    return isinstance(iceberg_type, ice.FloatType | ice.DoubleType)


def is_variable_length(iceberg_type: ice.IcebergType) -> bool:
    """Whether values differ in size, so that an average size says something."""
    is_sized = isinstance(iceberg_type, ice.StringType | ice.BinaryType | ice.VariantType)
    return is_sized or is_geo(iceberg_type)


# --- single values ---------------------------------------------------------------------------


BOOL8 = "arrow.bool8"


def plain_value(value: Any, iceberg_type: ice.IcebergType) -> Any:
    """A Python value, literal or Arrow scalar as the plain value of the type.

    Refuses what does not fit the type: nothing is rounded or cut.
    """
    if isinstance(value, Literal):
        value = value.value
    if isinstance(value, pa.Scalar):
        value = scalar_value(value)
    if value is None:
        return None
    convert = _PLAIN.get(type(iceberg_type))
    if convert is None:
        raise Unsupported(f"no single values of type {iceberg_type}", feature=str(iceberg_type))
    try:
        return convert(value, iceberg_type)
    except (TypeError, ValueError, OverflowError, DecimalException) as error:
        raise InvalidInput(
            f"{short_repr(value)} is not a value of type {iceberg_type}: {error}"
        ) from error


def scalar(value: Any, iceberg_type: ice.IcebergType) -> pa.Scalar:
    """A Python value, literal or Arrow scalar as an Arrow scalar of the type."""
    try:
        return arrow_values.scalar(plain_value(value, iceberg_type), arrow_type(iceberg_type))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise InvalidInput(f"{value!r} is not a value of type {iceberg_type}: {error}") from error


def scalar_value(value: pa.Scalar) -> Any:
    """The plain value of an Arrow scalar; extension types give their storage, `bool8` a boolean."""
    if isinstance(value, pa.ExtensionScalar):
        storage = scalar_value(value.value) if value.is_valid else None
        return storage if storage is None or value.type.extension_name != BOOL8 else bool(storage)
    if pa.types.is_temporal(value.type):
        return value.value
    return value.as_py()


def _boolean(value: Any, _: Any) -> bool:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise TypeError("expected true or false")


def _integer(value: Any, iceberg_type: Any) -> int:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError("expected an integer")
    bits = 31 if isinstance(iceberg_type, ice.IntegerType | ice.DateType) else 63
    if not -(1 << bits) <= int(value) < 1 << bits:
        raise OverflowError("out of range")
    return int(value)


def _floating(value: Any, iceberg_type: Any) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(
        value, float | int | np.floating | np.integer
    ):
        raise TypeError("expected a number")
    number = stored = float(value)
    if isinstance(iceberg_type, ice.FloatType) and np.isfinite(number):
        if abs(number) > float(np.finfo(np.float32).max):
            raise OverflowError("out of range")
        stored = float(np.float32(number))
    if isinstance(value, int | np.integer) and int(stored) != int(value):
        raise ValueError("it would be rounded")
    return number


def _decimal(value: Any, iceberg_type: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, Decimal | int):
        raise TypeError("expected a decimal")
    exact = Context(prec=iceberg_type.precision, traps=[InvalidOperation, Inexact])
    return Decimal(value).quantize(Decimal(1).scaleb(-iceberg_type.scale), context=exact)


def _date(value: Any, iceberg_type: Any) -> int:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.toordinal() - _EPOCH_ORDINAL
    return _integer(value, iceberg_type)


def _time(value: Any, iceberg_type: Any) -> int:
    if isinstance(value, time):
        if value.tzinfo is not None:
            raise ValueError("a time has no zone")
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return seconds * 1_000_000 + value.microsecond
    micros = _integer(value, iceberg_type)
    if not 0 <= micros < _DAY_US:
        raise OverflowError("out of range")
    return micros


def _timestamp(value: Any, iceberg_type: Any) -> int:
    zoned = isinstance(iceberg_type, ice.TimestamptzType | ice.TimestamptzNanoType)
    nano = isinstance(iceberg_type, ice.TimestampNanoType | ice.TimestamptzNanoType)
    if isinstance(value, datetime):
        offset = value.utcoffset()
        if (offset is not None) != zoned:
            raise ValueError("expected a zone" if zoned else "expected no zone")
        below = int(getattr(value, "nanosecond", 0))  # pandas' datetime counts nanoseconds
        micros = (value.replace(tzinfo=None) - _EPOCH - (offset or timedelta())) // _MICROSECOND
        if not nano and below:
            raise ValueError("nanoseconds do not fit")
        value = micros * 1000 + below if nano else micros
    return _integer(value, iceberg_type)


def _text(value: Any, _: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("expected a string")
    value.encode()  # a lone surrogate cannot be stored
    return value


def _uuid(value: Any, _: Any) -> bytes:
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, str):
        return uuid.UUID(value).bytes
    return _sized(_binary(value, None), 16)


def _binary(value: Any, _: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError("expected bytes")
    return bytes(value)


def _fixed(value: Any, iceberg_type: Any) -> bytes:
    return _sized(_binary(value, None), len(iceberg_type))


def _sized(value: bytes, length: int) -> bytes:
    if len(value) != length:
        raise ValueError(f"expected {length} bytes, found {len(value)}")
    return value


_PLAIN: Final[dict[type[ice.IcebergType], Callable[[Any, Any], Any]]] = {
    ice.BooleanType: _boolean,
    ice.IntegerType: _integer,
    ice.LongType: _integer,
    ice.FloatType: _floating,
    ice.DoubleType: _floating,
    ice.DecimalType: _decimal,
    ice.DateType: _date,
    ice.TimeType: _time,
    ice.TimestampType: _timestamp,
    ice.TimestamptzType: _timestamp,
    ice.TimestampNanoType: _timestamp,
    ice.TimestamptzNanoType: _timestamp,
    ice.StringType: _text,
    ice.UUIDType: _uuid,
    ice.BinaryType: _binary,
    ice.FixedType: _fixed,
    ice.GeometryType: _binary,
    ice.GeographyType: _binary,
}


# --- promotion -------------------------------------------------------------------------------


def promote(array: Column, to: ice.IcebergType) -> Column:
    """The column in the Arrow type of `to`, when schema evolution allows the step.

    A value that the wider type cannot hold (a date beyond the nanosecond range) becomes null:
    a bound that is unknown is still true.
    """
    target = arrow_type(to)
    source = array.type
    if source == target:
        return array
    if pa.types.is_null(source):
        return pc.cast(array, target)
    if not _promotable(source, target):
        raise InvalidInput(f"a column of {source} cannot be promoted to {to}")
    if pa.types.is_date32(source):
        return _dates_as_timestamps(array, target)
    if pa.types.is_string(target):
        return text_of(array)
    return pc.cast(array, target)


def _promotable(source: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_decimal(source) and pa.types.is_decimal(target):
        return bool(source.scale == target.scale and source.precision <= target.precision)
    if pa.types.is_date32(source):
        return bool(pa.types.is_timestamp(target) and target.tz is None)
    return (source, target) in _PROMOTIONS


_PROMOTIONS: Final = frozenset(
    {
        (pa.int32(), pa.int64()),
        (pa.float32(), pa.float64()),
        (pa.string(), pa.binary()),
        (pa.binary(), pa.string()),
    }
)


def _dates_as_timestamps(days: Column, target: pa.DataType) -> Column:
    per_day = _DAY_US * (1000 if target.unit == "ns" else 1)
    limit = (2**63 - 1) // per_day
    wide = pc.cast(pc.cast(days, pa.int32()), pa.int64())
    fits = pc.and_(pc.greater_equal(wide, -limit), pc.less_equal(wide, limit))
    fitting = pc.if_else(fits, wide, arrow_values.scalar(None, pa.int64()))
    return pc.multiply(fitting, arrow_values.scalar(per_day, pa.int64())).cast(target)


def text_of(values: Column) -> Column:
    """Bytes as strings; bytes that are not UTF-8 become null."""
    try:
        return pc.cast(values, pa.string())
    except pa.ArrowInvalid:
        texts = arrow_values.array([_utf8(value) for value in values.to_pylist()], pa.string())
        return pa.chunked_array([texts]) if isinstance(values, pa.ChunkedArray) else texts


def _utf8(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None

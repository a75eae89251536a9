"""Partition values of many rows at once: Arrow column in, Arrow column out.

Exactly what Iceberg's transforms say, for every type they take: dates and hours before 1970 round
down, decimals hash as their shortest two's-complement bytes, nanosecond timestamps hash as
microseconds, text is cut by code points.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg import types as ice
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)

from frazil.errors import InvalidInput, Unsupported
from frazil.expr.murmur import hash_bytes, hash_longs
from frazil.format.types import arrow_type

Longs: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

_DAY_US: Final = 86_400_000_000
_HOUR_US: Final = 3_600_000_000
_CALENDAR: Final = {YearTransform: "datetime64[Y]", MonthTransform: "datetime64[M]"}


def result_type(transform: Transform[Any, Any], source_type: ice.IcebergType) -> ice.IcebergType:
    """The type of the transform's results; refuses types it does not take."""
    if not transform.can_transform(source_type):
        raise InvalidInput(f"{transform} cannot be applied to a {source_type} column")
    return transform.result_type(source_type)


def transform_array(
    transform: Transform[Any, Any],
    array: pa.Array | pa.ChunkedArray,
    source_type: ice.IcebergType,
) -> pa.Array:
    """The transform of every value, as `arrow_type(result_type(…))`; null stays null."""
    result = arrow_type(result_type(transform, source_type))
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if array.type != arrow_type(source_type):
        array = array.cast(arrow_type(source_type))
    if isinstance(transform, IdentityTransform):
        return array
    if isinstance(transform, VoidTransform):
        return pa.nulls(len(array), result)
    if isinstance(transform, TruncateTransform):
        return _truncate(array, source_type, transform.width)
    if isinstance(transform, BucketTransform):
        hashed = _hashes(array, source_type) & np.uint32(0x7FFFFFFF)
        return _with_nulls(hashed % np.uint32(transform.num_buckets), array, result)
    if isinstance(transform, YearTransform | MonthTransform | DayTransform | HourTransform):
        return _with_nulls(_calendar(transform, array, source_type), array, result)
    raise Unsupported(f"partition transform {transform} is not known", feature=str(transform))


def _with_nulls(values: np.ndarray[Any, Any], like: pa.Array, type_: pa.DataType) -> pa.Array:
    mask = None
    if like.null_count:
        mask = like.is_null().to_numpy(zero_copy_only=False)
    made = pa.array(values.astype(np.int32), pa.int32(), mask=mask)
    return made if type_ == pa.int32() else made.cast(type_)


def _longs(array: pa.Array) -> Longs:
    """Integers, days or ticks as 64-bit integers; arbitrary where null."""
    code = "<i4" if array.type.bit_width == 32 else "<i8"
    if not len(array):
        return np.zeros(0, dtype=np.int64)
    count = array.offset + len(array)
    return np.frombuffer(array.buffers()[1], code, count)[array.offset :].astype(np.int64)


def _micros(array: pa.Array, source_type: ice.IcebergType) -> Longs:
    ticks = _longs(array)
    if isinstance(source_type, ice.TimestampNanoType | ice.TimestamptzNanoType):
        return np.floor_divide(ticks, 1000)
    return ticks


def _calendar(
    transform: Transform[Any, Any], array: pa.Array, source_type: ice.IcebergType
) -> Longs:
    if isinstance(transform, HourTransform):
        return np.floor_divide(_micros(array, source_type), _HOUR_US)
    if isinstance(source_type, ice.DateType):
        days = _longs(array)
    else:
        days = np.floor_divide(_micros(array, source_type), _DAY_US)
    unit = _CALENDAR.get(type(transform))
    if unit is None:
        return days
    return days.astype("datetime64[D]").astype(unit).astype(np.int64)


# --- truncate ------------------------------------------------------------------------------------


def _truncate(array: pa.Array, source_type: ice.IcebergType, width: int) -> pa.Array:
    if isinstance(source_type, ice.StringType):
        return pc.utf8_slice_codeunits(array, 0, width)
    if isinstance(source_type, ice.BinaryType):
        return pc.binary_slice(array, 0, width)
    if isinstance(source_type, ice.IntegerType | ice.LongType):
        return _truncate_whole(array, source_type, width)
    assert isinstance(source_type, ice.DecimalType)
    return _truncate_decimal(array, source_type, width)


def _too_low(source_type: ice.IcebergType, width: int) -> InvalidInput:
    return InvalidInput(
        f"truncate[{width}] of the lowest {source_type} values lies outside the {source_type} range"
    )


def _truncate_whole(array: pa.Array, source_type: ice.IcebergType, width: int) -> pa.Array:
    values = _longs(array)
    if array.null_count:
        values[array.is_null().to_numpy(zero_copy_only=False)] = 0
    rest = np.mod(values, width)
    lowest = -(2**31) if isinstance(source_type, ice.IntegerType) else -(2**63)
    if np.any(values < lowest + rest):
        raise _too_low(source_type, width)
    made = pa.array(values - rest, pa.int64())
    if array.null_count:
        made = pc.if_else(array.is_valid(), made, pa.scalar(None, pa.int64()))
    return made.cast(array.type)


def _truncate_decimal(array: pa.Array, source_type: ice.DecimalType, width: int) -> pa.Array:
    """Value − (value mod width) on the unscaled values, high × 2⁶⁴ + low; width fits 31 bits."""
    if not len(array):
        return array
    low, high = _decimal_words(array)
    carried = np.mod(high, width) * pow(2, 64, width)
    rest = np.mod(carried + (low % np.uint64(width)).astype(np.int64), width).astype(np.uint64)
    words = np.empty((len(array), 2), dtype=np.int64)
    words[:, 0] = (low - rest).view(np.int64)
    words[:, 1] = high - (low < rest)
    made = pa.Array.from_buffers(array.type, len(array), [None, pa.py_buffer(words)])
    if array.null_count:
        made = pc.if_else(array.is_valid(), made, pa.scalar(None, array.type))
    try:
        made.validate(full=True)
    except pa.ArrowInvalid:
        raise _too_low(source_type, width) from None
    return made


def _decimal_words(array: pa.Array) -> tuple[np.ndarray[Any, np.dtype[np.uint64]], Longs]:
    count = array.offset + len(array)
    words = np.frombuffer(array.buffers()[1], "<i8", count * 2)[array.offset * 2 :].reshape(-1, 2)
    return words[:, 0].view(np.uint64), words[:, 1]


# --- bucket --------------------------------------------------------------------------------------


def _hashes(array: pa.Array, source_type: ice.IcebergType) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """The 32-bit hash of every value; arbitrary where null."""
    if not len(array):
        return np.zeros(0, dtype=np.uint32)
    if isinstance(source_type, ice.DecimalType):
        return _decimal_hashes(array)
    rows = np.arange(array.offset, array.offset + len(array), dtype=np.int64)
    if isinstance(source_type, ice.StringType | ice.BinaryType):
        _, offsets_buffer, data_buffer = array.buffers()
        offsets = np.frombuffer(offsets_buffer, "<i4").astype(np.int64)
        starts = offsets[rows]
        return hash_bytes(_data(data_buffer), starts, offsets[rows + 1] - starts)
    if pa.types.is_fixed_size_binary(array.type):
        width = array.type.byte_width
        return hash_bytes(
            _data(array.buffers()[1]), rows * width, np.full(len(array), width, dtype=np.int64)
        )
    return hash_longs(_micros(array, source_type))


def _data(buffer: pa.Buffer | None) -> np.ndarray[Any, np.dtype[np.uint8]]:
    if buffer is None:
        return np.zeros(0, dtype=np.uint8)
    return np.frombuffer(buffer, np.uint8)


def _decimal_hashes(array: pa.Array) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Hashes of the unscaled values as big-endian two's complement, in the fewest bytes."""
    low, high = _decimal_words(array)
    data = np.empty((len(array), 2), dtype=">u8")
    data[:, 0] = high.view(np.uint64)
    data[:, 1] = low
    matrix = data.view(np.uint8).reshape(-1, 16)
    sign = np.where(matrix[:, :1] >= 0x80, np.uint8(0xFF), np.uint8(0))
    padding = np.minimum((np.cumsum(matrix != sign, axis=1) == 0).sum(axis=1), 15)
    first = np.take_along_axis(matrix, padding[:, None], axis=1)
    # The first byte kept must still carry the sign.
    starts = padding - ((first ^ sign) >= 0x80)[:, 0]
    rows = np.arange(len(array), dtype=np.int64) * 16
    return hash_bytes(matrix.reshape(-1), rows + starts, 16 - starts)

"""Partition values of many rows at once: Arrow column in, Arrow column out.

Exactly what Iceberg's transforms say, for every type they take: dates and hours before 1970 round
down, decimals hash as their shortest two's-complement bytes, nanosecond timestamps hash as
microseconds, text is cut by code points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.errors import InvalidInput, Unsupported
from frazil.format.values.murmur128 import Bytes, Positions, rows_of_one_length
from frazil.format.values.types import arrow_type
from frazil.iceberg import types as ice
from frazil.iceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    JointBucketTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)

Longs: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

_DAY_US: Final = 86_400_000_000
_HOUR_US: Final = 3_600_000_000
_CALENDAR: Final[dict[type[Transform], str]] = {
    YearTransform: "datetime64[Y]",
    MonthTransform: "datetime64[M]",
}


def result_type(transform: Transform, source_type: ice.IcebergType) -> ice.IcebergType:
    """The type of the transform's results; refuses types it does not take."""
    if not transform.can_transform(source_type):
        raise InvalidInput(f"{transform} cannot be applied to a {source_type} column")
    return transform.result_type(source_type)


def transform_array(
    transform: Transform,
    array: pa.Array | pa.ChunkedArray,
    source_type: ice.IcebergType,
) -> pa.Array:
    """The transform of every value, as `arrow_type(result_type(…))`; null stays null."""
    result = arrow_type(result_type(transform, source_type))
    array = _plain(array, source_type)
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
    raise Unsupported(f"unknown partition transform {transform}", feature=str(transform))


def joint_array(
    transform: Transform,
    arrays: Sequence[pa.Array | pa.ChunkedArray],
    source_types: Sequence[ice.IcebergType],
) -> pa.Array:
    """The transform of every row of several columns; null where one of them is null."""
    if len(arrays) == 1:
        return transform_array(transform, arrays[0], source_types[0])
    if isinstance(transform, VoidTransform):
        return pa.nulls(len(arrays[0]), arrow_type(source_types[0]))
    if not isinstance(transform, JointBucketTransform):
        raise Unsupported(f"unknown partition transform {transform}", feature=str(transform))
    is_known: pa.Array | None = None
    pieces = []
    for array, kind in zip(arrays, source_types, strict=True):
        result_type(transform, kind)
        plain = _plain(array, kind)
        is_valid = pc.is_valid(plain)
        is_known = is_valid if is_known is None else pc.and_(is_known, is_valid)
        pieces.append(_hashed_bytes(plain, kind))
    hashed = _joint_hashes(pieces) & np.uint32(0x7FFFFFFF)
    buckets = (hashed % np.uint32(transform.num_buckets)).astype(np.int32)
    return pc.if_else(
        is_known, arrow_values.array(buckets, pa.int32()), arrow_values.scalar(None, pa.int32())
    )


def _plain(array: pa.Array | pa.ChunkedArray, source_type: ice.IcebergType) -> pa.Array:
    """One array of the type that the column has in memory."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    kind = arrow_type(source_type)
    return array if array.type == kind else pc.cast(array, kind)


def _with_nulls(values: np.ndarray[Any, Any], like: pa.Array, type_: pa.DataType) -> pa.Array:
    mask = None
    if like.null_count:
        mask = arrow_values.to_numpy(pc.is_null(like))
    numbers = arrow_values.array(values.astype(np.int32), pa.int32(), mask=mask)
    return numbers if type_ == pa.int32() else pc.cast(numbers, type_)


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


def _calendar(transform: Transform, array: pa.Array, source_type: ice.IcebergType) -> Longs:
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
        values[arrow_values.to_numpy(pc.is_null(array))] = 0
    rest = np.mod(values, width)
    lowest = -(2**31) if isinstance(source_type, ice.IntegerType) else -(2**63)
    if np.any(values < lowest + rest):
        raise _too_low(source_type, width)
    truncated = arrow_values.array(values - rest, pa.int64())
    if array.null_count:
        truncated = pc.if_else(pc.is_valid(array), truncated, arrow_values.scalar(None, pa.int64()))
    return pc.cast(truncated, array.type)


def _truncate_decimal(array: pa.Array, source_type: ice.DecimalType, width: int) -> pa.Array:
    """Value − (value mod width) on the unscaled values, high × 2⁶⁴ + low; width fits 31 bits."""
    if not len(array):
        return array
    # Two 64-bit words in big-endian order are the 16 bytes; leading sign bytes are left out.
    low, high = _decimal_words(array)
    carried = np.mod(high, width) * pow(2, 64, width)
    rest = np.mod(carried + (low % np.uint64(width)).astype(np.int64), width).astype(np.uint64)
    words = np.empty((len(array), 2), dtype=np.int64)
    words[:, 0] = (low - rest).view(np.int64)
    words[:, 1] = high - (low < rest)
    truncated = pa.Array.from_buffers(array.type, len(array), [None, pa.py_buffer(words)])
    if array.null_count:
        truncated = pc.if_else(pc.is_valid(array), truncated, arrow_values.scalar(None, array.type))
    try:
        truncated.validate(full=True)
    except pa.ArrowInvalid:
        raise _too_low(source_type, width) from None
    return truncated


def _decimal_words(array: pa.Array) -> tuple[np.ndarray[Any, np.dtype[np.uint64]], Longs]:
    count = array.offset + len(array)
    words = np.frombuffer(array.buffers()[1], "<i8", count * 2)[array.offset * 2 :].reshape(-1, 2)
    return words[:, 0].view(np.uint64), words[:, 1]


# --- bucket --------------------------------------------------------------------------------------


def _hashes(array: pa.Array, source_type: ice.IcebergType) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """The 32-bit hash of every value; arbitrary where null."""
    if not len(array):
        return np.zeros(0, dtype=np.uint32)
    if _is_hashed_as_long(array, source_type):
        return hash_longs(_micros(array, source_type))
    return hash_bytes(*_hashed_bytes(array, source_type))


def _is_hashed_as_long(array: pa.Array, source_type: ice.IcebergType) -> bool:
    if isinstance(source_type, ice.DecimalType | ice.StringType | ice.BinaryType):
        return False
    return not pa.types.is_fixed_size_binary(array.type)


def _hashed_bytes(array: pa.Array, source_type: ice.IcebergType) -> tuple[Bytes, Longs, Longs]:
    """The bytes that every value is hashed as: all of them, where each begins, and its length."""
    if not len(array):
        none = np.zeros(0, dtype=np.int64)
        return np.zeros(0, dtype=np.uint8), none, none
    if isinstance(source_type, ice.DecimalType):
        return _decimal_bytes(array)
    rows = np.arange(array.offset, array.offset + len(array), dtype=np.int64)
    if _is_hashed_as_long(array, source_type):
        data = _micros(array, source_type).astype("<i8").view(np.uint8)
        return data, np.arange(len(array)) * 8, np.full(len(array), 8, dtype=np.int64)
    if pa.types.is_fixed_size_binary(array.type):
        width = array.type.byte_width
        data = _data(array.buffers()[1])
        return data, rows * width, np.full(len(array), width, dtype=np.int64)
    _, offsets_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offsets_buffer, "<i4").astype(np.int64)
    starts = offsets[rows]
    return _data(data_buffer), starts, offsets[rows + 1] - starts


def _joint_hashes(
    pieces: Sequence[tuple[Bytes, Longs, Longs]],
) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """The hashes of the bytes of several columns, row by row one after the other."""
    lengths = np.stack([sizes for _, _, sizes in pieces]).sum(axis=0)
    starts = np.cumsum(lengths) - lengths
    data = np.empty(int(lengths.sum()), dtype=np.uint8)
    place = starts.copy()
    for source, begins, sizes in pieces:
        # The position of every byte within its value, for all values at once.
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        data[np.repeat(place, sizes) + within] = source[np.repeat(begins, sizes) + within]
        place += sizes
    return hash_bytes(data, starts, lengths)


def _data(buffer: pa.Buffer | None) -> np.ndarray[Any, np.dtype[np.uint8]]:
    if buffer is None:
        return np.zeros(0, dtype=np.uint8)
    return np.frombuffer(buffer, np.uint8)


def _decimal_bytes(array: pa.Array) -> tuple[Bytes, Longs, Longs]:
    """The unscaled values as big-endian two's complement, in the fewest bytes."""
    low, high = _decimal_words(array)
    data = np.empty((len(array), 2), dtype=">u8")
    data[:, 0] = high.view(np.uint64)
    data[:, 1] = low
    matrix = data.view(np.uint8).reshape(-1, 16)
    sign = np.where(matrix[:, :1] >= 0x80, np.uint8(0xFF), np.uint8(0))
    # Leading bytes that only repeat the sign; at least one byte stays.
    padding = np.minimum((np.cumsum(matrix != sign, axis=1) == 0).sum(axis=1), 15)
    first = np.take_along_axis(matrix, padding[:, None], axis=1)
    # The first byte kept must still carry the sign.
    starts = padding - ((first ^ sign) >= 0x80)[:, 0]
    rows = np.arange(len(array), dtype=np.int64) * 16
    return matrix.reshape(-1), rows + starts, 16 - starts


# Murmur3


Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint32]]

_C1: Final = np.uint32(0xCC9E2D51)
_C2: Final = np.uint32(0x1B873593)
_C3: Final = np.uint32(0xE6546B64)


def hash_longs(values: np.ndarray[Any, np.dtype[np.int64]]) -> Words:
    """The hashes of 64-bit integers, each as its eight little-endian bytes."""
    words = np.ascontiguousarray(values, dtype="<i8").view("<u4").reshape(-1, 2)
    hashed = np.zeros(len(words), dtype=np.uint32)
    for column in range(2):
        hashed = _mix(hashed, words[:, column].astype(np.uint32))
    return _finish(hashed, 8)


def hash_bytes(data: Bytes, starts: Positions, lengths: Positions) -> Words:
    """The hashes of byte strings that lie in `data` at `starts`, `lengths` bytes each.

    Strings of one length are hashed together, as the rows of a matrix.
    """
    hashed = np.zeros(len(starts), dtype=np.uint32)
    if not len(starts):
        return hashed
    for rows, matrix in rows_of_one_length(data, starts, lengths):
        hashed[rows] = _hash_rows(matrix)
    return hashed


def _hash_rows(matrix: Bytes) -> Words:
    count, length = matrix.shape
    hashed = np.zeros(count, dtype=np.uint32)
    full_words = length // 4
    if full_words:
        words = np.ascontiguousarray(matrix[:, : full_words * 4]).view("<u4")
        for column in range(full_words):
            hashed = _mix(hashed, words[:, column].astype(np.uint32))
    tail = np.zeros(count, dtype=np.uint32)
    for position in range(full_words * 4, length):
        shift = np.uint32(8 * (position - full_words * 4))
        tail |= matrix[:, position].astype(np.uint32) << shift
    if length % 4:
        hashed ^= _scramble(tail)
    return _finish(hashed, length)


def _scramble(block: Words) -> Words:
    return _rotate(block * _C1, 15) * _C2


def _rotate(words: Words, bits: int) -> Words:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))


def _mix(hashed: Words, block: Words) -> Words:
    return _rotate(hashed ^ _scramble(block), 13) * np.uint32(5) + _C3


def _finish(hashed: Words, length: int) -> Words:
    hashed = hashed ^ np.uint32(length & 0xFFFFFFFF)
    hashed = (hashed ^ (hashed >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashed = (hashed ^ (hashed >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return hashed ^ (hashed >> np.uint32(16))

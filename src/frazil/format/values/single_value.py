"""Iceberg's single-value serialisation, in bulk: bounds as bytes in v1 to v3 against Arrow columns.

Decoding accepts what older schemas wrote: bounds of an int column that is a long now have four
bytes, and so on. Fixed-width types go through numpy, so that a manifest costs a few array
operations and not one call per value. Knows nothing of manifests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.errors import FormatError, Unsupported
from frazil.format.values.types import STORAGE, arrow_type, is_geo, promote, text_of
from frazil.iceberg import types as ice
from frazil.iceberg.types import VariantType

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]

AXES: Final = ("x", "y", "z", "m")

_STORED: Final[dict[type[ice.IcebergType], tuple[ice.IcebergType, ...]]] = {
    ice.LongType: (ice.LongType(), ice.IntegerType()),
    ice.DoubleType: (ice.DoubleType(), ice.FloatType()),
    ice.TimestampType: (ice.TimestampType(), ice.DateType()),
    ice.TimestampNanoType: (ice.TimestampNanoType(), ice.DateType()),
}
"""Types whose bounds may be stored in the width of the type they were promoted from."""


def decode_bounds(values: pa.Array | pa.ChunkedArray, iceberg_type: ice.IcebergType) -> pa.Array:
    """Serialised values as a column of `arrow_type(iceberg_type)`; null stays null.

    Bytes of a width no version of the type has raise FormatError. A `fixed` bound shorter than
    the type (truncated by its writer) is filled up with zero bytes, which keeps it a bound. NaN
    and strings that are not UTF-8 bound nothing: null. Geo types have points: `decode_points`.
    """
    column = _one_chunk(values)
    if isinstance(iceberg_type, ice.UnknownType):
        return pa.nulls(len(column))
    if isinstance(iceberg_type, VariantType):
        from frazil.format.values.variant_bounds import split

        return split(column, STORAGE)
    if isinstance(iceberg_type, ice.StringType):
        return text_of(column)
    if isinstance(iceberg_type, ice.BinaryType):
        return column
    if isinstance(iceberg_type, ice.DecimalType):
        return _decode_decimals(column, iceberg_type)
    if isinstance(iceberg_type, ice.FixedType | ice.UUIDType):
        return _decode_fixed(column, iceberg_type)
    if is_geo(iceberg_type):
        raise Unsupported(f"bounds of {iceberg_type} are points", feature="geo bounds as values")
    return _decode_numbers(column, iceberg_type)


def encode_bounds(array: pa.Array | pa.ChunkedArray, iceberg_type: ice.IcebergType) -> pa.Array:
    """A column of `arrow_type(iceberg_type)` as serialised values; null stays null."""
    column = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    column = promote(column, iceberg_type)
    if isinstance(iceberg_type, ice.UnknownType):
        return pa.nulls(len(column), pa.binary())
    if isinstance(iceberg_type, VariantType):
        from frazil.format.values.variant_bounds import joined

        return joined(column)
    if isinstance(iceberg_type, ice.StringType | ice.BinaryType | ice.FixedType | ice.UUIDType):
        return pc.cast(column, pa.binary())
    if is_geo(iceberg_type):
        raise Unsupported(f"bounds of {iceberg_type} are points", feature="geo bounds as values")
    valid = _valid(column)
    if isinstance(iceberg_type, ice.DecimalType):
        big_endian = _unscaled(column)[:, ::-1]
        return _binary_column(big_endian, _minimal_width(big_endian), valid)
    width = _width(iceberg_type)
    if isinstance(iceberg_type, ice.BooleanType):
        numbers = pc.fill_null(column, False).to_numpy(zero_copy_only=False).astype(np.uint8)
    else:
        numbers = _little_endian(column, width)
    rows = np.ascontiguousarray(numbers).view(np.uint8).reshape(len(column), width)
    return _binary_column(rows, np.full(len(column), width), valid)


def decode_points(values: pa.Array | pa.ChunkedArray) -> dict[str, pa.Array]:
    """Serialised geo bounds as four columns of doubles, x y z m; an axis a point lacks is null."""
    column = _one_chunk(values)
    lengths, valid = _lengths(column), _valid(column)
    numbers = np.full((len(column), 4), np.nan)
    for dimensions in (2, 3, 4):
        rows = valid & (lengths == 8 * dimensions)
        points = _gather(column, rows, 8 * dimensions).view("<f8").reshape(-1, dimensions)
        numbers[rows, :dimensions] = points
        valid = valid & ~rows
    _refuse(column, valid, "16, 24 or 32 bytes", "a geo bound")
    return {
        axis: pa.array(numbers[:, index], pa.float64(), mask=np.isnan(numbers[:, index]))
        for index, axis in enumerate(AXES)
    }


def encode_points(axes: Mapping[str, pa.Array | pa.ChunkedArray]) -> pa.Array:
    """Four columns of doubles as serialised geo bounds; a point without x or y is null."""
    present = [np.asarray(pc.fill_null(axes[axis], float("nan"))) for axis in AXES]
    numbers = np.stack([column.astype("<f8") for column in present], axis=1)
    has_value = ~np.isnan(numbers)
    dimensions = np.where(has_value[:, 3], 4, np.where(has_value[:, 2], 3, 2))
    rows = np.ascontiguousarray(numbers).view(np.uint8).reshape(len(numbers), 32)
    return _binary_column(rows, 8 * dimensions, has_value[:, 0] & has_value[:, 1], leading=True)


# --- decoding --------------------------------------------------------------------------------


def _decode_numbers(column: pa.Array, iceberg_type: ice.IcebergType) -> pa.Array:
    lengths, left = _lengths(column), _valid(column)
    result: pa.Array | None = None
    stored = _STORED.get(type(iceberg_type), (iceberg_type,))
    for kind in stored:
        width = _width(kind)
        rows = left & (lengths == width)
        left = left & ~rows
        if result is not None and not rows.any():
            continue
        decoded = promote(_scatter(_gather(column, rows, width), rows, kind), iceberg_type)
        result = decoded if result is None else pc.coalesce(result, decoded)
    expected = " or ".join(str(_width(kind)) for kind in stored)
    _refuse(column, left, f"{expected} bytes", f"a bound of type {iceberg_type}")
    return result


def _scatter(raw: Bytes, rows: Mask, kind: ice.IcebergType) -> pa.Array:
    """Gathered values back at their rows, null elsewhere, in the Arrow type of the kind."""
    target = arrow_type(kind)
    if pa.types.is_boolean(target):
        flags = np.zeros(len(rows), dtype=bool)
        flags[rows] = raw.reshape(-1) != 0
        return pa.array(flags, mask=~rows)
    numbers = np.zeros(len(rows), dtype=_dtype(target))
    numbers[rows] = np.ascontiguousarray(raw).view(_dtype(target)).reshape(-1)
    absent = ~rows | np.isnan(numbers) if pa.types.is_floating(target) else ~rows
    values = pa.array(numbers, mask=absent)
    return values if values.type == target else values.view(target)


def _decode_decimals(column: pa.Array, iceberg_type: ice.DecimalType) -> pa.Array:
    lengths, valid = _lengths(column), _valid(column)
    _refuse(column, valid & ((lengths < 1) | (lengths > 16)), "1 to 16 bytes", "a decimal bound")
    little_endian = np.zeros((len(column), 16), dtype=np.uint8)
    for width in np.unique(lengths[valid]):
        rows = valid & (lengths == width)
        raw = _gather(column, rows, int(width))
        negative = raw[:, 0] >= 0x80
        wide = np.where(negative[:, None], np.uint8(0xFF), np.uint8(0)).repeat(16, axis=1)
        wide[:, 16 - int(width) :] = raw
        little_endian[rows] = wide[:, ::-1]
    return _from_bytes(little_endian, valid, arrow_type(iceberg_type))


def _decode_fixed(column: pa.Array, iceberg_type: ice.IcebergType) -> pa.Array:
    target = arrow_type(iceberg_type)
    lengths, valid = _lengths(column), _valid(column)
    wrong = lengths != 16 if isinstance(iceberg_type, ice.UUIDType) else lengths > target.byte_width
    _refuse(column, valid & wrong, f"{target.byte_width} bytes", f"a bound of {iceberg_type}")
    padded = np.zeros((len(column), target.byte_width), dtype=np.uint8)
    for width in np.unique(lengths[valid]):
        rows = valid & (lengths == width)
        padded[rows, : int(width)] = _gather(column, rows, int(width))
    return _from_bytes(padded, valid, target)


def _one_chunk(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    column = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return column if column.type == pa.binary() else pc.cast(column, pa.binary())


def _valid(column: pa.Array) -> Mask:
    if column.null_count == 0:
        return np.ones(len(column), dtype=bool)
    return np.asarray(pc.is_valid(column).to_numpy(zero_copy_only=False))


def _offsets(column: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    buffer = column.buffers()[1]
    if buffer is None or buffer.size == 0:
        return np.zeros(len(column) + 1, dtype=np.int64)
    window = np.frombuffer(buffer, dtype=np.int32)[column.offset : column.offset + len(column) + 1]
    return window.astype(np.int64)


def _lengths(column: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.diff(_offsets(column))


def _gather(column: pa.Array, rows: Mask, width: int) -> Bytes:
    """The bytes of the chosen rows, all `width` long, as a matrix with a row for each."""
    starts = _offsets(column)[:-1][rows]
    buffer = column.buffers()[2]
    if buffer is None or len(starts) == 0:
        return np.zeros((len(starts), width), dtype=np.uint8)
    data = np.frombuffer(buffer, dtype=np.uint8)
    return np.asarray(data[starts[:, None] + np.arange(width)])


def _refuse(column: pa.Array, wrong: Mask, expected: str, what: str) -> None:
    if wrong.any():
        value = column[int(np.argmax(wrong))].as_py()
        raise FormatError(f"{what} has {len(value)} bytes ({value.hex()}); expected {expected}")


# --- encoding --------------------------------------------------------------------------------


def _little_endian(column: pa.Array, width: int) -> np.ndarray[Any, np.dtype[Any]]:
    dtype = _dtype(column.type)
    if pa.types.is_floating(column.type):
        return np.asarray(pc.fill_null(column, 0.0).to_numpy()).astype(dtype)
    integers = pc.fill_null(column.view(pa.int32() if width == 4 else pa.int64()), 0)
    return np.asarray(integers.to_numpy()).astype(dtype)


def _unscaled(column: pa.Array) -> Bytes:
    """Unscaled decimals as rows of 16 little-endian bytes; null rows hold zero."""
    buffer = column.buffers()[1]
    if buffer is None or len(column) == 0:
        return np.zeros((len(column), 16), dtype=np.uint8)
    start = column.offset * 16
    window = np.frombuffer(buffer, dtype=np.uint8)[start : start + 16 * len(column)]
    return np.where(_valid(column)[:, None], window.reshape(-1, 16), np.uint8(0))


def _minimal_width(big_endian: Bytes) -> np.ndarray[Any, np.dtype[np.int64]]:
    """How many trailing bytes of each 16-byte two's complement number are needed."""
    negative = big_endian[:, 0] >= 0x80
    significant = big_endian != np.where(negative, np.uint8(0xFF), np.uint8(0))[:, None]
    # All bytes are sign (0 or -1): one byte says it.
    first = np.where(significant.any(axis=1), significant.argmax(axis=1), 15)
    # One byte more where the first byte kept would turn the sign over.
    top = np.take_along_axis(big_endian, first[:, None], axis=1)[:, 0] >= 0x80
    return np.asarray(16 - first + (top != negative), dtype=np.int64)


def _binary_column(
    rows: Bytes, widths: np.ndarray[Any, np.dtype[np.int64]], valid: Mask, *, leading: bool = False
) -> pa.Array:
    """A binary column of the trailing (or leading) `widths` bytes of each row."""
    count, size = rows.shape
    lengths = np.where(valid, widths, 0)
    offsets = np.zeros(count + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    place = np.arange(size)
    chosen = place < lengths[:, None] if leading else place >= size - lengths[:, None]
    data = np.ascontiguousarray(rows)[chosen]
    buffers = [validity(valid), pa.py_buffer(offsets.tobytes()), pa.py_buffer(data.tobytes())]
    return pa.Array.from_buffers(pa.binary(), count, buffers)


def _from_bytes(rows: Bytes, valid: Mask, target: pa.DataType) -> pa.Array:
    data = pa.py_buffer(np.ascontiguousarray(rows).tobytes())
    return pa.Array.from_buffers(target, len(rows), [validity(valid), data])


def validity(valid: Mask) -> pa.Buffer | None:
    """Which values of an array are there, as Arrow keeps it; None for all of them."""
    if valid.all():
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())


def _width(kind: ice.IcebergType) -> int:
    if isinstance(kind, ice.BooleanType):
        return 1
    return int(arrow_type(kind).bit_width) // 8


def _dtype(target: pa.DataType) -> str:
    if pa.types.is_floating(target):
        return "<f4" if target.bit_width == 32 else "<f8"
    return "<i4" if target.bit_width == 32 else "<i8"

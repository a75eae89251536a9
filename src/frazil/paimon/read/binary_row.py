"""BinaryRow, Paimon's row bytes, decoded in bulk: one Arrow column per field over all rows.

    [int32 BE arity] [ row: 1 byte kind | null bits | arity slots of 8 bytes | variable part ]

The null bits start at bit 8 (the kind byte is inside) and are padded to 8 bytes; offsets in slots
count from `row`. All rows lie in one buffer; every step is arithmetic on arrays of positions, so
the cost per row is a few nanoseconds per field. Positions are checked against the row's own length
before any byte is read. Knows nothing of manifests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil.errors import FormatError
from frazil.format.values.single_value import validity
from frazil.paimon.read.data_types import (
    BINARIES,
    NESTED,
    STRINGS,
    TIMESTAMPS,
    DataType,
    TypeName,
    arrow_type,
)
from frazil.value_classes import dataclass

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_COMPACT_DECIMAL: Final = 18
_COMPACT_TIMESTAMP: Final = 3
_MAX_DEPTH: Final = 16
_MILLIS_PER_DAY: Final = 86_400_000
_ELEMENT_WIDTH: Final = {
    TypeName.BOOLEAN: 1,
    TypeName.TINYINT: 1,
    TypeName.SMALLINT: 2,
    TypeName.INT: 4,
    TypeName.DATE: 4,
    TypeName.TIME: 4,
    TypeName.FLOAT: 4,
}
_FIXED: Final[dict[TypeName, str]] = {
    TypeName.TINYINT: "<i1",
    TypeName.SMALLINT: "<i2",
    TypeName.INT: "<i4",
    TypeName.BIGINT: "<i8",
    TypeName.FLOAT: "<f4",
    TypeName.DOUBLE: "<f8",
    TypeName.DATE: "<i4",
    TypeName.TIME: "<i4",
}


def null_bytes(arity: int) -> int:
    """Bytes taken by the kind byte and the null bits of a row."""
    return (arity + 63 + 8) // 64 * 8


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Rows, or nested values, inside one buffer: where each starts and how long it is."""

    data: Bytes
    start: Ints
    size: Ints

    def require(self, needed: Ints | int, present: Mask, what: str) -> None:
        """Refuse when a present row is shorter than needed."""
        short = present & (self.size < needed)
        if short.any():
            row = int(np.argmax(short))
            raise FormatError(
                f"row {row} has {int(self.size[row])} bytes, too few for its {what}",
                field="BinaryRow",
            )

    def gather(self, at: Ints, dtype: str) -> npt.NDArray[Any]:
        """A fixed-width value at each absolute position; out-of-range positions read as zero."""
        width = np.dtype(dtype).itemsize
        if len(self.data) < width:
            return np.zeros(len(at), dtype)
        safe = np.clip(at, 0, len(self.data) - width)
        picked = self.data[safe[:, None] + np.arange(width)]
        values: npt.NDArray[Any] = picked.view(dtype).reshape(len(at))
        return values


def decode(rows: pa.Array | pa.ChunkedArray, types: Sequence[DataType]) -> list[pa.Array]:
    """One Arrow column per type from binary values that each hold a BinaryRow.

    A null or zero-length value is a row without fields: null in every column. Any other arity
    than `len(types)` is an error.
    """
    data, start, size = _binary_layout(rows)
    all_rows = _Rows(data, start, size)
    present = size > 0
    all_rows.require(4, present, "arity")
    arity = np.where(present, all_rows.gather(start, ">i4").astype(np.int64), 0)
    empty = arity == 0
    wrong = ~empty & (arity != len(types))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise FormatError(
            f"row {row} has {int(arity[row])} fields; expected {len(types)}", field="BinaryRow"
        )
    present &= ~empty
    body = _Rows(data, start + 4, np.maximum(size - 4, 0))
    return _fields(body, types, present, depth=0)


def _binary_layout(rows: pa.Array | pa.ChunkedArray) -> tuple[Bytes, Ints, Ints]:
    array = rows.combine_chunks() if isinstance(rows, pa.ChunkedArray) else rows
    if not pa.types.is_binary(array.type):
        array = array.cast(pa.binary())
    if array.null_count:
        array = array.fill_null(b"")
    _, offsets_buffer, values = array.buffers()
    if len(array) == 0:
        return np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64)
    offsets = np.frombuffer(offsets_buffer, np.int32)[array.offset : array.offset + len(array) + 1]
    wide = offsets.astype(np.int64)
    data = np.zeros(0, np.uint8) if values is None else np.frombuffer(values, np.uint8)
    return data, wide[:-1], np.diff(wide)


def _fields(rows: _Rows, types: Sequence[DataType], present: Mask, depth: int) -> list[pa.Array]:
    head = null_bytes(len(types))
    rows.require(head + 8 * len(types), present, f"{len(types)} slots")
    columns = []
    for index, type in enumerate(types):
        bit = index + 8
        flags = rows.gather(rows.start + (bit >> 3), "<u1")
        valid = present & ((flags >> (bit & 7)) & 1 == 0)
        columns.append(_column(rows, rows.start + head + 8 * index, type, valid, depth))
    return columns


def _column(rows: _Rows, slot: Ints, type: DataType, valid: Mask, depth: int) -> pa.Array:
    """Values of one type whose slots are at `slot`; offsets in slots count from `rows.start`."""
    name = type.name
    if name is TypeName.BOOLEAN:
        return pa.array(rows.gather(slot, "<u1") != 0, pa.bool_(), mask=~valid)
    if name in _FIXED:
        return _fixed(rows.gather(slot, _FIXED[name]), type, valid)
    if name is TypeName.DECIMAL:
        return _decimals(rows, slot, type, valid)
    if name in TIMESTAMPS:
        return _timestamps(rows, slot, type, valid)
    if name in STRINGS or name in BINARIES:
        return _strings(rows, slot, type, valid)
    length, at = _reference(rows, slot, valid, type)
    if name in NESTED:
        if depth >= _MAX_DEPTH:
            raise FormatError(f"{type} is nested deeper than {_MAX_DEPTH}", field="BinaryRow")
        return _nested(_Rows(rows.data, at, length), type, valid, depth + 1)
    return _slices(rows.data, at, length, pa.binary(), valid)


def _fixed(values: npt.NDArray[Any], type: DataType, valid: Mask) -> pa.Array:
    kind = arrow_type(type)
    if type.name is TypeName.TIME:
        bad = valid & ((values < 0) | (values >= _MILLIS_PER_DAY))
        _refuse(bad, "a time outside the day")
        return pa.array(values.astype(np.int64) * 1000, pa.int64(), mask=~valid).cast(kind)
    if type.name is TypeName.DATE:
        return pa.array(values, pa.int32(), mask=~valid).cast(kind)
    if type.name in (TypeName.TINYINT, TypeName.SMALLINT):
        values = values.astype(np.int32)
    return pa.array(values, kind, mask=~valid)


def _refuse(bad: Mask, what: str) -> None:
    if bad.any():
        raise FormatError(f"row {int(np.argmax(bad))} holds {what}", field="BinaryRow")


def _reference(rows: _Rows, slot: Ints, valid: Mask, type: DataType) -> tuple[Ints, Ints]:
    """Length and absolute position of a value in the variable part; zero where not valid."""
    length = np.where(valid, rows.gather(slot, "<u4").astype(np.int64), 0)
    offset = np.where(valid, rows.gather(slot + 4, "<u4").astype(np.int64), 0)
    _refuse(valid & (offset + length > rows.size), f"a {type.name} that reaches past its end")
    return length, rows.start + offset


def _decimals(rows: _Rows, slot: Ints, type: DataType, valid: Mask) -> pa.Array:
    if type.precision <= _COMPACT_DECIMAL:
        words = np.zeros((len(slot), 2), "<i8")
        words[:, 0] = rows.gather(slot, "<i8")
        words[:, 1] = words[:, 0] >> 63
        packed = words.view(np.uint8)
    else:
        length, at = _reference(rows, slot, valid, type)
        _refuse(length > 16, "a DECIMAL of more than 16 bytes")
        _refuse(valid & (length == 0), "a DECIMAL without bytes")
        # Big-endian and short: lay it right-aligned over 16 sign bytes, then turn it round.
        lane = np.arange(16)[None, :] - (16 - length)[:, None]
        safe = np.clip(at[:, None] + lane, 0, max(len(rows.data) - 1, 0))
        raw = rows.data[safe] if len(rows.data) else np.zeros(safe.shape, np.uint8)
        sign = np.where(rows.gather(at, "<u1") >= 128, 255, 0).astype(np.uint8)
        packed = np.ascontiguousarray(np.where(lane >= 0, raw, sign[:, None])[:, ::-1])
    packed = np.where(valid[:, None], packed, 0).astype(np.uint8)
    array = pa.Array.from_buffers(
        arrow_type(type), len(slot), [validity(valid), pa.py_buffer(packed.tobytes())]
    )
    return _checked(array)


def _timestamps(rows: _Rows, slot: Ints, type: DataType, valid: Mask) -> pa.Array:
    if type.precision <= _COMPACT_TIMESTAMP:
        millis, nanos = rows.gather(slot, "<i8"), np.zeros(len(slot), np.int64)
    else:
        nanos = np.where(valid, rows.gather(slot, "<u4").astype(np.int64), 0)
        offset = np.where(valid, rows.gather(slot + 4, "<u4").astype(np.int64), 0)
        _refuse(valid & (offset + 8 > rows.size), "a TIMESTAMP that reaches past its end")
        _refuse(nanos > 999_999, "more nanoseconds than a millisecond has")
        millis = rows.gather(rows.start + offset, "<i8")
    per_milli = 1000 if type.precision <= 6 else 1_000_000
    limit = (2**63 - 1) // per_milli - 1
    _refuse(valid & ((millis > limit) | (millis < -limit)), "a TIMESTAMP out of range")
    millis = np.where(valid, millis, 0)
    value = millis * per_milli + nanos // (1_000_000 // per_milli)
    return pa.array(value, pa.int64(), mask=~valid).cast(arrow_type(type))


def _strings(rows: _Rows, slot: Ints, type: DataType, valid: Mask) -> pa.Array:
    mark = rows.gather(slot + 7, "<u1").astype(np.int64)
    inline = valid & (mark >= 0x80)
    short = mark & 0x7F
    _refuse(inline & (short > 7), f"an inline {type.name} longer than 7 bytes")
    length, at = _reference(rows, slot, valid & ~inline, type)
    length, at = np.where(inline, short, length), np.where(inline, slot, at)
    return _slices(rows.data, at, length, arrow_type(type), valid)


def _slices(data: Bytes, at: Ints, length: Ints, kind: pa.DataType, valid: Mask) -> pa.Array:
    """A string or binary column of `data[at : at + length]`."""
    ends = np.cumsum(length)
    total = int(ends[-1]) if len(ends) else 0
    if total > 2**31 - 1:
        raise FormatError(f"{total} bytes in one column; expected less", field="BinaryRow")
    offsets = np.zeros(len(length) + 1, np.int32)
    offsets[1:] = ends
    source = np.repeat(at - (ends - length), length) + np.arange(total)
    values = data[source] if total else np.zeros(0, np.uint8)
    buffers = [validity(valid), pa.py_buffer(offsets.tobytes()), pa.py_buffer(values.tobytes())]
    return _checked(pa.Array.from_buffers(kind, len(length), buffers))


def _nested(rows: _Rows, type: DataType, valid: Mask, depth: int) -> pa.Array:
    kind = arrow_type(type)
    if type.name is TypeName.ROW:
        children = _fields(rows, [field.type for field in type.fields], valid, depth)
        fields = [kind.field(i) for i in range(kind.num_fields)]
        if not children:
            return pa.array([{} if ok else None for ok in valid], kind)
        return pa.StructArray.from_arrays(children, fields=fields, mask=pa.array(~valid))
    assert type.element is not None
    if type.name in (TypeName.ARRAY, TypeName.VECTOR):
        offsets, values = _elements(rows, type.element, valid, depth)
        return pa.ListArray.from_arrays(offsets, values, kind, mask=pa.array(~valid))
    key = type.element if type.name is TypeName.MULTISET else type.key
    value = DataType(name=TypeName.INT) if type.name is TypeName.MULTISET else type.element
    assert key is not None
    rows.require(4, valid, "map")
    keys_size = np.where(valid, rows.gather(rows.start, "<i4").astype(np.int64), 0)
    _refuse(valid & ((keys_size < 4) | (keys_size + 4 > rows.size)), "a MAP with broken keys")
    keys = _Rows(rows.data, rows.start + 4, keys_size)
    values = _Rows(rows.data, rows.start + 4 + keys_size, rows.size - 4 - keys_size)
    offsets, key_array = _elements(keys, key, valid, depth)
    value_offsets, value_array = _elements(values, value, valid, depth)
    if offsets != value_offsets:
        raise FormatError("a MAP has more keys than values, or fewer", field="BinaryRow")
    if key_array.null_count:
        raise FormatError("a MAP has a null key", field="BinaryRow")
    lists = pa.MapArray.from_arrays(offsets, key_array, value_array)
    return pa.Array.from_buffers(
        kind, len(lists), [validity(valid), lists.buffers()[1]], children=[lists.values]
    )


def _elements(rows: _Rows, element: DataType, valid: Mask, depth: int) -> tuple[pa.Array, pa.Array]:
    """Offsets and values of BinaryArrays: [int32 count][null bits, 4-aligned][elements]."""
    rows.require(4, valid, "array")
    count = np.where(valid, rows.gather(rows.start, "<i4").astype(np.int64), 0)
    width = _ELEMENT_WIDTH.get(element.name, 8)
    head = 4 + (count + 31) // 32 * 4
    _refuse(valid & ((count < 0) | (head + width * count > rows.size)), "an ARRAY cut short")
    ends = np.cumsum(count)
    total = int(ends[-1]) if len(ends) else 0
    position = np.arange(total) - np.repeat(ends - count, count)
    inner = _Rows(rows.data, np.repeat(rows.start, count), np.repeat(rows.size, count))
    flags = inner.gather(inner.start + 4 + (position >> 3), "<u1")
    present = (flags >> (position & 7).astype(np.uint8)) & 1 == 0
    slot = inner.start + np.repeat(head, count) + position * width
    values = _column(inner, slot, element, present, depth)
    offsets = np.zeros(len(count) + 1, np.int32)
    offsets[1:] = ends
    return pa.array(offsets), values


def _checked(array: pa.Array) -> pa.Array:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise FormatError(
            f"a value is not a valid {array.type}: {error}", field="BinaryRow"
        ) from None
    return array

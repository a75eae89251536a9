"""Paimon's file indexes: what they rule out of a data file.

An index lies in the file's manifest entry or in a file beside it. It holds, for some columns, a
Bloom filter or a bitmap for every value; kinds that are not known here are passed over. Both tell
whether a value can occur in the file. Numbers are big-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from frazil.errors import FormatError
from frazil.iceberg.expressions import (
    AlwaysFalse,
    And,
    BooleanExpression,
    BoundPredicate,
    Op,
    Or,
    literals_of,
    operator_of,
)
from frazil.paimon.read.data_types import BINARIES, STRINGS, TIMESTAMPS, DataType, TypeName
from frazil.value_classes import dataclass

MAGIC: Final = 1493475289347502
_VERSION: Final = 1
_BLOOM: Final = "bloom-filter"
_BITMAP: Final = "bitmap"
_MILLISECONDS: Final = 3
"""The finest precision of timestamps that are kept in milliseconds; others are in microseconds."""
_MASK: Final = (1 << 64) - 1

_NUMBERS: Final = {
    TypeName.BOOLEAN: "?",
    TypeName.TINYINT: "b",
    TypeName.SMALLINT: "h",
    TypeName.INT: "i",
    TypeName.DATE: "i",
    TypeName.BIGINT: "q",
    TypeName.FLOAT: "f",
    TypeName.DOUBLE: "d",
    **dict.fromkeys(TIMESTAMPS, "q"),
}


@dataclass(slots=True)
class _Input:
    """Reads an index from front to back; an index that ends too early is a format error."""

    data: bytes
    position: int = 0

    def take(self, length: int) -> bytes:
        part = self.data[self.position : self.position + length]
        if length < 0 or len(part) != length:
            raise FormatError("a file index is cut short")
        self.position += length
        return part

    def number(self, code: str = "i") -> Any:
        return struct.unpack(f">{code}", self.take(struct.calcsize(f">{code}")))[0]

    def text(self) -> str:
        return self.take(self.number("H")).decode("utf-8", "replace")


def read_index(data: bytes) -> Mapping[str, Mapping[str, bytes]]:
    """The body of every index, by column and kind."""
    head = _Input(data)
    if head.number("q") != MAGIC:
        raise FormatError("does not begin as a file index does")
    if (version := head.number()) != _VERSION:
        raise FormatError(f"is version {version} of file indexes; expected {_VERSION}")
    head.number()  # the length of the head, which says itself where it ends
    columns: dict[str, dict[str, bytes]] = {}
    for _ in range(head.number()):
        kinds = columns.setdefault(head.text(), {})
        for _ in range(head.number()):
            kind, start, length = head.text(), head.number(), head.number()
            kinds[kind] = _Input(data, start).take(length)
    return columns


def rules_out(
    index: Mapping[str, Mapping[str, bytes]],
    expression: BooleanExpression,
    columns: Mapping[int, tuple[str, DataType]],
) -> bool:
    """Whether no row of the file can match. `columns` gives, by field id, the names and types that
    columns have in the file."""
    if isinstance(expression, And):
        parts = (expression.left, expression.right)
        return any(rules_out(index, part, columns) for part in parts)
    if isinstance(expression, Or):
        parts = (expression.left, expression.right)
        return all(rules_out(index, part, columns) for part in parts)
    if not isinstance(expression, BoundPredicate):
        return isinstance(expression, AlwaysFalse)
    column = columns.get(expression.term.field.field_id)
    if column is None or column[0] not in index:
        return False
    kinds, type_ = index[column[0]], column[1]
    op = operator_of(expression)
    if op is Op.IS_NULL:
        return _BITMAP in kinds and not _has_null(kinds[_BITMAP])
    if op not in (Op.EQ, Op.IN):
        return False
    values = [_stored(literal.value, type_) for literal in literals_of(expression)]
    tests: list[Callable[[Any], bool]] = []
    if _BLOOM in kinds and type_.name is not TypeName.BOOLEAN:
        tests.append(lambda value: _in_bloom(kinds[_BLOOM], value, type_))
    if _BITMAP in kinds and (type_.name in _NUMBERS or type_.name in STRINGS):
        indexed = _bitmap_values(kinds[_BITMAP], type_)
        tests.append(lambda value: value in indexed)
    return any(all(value is not _UNKNOWN and not test(value) for value in values) for test in tests)


_UNKNOWN: Final = object()


def _stored(value: Any, type_: DataType) -> Any:
    """A literal as an index holds it; `_UNKNOWN` where it holds no such values."""
    if type_.name in STRINGS:
        return value.encode()
    if type_.name in BINARIES:
        return bytes(value)
    if type_.name in TIMESTAMPS:
        if type_.precision is not None and type_.precision <= _MILLISECONDS:
            return value // 1000
        return value
    if type_.name is TypeName.FLOAT or type_.name is TypeName.DOUBLE:
        # Both zeros are equal to a filter; an index tells them apart.
        return value if value else _UNKNOWN
    return value if type_.name in _NUMBERS else _UNKNOWN


def _in_bloom(body: bytes, value: Any, type_: DataType) -> bool:
    (count,) = struct.unpack_from(">i", body)
    bits = memoryview(body)[4:]
    if not 0 < count <= 64 or not len(bits):
        raise FormatError(f"a Bloom filter of {len(bits)} bytes with {count} hashes")
    hashed = _hash(value, type_)
    low, high = _signed(hashed, 32), _signed(hashed >> 32, 32)
    for step in range(1, count + 1):
        place = _signed(low + step * high, 32)
        place = (~place if place < 0 else place) % (len(bits) * 8)
        if not bits[place >> 3] >> (place & 7) & 1:
            return False
    return True


def _hash(value: Any, type_: DataType) -> int:
    if isinstance(value, bytes):
        return xxhash64(value)
    if type_.name is TypeName.FLOAT:
        value = struct.unpack(">i", struct.pack(">f", value))[0]
    elif type_.name is TypeName.DOUBLE:
        value = struct.unpack(">q", struct.pack(">d", value))[0]
    return _mixed(value)


def _mixed(number: int) -> int:
    """Thomas Wang's hash of a 64-bit integer, with shifts that keep the sign."""
    key = _signed(~number + (number << 21), 64)
    key = _signed(key ^ (key >> 24), 64)
    key = _signed(key * 265, 64)
    key = _signed(key ^ (key >> 14), 64)
    key = _signed(key * 21, 64)
    key = _signed(key ^ (key >> 28), 64)
    return (key + (key << 31)) & _MASK


def _signed(number: int, bits: int) -> int:
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


def _has_null(body: bytes) -> bool:
    head = _Input(body)
    head.number("b"), head.number(), head.number()
    return bool(head.number("?"))


def _bitmap_values(body: bytes, type_: DataType) -> frozenset[Any]:
    """Every value that a bitmap index has a bitmap for."""
    head = _Input(body)
    version = head.number("b")
    if version not in (1, 2):
        raise FormatError(f"is version {version} of bitmap indexes; expected 1 or 2")
    head.number()  # rows
    count, has_null = head.number(), head.number("?")

    def value() -> Any:
        if type_.name in STRINGS:
            return head.take(head.number())
        return head.number(_NUMBERS[type_.name])

    if has_null:
        head.take(4 * version)  # where its bitmap lies, and in version 2 its length
    values: set[Any] = set()
    if version == 1:
        for _ in range(count):
            values.add(value())
            head.number()
        return frozenset(values)
    blocks = head.number()
    for _ in range(blocks):
        value(), head.number()
    head.number()  # where the bitmaps begin
    for _ in range(blocks):
        for _ in range(head.number()):
            values.add(value())
            head.take(8)  # where the bitmap lies, and its length
    return frozenset(values)


# XXH64, seed 0, as the Bloom filters hash text


_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5


def xxhash64(data: bytes) -> int:
    """The hash as an unsigned number of 64 bits."""
    length, at = len(data), 0
    if length >= 32:
        lanes = [(_P1 + _P2) & _MASK, _P2, 0, -_P1 & _MASK]
        while at + 32 <= length:
            words = struct.unpack_from("<4Q", data, at)
            lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
            at += 32
        turned = (_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
        state = sum(turned) & _MASK
        for lane in lanes:
            state = ((state ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        state = _P5
    state = (state + length) & _MASK
    while at + 8 <= length:
        (word,) = struct.unpack_from("<Q", data, at)
        state = (_rotated(state ^ _round(0, word), 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= length:
        (half,) = struct.unpack_from("<I", data, at)
        state = (_rotated(state ^ (half * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        state = (_rotated(state ^ (byte * _P5 & _MASK), 11) * _P1) & _MASK
    state = ((state ^ (state >> 33)) * _P2) & _MASK
    state = ((state ^ (state >> 29)) * _P3) & _MASK
    return state ^ (state >> 32)


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotated(value: int, by: int) -> int:
    return ((value << by) | (value >> (64 - by))) & _MASK

"""Parquet footers as bytes: structures of Thrift's compact protocol, read and put together.

Here too is Parquet's VARIANT annotation, which pyarrow does not write: in a finished footer, groups
with certain field ids get the logical type; everything else stays byte by byte as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from frazil.errors import FormatError

TRAILER_BYTES: Final = 8
"""The footer's length and the magic number, at the end of a file."""
_STOP: Final = 0
_TRUE, _FALSE, _BYTE, _I16, I32, I64, _DOUBLE, BINARY, LIST, _SET, _MAP, STRUCT = range(1, 13)
_VARINTS: Final = (_I16, I32, I64)
_WIDTHS: Final = {_TRUE: 0, _FALSE: 0, _BYTE: 1, _DOUBLE: 8}
_SCHEMA: Final = 2
"""The field of the footer that lists the columns, groups and leaves in one order."""
_NUM_CHILDREN: Final = 5
_FIELD_ID: Final = 9
_LOGICAL_TYPE: Final = 10
_VARIANT: Final = bytes([STRUCT, 32, 0x10 | _BYTE, 1, _STOP, _STOP])
"""The union of logical types with its member 16, a structure that says version 1."""


def with_variants(tail: bytes, field_ids: Collection[int]) -> bytes:
    """A file's footer, length and magic number, with groups of these ids marked as variants."""
    footer = tail[:-TRAILER_BYTES]
    reader = ThriftReader(footer)
    inserts: list[tuple[int, bytes]] = []
    for number, kind in reader.fields():
        if number != _SCHEMA or kind != LIST:
            reader.skip(kind)
            continue
        size, element = reader.list_header()
        if element != STRUCT:
            raise FormatError("the columns in a Parquet footer are no structures")
        for _ in range(size):
            insert = _annotation(reader, field_ids)
            if insert is not None:
                inserts.append(insert)
    parts, copied = [], 0
    for at, data in inserts:
        parts += [footer[copied:at], data]
        copied = at
    annotated = b"".join([*parts, footer[copied:]])
    return annotated + len(annotated).to_bytes(4, "little") + tail[-4:]


def _annotation(reader: ThriftReader, field_ids: Collection[int]) -> tuple[int, bytes] | None:
    """Where the annotation of one column goes, and its bytes; None where none is due."""
    is_variant = is_group = False
    last = 0
    for number, kind in reader.fields():
        last = number
        if number == _FIELD_ID and kind == I32:
            is_variant = reader.zigzag() in field_ids
        elif number == _NUM_CHILDREN and kind == I32:
            is_group = reader.zigzag() > 0
        else:
            reader.skip(kind)
    if not is_variant or not is_group or last >= _LOGICAL_TYPE:
        return None
    return reader.at - 1, bytes([(_LOGICAL_TYPE - last) << 4 | STRUCT]) + _VARIANT


class ThriftReader:
    """A position in Thrift's compact protocol."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def fields(self) -> _Fields:
        """The numbers and types of a structure's fields; the caller reads or skips each value."""
        return _Fields(self)

    def byte(self) -> int:
        """The next byte."""
        if self.at >= len(self._data):
            raise FormatError("a Parquet footer ends too early")
        self.at += 1
        return self._data[self.at - 1]

    def varint(self) -> int:
        """A number, seven bits in each byte."""
        try:
            number, self.at = _varint_at(self._data, self.at)
        except IndexError as error:
            raise FormatError("a Parquet footer ends too early") from error
        return number

    def zigzag(self) -> int:
        """A number with a sign."""
        number = self.varint()
        return (number >> 1) ^ -(number & 1)

    def list_header(self) -> tuple[int, int]:
        """How many elements follow, and their type."""
        header = self.byte()
        size = header >> 4
        return (self.varint() if size == 15 else size), header & 0x0F

    def skip(self, kind: int) -> None:
        """Pass over a value."""
        try:
            self.at = _end_of(self._data, self.at, kind)
        except IndexError as error:
            raise FormatError("a Parquet footer ends too early") from error


def _end_of(data: bytes, at: int, kind: int) -> int:
    """Where a value ends. Footers have thousands, so no object is made on the way."""
    if kind in _VARINTS:
        while data[at] & 0x80:
            at += 1
        return at + 1
    if kind == BINARY:
        size, at = _varint_at(data, at)
        return at + size
    if kind == STRUCT:
        while header := data[at]:
            at += 1
            if header < 0x10:  # the number of the field follows
                at = _end_of(data, at, I64)
            at = _end_of(data, at, header & 0x0F)
        return at + 1
    if kind in (LIST, _SET):
        size, element = data[at] >> 4, data[at] & 0x0F
        at += 1
        if size == 15:
            size, at = _varint_at(data, at)
        if element in (_TRUE, _FALSE):
            element = _BYTE  # in a list, a boolean takes a byte
        if element in _WIDTHS:
            return at + size * _WIDTHS[element]
        for _ in range(size):
            at = _end_of(data, at, element)
        return at
    if kind in _WIDTHS:
        return at + _WIDTHS[kind]
    raise FormatError(f"a Parquet footer has a value of type {kind}")


def _varint_at(data: bytes, at: int) -> tuple[int, int]:
    """A number, and where it ends."""
    number = shift = 0
    while (byte := data[at]) & 0x80:
        number |= (byte & 0x7F) << shift
        shift += 7
        at += 1
    return number | byte << shift, at + 1


def varint(number: int) -> bytes:
    """A number that is not negative, seven bits in each byte."""
    if number < 0x80:
        return bytes((number,))
    parts = bytearray()
    while number >= 0x80:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def count(number: int) -> bytes:
    """A value that counts something, with the bit for its sign."""
    return varint(number << 1)


def field(step: int, kind: int) -> bytes:
    """The header of a field whose number is `step` higher than that of the one before."""
    return bytes((step << 4 | kind,))


def list_of(parts: Sequence[bytes], kind: int) -> bytes:
    """A list whose elements are written already."""
    size = len(parts)
    header = bytes((size << 4 | kind,)) if size < 15 else bytes((0xF0 | kind,)) + varint(size)
    return header + b"".join(parts)


def text(value: str) -> bytes:
    """A text, after its length."""
    data = value.encode()
    return varint(len(data)) + data


class _Fields:
    """The headers of a structure's fields."""

    def __init__(self, reader: ThriftReader) -> None:
        self._reader = reader
        self._number = 0

    def __iter__(self) -> _Fields:
        return self

    def __next__(self) -> tuple[int, int]:
        header = self._reader.byte()
        if header == _STOP:
            raise StopIteration
        step = header >> 4
        self._number = self._number + step if step else self._reader.zigzag()
        return self._number, header & 0x0F


__all__ = [
    "BINARY",
    "I64",
    "LIST",
    "STRUCT",
    "TRAILER_BYTES",
    "ThriftReader",
    "count",
    "field",
    "list_of",
    "text",
    "varint",
    "with_variants",
]

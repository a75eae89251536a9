"""A small manifest made smaller: equal pages are stored once, and the footer says what it must.

pyarrow's footer repeats for each column which encodings its pages have and how long its levels are,
which no reader needs; of a hundred columns of a small root, more than half hold the same numbers.
What follows from the columns alone is worked out once per set of columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from frazil.format.parquet_footer import (
    BINARY,
    I64,
    LIST,
    STRUCT,
    TRAILER_BYTES,
    ThriftReader,
    count,
    field,
    list_of,
    text,
)
from frazil.value_classes import frozen

_MAGIC: Final = b"PAR1"
_STOP: Final = b"\x00"
_SCHEMA, _ROW_GROUPS, _CREATED_BY = 2, 4, 6
_COLUMNS: Final = 1
_FILE_OFFSET, _META_DATA = 2, 3
_CODEC: Final = 4
_WRITTEN_ANEW: Final = frozenset({5, 6, 7, 9})  # numbers of values and bytes, and where the page is
_LEFT_OUT: Final = frozenset({13, 16})  # statistics of encodings and of sizes
_VARINT: Final = rb"([\x80-\xff]*[\x00-\x7f])"
_PAGE_HEADER: Final = re.compile(
    rb"\x15\x00\x15%b\x15%b\x2c\x15%b\x15.\x15.\x15.(?:\x1c\x00)?\x00\x00" % ((_VARINT,) * 3),
    re.DOTALL,
)
"""A data page of the first version: its bytes plain and stored, its values, three encodings. Its
statistics are empty."""
_COLUMN: Final = field(2, I64) + count(0) + field(1, STRUCT)
"""The start of a column's part of a row group, with the file offset that is always 0."""


@frozen
class LeanFooter:
    """What the footers of files with one set of columns have in common, as bytes: what comes up to
    the schema, the type, encodings, path and codec of each column, and who wrote it."""

    schema: bytes
    columns: tuple[bytes, ...]
    created_by: bytes


def footer_of(file: bytes) -> LeanFooter | None:
    """The constant parts of a file's footer; None where it says more than a lean one can."""
    footer = file[_footer_start(file) : -TRAILER_BYTES]
    reader = ThriftReader(footer)
    schema = created_by = b""
    columns: tuple[bytes, ...] | None = None
    for number, kind in reader.fields():
        start = reader.at
        if number == _ROW_GROUPS:
            columns = _columns(reader, footer)
            if columns is None:
                return None
            continue
        reader.skip(kind)
        if number == _SCHEMA:
            schema = footer[: reader.at]
        elif number == _CREATED_BY:
            created_by = footer[start : reader.at]
    if columns is None:
        return None
    return LeanFooter(schema=schema, columns=columns, created_by=created_by)


def _columns(reader: ThriftReader, footer: bytes) -> tuple[bytes, ...] | None:
    """The constant parts of the columns of the only row group."""
    groups, _ = reader.list_header()
    if groups != 1:
        return None
    columns: list[bytes] = []
    for number, kind in reader.fields():
        if number != _COLUMNS:
            reader.skip(kind)
            continue
        for _ in range(reader.list_header()[0]):
            column = _column(reader, footer)
            if column is None:
                return None
            columns.append(column)
    return tuple(columns)


def _column(reader: ThriftReader, footer: bytes) -> bytes | None:
    """The start of a column's metadata, which its codec ends."""
    column = None
    for number, kind in reader.fields():
        if number == _META_DATA:
            start = reader.at
            for member, member_kind in reader.fields():
                reader.skip(member_kind)
                if member == _CODEC:
                    column = footer[start : reader.at]
                elif member > _CODEC and member not in _WRITTEN_ANEW | _LEFT_OUT:
                    return None
        elif number == _FILE_OFFSET:
            reader.skip(kind)
        else:
            return None
    return column


def lean(file: bytes, footer: LeanFooter, *, rows: int, metadata: Mapping[str, str]) -> bytes:
    """The file in fewer bytes; as it is where a column is not one plain page."""
    body = [_MAGIC]
    at = end = len(_MAGIC)
    plain_bytes = 0
    encoded_pages: dict[bytes, bytes] = {}
    columns: list[bytes] = []
    for constant in footer.columns:
        header = _PAGE_HEADER.match(file, at)
        if header is None:
            return file
        start, values_start = at, header.end()
        uncompressed, stored, values = map(_number, header.groups())
        at = values_start + stored
        page = file[start:at]
        uncompressed += values_start - start
        plain_bytes += uncompressed
        counts = encoded_pages.get(page)
        if counts is None:
            counts = encoded_pages[page] = _counts(values, uncompressed, at - start, place=end)
            body.append(page)
            end += at - start
        columns.append(_COLUMN + constant + counts)
    if at != _footer_start(file):
        return file
    group = (
        *(field(1, LIST), list_of(columns, STRUCT)),
        *(field(1, I64), count(plain_bytes)),
        *(field(1, I64), count(rows), _STOP),
    )
    pairs = [
        b"".join((field(1, BINARY), text(key), field(1, BINARY), text(value), _STOP))
        for key, value in metadata.items()
    ]
    tail = b"".join(
        (
            footer.schema,
            *(field(1, I64), count(rows)),
            *(field(1, LIST), list_of([b"".join(group)], STRUCT)),
            *(field(1, LIST), list_of(pairs, STRUCT)),
            *(field(1, BINARY), footer.created_by, _STOP),
        )
    )
    return b"".join((*body, tail, len(tail).to_bytes(4, "little"), _MAGIC))


def _counts(values: int, uncompressed: int, stored: int, *, place: int) -> bytes:
    """The end of a column's part of a row group."""
    return b"".join(
        (
            *(field(1, I64), count(values)),
            *(field(1, I64), count(uncompressed)),
            *(field(1, I64), count(stored)),
            *(field(2, I64), count(place), _STOP, _STOP),
        )
    )


def _number(data: bytes) -> int:
    number = 0
    for byte in reversed(data):
        number = number << 7 | byte & 0x7F
    return number >> 1


def _footer_start(file: bytes) -> int:
    return len(file) - TRAILER_BYTES - int.from_bytes(file[-TRAILER_BYTES:-4], "little")


__all__ = ["LeanFooter", "footer_of", "lean"]

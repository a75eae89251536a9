"""Checksums over whole Parquet files, in the gap before their footer.

Parquet has checksums for pages, but none for page headers and the footer, where a damaged field id
or bound loses rows without an error. A few bytes between the last page and the footer close that
hole; no offset points at them, and readers pass over them.

A small manifest, which is read in one piece anyway, has one checksum and none in its pages:

    pages · FZ 01 C · CRC-32 of everything else · footer · its length · PAR1

A data file is read in ranges. It has checksums in its pages and two in the gap, so that the footer
can be checked alone, and the whole file by a reader of all of it:

    pages · FZ 02 C · CRC-32 of what comes before · CRC-32 of what follows · footer · length · PAR1

Numbers have four bytes, little endian.
"""

from __future__ import annotations

import io
import zlib
from typing import Any

import pyarrow as pa

from frazil.errors import FormatError

_SEAL = b"FZ\x01C"
_SEAL_BYTES = 8
_DATA_SEAL = b"FZ\x02C"
DATA_SEAL_BYTES = 12
TRAILER_BYTES = 8


def sealed(data: pa.Buffer) -> pa.Buffer:
    """A manifest with its seal."""
    footer = footer_start(memoryview(data))
    pages, rest = data.slice(0, footer), data.slice(footer)
    crc = zlib.crc32(rest, zlib.crc32(pages))
    return pa.py_buffer(b"".join((pages, _SEAL, crc.to_bytes(4, "little"), rest)))


def check_seal(data: pa.Buffer, *, path: str) -> bool:
    """Whether a manifest has a seal; refuses one that is broken."""
    view = memoryview(data)
    footer = footer_start(view)
    start = footer - _SEAL_BYTES
    if start < 0 or view[start : start + len(_SEAL)] != _SEAL:
        return False
    stated = int.from_bytes(view[start + len(_SEAL) : footer], "little")
    _compare(zlib.crc32(view[footer:], zlib.crc32(view[:start])), stated, "file", path)
    return True


class Sealer(io.RawIOBase):
    """A stream for Parquet's writer that passes pages on, counts their checksum, and puts the seal
    before the footer. What is written after `hold` is held back until `finish`."""

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self._stream = stream
        self._crc = 0
        self._written = 0
        self._held: list[bytes] | None = None

    def write(self, data: Any) -> int:
        """Take bytes."""
        view = memoryview(data).cast("B")
        if self._held is None:
            self._crc = zlib.crc32(view, self._crc)
            self._stream.write(view)
        else:
            self._held.append(bytes(view))
        self._written += len(view)
        return len(view)

    def hold(self) -> None:
        """The footer comes next, and what stands before it."""
        self._held = []

    def finish(self) -> None:
        """Write what was held back, with the seal before the footer."""
        tail = b"".join(self._held or ())
        footer = footer_start(memoryview(tail))
        pages, rest = tail[:footer], tail[footer:]
        before, after = zlib.crc32(pages, self._crc), zlib.crc32(rest)
        seal = _DATA_SEAL + before.to_bytes(4, "little") + after.to_bytes(4, "little")
        self._stream.write(pages + seal + rest)
        self._written += len(seal)

    def tell(self) -> int:
        """Bytes taken so far."""
        return self._written

    def writable(self) -> bool:
        return True


def check_footer(tail: memoryview, *, path: str) -> int | None:
    """Check the footer of a data file, which the tail must hold with the seal before it.

    Returns the checksum of everything before the seal, None when the file has no seal.
    """
    footer = footer_start(tail)
    start = footer - DATA_SEAL_BYTES
    if start < 0 or tail[start : start + 4] != _DATA_SEAL:
        return None
    _compare(
        zlib.crc32(tail[footer:]),
        int.from_bytes(tail[start + 8 : footer], "little"),
        "footer",
        path,
    )
    return int.from_bytes(tail[start + 4 : start + 8], "little")


def check_pages(found: int, stated: int, *, path: str) -> None:
    """Compare the checksum of everything before the seal."""
    _compare(found, stated, "pages", path)


def footer_start(data: memoryview) -> int:
    """Where the footer begins, counted from the start of `data`; negative when it lies before."""
    return len(data) - TRAILER_BYTES - int.from_bytes(data[-TRAILER_BYTES:-4], "little")


def _compare(found: int, stated: int, what: str, path: str) -> None:
    if found != stated:
        raise FormatError(
            f"checksum of the {what} is {found:08x}; expected {stated:08x}. The file is damaged.",
            path=path,
        )

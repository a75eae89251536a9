"""Checksums over whole Parquet files, in the gap before their footer.

Parquet has checksums for pages, but none for page headers and the footer, where a damaged field id
or bound loses rows without an error. A few bytes between the last page and the footer close that
hole; no offset points at them, and readers pass over them.

A small manifest, which is read in one piece anyway, has one checksum and none in its pages:

    pages · FZ 01 C · CRC-32 of everything else · footer · its length · PAR1

A large manifest or a data file is read in ranges. It has checksums in its pages and two in the gap,
so that the footer can be checked alone, and the whole file by a reader of all of it:

    pages · FZ 02 C · CRC-32 of what comes before · CRC-32 of what follows · footer · length · PAR1

Numbers have four bytes, little endian.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Collection
from enum import Enum, auto
from typing import Any

import pyarrow as pa

from frazil.errors import FormatError

_SEAL = b"FZ\x01C"
_SEAL_BYTES = 8
_RANGES_SEAL = b"FZ\x02C"
_RANGES_SEAL_BYTES = 12
_TRAILER_BYTES = 8
_MAGIC = b"PAR1"
_TAIL_BYTES = 64 * 1024
"""What Parquet readers fetch of a file's end at first; files up to this size come as a whole."""
_PIECE_BYTES = 8 << 20


class Verified(Enum):
    """How much of a file was compared with its seal."""

    NOTHING = auto()
    FOOTER = auto()
    WHOLE = auto()


def sealed(data: pa.Buffer) -> pa.Buffer:
    """A small manifest with its seal."""
    pages, rest = _parts(data)
    crc = zlib.crc32(rest, zlib.crc32(pages))
    return pa.py_buffer(b"".join((pages, _SEAL, _number(crc), rest)))


def sealed_for_ranges(data: pa.Buffer) -> pa.Buffer:
    """A large manifest with its seal."""
    pages, rest = _parts(data)
    return pa.py_buffer(b"".join((pages, _ranges_seal(zlib.crc32(pages), rest), rest)))


def with_variants_marked(data: pa.Buffer, ids: Collection[int]) -> pa.Buffer:
    """A file with the groups of these ids marked as variants."""
    if not ids:
        return data
    pages, rest = _parts(data)
    return pa.py_buffer(b"".join((pages, annotated(rest, ids))))


class Sealer(io.RawIOBase):
    """A stream for Parquet's writer that passes pages on, counts their checksum, and puts the seal
    before the footer. What is written after `hold` is held back until `finish`. Groups with the
    ids of `variants` are marked as such in the footer."""

    def __init__(self, stream: Any, variants: Collection[int] = ()) -> None:
        super().__init__()
        self._stream = stream
        self._variants = variants
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
        pages, rest = _parts(pa.py_buffer(b"".join(self._held or ())))
        footer = annotated(rest, self._variants)
        seal = _ranges_seal(zlib.crc32(pages, self._crc), footer)
        self._stream.write(b"".join((pages, seal, footer)))
        self._written += len(seal) + len(footer) - len(rest)

    def tell(self) -> int:
        """Bytes taken so far."""
        return self._written

    def writable(self) -> bool:
        return True


def annotated(tail: pa.Buffer, variants: Collection[int]) -> pa.Buffer:
    """A footer and what follows it, with the groups of these ids marked as variants."""
    if not variants:
        return tail
    from frazil.format.parquet_footer import with_variants

    return pa.py_buffer(with_variants(tail.to_pybytes(), variants))


def verify(file: pa.NativeFile, *, path: str, all_pages: bool = False) -> Verified:
    """Compare a file with its seal, if it has one: all of it when the seal has one checksum, or
    when the file is in memory and all of its pages will be read; otherwise its footer.

    Do so before the footer is parsed: asking pyarrow for a damaged column ends the process.
    """
    tail = _tail(file)
    footer = _footer_start(tail)
    is_whole = len(tail) == file.size()
    if is_whole and _has_good_seal(tail, footer, path):
        return Verified.WHOLE
    checksum = _pages_checksum(tail, footer, path)
    if checksum is None:
        return Verified.NOTHING
    if not (is_whole and all_pages):
        return Verified.FOOTER
    _compare(zlib.crc32(tail[: footer - _RANGES_SEAL_BYTES]), checksum, "pages", path)
    return Verified.WHOLE


def verify_whole(file: pa.NativeFile, *, path: str) -> None:
    """Compare all of a file with its seal, if it has one for reading in ranges."""
    tail = _tail(file)
    footer = _footer_start(tail)
    checksum = _pages_checksum(tail, footer, path)
    if checksum is None:
        return
    crc, end = 0, file.size() - len(tail) + footer - _RANGES_SEAL_BYTES
    for start in range(0, end, _PIECE_BYTES):
        crc = zlib.crc32(file.read_at(min(_PIECE_BYTES, end - start), start), crc)
    _compare(crc, checksum, "pages", path)


def _has_good_seal(data: memoryview, footer: int, path: str) -> bool:
    """Whether a file has the seal of a small manifest; refuses one that is broken."""
    start = footer - _SEAL_BYTES
    if start < 0 or data[start : start + len(_SEAL)] != _SEAL:
        return False
    checksum = int.from_bytes(data[start + len(_SEAL) : footer], "little")
    _compare(zlib.crc32(data[footer:], zlib.crc32(data[:start])), checksum, "file", path)
    return True


def _pages_checksum(tail: memoryview, footer: int, path: str) -> int | None:
    """Check the footer of a file; returns what its seal says of the pages, None without one."""
    start = footer - _RANGES_SEAL_BYTES
    if start < 0 or tail[start : start + 4] != _RANGES_SEAL:
        return None
    checksum = int.from_bytes(tail[start + 8 : footer], "little")
    _compare(zlib.crc32(tail[footer:]), checksum, "footer", path)
    return int.from_bytes(tail[start + 4 : start + 8], "little")


def _tail(file: pa.NativeFile) -> memoryview:
    """The footer with the seal before it; all of a file that is in memory."""
    size = file.size()
    if isinstance(file, pa.BufferReader):
        file.seek(0)
        return memoryview(file.read_buffer(size))  # no copy
    tail = memoryview(file.read_at(min(_TAIL_BYTES, size), max(0, size - _TAIL_BYTES)))
    missing = _RANGES_SEAL_BYTES - _footer_start(tail)
    if missing <= 0 or len(tail) + missing > size:
        return tail
    tail_bytes = len(tail) + missing
    return memoryview(file.read_at(tail_bytes, size - tail_bytes))


def _parts(data: pa.Buffer) -> tuple[pa.Buffer, pa.Buffer]:
    """The pages, and what follows them."""
    footer = _footer_start(memoryview(data))
    return data.slice(0, footer), data.slice(footer)


def _ranges_seal(pages_crc: int, rest: pa.Buffer) -> bytes:
    return _RANGES_SEAL + _number(pages_crc) + _number(zlib.crc32(rest))


def _footer_start(data: memoryview) -> int:
    """Where the footer begins, counted from the start of `data`; negative when it lies before, or
    when this is not a Parquet file."""
    if len(data) < _TRAILER_BYTES or data[-4:] != _MAGIC:
        return -1
    return len(data) - _TRAILER_BYTES - int.from_bytes(data[-_TRAILER_BYTES:-4], "little")


def _number(crc: int) -> bytes:
    return crc.to_bytes(4, "little")


def _compare(computed: int, stated: int, what: str, path: str) -> None:
    if computed != stated:
        raise FormatError(
            f"checksum of the {what} is {computed:08x}; expected {stated:08x}. "
            "The file is damaged.",
            path=path,
        )

"""A checksum over a whole small Parquet file, in the gap before its footer.

Parquet has checksums for pages and none for the footer, and in a file of one row those of a hundred
pages weigh as much as the rows. A file that is read in one piece anyway is sealed as a whole: eight
bytes between the last page and the footer, which no offset points at and readers pass over.

    pages · SEAL · CRC-32 of everything else (4 bytes, little endian) · footer · its length · PAR1
"""

from __future__ import annotations

import zlib

import pyarrow as pa

from frazil.errors import FormatError

_SEAL = b"FZ\x01C"
_SEAL_BYTES = 8
_TRAILER_BYTES = 8


def sealed(data: pa.Buffer) -> pa.Buffer:
    """The file with its seal."""
    footer = _footer_start(memoryview(data))
    pages, rest = data.slice(0, footer), data.slice(footer)
    crc = zlib.crc32(rest, zlib.crc32(pages))
    return pa.py_buffer(b"".join((pages, _SEAL, crc.to_bytes(4, "little"), rest)))


def check_seal(data: pa.Buffer, *, path: str) -> bool:
    """Whether the file has a seal; refuses one that is broken."""
    view = memoryview(data)
    footer = _footer_start(view)
    start = footer - _SEAL_BYTES
    if start < 0 or view[start : start + len(_SEAL)] != _SEAL:
        return False
    stated = int.from_bytes(view[start + len(_SEAL) : footer], "little")
    found = zlib.crc32(view[footer:], zlib.crc32(view[:start]))
    if found != stated:
        raise FormatError(
            f"checksum is {found:08x}; expected {stated:08x}. The file is damaged.", path=path
        )
    return True


def _footer_start(data: memoryview) -> int:
    length = int.from_bytes(data[-_TRAILER_BYTES:-4], "little")
    return len(data) - _TRAILER_BYTES - length


__all__ = ["check_seal", "sealed"]

"""Paimon's deletion vectors: index files of 32-bit or 64-bit bitmaps, as row positions.

    file    01 · vectors
    vector  size (int32 BE) · body · CRC-32 of the body (int32 BE)
    body    5E43F2D0 + a portable 32-bit roaring bitmap, or
            D1D33964 + a portable 64-bit roaring bitmap, as in Iceberg's deletion vectors

A table whose `deletion-vectors.bitmap64` was switched holds both, so every vector is told by its
own magic. The length that an index manifest records excludes the framing for 32-bit vectors and
includes it for 64-bit ones; the size in the file decides. Reads no files.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

import numpy as np
import numpy.typing as npt

from frazil.errors import FormatError
from frazil.format.vectors import roaring
from frazil.limits import DEFAULT, Limits

VERSION: Final = 1
MAGIC_32: Final = bytes.fromhex("5e43f2d0")
MAGIC_64: Final = bytes.fromhex("d1d33964")
_FRAME_BYTES: Final = 8

Positions = npt.NDArray[np.int64]


def read_vector(
    data: bytes,
    *,
    offset: int,
    length: int,
    row_count: int | None = None,
    cardinality: int | None = None,
    limits: Limits = DEFAULT,
) -> Positions:
    """Positions of the vector at a range of an index file, ascending.

    `row_count` is the number of rows of its data file, `cardinality` what the index manifest says;
    a vector that disagrees with either is refused.
    """
    if data[:1] != bytes([VERSION]):
        raise FormatError(f"starts with {data[:1].hex()}; expected 01", field="version")
    if offset < 1 or offset + 4 > len(data):
        raise FormatError(f"offset {offset} is outside the {len(data)} bytes of the file")
    (size,) = struct.unpack_from(">i", data, offset)
    end = offset + 4 + size + 4
    if size < 8 or end > len(data):
        raise FormatError(f"the vector at {offset} has size {size}, past the end of the file")
    if length not in (size, size + _FRAME_BYTES):
        raise FormatError(f"the vector at {offset} has size {size}; the manifest says {length}")
    body = data[offset + 4 : end - 4]
    (stored,) = struct.unpack_from(">I", data, end - 4)
    if zlib.crc32(body) != stored:
        raise FormatError(f"the vector at {offset} does not match its checksum")
    positions = _positions(body, offset, row_count, limits)
    if cardinality is not None and len(positions) != cardinality:
        raise FormatError(
            f"the vector at {offset} holds {len(positions)} positions; "
            f"the manifest says {cardinality}"
        )
    return positions


def _positions(body: bytes, offset: int, limit: int | None, limits: Limits) -> Positions:
    if body[:4] == MAGIC_32:
        positions, end = roaring.decode_32(body, offset=4, limit=limit, limits=limits)
        if end != len(body):
            raise FormatError(f"the vector at {offset} ends at {end}; expected {len(body)}")
        return positions
    if body[:4] == MAGIC_64:
        return roaring.decode(body[4:], limit=limit, limits=limits)
    raise FormatError(f"the vector at {offset} starts with {body[:4].hex(' ')}; not a known magic")

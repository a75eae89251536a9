"""Theta sketches of distinct values, in the compact form of Apache DataSketches.

A sketch keeps the smallest hashes. While there are few, their number is the number of distinct
values; later it follows from how small the largest of them is. Values are hashed as Iceberg does:
their single-value serialisation, with the library's own seed.

    compact form  preamble of 1 to 3 longs · hashes, ascending
    preamble      its longs (1) · version 3 (1) · family 3 (1) · 0 (2) · flags (1) · seed hash (2)
                  · number of hashes (4) · 0 (4) · theta (8)
"""

from __future__ import annotations

import struct
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from frazil.format.values.murmur128 import hashes

Hashes: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]

BLOB_TYPE: Final = "apache-datasketches-theta-v1"
DISTINCT: Final = "ndv"
"""The property of a blob that holds the number of distinct values."""
MAX_HASHES: Final = 4096
"""What Iceberg's sketches keep: an error of about 1.6 %."""

_SEED: Final = 9001
_SEED_HASH: Final = 0x93CC
_VERSION: Final = 3
_FAMILY: Final = 3
_EMPTY: Final = 4
_SINGLE: Final = 32
_FLAGS: Final = 2 | 8 | 16  # read only, compact, ordered
_ALL: Final = 2**63 - 1


class ThetaSketch:
    """Distinct values of one column, added batch by batch."""

    def __init__(self) -> None:
        self._hashes: Hashes = np.zeros(0, dtype=np.uint64)
        self._theta = _ALL

    def add(self, values: pa.Array) -> None:
        """Take in serialised values; nulls do not count."""
        new = hashes(values.drop_null().unique(), _SEED) >> np.uint64(1)
        self._take_in(new[new > 0])

    def merge(self, other: ThetaSketch) -> None:
        """Take in the values of another sketch."""
        self._theta = min(self._theta, other._theta)
        self._take_in(other._hashes)

    def _take_in(self, new: Hashes) -> None:
        kept = np.union1d(self._hashes, new)
        kept = kept[kept < np.uint64(self._theta)]
        if len(kept) > MAX_HASHES:
            self._theta = int(kept[MAX_HASHES])
            kept = kept[:MAX_HASHES]
        self._hashes = kept

    @property
    def estimate(self) -> int:
        """About how many distinct values there are; exact up to `MAX_HASHES`."""
        return int(len(self._hashes) / (self._theta / _ALL))

    def to_bytes(self) -> bytes:
        """The sketch as the library reads it."""
        count = len(self._hashes)
        body = self._hashes.astype("<u8").tobytes()
        if self._theta < _ALL:
            return self._preamble(3) + struct.pack("<iiQ", count, 0, self._theta) + body
        if count == 0:
            return self._preamble(1, _EMPTY)
        if count == 1:
            return self._preamble(1, _SINGLE) + body
        return self._preamble(2) + struct.pack("<ii", count, 0) + body

    @staticmethod
    def _preamble(longs: int, flags: int = 0) -> bytes:
        return struct.pack("<BBBxxBH", longs, _VERSION, _FAMILY, _FLAGS | flags, _SEED_HASH)

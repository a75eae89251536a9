"""Many addresses, kept as 64-bit hashes: eight bytes each, whatever their length.

Two addresses with one hash are taken for one. So a set may say "held" of an address that it does
not hold, once in about 10^13 lookups among a million, and never the other way round: a file that
is in use is always recognised, and at worst one that could go stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.int64]
_ODD: Final = np.int64(0x1E3779B97F4A7C15)
"""Spreads the hash of a folder, so that a folder and a name do not change places."""


def hashes_of(addresses: pa.Array | pa.ChunkedArray) -> Hashes:
    """The hash of each address. They mean something in this process only."""
    return np.fromiter(map(hash, addresses.to_pylist()), np.int64, len(addresses))


def hashes_in_folder(folder: str, names: Sequence[str]) -> Hashes:
    """The hash of each file of one folder, as `hashes_in` has it."""
    return _joined(hash(folder), np.fromiter(map(hash, names), np.int64, len(names)))


def hashes_in(folders: pa.DictionaryArray, names: pa.Array) -> Hashes:
    """The hash of each file, from its folder and its name there: folders are few, and no text of
    both is made. Not the hashes that `hashes_of` gives."""
    by_number = hashes_of(folders.dictionary)
    return _joined(by_number[folders.indices.to_numpy()], hashes_of(names))


def _joined(folders: Hashes | int, names: Hashes) -> Hashes:
    with np.errstate(over="ignore"):
        return np.asarray(folders, dtype=np.int64) * _ODD + names


class AddressSet:
    """Addresses that are only ever looked for, never listed."""

    __slots__ = ("_sorted",)

    def __init__(self, parts: Iterable[Hashes]) -> None:
        hashes = np.concatenate([np.zeros(0, dtype=np.int64), *parts])
        hashes.sort()
        self._sorted = hashes

    @staticmethod
    def of(*columns: pa.Array | pa.ChunkedArray) -> AddressSet:
        """The addresses of some columns."""
        return AddressSet(hashes_of(column) for column in columns)

    def union(self, other: AddressSet) -> AddressSet:
        """The addresses of both."""
        return AddressSet((self._sorted, other._sorted))

    def holds(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Which of the addresses with these hashes are held."""
        if not self._sorted.size:
            return np.zeros(hashes.size, dtype=np.bool_)
        places = np.searchsorted(self._sorted, hashes)
        places[places == self._sorted.size] = 0  # beyond the last: compared with any, not equal
        held: np.ndarray[Any, np.dtype[np.bool_]] = self._sorted[places] == hashes
        return held

    @property
    def nbytes(self) -> int:
        """The memory that the set takes."""
        return int(self._sorted.nbytes)

    def __len__(self) -> int:
        return int(self._sorted.size)

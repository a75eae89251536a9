"""Sets of row numbers, as jobs collect them: array by array, in any order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap64

from frazil.rows.planned import Longs

_MOST_HELD: Final = 1 << 22
"""Numbers kept as they are, 32 MB of them; sorting those takes a quarter of the time that putting
them into a bitmap does. Beyond, they go into one, which may be a hundredth of the size."""


class RowNumbers:
    """A set that knows how many numbers were put into it. It travels as a bitmap."""

    __slots__ = ("_bitmap", "_held", "_parts", "added")

    def __init__(self) -> None:
        self.added = 0
        self._held = 0
        self._parts: list[Longs] = []
        self._bitmap: BitMap64 | None = None

    def add(self, numbers: npt.NDArray[Any]) -> None:
        """Put numbers in, each 0 or more."""
        self.added += len(numbers)
        self._hold(np.asarray(numbers, dtype=np.int64))

    def _hold(self, numbers: Longs) -> None:
        self._parts.append(numbers)
        self._held += len(numbers)
        if self._held > _MOST_HELD:
            found = np.sort(np.concatenate(self._parts)).astype(np.uint64)
            self._bitmap = BitMap64() if self._bitmap is None else self._bitmap
            self._bitmap.update(found)
            self._parts, self._held = [], 0

    def __len__(self) -> int:
        return len(self.to_array())

    def to_array(self) -> Longs:
        """The numbers, ascending, each once."""
        parts = [*self._parts]
        if self._bitmap is not None:
            parts.append(np.array(self._bitmap.to_array(), dtype=np.int64))
        found = np.sort(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)
        is_new = np.ones(len(found), dtype=np.bool_)
        np.not_equal(found[1:], found[:-1], out=is_new[1:])
        found = found if is_new.all() else found[is_new]
        if self._bitmap is None:  # asked again, they are in order
            self._parts, self._held = [found], len(found)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.added, BitMap64(self.to_array().astype(np.uint64)).serialize())

    @staticmethod
    def union(sets: Iterable[RowNumbers]) -> RowNumbers:
        """The numbers of all; what was added to them is added up."""
        made = RowNumbers()
        for each in sets:
            made.added += each.added
            for part in each._parts:
                made._hold(part)
            if each._bitmap is not None:
                made._bitmap = each._bitmap if made._bitmap is None else made._bitmap | each._bitmap
        return made


def _restored(added: int, data: bytes) -> RowNumbers:
    made = RowNumbers()
    made.add(np.array(BitMap64.deserialize(data).to_array(), dtype=np.int64))
    made.added = added
    return made

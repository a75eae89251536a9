"""Sets of row numbers, as jobs collect them: array by array, in any order."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap64

from frazil.rows.planned import Longs

_NONE: Final = np.zeros(0, dtype=np.int64)
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
            self._fold()

    def _fold(self) -> None:
        """Put what is held into the bitmap."""
        found = np.sort(np.concatenate([_NONE, *self._parts]))
        self._bitmap = BitMap64() if self._bitmap is None else self._bitmap
        self._bitmap.update(array("Q", found.tobytes()))
        self._parts, self._held = [], 0

    def __len__(self) -> int:
        if self._bitmap is None:
            return len(self.to_array())
        self._fold()
        return len(self._bitmap)

    def to_array(self) -> Longs:
        """The numbers, ascending, each once."""
        if self._bitmap is not None:
            self._fold()
            return np.array(self._bitmap.to_array(), dtype=np.int64)
        found = np.sort(np.concatenate([_NONE, *self._parts]))
        is_new = np.ones(len(found), dtype=np.bool_)
        np.not_equal(found[1:], found[:-1], out=is_new[1:])
        found = found if is_new.all() else found[is_new]
        self._parts, self._held = [found], len(found)  # asked again, they are in order
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.added, BitMap64(array("Q", self.to_array().tobytes())).serialize())

    @staticmethod
    def union(sets: Iterable[RowNumbers]) -> RowNumbers:
        """The numbers of all; what was added to them is added up."""
        made = RowNumbers()
        for each in sets:
            made.added += each.added
            for part in each._parts:
                made._hold(part)
            if each._bitmap is not None:
                made._bitmap = (made._bitmap or BitMap64()) | each._bitmap
        return made


def _restored(added: int, data: bytes) -> RowNumbers:
    made = RowNumbers()
    made.add(np.array(BitMap64.deserialize(data).to_array(), dtype=np.int64))
    made.added = added
    return made

"""Well-known binary: where the coordinates of many shapes are, found for all of them at once.

Knows ISO's WKB and the flags of EWKB. Shapes are walked side by side, ring by ring and part by
part, with arithmetic on whole arrays; what is not WKB to its last byte is refused.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from frazil.value_classes import dataclass

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Longs = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]

POINT, LINE, POLYGON = 1, 2, 3
_TRIANGLE: Final = 17
_COLLECTIONS: Final = frozenset({4, 5, 6, 7, 15, 16})
_AXES: Final = {(False, False): "xy", (True, False): "xyz", (False, True): "xym"}
_HEADER: Final = 5
_MAX_DEPTH: Final = 32


class NotWkb(Exception):
    """Bytes that are no shape whose coordinates say all about it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parts:
    """Points, lines or rings of one form: their coordinates, and how many each has."""

    kind: int
    axes: str
    numbers: Floats
    counts: Longs


def parts_of(column: pa.Array) -> Iterator[Parts]:
    """The points, lines and rings of all values of a binary column without nulls."""
    if not len(column):
        return
    wide = pa.types.is_large_binary(column.type)
    offsets = np.frombuffer(column.buffers()[1], np.int64 if wide else np.int32)
    places = offsets[column.offset : column.offset + len(column) + 1].astype(np.int64)
    buffer = column.buffers()[2]
    data = np.zeros(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)
    walk = _Walk(data)
    ends = walk.shapes(places[:-1], places[1:], 0)
    if (ends != places[1:]).any():
        raise NotWkb
    yield from walk.parts()


class _Walk:
    """A walk through all shapes; `_found` collects where their parts start."""

    def __init__(self, data: Bytes) -> None:
        self._data = data
        self._found: dict[tuple[str, int, str], list[tuple[Longs, Longs]]] = {}

    def shapes(self, starts: Longs, limits: Longs, depth: int) -> Longs:
        """Where the shapes that begin at `starts` end; none may go beyond its limit."""
        if depth > _MAX_DEPTH or (starts + _HEADER > limits).any():
            raise NotWkb
        headers = self._data[starts[:, None] + np.arange(_HEADER)]
        if (headers == headers[0]).all():
            return self._alike(headers[0].tobytes(), starts, limits, depth)
        forms, of = np.unique(headers, axis=0, return_inverse=True)
        of = of.reshape(-1)
        ends = starts.copy()
        for number, form in enumerate(forms):
            own = of == number
            ends[own] = self._alike(form.tobytes(), starts[own], limits[own], depth)
        return ends

    def _alike(self, header: bytes, starts: Longs, limits: Longs, depth: int) -> Longs:
        """The same for shapes of one kind."""
        if header[0] > 1:
            raise NotWkb
        order = "<" if header[0] else ">"
        (code,) = struct.unpack(f"{order}I", header[1:])
        at = starts + _HEADER + (4 if code & 0x20000000 else 0)  # the number of a reference system
        thousands, kind = divmod(code & 0x0FFFFFFF, 1000)
        if thousands > 3:
            raise NotWkb
        has_z = bool(code & 0x80000000) or thousands in (1, 3)
        has_m = bool(code & 0x40000000) or thousands in (2, 3)
        axes = _AXES.get((has_z, has_m), "xyzm")
        if kind == POINT:
            return self._part((order, POINT, axes), at, np.ones(len(at), np.int64), limits)
        counts, at = self._counts(order, at, limits), at + 4
        if kind == LINE:
            return self._part((order, LINE, axes), at, counts, limits)
        if kind not in (POLYGON, _TRIANGLE) and kind not in _COLLECTIONS:
            raise NotWkb  # a curve is more than its coordinates
        left = np.flatnonzero(counts > 0)
        done = 0
        while len(left):
            if kind in _COLLECTIONS:
                at[left] = self.shapes(at[left], limits[left], depth + 1)
            else:
                sizes = self._counts(order, at[left], limits[left])
                at[left] = self._part((order, POLYGON, axes), at[left] + 4, sizes, limits[left])
            done += 1
            left = left[counts[left] > done]
        return at

    def _counts(self, order: str, at: Longs, limits: Longs) -> Longs:
        if (at + 4 > limits).any():
            raise NotWkb
        found = self._data[at[:, None] + np.arange(4)]
        counts: Longs = found.view(f"{order}u4").reshape(-1).astype(np.int64)
        return counts

    def _part(self, form: tuple[str, int, str], at: Longs, counts: Longs, limits: Longs) -> Longs:
        ends: Longs = at + counts * (8 * len(form[2]))
        if (ends > limits).any():
            raise NotWkb
        self._found.setdefault(form, []).append((at, counts))
        return ends

    def parts(self) -> Iterator[Parts]:
        """What was found, with its coordinates."""
        for (order, kind, axes), pieces in self._found.items():
            starts = np.concatenate([at for at, _ in pieces])
            counts = np.concatenate([count for _, count in pieces])
            filled = counts > 0
            starts, counts = starts[filled], counts[filled]
            if len(counts):
                numbers = self._numbers(order, starts, counts * len(axes)).reshape(-1, len(axes))
                yield Parts(kind=kind, axes=axes, numbers=numbers, counts=counts)

    def _numbers(self, order: str, starts: Longs, counts: Longs) -> Floats:
        """The numbers that lie at any places of the bytes: taken from one of eight views, as
        numbers lie eight bytes apart."""
        numbers = np.empty(int(counts.sum()), np.float64)
        first = np.cumsum(counts) - counts
        for shift in np.unique(starts % 8).tolist():
            own = np.flatnonzero(starts % 8 == shift)
            length = (len(self._data) - shift) // 8
            view = np.frombuffer(self._data, f"{order}f8", count=length, offset=shift)
            places = _runs(starts[own] // 8, counts[own])
            numbers[_runs(first[own], counts[own])] = view[places]
        return numbers


def _runs(starts: Longs, counts: Longs) -> Longs:
    """Every start, and the numbers after it, as many as its count."""
    before = np.cumsum(counts) - counts
    runs: Longs = np.repeat(starts - before, counts) + np.arange(int(counts.sum()))
    return runs


__all__ = ["LINE", "POINT", "POLYGON", "NotWkb", "Parts", "parts_of"]

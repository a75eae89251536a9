"""Bounding boxes of geometries and geographies, from their WKB.

Knows what bounds a shape (`wkb` finds its coordinates): on a plane its coordinates, on a globe also
what lies between them. An edge there may reach nearer to a pole than its ends do, and a
ring around a pole encloses it. Knows nothing of statistics, files or filters.

A box of points may cross the antimeridian: its west is then greater than its east. Boxes of lines
and areas never do; theirs are as wide as the globe where an edge crosses. So the points of a shape
on longitudes and latitudes lie in its box whichever way its edges are taken.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from frazil.iceberg import types as ice
from frazil.value_classes import frozen

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


@frozen(eq=False)
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
            is_here = of == number
            ends[is_here] = self._alike(form.tobytes(), starts[is_here], limits[is_here], depth)
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
        active = np.flatnonzero(counts > 0)
        walked = 0
        while len(active):
            if kind in _COLLECTIONS:
                at[active] = self.shapes(at[active], limits[active], depth + 1)
            else:
                sizes = self._counts(order, at[active], limits[active])
                at[active] = self._part(
                    (order, POLYGON, axes), at[active] + 4, sizes, limits[active]
                )
            walked += 1
            active = active[counts[active] > walked]
        return at

    def _counts(self, order: str, at: Longs, limits: Longs) -> Longs:
        if (at + 4 > limits).any():
            raise NotWkb
        count_bytes = self._data[at[:, None] + np.arange(4)]
        counts: Longs = count_bytes.view(f"{order}u4").reshape(-1).astype(np.int64)
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
            rows = np.flatnonzero(starts % 8 == shift)
            length = (len(self._data) - shift) // 8
            view = np.frombuffer(self._data, f"{order}f8", count=length, offset=shift)
            places = _runs(starts[rows] // 8, counts[rows])
            numbers[_runs(first[rows], counts[rows])] = view[places]
        return numbers


def _runs(starts: Longs, counts: Longs) -> Longs:
    """Every start, and the numbers after it, as many as its count."""
    before = np.cumsum(counts) - counts
    runs: Longs = np.repeat(starts - before, counts) + np.arange(int(counts.sum()))
    return runs


AXES: Final = ("x", "y", "z", "m")
_MAX_INTERVALS: Final = 64
_MARGIN: Final = 1e-9  # degrees, more than the arithmetic of an arc is off


class _NoBox(Exception):
    """Values of which no box is known."""


class BoxCollector:
    """The box of all values of one column, which may come in any number of pieces."""

    def __init__(self, kind: ice.IcebergType) -> None:
        self._globe = kind.algorithm if isinstance(kind, ice.GeographyType) else None
        self._ends: dict[str, tuple[float, float]] = {}
        self._longitudes = Longitudes()
        self._axes: set[str] = set()
        self._is_known = True
        self._has_edges = False

    def update(self, values: pa.Array | pa.ChunkedArray) -> None:
        """Take in WKB; null is no value."""
        if not self._is_known:
            return
        column = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        try:
            for part in parts_of(column.drop_null()):
                self._coordinates(part.axes, part.numbers)
                if part.kind != POINT and self._globe is not None:
                    self._edges(part.numbers[:, :2], part.counts, is_ring=part.kind == POLYGON)
        except (_NoBox, NotWkb):
            self._is_known = False

    def update_one(self, wkb: bytes) -> None:
        """Take in one value."""
        self.update(pa.array([wkb], pa.binary()))

    def finish(self) -> dict[str, float]:
        """`lower_x` and so on; empty where there is no box. Of z and m only if all values have it.

        A geography's box is no narrower than the shapes are, whatever their edges.
        """
        if not self._is_known or "x" not in self._ends or "y" not in self._ends:
            return {}
        ends = dict(self._ends)
        if self._globe is not None and not self._has_edges:
            ends["x"] = self._longitudes.range()
        every = frozenset.intersection(*map(frozenset, self._axes)) if self._axes else frozenset()
        return {
            f"{side}_{axis}": ends[axis][at]
            for at, side in enumerate(("lower", "upper"))
            for axis in AXES
            if axis in every and axis in ends
        }

    # --- values ---

    def _coordinates(self, axes: str, numbers: Floats) -> None:
        empty = np.isnan(numbers[:, :2]).all(axis=1)  # how WKB writes a point without a place
        if empty.any():
            numbers = numbers[~empty]
        if not len(numbers):
            return
        if np.isnan(numbers).any():
            raise _NoBox
        self._axes.add(axes)
        if self._globe is not None:
            if (np.abs(numbers[:, :2]) > (180.0, 90.0)).any():
                raise _NoBox
            self._longitudes.add(numbers[:, 0], numbers[:, 0])
        lows, highs = numbers.min(axis=0), numbers.max(axis=0)
        for axis, low, high in zip(axes, lows.tolist(), highs.tolist(), strict=True):
            self._widen(axis, low, high)

    def _widen(self, axis: str, low: float, high: float) -> None:
        before = self._ends.get(axis, (low, high))
        self._ends[axis] = min(before[0], low), max(before[1], high)

    # --- edges on a globe ---

    def _edges(self, places: Floats, counts: Longs, *, is_ring: bool) -> None:
        """Take in what lies between the coordinates of lines, or inside rings."""
        self._has_edges = True
        if self._globe != "spherical":
            raise _NoBox  # how far an edge is from a great circle is not worked out here
        if np.isnan(places).any():
            raise _NoBox
        of = np.repeat(np.arange(len(counts)), counts)
        inside = of[:-1] == of[1:]
        starts, ends, of_edge = places[:-1][inside], places[1:][inside], of[:-1][inside]
        if is_ring:
            last = np.cumsum(counts) - 1
            first = last - counts + 1
            is_open = (places[last] != places[first]).any(axis=1)
            starts = np.vstack([starts, places[last[is_open]]])
            ends = np.vstack([ends, places[first[is_open]]])
            of_edge = np.concatenate([of_edge, np.flatnonzero(is_open)])
        steps = ends[:, 0] - starts[:, 0]
        turned = (steps + 180.0) % 360.0 - 180.0
        wraps = is_ring and np.abs(np.bincount(of_edge, weights=turned)).max(initial=0.0) > 180.0
        if wraps or (np.abs(np.abs(turned) - 180.0) < _MARGIN).any():
            self._widen("x", -180.0, 180.0)
            self._widen("y", -90.0, 90.0)
            return
        if (np.abs(steps) > 180.0).any():
            self._widen("x", -180.0, 180.0)
        if len(starts):
            self._widen("y", *_latitudes_of_arcs(starts, ends))


def _latitudes_of_arcs(starts: Floats, ends: Floats) -> tuple[float, float]:
    """The least and the greatest latitude of great circles from place to place."""
    low = float(min(starts[:, 1].min(), ends[:, 1].min()))
    high = float(max(starts[:, 1].max(), ends[:, 1].max()))
    start, end = _unit(starts), _unit(ends)
    normal = np.cross(start, end)
    length = np.linalg.norm(normal, axis=1)
    curved = length > 1e-15
    if not curved.any():
        return low, high
    start, end, normal = start[curved], end[curved], normal[curved] / length[curved, None]
    # The point of each circle that is nearest to the north pole; its opposite is to the south pole.
    top = np.array([0.0, 0.0, 1.0]) - normal[:, 2:] * normal
    for sign in (1.0, -1.0):
        summit = sign * top
        after = np.einsum("ij,ij->i", np.cross(start, summit), normal) > 0
        before = np.einsum("ij,ij->i", np.cross(summit, end), normal) > 0
        reached = after & before
        if reached.any():
            height = np.linalg.norm(summit[reached][:, :2], axis=1)
            summits = np.degrees(np.arctan2(summit[reached][:, 2], height))
            low = min(low, float(summits.min()) - _MARGIN)
            high = max(high, float(summits.max()) + _MARGIN)
    return max(low, -90.0), min(high, 90.0)


def _unit(places: Floats) -> Floats:
    """Longitudes and latitudes as places on a sphere of radius 1."""
    longitude, latitude = np.radians(places[:, 0]), np.radians(places[:, 1])
    flat = np.cos(latitude)
    return np.stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)], axis=1)


class Longitudes:
    """Parts of the circle of longitudes, and the range around them."""

    def __init__(self) -> None:
        self._starts: Floats = np.zeros(0)
        self._ends: Floats = np.zeros(0)

    def add(self, wests: Floats, easts: Floats) -> None:
        """Add ranges from west to east; those whose west is greater cross the antimeridian."""
        crosses = wests > easts
        starts = np.concatenate([self._starts, wests, np.full(int(crosses.sum()), -180.0)])
        ends = np.concatenate([self._ends, np.where(crosses, 180.0, easts), easts[crosses]])
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], np.maximum.accumulate(ends[order])
        gaps = starts[1:] - ends[:-1]
        wide_gaps = np.flatnonzero(gaps > 0)
        if len(wide_gaps) >= _MAX_INTERVALS:
            wide_gaps = np.sort(wide_gaps[np.argsort(gaps[wide_gaps])[-(_MAX_INTERVALS - 1) :]])
        self._starts = starts[np.concatenate([[0], wide_gaps + 1])] if len(starts) else starts
        self._ends = ends[np.concatenate([wide_gaps, [len(ends) - 1]])] if len(ends) else ends

    def range(self) -> tuple[float, float]:
        """West and east of all that was added; across the antimeridian if that is at most half of
        the circle and the other way is more."""
        west, east = float(self._starts[0]), float(self._ends[-1])
        if east - west <= 180.0 or len(self._starts) < 2:
            return west, east
        gaps = self._starts[1:] - self._ends[:-1]
        widest = int(np.argmax(gaps))
        if gaps[widest] < 180.0:
            return west, east
        return float(self._starts[widest + 1]), float(self._ends[widest])


__all__ = [
    "AXES",
    "LINE",
    "POINT",
    "POLYGON",
    "BoxCollector",
    "Longitudes",
    "NotWkb",
    "Parts",
    "parts_of",
]

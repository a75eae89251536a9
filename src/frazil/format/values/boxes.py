"""Bounding boxes of geometries and geographies, from their WKB.

Knows what bounds a shape (`wkb` finds its coordinates): on a plane its coordinates, on a globe also
what lies between them. An edge there may reach nearer to a pole than its ends do, and a
ring around a pole encloses it. Knows nothing of statistics, files or filters.

A box of points may cross the antimeridian: its west is then greater than its east. Boxes of lines
and areas never do; theirs are as wide as the globe where an edge crosses. So the points of a shape
on longitudes and latitudes lie in its box whichever way its edges are taken.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from pyiceberg import types as ice

from frazil.format.values.wkb import POINT, POLYGON, Floats, Longs, NotWkb, parts_of

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
        around = is_ring and np.abs(np.bincount(of_edge, weights=turned)).max(initial=0.0) > 180.0
        if around or (np.abs(np.abs(turned) - 180.0) < _MARGIN).any():
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
        kept = np.flatnonzero(gaps > 0)
        if len(kept) >= _MAX_INTERVALS:
            kept = np.sort(kept[np.argsort(gaps[kept])[-(_MAX_INTERVALS - 1) :]])
        self._starts = starts[np.concatenate([[0], kept + 1])] if len(starts) else starts
        self._ends = ends[np.concatenate([kept, [len(ends) - 1]])] if len(ends) else ends

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

"""Bounding boxes of geometries and geographies, from their WKB.

Knows WKB (ISO, and the flags of EWKB) and what bounds a shape: on a plane its coordinates, on a
globe also what lies between them. An edge there may reach nearer to a pole than its ends do, and a
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
import pyarrow.compute as pc
from pyiceberg import types as ice

from frazil.value_classes import dataclass

Floats = np.ndarray[Any, np.dtype[np.float64]]

AXES: Final = ("x", "y", "z", "m")
_AXES: Final = {(False, False): "xy", (True, False): "xyz", (False, True): "xym"}
_POINT, _LINE, _POLYGON, _TRIANGLE = 1, 2, 3, 17
_COLLECTIONS: Final = frozenset({4, 5, 6, 7, 15, 16})
_MAX_DEPTH: Final = 32
_MAX_INTERVALS: Final = 64
_POINT_SIZES: Final = frozenset({21, 29, 37})
_MARGIN: Final = 1e-9  # degrees, more than the arithmetic of an arc is off


class _NoBox(Exception):
    """Values of which no box is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Coordinates in a WKB: where they start, how many, and what they are of."""

    offset: int
    count: int
    axes: str
    order: str
    kind: int


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
        column = column.drop_null()
        try:
            if len(column) and not self._points(column):
                for value in column:
                    self._value(value.as_buffer())
        except (_NoBox, struct.error, ValueError):
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

    def _points(self, column: pa.Array) -> bool:
        """Whether all values are points of one form, which are taken in at once."""
        lengths = pc.min_max(pc.binary_length(column))
        size = lengths["min"].as_py()
        if size not in _POINT_SIZES or size != lengths["max"].as_py():
            return False
        wide = pa.types.is_large_binary(column.type)
        offsets = np.frombuffer(column.buffers()[1], np.int64 if wide else np.int32)
        start = int(offsets[column.offset])
        data = np.frombuffer(column.buffers()[2], np.uint8)[start : start + size * len(column)]
        rows = data.reshape(len(column), size)
        if not (rows[:, :5] == rows[0, :5]).all():
            return False
        part = next(_parts(rows[0].tobytes()))
        if part.kind != _POINT or part.offset != 5 or part.count == 0:
            return False
        numbers = np.ascontiguousarray(rows[:, 5:]).view(f"{part.order}f8").astype(np.float64)
        self._coordinates(part.axes, numbers)
        return True

    def _value(self, wkb: Any) -> None:
        data = memoryview(wkb)
        for part in _parts(data):
            if part.count == 0:
                continue
            width = len(part.axes)
            numbers = np.frombuffer(
                data, f"{part.order}f8", count=part.count * width, offset=part.offset
            )
            places = numbers.astype(np.float64).reshape(part.count, width)
            self._coordinates(part.axes, places)
            if part.kind != _POINT and self._globe is not None:
                self._edges(places[:, :2], is_ring=part.kind != _LINE)

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

    def _edges(self, places: Floats, *, is_ring: bool) -> None:
        """Take in what lies between the coordinates of a line, or inside a ring."""
        self._has_edges = True
        if self._globe is None or self._globe != "spherical":
            raise _NoBox  # how far an edge is from a great circle is not worked out here
        if is_ring and not np.array_equal(places[0], places[-1]):
            places = np.vstack([places, places[:1]])
        steps = np.diff(places[:, 0])
        turned = (steps + 180.0) % 360.0 - 180.0
        around = is_ring and abs(float(turned.sum())) > 180.0
        if around or (np.abs(np.abs(turned) - 180.0) < _MARGIN).any():
            self._widen("x", -180.0, 180.0)
            self._widen("y", -90.0, 90.0)
            return
        if (np.abs(steps) > 180.0).any():
            self._widen("x", -180.0, 180.0)
        low, high = _latitudes_of_arcs(places)
        self._widen("y", low, high)


def _latitudes_of_arcs(places: Floats) -> tuple[float, float]:
    """The least and the greatest latitude of great circles from place to place."""
    longitude, latitude = np.radians(places[:, 0]), np.radians(places[:, 1])
    flat = np.cos(latitude)
    unit = np.stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)], axis=1)
    start, end = unit[:-1], unit[1:]
    normal = np.cross(start, end)
    length = np.linalg.norm(normal, axis=1)
    low, high = float(places[:, 1].min()), float(places[:, 1].max())
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


def _parts(data: Any) -> Iterator[_Part]:
    """The coordinates of a value; refuses what is not one WKB to its end."""
    end = yield from _geometry(data, 0, 0)
    if end != len(data):
        raise _NoBox


def _geometry(data: Any, at: int, depth: int) -> Any:
    if depth > _MAX_DEPTH or data[at : at + 1] not in (b"\x00", b"\x01"):
        raise _NoBox
    order = "<" if data[at] else ">"
    (code,) = struct.unpack_from(f"{order}I", data, at + 1)
    at += 5 + (4 if code & 0x20000000 else 0)  # the number of a reference system
    thousands, kind = divmod(code & 0x0FFFFFFF, 1000)
    if thousands > 3:
        raise _NoBox
    has_z = bool(code & 0x80000000) or thousands in (1, 3)
    has_m = bool(code & 0x40000000) or thousands in (2, 3)
    axes = _AXES.get((has_z, has_m), "xyzm")
    size = 8 * len(axes)
    if kind == _POINT:
        yield _Part(offset=at, count=1, axes=axes, order=order, kind=kind)
        return at + size
    (count,) = struct.unpack_from(f"{order}I", data, at)
    at += 4
    if kind == _LINE:
        yield _Part(offset=at, count=count, axes=axes, order=order, kind=kind)
        return at + size * count
    if kind in (_POLYGON, _TRIANGLE):
        for _ in range(count):
            (points,) = struct.unpack_from(f"{order}I", data, at)
            yield _Part(offset=at + 4, count=points, axes=axes, order=order, kind=_POLYGON)
            at += 4 + size * points
        return at
    if kind not in _COLLECTIONS:
        raise _NoBox  # a curve is more than its coordinates
    for _ in range(count):
        at = yield from _geometry(data, at, depth + 1)
    return at

"""Boxes of geometries and geographies from WKB."""

from __future__ import annotations

import random
import struct

import pyarrow as pa
import pytest

from frazil.format.values.boxes import BoxCollector
from frazil.iceberg import types as ice
from tests.support.wkb import Place, collection, coordinates, header, line, point, polygon

PLANE = ice.GeometryType()
GLOBE = ice.GeographyType()


def box(kind: ice.IcebergType, *values: bytes | None) -> dict[str, float]:
    collector = BoxCollector(kind)
    collector.update(pa.array(values, pa.binary()))
    return collector.finish()


def corners(kind: ice.IcebergType, *values: bytes | None) -> tuple[float, ...] | None:
    """West, south, east, north."""
    ends = box(kind, *values)
    if not ends:
        return None
    return tuple(ends[f"{side}_{axis}"] for side in ("lower", "upper") for axis in "xy")


def test_points_of_one_form_and_of_several_have_the_same_box() -> None:
    same = [point(1, 2), None, point(-3, 5), point(4, 0)]
    assert corners(PLANE, *same) == (-3.0, 0.0, 4.0, 5.0)
    mixed = [point(1, 2, order=">"), point(-3, 5), line((4, 0), (0, 1))]
    assert corners(PLANE, *mixed) == (-3.0, 0.0, 4.0, 5.0)
    sliced = pa.array([point(9, 9), *same], pa.large_binary())[1:]
    collector = BoxCollector(PLANE)
    collector.update(pa.chunked_array([sliced[:2], sliced[2:]]))
    assert collector.finish()["upper_x"] == 4.0


def test_shapes_of_every_kind_are_bounded() -> None:
    hole = [(4.0, 4.0), (5.0, 4.0), (5.0, 5.0), (4.0, 4.0)]
    outside = [(0.0, 0.0), (9.0, 0.0), (9.0, 8.0), (0.0, 0.0)]
    assert corners(PLANE, polygon(outside, hole)) == (0.0, 0.0, 9.0, 8.0)
    inner = collection(point(1, -7), point(2, 3), kind=4)
    assert corners(PLANE, collection(inner, line((0, 0), (-2, 1)))) == (-2.0, -7.0, 2.0, 3.0)


def test_z_and_m_count_where_every_value_has_them() -> None:
    assert box(PLANE, point(1, 2, 3, 4, kind=3001), point(1, 2, 5, 6, kind=3001)) == {
        "lower_x": 1.0,
        "lower_y": 2.0,
        "lower_z": 3.0,
        "lower_m": 4.0,
        "upper_x": 1.0,
        "upper_y": 2.0,
        "upper_z": 5.0,
        "upper_m": 6.0,
    }
    extended = struct.pack("<BII", 1, 0xA0000001, 4326) + coordinates([(1.0, 2.0, 9.0)])
    assert box(PLANE, extended)["lower_z"] == 9.0  # a Z flag and a reference system, as PostGIS has
    assert "lower_z" not in box(PLANE, extended, point(1, 2))
    assert set(box(PLANE, point(1, 2, 7, kind=2001))) == {
        f"{side}_{axis}" for side in ("lower", "upper") for axis in "xym"
    }


def test_empty_shapes_have_no_place() -> None:
    nan = float("nan")
    assert corners(PLANE, point(nan, nan), line(), point(1, 2)) == (1.0, 2.0, 1.0, 2.0)
    assert corners(PLANE, point(nan, nan), collection()) is None
    assert corners(PLANE, None) is None


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"12345",
        point(1, 2)[:-1],
        point(1, 2) + b"x",
        point(1, float("nan")),
        header(8) + struct.pack("<I", 0),  # a circular string
        header(7) + struct.pack("<I", 1 << 30),
        b"\x01\x07\x00\x00\x00\x01\x00\x00\x00" * 100,
    ],
)
def test_what_cannot_be_read_leaves_the_column_without_a_box(value: bytes) -> None:
    assert corners(PLANE, point(1, 2), value, point(3, 4)) is None


def test_points_across_the_antimeridian() -> None:
    fiji = [point(177, -18), point(-179, -17), point(179.5, -16)]
    assert corners(GLOBE, *fiji) == (177.0, -18.0, -179.0, -16.0)
    assert corners(PLANE, *fiji) == (-179.0, -18.0, 179.5, -16.0)
    assert corners(GLOBE, *fiji, point(0, 0)) == (-179.0, -18.0, 179.5, 0.0)
    many = [point(170 + at / 100, 0) for at in range(1000)]
    assert corners(GLOBE, *many, point(-175, 1)) == (170.0, 0.0, -175.0, 1.0)


def test_points_around_the_globe_in_many_pieces() -> None:
    collector = BoxCollector(GLOBE)
    for start in range(-180, -90):
        collector.update(pa.array([point(start + 0.25, 1), point(start + 270.5, 2)]))
    ends = collector.finish()
    # From 90.5 to -90.75: everything that was added lies there, and nothing in the other half.
    assert (ends["lower_x"], ends["upper_x"]) == (90.5, -90.75)


def test_places_off_the_globe_have_no_box() -> None:
    assert corners(GLOBE, point(181, 0)) is None
    assert corners(GLOBE, point(0, 90.5)) is None


def test_an_edge_on_a_globe_goes_nearer_to_the_pole_than_its_ends() -> None:
    west, south, east, north = corners(GLOBE, line((-45, 45), (45, 45))) or ()
    assert (west, south, east) == (-45.0, 45.0, 45.0)
    assert north == pytest.approx(54.735610317245346)  # atan(sqrt(2))
    west, south, east, north = corners(GLOBE, line((-45, -45), (45, -45))) or ()
    assert south == pytest.approx(-54.735610317245346)
    assert north == -45.0
    assert corners(GLOBE, line((0, 10), (0, 20))) == (0.0, 10.0, 0.0, 20.0)
    assert corners(GLOBE, line((5, 5), (5, 5))) == (5.0, 5.0, 5.0, 5.0)


def test_lines_across_the_antimeridian_are_as_wide_as_the_globe() -> None:
    west, south, east, north = corners(GLOBE, line((170, 0), (-170, 0))) or ()
    assert (west, east) == (-180.0, 180.0)
    assert (south, north) == pytest.approx((0.0, 0.0), abs=1e-6)


def test_a_ring_around_a_pole_encloses_it() -> None:
    ring = [(0.0, 80.0), (120.0, 80.0), (-120.0, 80.0), (0.0, 80.0)]
    assert corners(GLOBE, polygon(ring)) == (-180.0, -90.0, 180.0, 90.0)
    over_the_pole = line((0, 80), (180, 80))
    assert corners(GLOBE, over_the_pole) == (-180.0, -90.0, 180.0, 90.0)


def test_edges_on_an_ellipsoid_are_unknown_and_points_are_not() -> None:
    kind = ice.GeographyType("OGC:CRS84", "karney")
    assert corners(kind, point(1, 2)) == (1.0, 2.0, 1.0, 2.0)
    assert corners(kind, line((1, 2), (3, 4))) is None


def _some_shape(draw: random.Random) -> tuple[bytes, list[Place]]:
    """A shape somewhere on the western half of the globe, and its places."""
    places: list[Place] = [
        (draw.uniform(-170, -10), draw.uniform(-60, 60)) for _ in range(draw.randrange(1, 6))
    ]
    match draw.randrange(6):
        case 0:
            return point(*places[0], order=draw.choice("<>")), places[:1]
        case 1:
            return line(*places), places
        case 2:
            return polygon([*places, places[0]]), places
        case 3:
            hole: list[Place] = [(x + 1, y + 1) for x, y in places]
            return polygon([*places, places[0]], [*hole, hole[0]]), [*places, *hole]
        case 4:
            return collection(*(point(*place) for place in places), kind=4), places
    parts = [_some_shape(draw) for _ in range(draw.randrange(3))]
    return collection(*(part for part, _ in parts)), [at for _, inside in parts for at in inside]


def test_many_shapes_at_once_have_the_box_of_each_of_them() -> None:
    draw = random.Random(41)
    for _ in range(30):
        shapes = [_some_shape(draw) for _ in range(draw.randrange(1, 40))]
        places = [at for _, inside in shapes for at in inside]
        values = [value for value, _ in shapes]
        if not places:
            assert corners(PLANE, *values) is None
            continue
        xs, ys = zip(*places, strict=True)
        assert corners(PLANE, *values) == (min(xs), min(ys), max(xs), max(ys))
        each = [ends for value in values if (ends := corners(GLOBE, value)) is not None]
        together = corners(GLOBE, *values)
        assert together is not None
        assert together[1] == min(south for _, south, _, _ in each)
        assert together[3] == max(north for _, _, _, north in each)
        assert together[0] <= min(xs)
        assert together[2] >= max(xs)


def test_a_count_that_goes_beyond_the_value_has_no_box() -> None:
    short = header(3) + struct.pack("<II", 2, 1) + struct.pack("<2d", 1, 2)
    assert corners(PLANE, short, point(3, 4)) is None
    assert corners(PLANE, header(2) + struct.pack("<I", 2**32 - 1)) is None

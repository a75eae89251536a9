"""Which files a window leaves, by their bounding boxes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from frazil.filter.bind.bind import bind
from frazil.filter.bind.file_predicates import BoxPredicate, Window
from frazil.filter.bind.filter_columns import ColumnIndex
from frazil.filter.condition import condition
from frazil.filter.prune.prune import PruneContext, compile_filter
from frazil.filter.row_filter import row_mask
from frazil.filter.text.filter_display import filter_text
from frazil.filter.text.sql_values import blob_text
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.stats import stats_types, tracked_fields
from frazil.iceberg import types as ice
from frazil.iceberg.expressions import AlwaysTrue, And, Not
from frazil.iceberg.schema import Schema
from tests.support.wkb import point, rectangle

SCHEMA = Schema(
    ice.NestedField(1, "geom", ice.GeometryType()),
    ice.NestedField(2, "place", ice.GeographyType()),
    ice.NestedField(3, "id", ice.LongType()),
    ice.NestedField(
        4, "site", ice.StructType(ice.NestedField(5, "geom", ice.GeometryType())), required=True
    ),
)
Box = tuple[float, float, float, float] | None


def entries(field_id: int, *boxes: Box) -> EntryBatch:
    """Files by west, south, east and north; None has values and no box."""
    rows: list[dict[str, Any]] = []
    for box in boxes:
        ends = zip(("lower_x", "lower_y", "upper_x", "upper_y"), box or (), strict=False)
        counts = {"value_count": 2, "null_value_count": 0}
        stats = {**dict(ends), **counts}
        rows.append({f"content_stats.{field_id}.{name}": value for name, value in stats.items()})
    return EntryBatch.from_rows(rows, stats_types(tracked_fields(SCHEMA)))


def left(where: str, batch: EntryBatch) -> list[bool]:
    filter_ = condition(where, SCHEMA).filter
    assert not isinstance(filter_, AlwaysTrue), where
    compiled = compile_filter(filter_, PruneContext(schema=SCHEMA))
    result = compiled.prune(batch)
    assert result.by_bounds == result.mask.tolist().count(False)
    assert not compiled.must_match(batch).any()
    return [bool(one) for one in result.mask]


BOXES: tuple[Box, ...] = ((0, 0, 1, 1), (5, 5, 6, 6), (0, 5, 1, 6), (-9, -9, 9, 9), None)


@pytest.mark.parametrize(
    "where",
    [
        "bbox(geom, 0.5, 0.5, 2, 2)",
        "bbox(geom, 1, 1, 1, 1)",
        "bbox(geom, 0.5, 2, 2, 0.5)",
        "ST_Intersects(geom, ST_MakeEnvelope(2, 2, 0.5, 0.5))",
        "geom::GEOMETRY && 'POLYGON((0.5 0.5,2 0.5,2 2,0.5 0.5))'::GEOMETRY",
        "'POINT(1 1)'::GEOMETRY && ST_GeomFromWKB(geom)",
        "st_intersects_extent(geom, ST_MakeEnvelope(0.5, 0.5, 2, 2))",
        "ST_Intersects(geom, ST_Point(0.5, 0.5))",
        "ST_Intersects(ST_GeomFromText('LINESTRING(0.5 0.5, 2 0.5)'), geom)",
        "ST_Within(geom, 'POLYGON((0.5 0.5,2 0.5,2 2,0.5 0.5))')",
        "ST_Contains(ST_MakeEnvelope(0.5, 0.5, 2, 2), geom)",
        f"ST_Intersects(geom, ST_GeomFromWKB({blob_text(point(0.5, 0.5))}))",
        "ST_Contains(geom, ST_Point(0.5, 0.5))",
        "bbox(geom, 0.5, 0.5, 2, 2) AND abs(id) > 1",
        "bbox(geom, 0.5, 0.5, 1, 1) OR bbox(geom, 0, 0.5, 0, 0.5)",
    ],
)
def test_files_whose_boxes_are_outside_of_a_window_are_left_out(where: str) -> None:
    assert left(where, entries(1, *BOXES)) == [True, False, False, True, True]


def test_a_shape_that_covers_another_has_a_box_that_does() -> None:
    boxes = entries(1, (0, 0, 1, 1), (0, 0, 4, 4), (1, 1, 2, 2), None)
    for where in (
        "ST_Contains(geom, ST_MakeEnvelope(1, 1, 2, 2))",
        "ST_Within(ST_MakeEnvelope(1, 1, 2, 2), geom)",
    ):
        assert left(where, boxes) == [False, True, True, True]
    assert left("ST_Within(geom, ST_MakeEnvelope(1, 1, 2, 2))", boxes) == [True, True, True, True]


def test_parts_of_structs_have_boxes() -> None:
    assert left("bbox(site.geom, 0, 0, 2, 2)", entries(5, *BOXES)) == [
        True,
        False,
        False,
        True,
        True,
    ]


def test_a_box_across_the_antimeridian_is_judged_by_its_latitudes() -> None:
    """A line from 177 to -179 that another writer gave such a box passes 0 on the plane, where
    engines judge it: no window between leaves it out."""
    fiji, samoa, paris, world = (
        (177, -19, -179, -16),
        (-173, -15, -171, -13),
        (2, 48, 3, 49),
        (
            -180,
            -90,
            180,
            90,
        ),
    )
    boxes = entries(2, fiji, samoa, paris, world)
    assert left("bbox(place, 0, -90, 10, 90)", boxes) == [True, False, True, True]
    assert left("bbox(place, 178, -90, 179, 90)", boxes) == [True, False, False, True]
    assert left("bbox(place, -180, -90, -175, 90)", boxes) == [True, False, False, True]
    assert left("bbox(place, 170, -90, -172, 90)", boxes) == [True, True, False, True]
    assert left("bbox(place, 170, 0, -172, 90)", boxes) == [False, False, False, True]
    assert left("ST_Intersects(place, ST_Point(0, -17))", boxes) == [True, False, False, True]
    assert left("ST_Intersects(place, ST_Point(0, -20))", boxes) == [False, False, False, True]


def test_on_a_plane_a_box_whose_west_is_above_its_east_says_nothing() -> None:
    assert left("bbox(geom, 0, 0, 1, 1)", entries(1, (5, 0, -5, 1), (5, 0, 6, 1))) == [True, False]


def test_unknown_ends_never_prune() -> None:
    nan = float("nan")
    rows = entries(1, (nan, nan, nan, nan), (nan, 5, nan, 6))
    assert left("bbox(geom, 0, 0, 1, 1)", rows) == [True, False]
    assert left("bbox(geom, 0, 0, 1, 1)", EntryBatch.from_rows([{"location": "a"}], {})) == [True]


def test_files_of_nothing_but_nulls_are_left_out() -> None:
    counts = {"content_stats.1.value_count": 3, "content_stats.1.null_value_count": 3}
    batch = EntryBatch.from_rows([counts], stats_types(tracked_fields(SCHEMA)))
    assert left("bbox(geom, 0, 0, 1, 1)", batch) == [False]


@pytest.mark.parametrize(
    "where",
    [
        "NOT bbox(geom, 0, 0, 1, 1)",
        "bbox(geom, id, 0, 1, 1)",
        "bbox(geom, 0, 0, 1, 'nan'::DOUBLE)",
        "ST_Intersects(geom, site.geom)",
        "ST_Intersects(geom, NULL)",
        "ST_Intersects(geom, 'POINT EMPTY')",
        "ST_Disjoint(geom, ST_Point(0, 0))",
        "ST_Intersects(geom, ST_Point(0, 0)) IS NULL",
        "ST_Intersects(geom, ST_Point(0, 0)) OR abs(id) > 1",
        "TRY_CAST(geom AS GEOMETRY) && 'POINT(0 0)'::GEOMETRY",
    ],
)
def test_what_says_nothing_of_boxes_prunes_nothing(where: str) -> None:
    assert isinstance(condition(where, SCHEMA).filter, AlwaysTrue)


def test_a_window_is_bound_again_and_never_negated() -> None:
    columns = ColumnIndex.of(SCHEMA)
    window = BoxPredicate(columns.named("geom"), Window(west=0.0, south=0.0, east=1.0, north=2.5))
    assert bind(window, columns) == window
    assert isinstance(bind(Not(window), columns), AlwaysTrue)
    assert isinstance(~window, AlwaysTrue)
    assert (
        filter_text(And(window, window)) == "bbox(geom, 0, 0, 1, 2.5) and bbox(geom, 0, 0, 1, 2.5)"
    )
    rows = pa.table({"geom": [rectangle(8, 8, 9, 9)]})
    assert row_mask(window, rows).to_pylist() == [True]  # the engine judges rows

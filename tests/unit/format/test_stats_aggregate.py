"""Aggregates onto a manifest entry, and statistics that conform to a schema."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from frazil.format.entries.aggregate import aggregate, conform, extremes
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import stats_key
from frazil.format.entries.stats import TrackedField, stats_types
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema


def field(kind: ice.IcebergType, field_id: int = 1) -> TrackedField:
    return TrackedField(id=field_id, full_name=f"c{field_id}", type=kind)


def entries(kind: ice.IcebergType, *rows: dict[str, Any], records: int = 10) -> EntryBatch:
    """Entries with statistics of one column, by statistic."""
    flat = [
        {"record_count": records} | {stats_key(1, name): value for name, value in row.items()}
        for row in rows
    ]
    return EntryBatch.from_rows(flat, stats_types([field(kind)]))


def totals(kind: ice.IcebergType, *rows: dict[str, Any], dv: bool = False) -> dict[str, Any]:
    found = aggregate(entries(kind, *rows), [field(kind)], has_manifest_dv=dv)
    return {key.rpartition(".")[2]: value for key, value in found.items()}


def bounds(lower: Any, upper: Any, *, tight: bool | None = True) -> dict[str, Any]:
    return {
        "lower_bound": lower,
        "upper_bound": upper,
        "tight_bounds": tight,
        "value_count": 10,
        "null_value_count": 0,
    }


def test_counts_add_up_and_bounds_widen() -> None:
    assert totals(ice.LongType(), bounds(5, 9), bounds(-3, 7)) == {
        "lower_bound": -3,
        "upper_bound": 9,
        "tight_bounds": True,
        "value_count": 20,
        "null_value_count": 0,
    }


@pytest.mark.parametrize(
    ("kind", "one", "two", "expected"),
    [
        (ice.BooleanType(), (True, True), (False, True), (False, True)),
        (ice.IntegerType(), (5, 9), (-3, 7), (-3, 9)),
        (ice.StringType(), ("b", "zz"), ("é", "é"), ("b", "é")),
        (ice.BinaryType(), (b"\x7f", b"\x80"), (b"\x80", b"\xff"), (b"\x7f", b"\xff")),
        (
            ice.FixedType(2),
            (b"\x7f\x00", b"\x80\x00"),
            (b"\x01\xff", b"\xff\x00"),
            (b"\x01\xff", b"\xff\x00"),
        ),
        (
            ice.UUIDType(),
            (b"\x80" * 16, b"\x90" * 16),
            (b"\x10" * 16, b"\x20" * 16),
            (b"\x10" * 16, b"\x90" * 16),
        ),
        (
            ice.DecimalType(9, 2),
            (Decimal("1.50"), Decimal("2.00")),
            (Decimal("-9.99"), Decimal("1.00")),
            (Decimal("-9.99"), Decimal("2.00")),
        ),
        (ice.DateType(), (5, 6), (-5, 0), (-5, 6)),
        (ice.TimeType(), (5, 6), (1, 2), (1, 6)),
        (ice.TimestampType(), (5, 2**62), (-5, 0), (-5, 2**62)),
        (ice.TimestamptzType(), (5, 6), (-5, 0), (-5, 6)),
        (ice.TimestampNanoType(), (5, 6), (-5, 0), (-5, 6)),
    ],
)
def test_bounds_of_every_type_compare_in_its_order(
    kind: ice.IcebergType, one: Any, two: Any, expected: Any
) -> None:
    found = totals(kind, bounds(*one), bounds(*two))
    assert (found["lower_bound"], found["upper_bound"]) == expected


@pytest.mark.parametrize(
    "missing", ["lower_bound", "upper_bound", "tight_bounds", "value_count", "null_value_count"]
)
def test_one_child_without_a_statistic_makes_it_unknown(missing: str) -> None:
    partial = {name: value for name, value in bounds(1, 2).items() if name != missing}
    found = totals(ice.LongType(), bounds(5, 9), partial)
    assert set(found) == set(bounds(1, 2)) - {missing}


def test_a_child_without_the_column_makes_all_of_it_unknown() -> None:
    assert totals(ice.LongType(), bounds(5, 9), {}) == {}
    assert totals(ice.LongType(), {}, {}) == {}


def test_children_of_nothing_but_nulls_leave_bounds_alone() -> None:
    empty = {"value_count": 4, "null_value_count": 4}
    assert totals(ice.LongType(), empty, bounds(5, 9), empty) == {
        "lower_bound": 5,
        "upper_bound": 9,
        "tight_bounds": True,
        "value_count": 18,
        "null_value_count": 8,
    }
    assert totals(ice.LongType(), empty, empty) == {"value_count": 8, "null_value_count": 8}
    some = {"value_count": 4, "null_value_count": 3}
    assert "lower_bound" not in totals(ice.LongType(), some, bounds(5, 9))


def test_children_of_nothing_but_nan_leave_bounds_alone() -> None:
    nan = {"value_count": 4, "null_value_count": 1, "nan_value_count": 3}
    counted = bounds(0.5, 1.5) | {"nan_value_count": 0}
    found = totals(ice.DoubleType(), nan, counted)
    assert (found["lower_bound"], found["upper_bound"], found["nan_value_count"]) == (0.5, 1.5, 3)
    uncounted = {"value_count": 4, "null_value_count": 1}
    assert "lower_bound" not in totals(ice.DoubleType(), uncounted, counted)
    only_null = {"value_count": 4, "null_value_count": 4}
    found = totals(ice.DoubleType(), only_null, counted)
    assert (found["lower_bound"], found.get("nan_value_count")) == (0.5, None)


def test_a_nan_bound_of_another_writer_is_no_bound() -> None:
    nan = float("nan")
    found = totals(ice.DoubleType(), bounds(nan, 2.0), bounds(0.5, 1.5))
    assert ("lower_bound" in found, found["upper_bound"]) == (False, 2.0)


def test_negative_zero_is_below_zero() -> None:
    found = totals(ice.DoubleType(), bounds(0.0, 0.0), bounds(-0.0, -0.0))
    assert [str(found["lower_bound"]), str(found["upper_bound"])] == ["-0.0", "0.0"]
    found = totals(ice.DoubleType(), bounds(-0.0, -0.0), bounds(-1.0, -0.0))
    assert [str(found["lower_bound"]), str(found["upper_bound"])] == ["-1.0", "-0.0"]


def test_bounds_are_tight_when_all_are_and_no_manifest_dv() -> None:
    tight, loose = bounds(1, 2), bounds(1, 2, tight=False)
    assert totals(ice.LongType(), tight, tight)["tight_bounds"] is True
    assert totals(ice.LongType(), tight, loose)["tight_bounds"] is False
    assert totals(ice.LongType(), tight, tight, dv=True)["tight_bounds"] is False
    assert "tight_bounds" not in totals(ice.LongType(), {"value_count": 1}, dv=True)


def test_average_size_is_weighted_by_values() -> None:
    def sized(size: int, values: int, nulls: int) -> dict[str, Any]:
        return {
            "avg_value_size_in_bytes": size,
            "value_count": values,
            "null_value_count": nulls,
        }

    weighted = totals(ice.StringType(), sized(10, 4, 1), sized(2, 10, 1))
    assert weighted["avg_value_size_in_bytes"] == (10 * 3 + 2 * 9) // 12
    empty = {"value_count": 5, "null_value_count": 5}
    assert totals(ice.StringType(), sized(10, 4, 1), empty)["avg_value_size_in_bytes"] == 10
    unknown = {"value_count": 5, "null_value_count": 0}
    assert "avg_value_size_in_bytes" not in totals(ice.StringType(), sized(10, 4, 1), unknown)


def test_average_size_falls_back_to_rows() -> None:
    rows = [
        {"record_count": 30, stats_key(1, "avg_value_size_in_bytes"): 4},
        {"record_count": 10, stats_key(1, "avg_value_size_in_bytes"): 8},
    ]
    batch = EntryBatch.from_rows(rows, stats_types([field(ice.StringType())]))
    found = aggregate(batch, [field(ice.StringType())], has_manifest_dv=False)
    assert found == {stats_key(1, "avg_value_size_in_bytes"): 5}


def test_lists_have_counts_only() -> None:
    kind = ice.ListType(2, ice.LongType())
    counts = {"value_count": 3, "null_value_count": 1}
    assert totals(kind, counts, counts) == {"value_count": 6, "null_value_count": 2}


def test_no_entries_have_no_aggregate() -> None:
    assert aggregate(EntryBatch.empty(), [field(ice.LongType())], has_manifest_dv=False) == {}


def test_narrower_children_are_promoted() -> None:
    old = entries(ice.IntegerType(), bounds(1, 2))
    new = entries(ice.IntegerType(), bounds(-4, -3))
    batch = EntryBatch.concat([old, new])
    found = aggregate(batch, [field(ice.LongType())], has_manifest_dv=False)
    assert (found[stats_key(1, "lower_bound")], found[stats_key(1, "upper_bound")]) == (-4, 2)
    dates = entries(ice.DateType(), bounds(1, 2))
    found = aggregate(dates, [field(ice.TimestampType())], has_manifest_dv=False)
    assert found[stats_key(1, "upper_bound")] == 2 * 86_400_000_000


def box(west: float, south: float, east: float, north: float, **more: float) -> dict[str, Any]:
    corners = {"lower_x": west, "lower_y": south, "upper_x": east, "upper_y": north}
    return corners | more | {"value_count": 1, "null_value_count": 0}


def test_boxes_are_joined() -> None:
    found = totals(ice.GeometryType(), box(0, 0, 1, 1, lower_z=5.0), box(-1, 0.5, 0, 2))
    assert found == {
        "lower_x": -1.0,
        "lower_y": 0.0,
        "upper_x": 1.0,
        "upper_y": 2.0,
        "value_count": 2,
        "null_value_count": 0,
    }
    counts = {"value_count": 1, "null_value_count": 0}
    assert totals(ice.GeometryType(), box(0, 0, 1, 1), counts) == {
        "value_count": 2,
        "null_value_count": 0,
    }
    nothing = {"value_count": 1, "null_value_count": 1}
    assert totals(ice.GeometryType(), box(0, 0, 1, 1), nothing)["upper_x"] == 1.0


def corners(*boxes: dict[str, Any]) -> list[float]:
    """West, east, south and north."""
    joined = totals(ice.GeographyType(), *boxes)
    return [joined[name] for name in ("lower_x", "upper_x", "lower_y", "upper_y")]


def test_boxes_across_the_antimeridian_are_joined_on_the_circle() -> None:
    assert corners(box(170, 0, -170, 1), box(160, -5, 175, 0)) == [160.0, -170.0, -5.0, 1.0]
    assert corners(box(170, 0, -170, 1), box(-172, -5, -150, 0)) == [170.0, -150.0, -5.0, 1.0]
    assert corners(box(170, 0, 175, 1), box(-175, 2, -170, 3)) == [170.0, -170.0, 0.0, 3.0]


def test_a_joined_box_of_more_than_half_of_the_circle_takes_all_of_it() -> None:
    assert corners(box(170, 0, -170, 1), box(-20, -5, 20, 0)) == [-180.0, 180.0, -5.0, 1.0]


def test_extremes_of_nothing_are_none() -> None:
    assert extremes(pa.array([None, None], pa.int64())) == (None, None)
    assert extremes(pa.array([float("nan"), None])) == (None, None)
    assert extremes(pa.array([], pa.string())) == (None, None)


def test_conforming_drops_promotes_and_keeps() -> None:
    types = {
        stats_key(1, "lower_bound"): pa.int32(),
        stats_key(1, "value_count"): pa.int64(),
        stats_key(2, "lower_bound"): pa.string(),
        stats_key(3, "upper_bound"): pa.date32(),
        stats_key(3, "value_count"): pa.int64(),
        stats_key(50, "lower_bound"): pa.int32(),
        stats_key(2_147_483_540, "lower_bound"): pa.int64(),
    }
    row = {"location": "a", "partition.1000": 3} | {
        key: "x" if kind == pa.string() else 1 for key, kind in types.items()
    }
    batch = EntryBatch.from_rows([row], types | {"partition.1000": pa.int32()})
    schema = Schema(
        ice.NestedField(1, "id", ice.LongType()),
        ice.NestedField(3, "day", ice.TimestampType()),
        ice.NestedField(4, "new", ice.StringType()),
    )
    conformed = conform(batch, schema, derived=[field(ice.IntegerType(), 50)])
    assert conformed.row(0) == {
        "location": "a",
        "partition.1000": 3,
        stats_key(1, "lower_bound"): 1,
        stats_key(1, "value_count"): 1,
        stats_key(3, "upper_bound"): datetime(1970, 1, 2),
        stats_key(3, "value_count"): 1,
        stats_key(50, "lower_bound"): 1,
        stats_key(2_147_483_540, "lower_bound"): 1,
    }
    assert conformed.column(stats_key(1, "lower_bound")).type == pa.int64()
    assert conformed.column(stats_key(3, "upper_bound")).type == pa.timestamp("us")

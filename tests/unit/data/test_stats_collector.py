"""Statistics of rows as they are written."""

from __future__ import annotations

import uuid
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from frazil.data.statistics.stats_collector import StatsCollector
from frazil.errors import InvalidInput
from frazil.format.entries.metrics import MetricsConfig
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema

ROW_ID = 2_147_483_540
LAST_UPDATED = 2_147_483_539


def collected(
    kind: ice.IcebergType, *columns: pa.Array, mode: str = "truncate(16)"
) -> dict[str, Any]:
    """Statistics of one column, by statistic, over the given batches."""
    schema = Schema(ice.NestedField(1, "c", kind))
    metrics = MetricsConfig.from_properties({"write.metadata.metrics.default": mode}, schema)
    collector = StatsCollector(schema, metrics)
    for column in columns:
        collector.update(pa.record_batch([column], names=["c"]))
    return {key.rpartition(".")[2]: value for key, value in collector.finish().items()}


def bounds(
    kind: ice.IcebergType, *columns: pa.Array, mode: str = "truncate(16)"
) -> tuple[Any, Any, Any]:
    found = collected(kind, *columns, mode=mode)
    return found.get("lower_bound"), found.get("upper_bound"), found.get("tight_bounds")


def test_counts_and_bounds_run_over_all_batches() -> None:
    found = collected(
        ice.LongType(), pa.array([5, None]), pa.array([-7, 9]), pa.array([None], pa.int64())
    )
    assert found == {
        "lower_bound": -7,
        "upper_bound": 9,
        "tight_bounds": True,
        "value_count": 5,
        "null_value_count": 2,
    }


@pytest.mark.parametrize(
    ("kind", "column", "lower", "upper"),
    [
        (ice.BooleanType(), pa.array([True, None, True]), True, True),
        (ice.DateType(), pa.array([date(1970, 1, 3), date(1969, 12, 31)]), -1, 2),
        (ice.TimeType(), pa.array([7, 3], pa.time64("us")), 3, 7),
        (ice.TimestamptzType(), pa.array([7, -3], pa.timestamp("us", "UTC")), -3, 7),
        (ice.TimestampNanoType(), pa.array([2**62 + 1, 1], pa.timestamp("ns")), 1, 2**62 + 1),
        (
            ice.DecimalType(9, 2),
            pa.array([Decimal("1.50"), Decimal("-2.00")], pa.decimal128(9, 2)),
            Decimal("-2.00"),
            Decimal("1.50"),
        ),
        (
            ice.UUIDType(),
            pa.array([b"\xf0" * 16, b"\x0f" * 16], pa.binary(16)),
            b"\x0f" * 16,
            b"\xf0" * 16,
        ),
        (
            ice.UUIDType(),
            pa.array([uuid.UUID(int=7).bytes], pa.uuid()),
            bytes(15) + b"\x07",
            bytes(15) + b"\x07",
        ),
        (
            ice.FixedType(2),
            pa.array([b"\x80\x00", b"\x7f\xff"], pa.binary(2)),
            b"\x7f\xff",
            b"\x80\x00",
        ),
        (ice.StringType(), pa.array(["é", "z", ""], pa.large_string()), "", "é"),
        (ice.StringType(), pa.array(["b", "a"], pa.string_view()), "a", "b"),
        (ice.StringType(), pa.array(["b", "a", None]).dictionary_encode(), "a", "b"),
        (ice.BinaryType(), pa.array([b"\xff", b"\x00"]), b"\x00", b"\xff"),
        (ice.LongType(), pa.array([3, 1], pa.int8()), 1, 3),
        (ice.FloatType(), pa.array([0.1, 0.5], pa.float32()), 0.10000000149011612, 0.5),
    ],
)
def test_bounds_of_every_type_are_exact(
    kind: ice.IcebergType, column: pa.Array, lower: Any, upper: Any
) -> None:
    assert bounds(kind, column) == (lower, upper, True)
    assert bounds(kind, column.slice(0, 1), column.slice(1)) == (lower, upper, True)


def test_nan_is_counted_and_never_a_bound() -> None:
    nan = float("nan")
    assert collected(ice.DoubleType(), pa.array([nan, 1.0, None, nan])) == {
        "lower_bound": 1.0,
        "upper_bound": 1.0,
        "tight_bounds": True,
        "value_count": 4,
        "null_value_count": 1,
        "nan_value_count": 2,
    }
    assert collected(ice.DoubleType(), pa.array([nan, nan])) == {
        "value_count": 2,
        "null_value_count": 0,
        "nan_value_count": 2,
    }


@pytest.mark.parametrize(
    ("batches", "lower", "upper"),
    [
        ([[0.0, -0.0]], "-0.0", "0.0"),
        ([[-0.0, 0.0]], "-0.0", "0.0"),
        ([[0.0], [-0.0]], "-0.0", "0.0"),
        ([[-0.0], [0.0]], "-0.0", "0.0"),
        ([[-0.0], [-0.0]], "-0.0", "-0.0"),
        ([[0.0], [0.0]], "0.0", "0.0"),
        ([[-1.0, -0.0], [-0.0]], "-1.0", "-0.0"),
    ],
)
def test_negative_zero_is_below_zero(batches: list[list[float]], lower: str, upper: str) -> None:
    for kind, arrow in ((ice.DoubleType(), pa.float64()), (ice.FloatType(), pa.float32())):
        found = bounds(kind, *(pa.array(batch, arrow) for batch in batches))
        assert (str(found[0]), str(found[1])) == (lower, upper)


def test_a_column_of_nulls_has_counts_only() -> None:
    for column in (pa.array([None, None], pa.string()), pa.nulls(2)):
        assert collected(ice.StringType(), column) == {"value_count": 2, "null_value_count": 2}
    assert collected(ice.UnknownType(), pa.nulls(2)) == {"value_count": 2, "null_value_count": 2}


def test_long_strings_are_cut_and_no_longer_tight() -> None:
    texts = pa.array(["abcdef", "abzzzz", None])
    assert collected(ice.StringType(), texts, mode="truncate(3)") == {
        "lower_bound": "abc",
        "upper_bound": "ab{",
        "tight_bounds": False,
        "value_count": 3,
        "null_value_count": 1,
        "avg_value_size_in_bytes": 6,
    }
    assert bounds(ice.StringType(), texts, mode="full") == ("abcdef", "abzzzz", True)
    assert bounds(ice.StringType(), texts, mode="truncate(6)") == ("abcdef", "abzzzz", True)


def test_an_upper_bound_that_cannot_be_rounded_up_is_left_out() -> None:
    blobs = pa.array([b"\xff\xff\xff"])
    assert bounds(ice.BinaryType(), blobs, mode="truncate(2)") == (b"\xff\xff", None, False)


def test_average_size_counts_bytes_of_values_that_are_there() -> None:
    found = collected(ice.StringType(), pa.array(["é", None, "abcd"]), pa.array(["x"]))
    assert found["avg_value_size_in_bytes"] == (2 + 4 + 1) // 3


def test_counts_mode_has_no_bounds_and_none_has_nothing() -> None:
    found = collected(ice.LongType(), pa.array([1, None]), mode="counts")
    assert found == {"value_count": 2, "null_value_count": 1}
    assert collected(ice.LongType(), pa.array([1, None]), mode="none") == {}


def test_geometry_that_is_no_wkb_has_counts_and_sizes() -> None:
    found = collected(ice.GeometryType(), pa.array([b"12345", None]))
    assert found == {"value_count": 2, "null_value_count": 1, "avg_value_size_in_bytes": 5}


def test_fields_of_null_structs_are_null() -> None:
    schema = Schema(
        ice.NestedField(
            1,
            "st",
            ice.StructType(
                ice.NestedField(2, "a", ice.LongType()),
                ice.NestedField(3, "in", ice.StructType(ice.NestedField(4, "b", ice.StringType()))),
            ),
        ),
        ice.NestedField(5, "dotted.name", ice.LongType()),
    )
    rows = pa.table(
        {
            "dotted.name": pa.array([4, 4, 4]),
            "st": pa.array([{"a": 1, "in": {"b": "x"}}, None, {"a": None, "in": None}]),
        }
    )
    collector = StatsCollector(schema)
    collector.update(rows)
    found = collector.finish()
    assert found["content_stats.2.value_count"] == 3
    assert found["content_stats.2.null_value_count"] == 2
    assert found["content_stats.4.upper_bound"] == "x"
    assert found["content_stats.4.null_value_count"] == 2
    assert found["content_stats.5.lower_bound"] == 4
    assert not any(key.startswith(("content_stats.1.", "content_stats.3.")) for key in found)


def test_lists_and_maps_are_counted_as_wholes() -> None:
    schema = Schema(
        ice.NestedField(1, "l", ice.ListType(2, ice.LongType())),
        ice.NestedField(3, "m", ice.MapType(4, ice.StringType(), 5, ice.LongType())),
    )
    collector = StatsCollector(schema)
    collector.update(
        pa.table(
            {
                "l": pa.array([[1, 2, 3], None, []]),
                "m": pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
            }
        )
    )
    assert collector.finish() == {
        "content_stats.1.value_count": 3,
        "content_stats.1.null_value_count": 1,
        "content_stats.3.value_count": 3,
        "content_stats.3.null_value_count": 1,
    }


def test_stored_row_lineage_has_statistics() -> None:
    schema = Schema(ice.NestedField(1, "c", ice.LongType()))
    collector = StatsCollector(schema)
    collector.update(
        pa.table(
            {
                "c": [1, 2],
                "_row_id": [40, 30],
                "_last_updated_sequence_number": pa.array([None, 3], pa.int64()),
            }
        )
    )
    found = collector.finish()
    assert found[f"content_stats.{ROW_ID}.lower_bound"] == 30
    assert found[f"content_stats.{ROW_ID}.upper_bound"] == 40
    assert found[f"content_stats.{LAST_UPDATED}.null_value_count"] == 1
    assert f"content_stats.{LAST_UPDATED}.lower_bound" not in found


def test_columns_that_rows_lack_have_no_statistics() -> None:
    schema = Schema(
        ice.NestedField(1, "c", ice.LongType()), ice.NestedField(2, "later", ice.LongType())
    )
    collector = StatsCollector(schema)
    collector.update(pa.table({"c": [1]}))
    assert {key.split(".")[1] for key in collector.finish()} == {"1"}


def test_a_file_without_rows_counts_zero() -> None:
    assert collected(ice.DoubleType()) == {
        "value_count": 0,
        "null_value_count": 0,
        "nan_value_count": 0,
    }
    assert collected(ice.LongType(), pa.array([], pa.int64()))["value_count"] == 0


def test_rows_of_another_type_are_refused() -> None:
    with pytest.raises(InvalidInput, match="column c"):
        collected(ice.LongType(), pa.array(["x"]))


def test_tables_of_many_chunks_count_as_one() -> None:
    schema = Schema(
        ice.NestedField(1, "c", ice.UUIDType()), ice.NestedField(2, "f", ice.DoubleType())
    )
    ids = pa.chunked_array([pa.array([bytes([n]) * 16], pa.uuid()) for n in (9, 200, 3)])
    numbers = pa.chunked_array([pa.array([0.0]), pa.array([-0.0]), pa.array([float("nan")])])
    collector = StatsCollector(schema)
    collector.update(pa.table({"c": ids, "f": numbers}))
    found = collector.finish()
    assert found["content_stats.1.lower_bound"] == b"\x03" * 16
    assert found["content_stats.1.upper_bound"] == b"\xc8" * 16
    assert str(found["content_stats.2.lower_bound"]) == "-0.0"
    assert found["content_stats.2.nan_value_count"] == 1

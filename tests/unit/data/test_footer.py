"""Statistics from Parquet footers of other writers."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.data.statistics.footer import footer_stats
from frazil.format.entries.metrics import MetricsConfig
from frazil.iceberg import types as ice
from frazil.iceberg.name_mapping import parse_mapping
from frazil.iceberg.schema import Schema


def footer(table: pa.Table, **options: Any) -> pq.FileMetaData:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return pq.read_metadata(pa.BufferReader(sink.getvalue()))


def stats(kind: ice.IcebergType, column: pa.Array, **options: Any) -> dict[str, Any]:
    """Statistics of one column, by statistic."""
    schema = Schema(ice.NestedField(1, "c", kind))
    found = footer_stats(footer(pa.table({"c": column}), **options), schema)
    return {key.rpartition(".")[2]: value for key, value in found.items()}


def bounds(kind: ice.IcebergType, column: pa.Array, **options: Any) -> tuple[Any, Any, Any]:
    found = stats(kind, column, **options)
    return found.get("lower_bound"), found.get("upper_bound"), found.get("tight_bounds")


def test_counts_and_bounds_cover_all_row_groups() -> None:
    column = pa.array([5, None, -7, 9, None, None])
    assert stats(ice.LongType(), column, row_group_size=2) == {
        "lower_bound": -7,
        "upper_bound": 9,
        "tight_bounds": True,
        "value_count": 6,
        "null_value_count": 3,
    }


@pytest.mark.parametrize(
    ("kind", "column", "lower", "upper"),
    [
        (ice.BooleanType(), pa.array([True, False]), False, True),
        (ice.IntegerType(), pa.array([-1, 3], pa.int8()), -1, 3),
        (ice.LongType(), pa.array([1, 7], pa.int32()), 1, 7),
        (ice.LongType(), pa.array([1, 2**32 - 1], pa.uint32()), 1, 2**32 - 1),
        (ice.FloatType(), pa.array([0.5, 1.5], pa.float32()), 0.5, 1.5),
        (ice.DoubleType(), pa.array([0.5, 1.5], pa.float32()), 0.5, 1.5),
        (ice.DateType(), pa.array([-3, 4], pa.date32()), -3, 4),
        (ice.TimeType(), pa.array([3, 4], pa.time64("us")), 3, 4),
        (ice.TimeType(), pa.array([3, 4], pa.time32("ms")), 3000, 4000),
        (ice.TimestampType(), pa.array([-3, 4], pa.timestamp("us")), -3, 4),
        (ice.TimestampType(), pa.array([-3, 4], pa.timestamp("ms")), -3000, 4000),
        (ice.TimestampType(), pa.array([-3, 4], pa.timestamp("s")), -3_000_000, 4_000_000),
        (ice.TimestampType(), pa.array([-1, 1], pa.date32()), -86_400_000_000, 86_400_000_000),
        (ice.TimestamptzType(), pa.array([3, 4], pa.timestamp("us", "Europe/Paris")), 3, 4),
        (ice.TimestampNanoType(), pa.array([3, 4], pa.timestamp("ns")), 3, 4),
        (ice.TimestampNanoType(), pa.array([3, 4], pa.timestamp("us")), 3000, 4000),
    ],
)
def test_values_of_fixed_width_are_exact(
    kind: ice.IcebergType, column: pa.Array, lower: Any, upper: Any
) -> None:
    assert bounds(kind, column) == (lower, upper, True)


@pytest.mark.parametrize("integers", [False, True])
@pytest.mark.parametrize("precision", [5, 15, 30])
def test_decimals_are_read_from_every_physical_type(*, integers: bool, precision: int) -> None:
    column = pa.array([Decimal("-1.50"), Decimal("2.25")], pa.decimal128(precision, 2))
    found = bounds(ice.DecimalType(38, 2), column, store_decimal_as_integer=integers)
    assert found == (Decimal("-1.50"), Decimal("2.25"), True)
    assert bounds(ice.DecimalType(38, 3), column) == (None, None, None)


@pytest.mark.parametrize(
    ("kind", "column", "lower", "upper"),
    [
        (ice.StringType(), pa.array(["z", "é"]), "z", "é"),
        (ice.StringType(), pa.array(["a", "b"]).dictionary_encode(), "a", "b"),
        (ice.BinaryType(), pa.array([b"\xff", b"a"]), b"a", b"\xff"),
        (ice.FixedType(2), pa.array([b"\xff0", b"a0"], pa.binary(2)), b"a0", b"\xff0"),
        (
            ice.UUIDType(),
            pa.array([b"\xff" * 16, b"\x01" * 16], pa.uuid()),
            b"\x01" * 16,
            b"\xff" * 16,
        ),
    ],
)
def test_bytes_may_have_been_cut_and_are_not_tight(
    kind: ice.IcebergType, column: pa.Array, lower: Any, upper: Any
) -> None:
    assert bounds(kind, column) == (lower, upper, False)


def test_nanoseconds_in_a_microsecond_column_round_outwards() -> None:
    column = pa.array([1001, 2001], pa.timestamp("ns"))
    assert bounds(ice.TimestampType(), column) == (1, 3, False)
    whole = pa.array([-1000, 2000], pa.timestamp("ns"))
    assert bounds(ice.TimestampType(), whole) == (-1, 2, True)


def test_int96_has_no_bounds() -> None:
    column = pa.array([1000, None], pa.timestamp("us"))
    found = stats(ice.TimestampType(), column, use_deprecated_int96_timestamps=True)
    assert "lower_bound" not in found
    assert found["value_count"] == 2


def test_nan_is_not_counted_and_never_a_bound() -> None:
    nan = float("nan")
    assert stats(ice.DoubleType(), pa.array([nan, 1.0, None])) == {
        "lower_bound": 1.0,
        "upper_bound": 1.0,
        "tight_bounds": True,
        "value_count": 3,
        "null_value_count": 1,
    }
    assert stats(ice.DoubleType(), pa.array([nan, nan])) == {
        "value_count": 2,
        "null_value_count": 0,
    }


def test_zero_bounds_take_in_both_zeros() -> None:
    lower, upper, _ = bounds(ice.DoubleType(), pa.array([0.0, 0.0]))
    assert (str(lower), str(upper)) == ("-0.0", "0.0")
    lower, upper, _ = bounds(ice.DoubleType(), pa.array([-0.0, -0.0]))
    assert (str(lower), str(upper)) == ("-0.0", "0.0")


def test_a_footer_without_statistics_still_has_the_row_count() -> None:
    found = stats(ice.LongType(), pa.array([1, None]), write_statistics=False)
    assert found == {"value_count": 2}


def test_a_required_column_without_statistics_has_no_nulls() -> None:
    table = pa.table([pa.array([1])], pa.schema([pa.field("c", pa.int64(), nullable=False)]))
    schema = Schema(ice.NestedField(1, "c", ice.LongType(), required=True))
    found = footer_stats(footer(table, write_statistics=False), schema)
    assert found == {"content_stats.1.value_count": 1, "content_stats.1.null_value_count": 0}


def test_a_row_group_of_nulls_leaves_bounds_alone() -> None:
    column = pa.array([None, None, "a", "b"])
    found = stats(ice.StringType(), column, row_group_size=2)
    assert (found["lower_bound"], found["upper_bound"], found["null_value_count"]) == ("a", "b", 2)


def test_columns_of_nulls_have_counts() -> None:
    for column in (pa.array([None, None], pa.string()), pa.nulls(2)):
        assert stats(ice.StringType(), column) == {"value_count": 2, "null_value_count": 2}


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        (ice.LongType(), pa.array(["1"])),
        (ice.IntegerType(), pa.array([2**40])),
        (ice.LongType(), pa.array([2**64 - 1], pa.uint64())),
        (ice.LongType(), pa.array([1], pa.date32())),
        (ice.FloatType(), pa.array([1.5])),
        (ice.DoubleType(), pa.array([1])),
        (ice.DateType(), pa.array([1], pa.int32())),
        (ice.TimestampType(), pa.array([1], pa.timestamp("us", "UTC"))),
        (ice.TimestamptzType(), pa.array([1], pa.timestamp("us"))),
        (ice.TimeType(), pa.array([1], pa.timestamp("us"))),
        (ice.TimestampNanoType(), pa.array([2**62], pa.timestamp("us"))),
        (ice.UUIDType(), pa.array([b"ab"], pa.binary(2))),
        (ice.StringType(), pa.array([b"\xff"])),
        (ice.BooleanType(), pa.array([1])),
    ],
)
def test_a_type_the_column_cannot_be_read_from_has_no_bounds(
    kind: ice.IcebergType, column: pa.Array
) -> None:
    assert bounds(kind, column) == (None, None, None)


def test_modes_apply_as_to_rows_we_write() -> None:
    schema = Schema(
        ice.NestedField(1, "c", ice.StringType()), ice.NestedField(2, "d", ice.LongType())
    )
    properties = {
        "write.metadata.metrics.default": "none",
        "write.metadata.metrics.column.c": "truncate(2)",
    }
    metrics = MetricsConfig.from_properties(properties, schema)
    table = pa.table({"c": ["abcd", "zzzz"], "d": [1, 2]})
    assert footer_stats(footer(table), schema, metrics) == {
        "content_stats.1.lower_bound": "ab",
        "content_stats.1.upper_bound": "z{",
        "content_stats.1.tight_bounds": False,
        "content_stats.1.value_count": 2,
        "content_stats.1.null_value_count": 0,
    }


def with_id(name: str, kind: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(field_id)})


def test_columns_are_matched_by_field_id_at_any_depth() -> None:
    inner = pa.struct([with_id("x", pa.int64(), 5), pa.field("no_id", pa.int64())])
    file_schema = pa.schema(
        [
            with_id("list", pa.list_(with_id("element", pa.int64(), 9)), 8),
            with_id("old_name", inner, 4),
            with_id("id", pa.int64(), 1),
        ]
    )
    table = pa.table(
        {"list": [[100]], "old_name": [{"x": 7, "no_id": 8}], "id": [3]}, schema=file_schema
    )
    schema = Schema(
        ice.NestedField(1, "renamed", ice.LongType()),
        ice.NestedField(4, "st", ice.StructType(ice.NestedField(5, "y", ice.LongType()))),
        ice.NestedField(6, "id", ice.LongType()),
        ice.NestedField(8, "l", ice.ListType(9, ice.LongType())),
    )
    found = footer_stats(footer(table), schema)
    assert found["content_stats.1.lower_bound"] == 3
    assert found["content_stats.5.lower_bound"] == 7
    assert found["content_stats.8.value_count"] == 1
    assert {key.split(".")[1] for key in found} == {"1", "5", "8"}


NESTED = Schema(
    ice.NestedField(1, "st", ice.StructType(ice.NestedField(2, "a", ice.LongType()))),
    ice.NestedField(3, "m", ice.MapType(4, ice.StringType(), 5, ice.LongType())),
    ice.NestedField(6, "b", ice.LongType()),
)


def nested_rows() -> pa.Table:
    return pa.table(
        {
            "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
            "st": [{"extra": 0, "a": 5}, None],
            "b": [1, 2],
        }
    )


def test_files_without_ids_go_by_name() -> None:
    assert footer_stats(footer(nested_rows()), NESTED) == {
        "content_stats.3.value_count": 2,
        "content_stats.2.value_count": 2,
        "content_stats.2.null_value_count": 1,
        "content_stats.2.lower_bound": 5,
        "content_stats.2.upper_bound": 5,
        "content_stats.2.tight_bounds": True,
        "content_stats.6.value_count": 2,
        "content_stats.6.null_value_count": 0,
        "content_stats.6.lower_bound": 1,
        "content_stats.6.upper_bound": 2,
        "content_stats.6.tight_bounds": True,
    }


def test_a_name_mapping_decides_when_given() -> None:
    mapping = parse_mapping(
        '[{"field-id": 6, "names": ["other", "m"]},'
        ' {"field-id": 1, "names": ["st"], "fields": [{"field-id": 2, "names": ["extra"]}]}]'
    )
    found = footer_stats(footer(nested_rows()), NESTED, name_mapping=mapping)
    assert found["content_stats.2.lower_bound"] == 0
    assert "content_stats.6.lower_bound" not in found


def test_stored_row_ids_are_bounds_only_without_nulls() -> None:
    fields = pa.schema([with_id("_row_id", pa.int64(), 2_147_483_540)])
    schema = Schema(ice.NestedField(1, "c", ice.LongType()))
    full = footer_stats(footer(pa.table({"_row_id": [7, 9]}, schema=fields)), schema)
    assert full["content_stats.2147483540.lower_bound"] == 7
    some = footer_stats(footer(pa.table({"_row_id": [7, None]}, schema=fields)), schema)
    assert some == {
        "content_stats.2147483540.value_count": 2,
        "content_stats.2147483540.null_value_count": 1,
    }


class WellKnownBinary(pa.ExtensionType):  # type: ignore[misc]
    """Makes pyarrow write geometry with bounding boxes in the footer."""

    def __init__(self) -> None:
        super().__init__(pa.binary(), "geoarrow.wkb")

    def __arrow_ext_serialize__(self) -> bytes:
        return b"{}"

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, data: bytes) -> WellKnownBinary:
        return cls()


@pytest.fixture
def geometry() -> Iterator[WellKnownBinary]:
    kind = WellKnownBinary()
    pa.register_extension_type(kind)
    yield kind
    pa.unregister_extension_type("geoarrow.wkb")


def points(kind: pa.DataType, *places: tuple[float, float] | None) -> pa.Array:
    stored = [None if place is None else struct.pack("<BIdd", 1, 1, *place) for place in places]
    return pa.ExtensionArray.from_storage(kind, pa.array(stored, pa.binary()))


def test_geometry_has_the_box_of_its_row_groups(geometry: WellKnownBinary) -> None:
    column = points(geometry, (1, 2), (-3, 5), (4, 0), None)
    for kind in (ice.GeometryType(), ice.GeographyType()):
        assert stats(kind, column, row_group_size=2) == {
            "value_count": 4,
            "lower_x": -3.0,
            "lower_y": 0.0,
            "upper_x": 4.0,
            "upper_y": 5.0,
        }


def test_a_row_group_without_a_box_leaves_geometry_unbounded(geometry: WellKnownBinary) -> None:
    column = points(geometry, (1, 2), (-3, 5), None, None)
    assert stats(ice.GeometryType(), column, row_group_size=2) == {"value_count": 4}


def test_geometry_without_a_box_has_counts() -> None:
    found = stats(ice.GeometryType(), pa.array([b"x", None]))
    assert found == {"value_count": 2, "null_value_count": 1}


def test_lines_on_a_plane_do_not_bound_a_geography(geometry: WellKnownBinary) -> None:
    line = struct.pack("<BIIdddd", 1, 2, 2, -45, 45, 45, 45)
    column = pa.ExtensionArray.from_storage(geometry, pa.array([line]))
    assert stats(ice.GeometryType(), column)["upper_y"] == 45.0
    assert stats(ice.GeographyType(), column) == {"value_count": 1}


def geoparquet(kind: ice.IcebergType, bbox: Any, **column: Any) -> dict[str, Any]:
    """Statistics of a file of bytes with GeoParquet's metadata."""
    rows = pa.table({"c": pa.array([struct.pack("<BIdd", 1, 1, 3, 4)])})
    geo = {"version": "1.1.0", "primary_column": "c", "columns": {"c": {"bbox": bbox, **column}}}
    rows = rows.replace_schema_metadata({"geo": json.dumps(geo)})
    found = footer_stats(footer(rows), Schema(ice.NestedField(1, "c", kind)))
    ends = {key.rpartition(".")[2]: value for key, value in found.items()}
    return {name: value for name, value in ends.items() if name[:6] in ("lower_", "upper_")}


def test_geoparquet_gives_a_box() -> None:
    flat = {"lower_x": 1.0, "lower_y": 2.0, "upper_x": 5.0, "upper_y": 6.0}
    assert geoparquet(ice.GeometryType(), [1, 2, 5, 6]) == flat
    height = {"lower_z": 0.0, "upper_z": 9.0}
    assert geoparquet(ice.GeometryType(), [1, 2, 0, 5, 6, 9]) == flat | height
    assert geoparquet(ice.GeographyType(), [1, 2, 5, 6], edges="spherical") == flat
    assert geoparquet(ice.GeographyType(), [1, 2, 5, 6], geometry_types=["Point"]) == flat
    fiji = geoparquet(ice.GeographyType(), [177, -20, -178, -15], edges="spherical")
    assert (fiji["lower_x"], fiji["upper_x"]) == (177.0, -178.0)


@pytest.mark.parametrize(
    ("kind", "bbox"),
    [
        (ice.GeometryType(), [5, 2, 1, 6]),  # west of a plane is below its east
        (ice.GeometryType(), [1, 6, 5, 2]),
        (ice.GeometryType(), [1, 2, 5]),
        (ice.GeometryType(), [1, 2, "x", 6]),
        (ice.GeometryType(), [1, 2, float("nan"), 6]),
        (ice.GeometryType(), None),
        (ice.GeometryType(), [1, 2, 10**400, 6]),
        (ice.GeographyType(), [1, 2, 5, 6]),  # straight edges, and perhaps lines
    ],
)
def test_a_box_of_geoparquet_that_says_too_little_is_left_out(
    kind: ice.IcebergType, bbox: Any
) -> None:
    assert geoparquet(kind, bbox) == {}


def test_metadata_of_geoparquet_that_cannot_be_read_gives_no_box() -> None:
    rows = pa.table({"c": pa.array([struct.pack("<BIdd", 1, 1, 3, 4)])})
    rows = rows.replace_schema_metadata({"geo": "[" * 200_000})
    found = footer_stats(footer(rows), Schema(ice.NestedField(1, "c", ice.GeometryType())))
    assert not any("lower_" in key for key in found)

"""Ids of statistics, and which columns have which."""

from __future__ import annotations

import pyarrow as pa
import pytest

from frazil.errors import InvalidInput
from frazil.format.entries.stats import (
    LAST_UPDATED_SEQUENCE_NUMBER,
    MAX_FIELD_ID,
    ROW_ID,
    ROW_LINEAGE,
    TrackedField,
    field_of_stats_id,
    stats_base,
    stats_columns,
    stats_types,
    tracked_fields,
)
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema

NESTED = Schema(
    ice.NestedField(1, "id", ice.LongType(), required=True),
    ice.NestedField(
        2,
        "st",
        ice.StructType(
            ice.NestedField(3, "in", ice.StringType(), required=True),
            ice.NestedField(4, "deep", ice.StructType(ice.NestedField(5, "x", ice.DoubleType()))),
        ),
    ),
    ice.NestedField(6, "tags", ice.ListType(7, ice.StringType())),
    ice.NestedField(
        8,
        "props",
        ice.MapType(
            9, ice.StringType(), 10, ice.StructType(ice.NestedField(11, "y", ice.LongType()))
        ),
    ),
    ice.NestedField(
        12,
        "need",
        ice.StructType(ice.NestedField(13, "z", ice.DateType(), required=True)),
        required=True,
    ),
)


@pytest.mark.parametrize(
    ("field_id", "base"),
    [
        (0, 10_000),
        (1, 10_200),
        (100, 30_000),
        (999_949, 199_999_800),
        (LAST_UPDATED_SEQUENCE_NUMBER, 9_000),
        (ROW_ID, 9_200),
    ],
)
def test_ids_follow_the_arithmetic_of_the_format(field_id: int, base: int) -> None:
    assert stats_base(field_id) == base
    assert field_of_stats_id(base) == (field_id, "")
    assert field_of_stats_id(base + 1) == (field_id, "lower_bound")
    assert field_of_stats_id(base + 2) == (field_id, "upper_bound")
    assert field_of_stats_id(base + 3) == (field_id, "tight_bounds")
    assert field_of_stats_id(base + 4) == (field_id, "value_count")
    assert field_of_stats_id(base + 5) == (field_id, "null_value_count")
    assert field_of_stats_id(base + 6) == (field_id, "nan_value_count")
    assert field_of_stats_id(base + 7) == (field_id, "avg_value_size_in_bytes")
    assert field_of_stats_id(base + 10) == (field_id, "lower_x")
    assert field_of_stats_id(base + 17) == (field_id, "upper_m")


@pytest.mark.parametrize("stats_id", [0, 146, 8_999, 9_400, 10_208, 10_218, 200_000_000])
def test_other_ids_are_no_statistics(stats_id: int) -> None:
    assert field_of_stats_id(stats_id) is None


@pytest.mark.parametrize("field_id", [-1, MAX_FIELD_ID + 1, 2_147_483_646])
def test_fields_outside_the_range_have_no_base(field_id: int) -> None:
    with pytest.raises(InvalidInput):
        stats_base(field_id)


def test_structs_are_flattened_and_containers_are_opaque() -> None:
    assert [(field.id, field.full_name, field.required) for field in tracked_fields(NESTED)] == [
        (1, "id", True),
        (3, "st.in", False),
        (5, "st.deep.x", False),
        (6, "tags", False),
        (8, "props", False),
        (13, "need.z", True),
    ]


def test_a_column_past_the_id_range_is_not_tracked() -> None:
    schema = Schema(
        ice.NestedField(999_949, "last", ice.LongType()),
        ice.NestedField(999_950, "past", ice.LongType()),
    )
    assert [field.full_name for field in tracked_fields(schema)] == ["last"]


COUNTS = ["value_count", "null_value_count"]
BOUNDS = ["lower_bound", "upper_bound", "tight_bounds"]


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (ice.IntegerType(), [*BOUNDS, *COUNTS]),
        (ice.UUIDType(), [*BOUNDS, *COUNTS]),
        (ice.DoubleType(), [*BOUNDS, *COUNTS, "nan_value_count"]),
        (ice.StringType(), [*BOUNDS, *COUNTS, "avg_value_size_in_bytes"]),
        (ice.BinaryType(), [*BOUNDS, *COUNTS, "avg_value_size_in_bytes"]),
        (ice.ListType(2, ice.LongType()), COUNTS),
        (ice.MapType(2, ice.StringType(), 3, ice.LongType()), COUNTS),
        (ice.UnknownType(), COUNTS),
        (ice.GeographyType(), ["x", "y", "z", "m"] * 2 + [*COUNTS, "avg_value_size_in_bytes"]),
    ],
)
def test_a_type_has_the_statistics_that_make_sense(kind: ice.IcebergType, names: list[str]) -> None:
    columns = stats_columns(TrackedField(id=1, full_name="c", type=kind))
    assert [column.name for column in columns] == names


def test_columns_carry_key_offset_and_type() -> None:
    columns = stats_columns(TrackedField(id=7, full_name="price", type=ice.DecimalType(9, 2)))
    assert [(column.key, column.offset, column.type) for column in columns] == [
        ("content_stats.7.lower_bound", 1, pa.decimal128(9, 2)),
        ("content_stats.7.upper_bound", 2, pa.decimal128(9, 2)),
        ("content_stats.7.tight_bounds", 3, pa.bool_()),
        ("content_stats.7.value_count", 4, pa.int64()),
        ("content_stats.7.null_value_count", 5, pa.int64()),
    ]


def test_geo_bounds_lie_one_struct_deeper() -> None:
    columns = stats_columns(TrackedField(id=7, full_name="place", type=ice.GeographyType()))[:8]
    assert [(column.key.rpartition(".")[2], column.offset, column.name) for column in columns] == [
        ("lower_x", 10, "x"),
        ("lower_y", 11, "y"),
        ("lower_z", 12, "z"),
        ("lower_m", 13, "m"),
        ("upper_x", 14, "x"),
        ("upper_y", 15, "y"),
        ("upper_z", 16, "z"),
        ("upper_m", 17, "m"),
    ]
    assert [column.required for column in columns] == [True, True, False, False] * 2
    assert {column.type for column in columns} == {pa.float64()}


def test_types_of_many_columns_are_keyed_flat() -> None:
    types = stats_types(ROW_LINEAGE)
    assert types["content_stats.2147483540.lower_bound"] == pa.int64()
    assert len(types) == 10

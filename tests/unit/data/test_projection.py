"""A file's columns as the columns a reader asked for, by field id."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from frazil.data.projection import file_fields, needed_leaves, projection
from frazil.data.schema import arrow_schema, identified_schema
from frazil.errors import FormatError
from frazil.iceberg import types as ice
from frazil.iceberg.name_mapping import NameMapping, parse_mapping
from frazil.iceberg.schema import Schema


def _project(rows: list[dict[str, Any]], written: Schema, wanted: Schema, **more: Any) -> Any:
    batch = pa.RecordBatch.from_pylist(rows, arrow_schema(written))
    batch = pa.RecordBatch.from_arrays(batch.columns, schema=identified_schema(written))
    plan = projection(file_fields(batch.schema), wanted, **more)
    return plan.project(batch).to_pylist()


OLD = Schema(
    ice.NestedField(1, "id", ice.IntegerType(), required=True),
    ice.NestedField(
        2,
        "s",
        ice.StructType(
            ice.NestedField(3, "a", ice.StringType()),
            ice.NestedField(4, "b", ice.FloatType()),
            ice.NestedField(5, "l", ice.ListType(6, ice.IntegerType(), element_required=False)),
        ),
    ),
    ice.NestedField(
        7,
        "m",
        ice.MapType(
            8,
            ice.StringType(),
            9,
            ice.StructType(
                ice.NestedField(10, "x", ice.DateType()), ice.NestedField(11, "y", ice.StringType())
            ),
            value_required=False,
        ),
    ),
)
ROWS: list[dict[str, Any]] = [
    {
        "id": 1,
        "s": {"a": "p", "b": 0.5, "l": [1, None]},
        "m": [("k", {"x": dt.date(2024, 1, 1), "y": "q"})],
    },
    {"id": 2, "s": None, "m": None},
    {"id": 3, "s": {"a": None, "b": None, "l": None}, "m": [("k", None)]},
]


def test_columns_follow_their_ids_through_renames_and_reorders_at_every_level() -> None:
    wanted = Schema(
        ice.NestedField(
            7,
            "mapping",
            ice.MapType(
                8,
                ice.StringType(),
                9,
                ice.StructType(
                    ice.NestedField(11, "why", ice.StringType()),
                    ice.NestedField(10, "x", ice.DateType()),
                ),
                value_required=False,
            ),
        ),
        ice.NestedField(
            2,
            "s",
            ice.StructType(
                ice.NestedField(4, "b", ice.FloatType()),
                ice.NestedField(3, "alpha", ice.StringType()),
            ),
        ),
        ice.NestedField(1, "key", ice.IntegerType()),
    )
    assert _project(ROWS, OLD, wanted) == [
        {
            "mapping": [("k", {"why": "q", "x": dt.date(2024, 1, 1)})],
            "s": {"b": 0.5, "alpha": "p"},
            "key": 1,
        },
        {"mapping": None, "s": None, "key": 2},
        {"mapping": [("k", None)], "s": {"b": None, "alpha": None}, "key": 3},
    ]


def test_a_new_column_under_an_old_name_does_not_show_the_old_values() -> None:
    wanted = Schema(
        ice.NestedField(20, "id", ice.IntegerType()),
        ice.NestedField(
            2,
            "s",
            ice.StructType(
                ice.NestedField(21, "a", ice.StringType()), ice.NestedField(4, "b", ice.FloatType())
            ),
        ),
    )
    assert _project(ROWS, OLD, wanted)[0] == {"id": None, "s": {"a": None, "b": 0.5}}


def test_added_columns_take_their_initial_default_at_every_level() -> None:
    wanted = Schema(
        ice.NestedField(1, "id", ice.IntegerType()),
        ice.NestedField(20, "status", ice.StringType(), required=True, initial_default="old"),
        ice.NestedField(
            2,
            "s",
            ice.StructType(
                ice.NestedField(21, "n", ice.LongType(), initial_default=9, write_default=1)
            ),
        ),
    )
    assert _project(ROWS, OLD, wanted) == [
        {"id": 1, "status": "old", "s": {"n": 9}},
        {"id": 2, "status": "old", "s": None},
        {"id": 3, "status": "old", "s": {"n": 9}},
    ]


def test_types_are_promoted_at_every_level() -> None:
    wanted = Schema(
        ice.NestedField(1, "id", ice.LongType()),
        ice.NestedField(
            2,
            "s",
            ice.StructType(
                ice.NestedField(4, "b", ice.DoubleType()),
                ice.NestedField(5, "l", ice.ListType(6, ice.LongType(), element_required=False)),
            ),
        ),
        ice.NestedField(
            7,
            "m",
            ice.MapType(
                8,
                ice.StringType(),
                9,
                ice.StructType(ice.NestedField(10, "x", ice.TimestampType())),
                value_required=False,
            ),
        ),
    )
    assert _project(ROWS[:1], OLD, wanted) == [
        {
            "id": 1,
            "s": {"b": 0.5, "l": [1, None]},
            "m": [("k", {"x": dt.datetime(2024, 1, 1)})],
        }
    ]


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (pa.array([1], pa.int32()), ice.LongType(), [1]),
        (pa.array([1.5], pa.float32()), ice.DoubleType(), [1.5]),
        (
            pa.array([Decimal("1.25")], pa.decimal128(5, 2)),
            ice.DecimalType(18, 2),
            [Decimal("1.25")],
        ),
        (pa.array([1], pa.date32()), ice.TimestampType(), [dt.datetime(1970, 1, 2)]),
        (pa.array([1], pa.date32()), ice.TimestampNanoType(), [86_400_000_000_000]),
        (
            pa.array([1], pa.timestamp("ms")),
            ice.TimestampType(),
            [dt.datetime(1970, 1, 1, 0, 0, 0, 1000)],
        ),
        (
            pa.array([1], pa.timestamp("us")),
            ice.TimestamptzType(),
            [dt.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC)],
        ),
        (
            pa.array([1], pa.timestamp("us", "UTC")),
            ice.TimestampType(),
            [dt.datetime(1970, 1, 1, 0, 0, 0, 1)],
        ),
        (pa.array([b"txt"], pa.binary()), ice.StringType(), ["txt"]),
        (pa.array(["txt"]), ice.BinaryType(), [b"txt"]),
        (pa.array(["a"], pa.large_string()), ice.StringType(), ["a"]),
        (pa.array(["a", "a"]).dictionary_encode(), ice.StringType(), ["a", "a"]),
        (pa.nulls(1), ice.LongType(), [None]),
    ],
)
def test_what_writers_store_is_read_as_the_table_type(
    values: pa.Array, kind: ice.PrimitiveType, expected: list[Any]
) -> None:
    field = pa.field("c", values.type, metadata={"PARQUET:field_id": "1"})
    batch = pa.RecordBatch.from_arrays([values], schema=pa.schema([field]))
    wanted = Schema(ice.NestedField(1, "c", kind))
    column = projection(file_fields(batch.schema), wanted).project(batch).column(0)
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.int64())
    assert column.to_pylist() == expected


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (pa.int64(), ice.IntegerType()),
        (pa.float64(), ice.FloatType()),
        (pa.string(), ice.LongType()),
        (pa.decimal128(9, 3), ice.DecimalType(9, 2)),
        (pa.date32(), ice.TimestamptzType()),
        (pa.list_(pa.int32()), ice.LongType()),
        (pa.int32(), ice.StructType(ice.NestedField(2, "x", ice.LongType()))),
    ],
)
def test_a_stored_type_that_cannot_be_read_is_a_format_error(
    found: pa.DataType, kind: ice.IcebergType
) -> None:
    arrow = pa.schema([pa.field("c", found, metadata={"PARQUET:field_id": "1"})])
    with pytest.raises(FormatError, match=r"c: found .*; expected"):
        projection(file_fields(arrow), Schema(ice.NestedField(1, "c", kind)))


def test_a_required_column_that_is_nowhere_is_a_format_error() -> None:
    wanted = Schema(ice.NestedField(99, "must", ice.LongType(), required=True))
    with pytest.raises(FormatError, match=r"required column must \(field id 99\)"):
        _project(ROWS, OLD, wanted)


def test_constants_fill_only_columns_the_file_lacks() -> None:
    wanted = Schema(
        ice.NestedField(1, "id", ice.IntegerType()), ice.NestedField(30, "day", ice.DateType())
    )
    constants = {1: 77, 30: dt.date(2024, 5, 6)}
    assert _project(ROWS[:1], OLD, wanted, constants=constants) == [
        {"id": 1, "day": dt.date(2024, 5, 6)}
    ]


def test_a_struct_of_only_new_columns_is_still_null_where_it_was() -> None:
    wanted = Schema(
        ice.NestedField(2, "s", ice.StructType(ice.NestedField(50, "new", ice.LongType())))
    )
    assert _project(ROWS, OLD, wanted) == [
        {"s": {"new": None}},
        {"s": None},
        {"s": {"new": None}},
    ]


def test_only_leaves_that_are_needed_are_read() -> None:
    fields = file_fields(identified_schema(OLD))
    # leaves: id, s.a, s.b, s.l.element, m.key, m.value.x, m.value.y
    inner = ice.StructType(ice.NestedField(4, "b", ice.FloatType()))
    assert needed_leaves(fields, [ice.NestedField(2, "s", inner)]) == [2]
    assert needed_leaves(fields, [ice.NestedField(1, "id", ice.LongType())]) == [0]
    assert needed_leaves(fields, [OLD.find_field("m")]) == [4, 5, 6]
    assert needed_leaves(fields, [ice.NestedField(99, "new", ice.LongType())]) == []
    gone = ice.StructType(ice.NestedField(50, "new", ice.LongType()))
    assert needed_leaves(fields, [ice.NestedField(2, "s", gone)]) == [1]


MAPPING = """[
 {"field-id": 1, "names": ["id", "record_id"]},
 {"field-id": 2, "names": ["s"], "fields": [{"field-id": 3, "names": ["a"]}]},
 {"field-id": 5, "names": ["l"], "fields": [{"field-id": 6, "names": ["element"]}]},
 {"field-id": 7, "names": ["m"], "fields": [
   {"field-id": 8, "names": ["key"]},
   {"field-id": 9, "names": ["value"], "fields": [{"field-id": 10, "names": ["x"]}]}]}
]"""


def _mapping() -> NameMapping:
    return parse_mapping(MAPPING)


def test_a_file_without_ids_is_read_through_the_name_mapping() -> None:
    batch = pa.RecordBatch.from_pylist(
        [{"record_id": 1, "s": {"a": "p", "z": 0}, "l": [4], "m": [("k", {"x": 5})]}],
        pa.schema(
            [
                ("record_id", pa.int32()),
                ("s", pa.struct([("z", pa.int32()), ("a", pa.string())])),
                ("l", pa.list_(pa.int32())),
                ("m", pa.map_(pa.string(), pa.struct([("x", pa.int64())]))),
            ]
        ),
    )
    wanted = Schema(
        ice.NestedField(1, "id", ice.LongType()),
        ice.NestedField(2, "s", ice.StructType(ice.NestedField(3, "alpha", ice.StringType()))),
        ice.NestedField(5, "l", ice.ListType(6, ice.LongType(), element_required=False)),
        ice.NestedField(
            7,
            "m",
            ice.MapType(
                8,
                ice.StringType(),
                9,
                ice.StructType(ice.NestedField(10, "ex", ice.LongType())),
                False,
            ),
        ),
        ice.NestedField(99, "other", ice.StringType()),
    )
    plan = projection(file_fields(batch.schema, _mapping()), wanted)
    assert plan.project(batch).to_pylist() == [
        {"id": 1, "s": {"alpha": "p"}, "l": [4], "m": [("k", {"ex": 5})], "other": None}
    ]


def test_the_name_mapping_is_ignored_when_the_file_has_ids() -> None:
    arrow = pa.schema([pa.field("id", pa.int32(), metadata={"PARQUET:field_id": "42"})])
    (field,) = file_fields(arrow, _mapping())
    assert field.field_id == 42


def test_a_file_without_ids_and_no_mapping_is_a_format_error() -> None:
    with pytest.raises(FormatError, match=r"schema\.name-mapping\.default"):
        file_fields(pa.schema([("id", pa.int32())]))

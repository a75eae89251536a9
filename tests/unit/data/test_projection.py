"""A file's columns as the columns a reader asked for, by field id."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.table.name_mapping import NameMapping, parse_mapping_from_json
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
)

from frazil.data.projection import file_fields, needed_leaves, projection
from frazil.data.schema import arrow_schema, identified_schema
from frazil.errors import FormatError


def _project(rows: list[dict[str, Any]], written: Schema, wanted: Schema, **more: Any) -> Any:
    batch = pa.RecordBatch.from_pylist(rows, arrow_schema(written))
    batch = pa.RecordBatch.from_arrays(batch.columns, schema=identified_schema(written))
    plan = projection(file_fields(batch.schema), wanted, **more)
    return plan.project(batch).to_pylist()


OLD = Schema(
    NestedField(1, "id", IntegerType(), required=True),
    NestedField(
        2,
        "s",
        StructType(
            NestedField(3, "a", StringType()),
            NestedField(4, "b", FloatType()),
            NestedField(5, "l", ListType(6, IntegerType(), element_required=False)),
        ),
    ),
    NestedField(
        7,
        "m",
        MapType(
            8,
            StringType(),
            9,
            StructType(NestedField(10, "x", DateType()), NestedField(11, "y", StringType())),
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
        NestedField(
            7,
            "mapping",
            MapType(
                8,
                StringType(),
                9,
                StructType(NestedField(11, "why", StringType()), NestedField(10, "x", DateType())),
                value_required=False,
            ),
        ),
        NestedField(
            2,
            "s",
            StructType(NestedField(4, "b", FloatType()), NestedField(3, "alpha", StringType())),
        ),
        NestedField(1, "key", IntegerType()),
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
        NestedField(20, "id", IntegerType()),
        NestedField(
            2,
            "s",
            StructType(NestedField(21, "a", StringType()), NestedField(4, "b", FloatType())),
        ),
    )
    assert _project(ROWS, OLD, wanted)[0] == {"id": None, "s": {"a": None, "b": 0.5}}


def test_added_columns_take_their_initial_default_at_every_level() -> None:
    wanted = Schema(
        NestedField(1, "id", IntegerType()),
        NestedField(20, "status", StringType(), required=True, initial_default="old"),
        NestedField(
            2,
            "s",
            StructType(NestedField(21, "n", LongType(), initial_default=9, write_default=1)),
        ),
    )
    assert _project(ROWS, OLD, wanted) == [
        {"id": 1, "status": "old", "s": {"n": 9}},
        {"id": 2, "status": "old", "s": None},
        {"id": 3, "status": "old", "s": {"n": 9}},
    ]


def test_types_are_promoted_at_every_level() -> None:
    wanted = Schema(
        NestedField(1, "id", LongType()),
        NestedField(
            2,
            "s",
            StructType(
                NestedField(4, "b", DoubleType()),
                NestedField(5, "l", ListType(6, LongType(), element_required=False)),
            ),
        ),
        NestedField(
            7,
            "m",
            MapType(
                8,
                StringType(),
                9,
                StructType(NestedField(10, "x", TimestampType())),
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
        (pa.array([1], pa.int32()), LongType(), [1]),
        (pa.array([1.5], pa.float32()), DoubleType(), [1.5]),
        (
            pa.array([Decimal("1.25")], pa.decimal128(5, 2)),
            DecimalType(18, 2),
            [Decimal("1.25")],
        ),
        (pa.array([1], pa.date32()), TimestampType(), [dt.datetime(1970, 1, 2)]),
        (pa.array([1], pa.date32()), TimestampNanoType(), [86_400_000_000_000]),
        (
            pa.array([1], pa.timestamp("ms")),
            TimestampType(),
            [dt.datetime(1970, 1, 1, 0, 0, 0, 1000)],
        ),
        (
            pa.array([1], pa.timestamp("us")),
            TimestamptzType(),
            [dt.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC)],
        ),
        (
            pa.array([1], pa.timestamp("us", "UTC")),
            TimestampType(),
            [dt.datetime(1970, 1, 1, 0, 0, 0, 1)],
        ),
        (pa.array([b"txt"], pa.binary()), StringType(), ["txt"]),
        (pa.array(["txt"]), BinaryType(), [b"txt"]),
        (pa.array(["a"], pa.large_string()), StringType(), ["a"]),
        (pa.array(["a", "a"]).dictionary_encode(), StringType(), ["a", "a"]),
        (pa.nulls(1), LongType(), [None]),
    ],
)
def test_what_writers_store_is_read_as_the_table_type(
    values: pa.Array, kind: PrimitiveType, expected: list[Any]
) -> None:
    field = pa.field("c", values.type, metadata={"PARQUET:field_id": "1"})
    batch = pa.RecordBatch.from_arrays([values], schema=pa.schema([field]))
    wanted = Schema(NestedField(1, "c", kind))
    column = projection(file_fields(batch.schema), wanted).project(batch).column(0)
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.int64())
    assert column.to_pylist() == expected


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (pa.int64(), IntegerType()),
        (pa.float64(), FloatType()),
        (pa.string(), LongType()),
        (pa.decimal128(9, 3), DecimalType(9, 2)),
        (pa.date32(), TimestamptzType()),
        (pa.list_(pa.int32()), LongType()),
        (pa.int32(), StructType(NestedField(2, "x", LongType()))),
    ],
)
def test_a_stored_type_that_cannot_be_read_is_a_format_error(
    found: pa.DataType, kind: IcebergType
) -> None:
    arrow = pa.schema([pa.field("c", found, metadata={"PARQUET:field_id": "1"})])
    with pytest.raises(FormatError, match=r"c: found .*; expected"):
        projection(file_fields(arrow), Schema(NestedField(1, "c", kind)))


def test_a_required_column_that_is_nowhere_is_a_format_error() -> None:
    wanted = Schema(NestedField(99, "must", LongType(), required=True))
    with pytest.raises(FormatError, match=r"required column must \(field id 99\)"):
        _project(ROWS, OLD, wanted)


def test_constants_fill_only_columns_the_file_lacks() -> None:
    wanted = Schema(NestedField(1, "id", IntegerType()), NestedField(30, "day", DateType()))
    constants = {1: 77, 30: dt.date(2024, 5, 6)}
    assert _project(ROWS[:1], OLD, wanted, constants=constants) == [
        {"id": 1, "day": dt.date(2024, 5, 6)}
    ]


def test_a_struct_of_only_new_columns_is_still_null_where_it_was() -> None:
    wanted = Schema(NestedField(2, "s", StructType(NestedField(50, "new", LongType()))))
    assert _project(ROWS, OLD, wanted) == [
        {"s": {"new": None}},
        {"s": None},
        {"s": {"new": None}},
    ]


def test_only_leaves_that_are_needed_are_read() -> None:
    fields = file_fields(identified_schema(OLD))
    # leaves: id, s.a, s.b, s.l.element, m.key, m.value.x, m.value.y
    inner = StructType(NestedField(4, "b", FloatType()))
    assert needed_leaves(fields, [NestedField(2, "s", inner)]) == [2]
    assert needed_leaves(fields, [NestedField(1, "id", LongType())]) == [0]
    assert needed_leaves(fields, [OLD.find_field("m")]) == [4, 5, 6]
    assert needed_leaves(fields, [NestedField(99, "new", LongType())]) == []
    gone = StructType(NestedField(50, "new", LongType()))
    assert needed_leaves(fields, [NestedField(2, "s", gone)]) == [1]


MAPPING = """[
 {"field-id": 1, "names": ["id", "record_id"]},
 {"field-id": 2, "names": ["s"], "fields": [{"field-id": 3, "names": ["a"]}]},
 {"field-id": 5, "names": ["l"], "fields": [{"field-id": 6, "names": ["element"]}]},
 {"field-id": 7, "names": ["m"], "fields": [
   {"field-id": 8, "names": ["key"]},
   {"field-id": 9, "names": ["value"], "fields": [{"field-id": 10, "names": ["x"]}]}]}
]"""


def _mapping() -> NameMapping:
    return parse_mapping_from_json(MAPPING)


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
        NestedField(1, "id", LongType()),
        NestedField(2, "s", StructType(NestedField(3, "alpha", StringType()))),
        NestedField(5, "l", ListType(6, LongType(), element_required=False)),
        NestedField(
            7,
            "m",
            MapType(8, StringType(), 9, StructType(NestedField(10, "ex", LongType())), False),
        ),
        NestedField(99, "other", StringType()),
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

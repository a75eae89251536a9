"""Iceberg schemas as Arrow schemas and back."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest
from pyiceberg.io.pyarrow import schema_to_pyarrow

from frazil.data.schema import (
    arrow_schema,
    for_display,
    iceberg_schema,
    parquet_schema,
    stored_schema,
)
from frazil.errors import InvalidInput
from frazil.iceberg import types as ice
from frazil.iceberg.pyiceberg_values import pyiceberg_schema
from frazil.iceberg.schema import Schema

NESTED = Schema(
    ice.NestedField(1, "id", ice.LongType(), required=True),
    ice.NestedField(
        2,
        "place",
        ice.StructType(
            ice.NestedField(3, "lat", ice.DoubleType(), required=True),
            ice.NestedField(4, "tags", ice.ListType(5, ice.StringType(), element_required=True)),
        ),
    ),
    ice.NestedField(
        6, "props", ice.MapType(7, ice.StringType(), 8, ice.IntegerType(), value_required=False)
    ),
    ice.NestedField(9, "uid", ice.UUIDType()),
)


def test_rows_in_memory_have_plain_types() -> None:
    assert arrow_schema(NESTED) == pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field(
                "place",
                pa.struct(
                    [
                        pa.field("lat", pa.float64(), nullable=False),
                        pa.field(
                            "tags", pa.list_(pa.field("element", pa.string(), nullable=False))
                        ),
                    ]
                ),
            ),
            pa.field("props", pa.map_(pa.string(), pa.int32())),
            pa.field("uid", pa.binary(16)),
        ]
    )


def _ids(fields: list[pa.Field]) -> list[int]:
    found = []
    for field in fields:
        found.append(int(field.metadata[b"PARQUET:field_id"]))
        kind = field.type
        if pa.types.is_map(kind):
            found += _ids([kind.key_field, kind.item_field])
        elif kind.num_fields:
            found += _ids([kind.field(at) for at in range(kind.num_fields)])
    return found


def test_stored_rows_have_field_ids_at_every_level() -> None:
    assert _ids(list(parquet_schema(NESTED))) == [1, 2, 3, 4, 5, 6, 7, 8, 9]


def test_stored_uuids_are_marked_as_uuids() -> None:
    assert parquet_schema(NESTED).field("uid").type == pa.uuid()


def test_field_ids_are_the_ones_pyiceberg_writes() -> None:
    theirs = schema_to_pyarrow(pyiceberg_schema(NESTED), include_field_ids=True)
    assert _ids(list(theirs)) == _ids(list(parquet_schema(NESTED)))


def test_columns_of_unknown_type_are_not_stored() -> None:
    schema = Schema(
        ice.NestedField(1, "a", ice.IntegerType()),
        ice.NestedField(2, "nothing", ice.UnknownType()),
        ice.NestedField(
            3,
            "s",
            ice.StructType(
                ice.NestedField(4, "x", ice.UnknownType()),
                ice.NestedField(5, "y", ice.StringType()),
            ),
        ),
        ice.NestedField(6, "l", ice.ListType(7, ice.UnknownType(), element_required=False)),
    )
    kept = stored_schema(schema)
    assert [field.name for field in kept.fields] == ["a", "s"]
    assert kept.find_field("s").field_type == ice.StructType(
        ice.NestedField(5, "y", ice.StringType())
    )


def test_shown_rows_have_uuids() -> None:
    value = uuid.UUID(int=7)
    schema = Schema(ice.NestedField(1, "u", ice.UUIDType()))
    rows = pa.table({"u": pa.array([value.bytes], pa.binary(16))})
    assert for_display(rows, schema).column("u").to_pylist() == [value]


@pytest.mark.parametrize(
    ("arrow", "iceberg"),
    [
        (pa.bool_(), ice.BooleanType()),
        (pa.int8(), ice.IntegerType()),
        (pa.uint16(), ice.IntegerType()),
        (pa.int32(), ice.IntegerType()),
        (pa.uint32(), ice.LongType()),
        (pa.int64(), ice.LongType()),
        (pa.float16(), ice.FloatType()),
        (pa.float32(), ice.FloatType()),
        (pa.float64(), ice.DoubleType()),
        (pa.decimal128(9, 2), ice.DecimalType(9, 2)),
        (pa.decimal256(38, 4), ice.DecimalType(38, 4)),
        (pa.date32(), ice.DateType()),
        (pa.date64(), ice.DateType()),
        (pa.time32("s"), ice.TimeType()),
        (pa.time64("us"), ice.TimeType()),
        (pa.timestamp("ms"), ice.TimestampType()),
        (pa.timestamp("us", "Europe/Oslo"), ice.TimestamptzType()),
        (pa.timestamp("ns"), ice.TimestampNanoType()),
        (pa.timestamp("ns", "UTC"), ice.TimestamptzNanoType()),
        (pa.string(), ice.StringType()),
        (pa.large_string(), ice.StringType()),
        (pa.string_view(), ice.StringType()),
        (pa.dictionary(pa.int8(), pa.string()), ice.StringType()),
        (pa.binary(), ice.BinaryType()),
        (pa.large_binary(), ice.BinaryType()),
        (pa.binary(5), ice.FixedType(5)),
        (pa.uuid(), ice.UUIDType()),
        (pa.null(), ice.UnknownType()),
    ],
)
def test_an_arrow_type_makes_a_table_type(arrow: pa.DataType, iceberg: object) -> None:
    made = iceberg_schema(pa.schema([pa.field("c", arrow)]))
    assert made.find_field("c").field_type == iceberg


def test_fresh_ids_number_the_top_level_first() -> None:
    made = iceberg_schema(
        pa.schema(
            [
                pa.field("s", pa.struct([pa.field("x", pa.int32(), nullable=False)])),
                pa.field("l", pa.large_list(pa.field("item", pa.string(), nullable=False))),
                pa.field("m", pa.map_(pa.string(), pa.int64())),
                pa.field("last", pa.int64(), nullable=False),
            ]
        )
    )
    ids = {name: made.find_field(name).field_id for name in ("s", "l", "m", "last")}
    assert ids == {"s": 1, "l": 2, "m": 3, "last": 4}
    assert sorted(made.field_ids) == list(range(1, 9))
    assert made.find_field("s.x").required
    assert made.find_field("l.element").required
    assert made.find_field("last").required
    assert not made.find_field("m").required


def test_every_problem_of_an_arrow_schema_is_listed() -> None:
    arrow = pa.schema(
        [
            ("big", pa.uint64()),
            ("empty", pa.list_(pa.struct([]))),
            ("twice", pa.int32()),
            ("twice", pa.int32()),
            ("s", pa.struct([("span", pa.duration("s"))])),
        ]
    )
    with pytest.raises(InvalidInput) as caught:
        iceberg_schema(arrow)
    message = str(caught.value)
    assert "'big'" in message
    assert "'empty.element': a struct needs at least one field" in message
    assert "uint64" in message
    assert "'twice': the name occurs twice" in message
    assert "'s.span'" in message


def test_a_table_needs_a_column() -> None:
    with pytest.raises(InvalidInput, match="at least one"):
        iceberg_schema(pa.schema([]))


def test_a_dotted_name_that_hides_a_nested_one_is_refused() -> None:
    arrow = pa.schema([("a.b", pa.int32()), ("a", pa.struct([("b", pa.int32())]))])
    with pytest.raises(InvalidInput, match=r"a\.b"):
        iceberg_schema(arrow)

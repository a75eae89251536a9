"""Types both ways, value by value: written on one machine and read by Spark, and the other way."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import types as peer
from pyiceberg.schema import Schema as PyIcebergSchema
from pyspark.sql import types as sql

import frazil
import frazil.spark
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema
from frazil.spark.types.spark_arrow import arrow_of, column_from_spark, column_into_spark
from frazil.spark.types.spark_types import frame_schema, spark_type

pytestmark = pytest.mark.spark

PAIRS = [
    (ice.BooleanType(), sql.BooleanType()),
    (ice.IntegerType(), sql.IntegerType()),
    (ice.LongType(), sql.LongType()),
    (ice.FloatType(), sql.FloatType()),
    (ice.DoubleType(), sql.DoubleType()),
    (ice.DecimalType(12, 3), sql.DecimalType(12, 3)),
    (ice.DateType(), sql.DateType()),
    (ice.TimeType(), sql.TimeType(6)),
    (ice.TimestampType(), sql.TimestampNTZType()),
    (ice.TimestamptzType(), sql.TimestampType()),
    (ice.StringType(), sql.StringType()),
    (ice.BinaryType(), sql.BinaryType()),
    (ice.UnknownType(), sql.NullType()),
    (ice.GeometryType(), sql.GeometryType(4326)),
    (ice.GeographyType(), sql.GeographyType(4326)),
]


@pytest.mark.parametrize(("iceberg", "spark"), PAIRS, ids=[str(pair[0]) for pair in PAIRS])
def test_types_map_both_ways(iceberg: Any, spark: Any) -> None:
    assert spark_type(iceberg) == spark
    made = frame_schema(sql.StructType([sql.StructField("c", spark)]))
    assert made.find_field("c").field_type == iceberg


def test_types_that_only_the_table_has() -> None:
    assert spark_type(ice.UUIDType()) == sql.StringType()
    assert spark_type(ice.FixedType(5)) == sql.BinaryType()


def test_types_that_only_spark_has() -> None:
    narrow = sql.StructType(
        [
            sql.StructField("tiny", sql.ByteType(), False),
            sql.StructField("small", sql.ShortType()),
            sql.StructField("code", sql.VarcharType(3)),
        ]
    )
    made = frame_schema(narrow)
    assert [str(field.field_type) for field in made.fields] == ["int", "int", "string"]
    assert not any(field.required for field in made.fields)


def test_nested_types_map_both_ways() -> None:
    nested = sql.StructType(
        [
            sql.StructField("s", sql.StructType([sql.StructField("x", sql.LongType(), False)])),
            sql.StructField("l", sql.ArrayType(sql.StringType(), False)),
            sql.StructField("m", sql.MapType(sql.StringType(), sql.DoubleType(), True)),
        ]
    )
    made = frame_schema(nested)
    assert made.find_type("s.x") == ice.LongType()
    assert not made.find_field("s.x").required
    assert not made.find_field("l.element").required
    assert not made.find_field("m.value").required
    assert frazil.spark.spark_schema(made).simpleString() == nested.simpleString()
    assert len({*made.field_ids}) == 7


def test_every_type_without_a_counterpart_is_named() -> None:
    wanted = Schema(
        ice.NestedField(1, "ok", ice.LongType()),
        ice.NestedField(2, "ns", ice.TimestampNanoType()),
        ice.NestedField(
            3, "s", ice.StructType(ice.NestedField(4, "inner", ice.TimestamptzNanoType()))
        ),
    )
    with pytest.raises(frazil.Unsupported, match=r"(?s)'ns': timestamp_ns.*'s.inner'"):
        frazil.spark.spark_schema(wanted)
    odd = sql.StructType(
        [
            sql.StructField("m", sql.YearMonthIntervalType()),
            sql.StructField("i", sql.DayTimeIntervalType()),
        ]
    )
    with pytest.raises(frazil.Unsupported, match=r"(?s)'m': interval.*'i': interval"):
        frame_schema(odd)


UUIDS = [uuid.UUID(int=7), None, uuid.UUID("ffffffff-eeee-4ddd-8ccc-bbbbbbbbbbbb")]


def test_uuids_become_texts_and_texts_uuids() -> None:
    stored = pa.array([None if u is None else u.bytes for u in UUIDS], pa.binary(16))
    texts = column_into_spark(stored, ice.UUIDType(), pa.string())
    assert texts.to_pylist() == [None if u is None else str(u) for u in UUIDS]
    assert column_from_spark(texts, ice.UUIDType()).equals(stored)
    part = column_into_spark(stored.slice(1), ice.UUIDType(), pa.string())
    assert part.to_pylist() == [None, str(UUIDS[2])]
    with pytest.raises(frazil.InvalidInput, match="'nonsense' is not a uuid"):
        column_from_spark(pa.array(["nonsense", None]), ice.UUIDType())


def test_foreign_values_inside_lists_structs_and_maps_are_respelled() -> None:
    kind = ice.StructType(
        ice.NestedField(1, "ids", ice.ListType(2, ice.UUIDType(), False)),
        ice.NestedField(3, "by", ice.MapType(4, ice.StringType(), 5, ice.UUIDType())),
    )
    a, b = uuid.UUID(int=1), uuid.UUID(int=2)
    stored = pa.array(
        [
            {"ids": [a.bytes, None], "by": [("x", b.bytes)]},
            None,
            {"ids": None, "by": None},
            {"ids": [], "by": []},
        ],
        pa.struct([("ids", pa.list_(pa.binary(16))), ("by", pa.map_(pa.string(), pa.binary(16)))]),
    )
    target = arrow_of(frazil.spark.spark_schema(Schema(ice.NestedField(9, "c", kind))))[0].type
    texts = column_into_spark(stored, kind, target)
    assert texts.to_pylist() == [
        {"ids": [str(a), None], "by": [("x", str(b))]},
        None,
        {"ids": None, "by": None},
        {"ids": [], "by": []},
    ]
    assert column_from_spark(texts, kind).to_pylist() == stored.to_pylist()


EVERY = Schema(
    ice.NestedField(1, "id", ice.IntegerType(), required=True),
    ice.NestedField(2, "b", ice.BooleanType()),
    ice.NestedField(3, "l", ice.LongType()),
    ice.NestedField(4, "f", ice.FloatType()),
    ice.NestedField(5, "d", ice.DoubleType()),
    ice.NestedField(6, "dec", ice.DecimalType(20, 4)),
    ice.NestedField(7, "day", ice.DateType()),
    ice.NestedField(8, "clock", ice.TimeType()),
    ice.NestedField(9, "ts", ice.TimestampType()),
    ice.NestedField(10, "tstz", ice.TimestamptzType()),
    ice.NestedField(11, "s", ice.StringType()),
    ice.NestedField(12, "u", ice.UUIDType()),
    ice.NestedField(13, "fx", ice.FixedType(3)),
    ice.NestedField(14, "bin", ice.BinaryType()),
    ice.NestedField(
        15,
        "st",
        ice.StructType(
            ice.NestedField(16, "x", ice.LongType()),
            ice.NestedField(17, "y", ice.StructType(ice.NestedField(18, "z", ice.StringType()))),
        ),
    ),
    ice.NestedField(19, "li", ice.ListType(20, ice.DoubleType(), False)),
    ice.NestedField(21, "ma", ice.MapType(22, ice.StringType(), 23, ice.LongType(), False)),
    ice.NestedField(24, "nothing", ice.UnknownType()),
)
FIRST: dict[str, Any] = {
    "id": 1,
    "b": True,
    "l": 2**62,
    "f": 1.5,
    "d": float("nan"),
    "dec": Decimal("-123456789.0123"),
    "day": date(1400, 2, 28),
    "clock": time(23, 59, 59, 999999),
    "ts": datetime(2024, 3, 10, 2, 30, 0, 1),
    "tstz": datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    "s": "naïve ✓",
    "u": str(uuid.UUID(int=12345)),
    "fx": b"\x00\xff\x01",
    "bin": b"",
    "st": {"x": None, "y": {"z": "deep"}},
    "li": [1.0, None],
    "ma": {"k": 1, "n": None},
    "nothing": None,
}
NULLS = dict.fromkeys(FIRST) | {"id": 2}


def plain(row: Any) -> dict[str, Any]:
    return {name: _plain(value) for name, value in row.asDict(recursive=True).items()}


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value


def test_values_of_every_type_are_read_by_spark(spark: Any, catalog: frazil.Catalog) -> None:
    made = catalog.create_table("t.every", EVERY)
    made.append([FIRST, NULLS])
    frame = frazil.spark.table(made)
    assert "(1 of 1 files; " in frame._jdf.queryExecution().toString()
    first, nulls = sorted(frame.drop("tstz").collect(), key=lambda row: row["id"])
    wanted = {name: value for name, value in FIRST.items() if name != "tstz"}
    assert str(first["d"]) == "nan"
    assert plain(first) | {"d": None} == wanted | {"d": None}
    assert plain(nulls) == {name: value for name, value in NULLS.items() if name != "tstz"}
    (moment,) = frame.where("id = 1").selectExpr("unix_micros(tstz)").collect()
    assert moment[0] == -1


FILTERS = [
    "day < '1500-01-01'",
    "clock = '23:59:59.999999'",
    "ts = '2024-03-10T02:30:00.000001'",
    "tstz < '1970-01-01T00:00:00+00:00'",
    "dec < -123456789",
    f"u = '{uuid.UUID(int=12345)}'",
    "fx = X'00ff01'",
    "bin = X''",
    "f = 1.5",
    "isnan(d)",
    "l > 5",
    "b = true",
    "st.y.z = 'deep'",
    "s like 'na%'",
]


def test_filters_on_every_type_find_the_row(spark: Any, catalog: frazil.Catalog) -> None:
    made = catalog.create_table("t.every", EVERY)
    made.append([FIRST, NULLS])
    frames = [
        frazil.spark.table(made, where=where, columns=["id"]).selectExpr(f"{at} as at", "id")
        for at, where in enumerate(FILTERS)
    ]
    union = frames[0]
    for frame in frames[1:]:
        union = union.union(frame)
    found = sorted(tuple(row) for row in union.collect())
    assert found == [(at, 1) for at in range(len(FILTERS))]


def test_values_of_every_type_are_written_by_spark(spark: Any, catalog: frazil.Catalog) -> None:
    made = catalog.create_table("t.every", EVERY)
    made.append([FIRST, NULLS])
    copy = catalog.create_table("t.copy", EVERY)
    frazil.spark.append(copy, frazil.spark.table(made))
    assert str(copy.scan().to_pylist()) == str(made.scan().to_pylist())
    stats = copy.inspect.files.to_pylist()
    assert sum(file["record_count"] for file in stats) == 2


def test_spatial_values_travel_with_their_reference_system(
    spark: Any, catalog: frazil.Catalog
) -> None:
    point = bytes.fromhex("0101000000000000000000f03f0000000000000040")
    schema = Schema(
        ice.NestedField(1, "id", ice.LongType()),
        ice.NestedField(2, "g", ice.GeometryType()),
    )
    made = catalog.create_table("t.places", schema)
    made.append([{"id": 1, "g": point}, {"id": 2, "g": None}])
    frame = frazil.spark.table(made)
    assert frame.schema["g"].dataType == sql.GeometryType(4326)
    rows = frame.selectExpr("id", "hex(st_asbinary(g)) as h", "st_srid(g) as srid").collect()
    assert sorted(map(tuple, rows)) == [(1, point.hex().upper(), 4326), (2, None, None)]
    frazil.spark.append(made, frame.where("id = 1"))
    assert [row["g"] for row in made.scan("id = 1")] == [point, point]


def test_the_public_functions_take_and_give_pyicebergs_schemas() -> None:
    theirs = PyIcebergSchema(
        peer.NestedField(1, "id", peer.LongType()), peer.NestedField(2, "at", peer.DateType())
    )
    assert frazil.spark.table_schema(frazil.spark.spark_schema(theirs)) == theirs

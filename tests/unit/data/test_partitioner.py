"""Rows split by partition."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.typedef import Record

from frazil.data.write.partitioner import Partitioner
from frazil.data.write.row_input import conformed
from frazil.iceberg import types as ice
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.pyiceberg_values import pyiceberg_schema, pyiceberg_spec
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)


def _split(rows: list[dict[str, Any]], schema: Schema, *parts: PartitionField) -> Any:
    (batch,) = conformed(rows, schema)
    found = Partitioner(PartitionSpec(*parts, spec_id=1), schema).split(batch)
    return [(partition, piece.to_pylist()) for partition, piece in found]


def _part(field_id: int, transform: Transform, source: int = 1, name: str = "p") -> PartitionField:
    return PartitionField(source_id=source, field_id=field_id, transform=transform, name=name)


def test_rows_of_a_partition_stay_together_and_in_order() -> None:
    schema = Schema(
        ice.NestedField(1, "k", ice.StringType()), ice.NestedField(2, "n", ice.LongType())
    )
    rows = [{"k": "ba"[i % 2], "n": i} for i in range(6)]
    found = _split(rows, schema, _part(1000, IdentityTransform()))
    assert {partition.values[1000]: [row["n"] for row in piece] for partition, piece in found} == {
        "b": [0, 2, 4],
        "a": [1, 3, 5],
    }


def test_several_fields_split_by_their_combination() -> None:
    schema = Schema(
        ice.NestedField(1, "k", ice.StringType()), ice.NestedField(2, "n", ice.LongType())
    )
    rows = [{"k": "ab"[i % 2], "n": i // 2} for i in range(8)]
    found = _split(
        rows,
        schema,
        _part(1000, IdentityTransform(), name="k"),
        _part(1001, TruncateTransform(2), source=2, name="n2"),
    )
    assert sorted(partition.path for partition, _ in found) == [
        "k=a/n2=0",
        "k=a/n2=2",
        "k=b/n2=0",
        "k=b/n2=2",
    ]
    assert all(len(piece) == 2 for _, piece in found)


def test_null_and_the_text_null_are_different_partitions() -> None:
    schema = Schema(ice.NestedField(1, "k", ice.StringType()))
    found = _split([{"k": None}, {"k": "null"}], schema, _part(1000, IdentityTransform()))
    assert [partition.values[1000] for partition, _ in found] == [None, "null"]
    assert [partition.path for partition, _ in found] == ["p=null", "p=null"]


def test_every_nan_is_one_partition() -> None:
    schema = Schema(ice.NestedField(1, "x", ice.DoubleType()))
    part = PartitionSpec(_part(1000, IdentityTransform()), spec_id=1)
    partitioner = Partitioner(part, schema)
    seen = []
    for _ in range(2):
        for batch in conformed([{"x": math.nan}, {"x": math.nan}], schema):
            seen += [partition for partition, _ in partitioner.split(batch)]
    assert len(seen) == 2
    assert seen[0] is seen[1]


def test_a_void_field_is_null_and_splits_nothing() -> None:
    schema = Schema(ice.NestedField(1, "k", ice.StringType()))
    found = _split([{"k": "a"}, {"k": "b"}], schema, _part(1000, VoidTransform()))
    assert [partition.values for partition, _ in found] == [{1000: None}]


def test_a_source_inside_a_struct_is_found() -> None:
    schema = Schema(
        ice.NestedField(
            1, "s", ice.StructType(ice.NestedField(2, "k", ice.IntegerType(), required=True))
        )
    )
    rows: list[dict[str, Any]] = [{"s": {"k": 1}}, {"s": None}, {"s": {"k": 1}}]
    found = _split(rows, schema, _part(1000, IdentityTransform(), source=2))
    assert [(partition.values[1000], len(piece)) for partition, piece in found] == [
        (1, 2),
        (None, 1),
    ]


CASES: list[tuple[ice.PrimitiveType, Transform, Any]] = [
    (ice.StringType(), IdentityTransform(), "a/b c=d%é"),
    (ice.StringType(), IdentityTransform(), ""),
    (ice.BooleanType(), IdentityTransform(), True),
    (ice.IntegerType(), IdentityTransform(), -5),
    (ice.DateType(), IdentityTransform(), dt.date(2024, 2, 29)),
    (ice.TimeType(), IdentityTransform(), dt.time(1, 2, 3, 4)),
    (ice.TimestampType(), IdentityTransform(), dt.datetime(2024, 1, 1, 12, 0, 0, 7)),
    (ice.TimestamptzType(), IdentityTransform(), dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)),
    (ice.DecimalType(9, 2), IdentityTransform(), Decimal("14.20")),
    (ice.BinaryType(), IdentityTransform(), b"\x00\xff/"),
    (ice.DateType(), YearTransform(), dt.date(1969, 5, 5)),
    (ice.DateType(), MonthTransform(), dt.date(2024, 12, 5)),
    (ice.TimestampType(), DayTransform(), dt.datetime(1969, 12, 31, 23)),
    (ice.TimestamptzType(), HourTransform(), dt.datetime(2024, 1, 1, 5, tzinfo=dt.UTC)),
    (ice.StringType(), TruncateTransform(3), "abcdef"),
    (ice.LongType(), BucketTransform(16), 34),
    (ice.LongType(), IdentityTransform(), None),
]


@pytest.mark.parametrize(("kind", "transform", "value"), CASES, ids=str)
def test_partition_paths_are_spelled_as_pyiceberg_spells_them(
    kind: ice.PrimitiveType, transform: Transform, value: Any
) -> None:
    schema = Schema(ice.NestedField(1, "c", kind))
    spec = PartitionSpec(_part(1000, transform, name="c p"), spec_id=1)
    (batch,) = conformed([{"c": value}], schema)
    ((partition, _),) = Partitioner(spec, schema).split(batch)
    plain = partition.values[1000]
    assert partition.path == pyiceberg_spec(spec).partition_to_path(
        Record(plain), pyiceberg_schema(schema)
    )


def test_a_uuid_is_spelled_as_a_uuid() -> None:
    schema = Schema(ice.NestedField(1, "u", ice.UUIDType()))
    rows = [{"u": b"\x00" * 15 + b"\x01"}]
    ((partition, _),) = _split(rows, schema, _part(1000, IdentityTransform()))
    assert partition.path == "p=00000000-0000-0000-0000-000000000001"


def test_a_very_long_value_gets_a_short_path_of_its_own() -> None:
    schema = Schema(ice.NestedField(1, "k", ice.StringType()))
    found = _split(
        [{"k": "x" * 5_000 + "1"}, {"k": "x" * 5_000 + "2"}],
        schema,
        _part(1000, IdentityTransform()),
    )
    first, second = (partition.path for partition, _ in found)
    assert len(first) <= 200
    assert first != second


def test_many_partitions_of_many_fields_do_not_overflow() -> None:
    schema = Schema(*(ice.NestedField(at, f"c{at}", ice.LongType()) for at in range(1, 9)))
    data = pa.table({f"c{at}": pa.array(range(1_000)) for at in range(1, 9)})
    parts = [_part(999 + at, IdentityTransform(), at, f"c{at}") for at in range(1, 9)]
    (batch,) = conformed(data, schema)
    found = list(Partitioner(PartitionSpec(*parts, spec_id=1), schema).split(batch))
    assert len(found) == 1_000
    assert all(piece.num_rows == 1 for _, piece in found)


def test_a_date_beyond_the_calendar_is_spelled_as_a_number() -> None:
    schema = Schema(ice.NestedField(1, "d", ice.DateType()))
    (batch,) = conformed(pa.table({"d": pa.array([10_000_000], pa.date32())}), schema)
    spec = PartitionSpec(_part(1000, IdentityTransform()), spec_id=1)
    ((partition, _),) = Partitioner(spec, schema).split(batch)
    assert partition.path == "p=10000000"

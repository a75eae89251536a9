"""Files that Spark's reader must not be given, and shapes of files that change over time."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frazil
import frazil.spark
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema
from frazil.rows.planned import Planned
from frazil.spark.bridge.verbs import bridge_of
from frazil.spark.read import bulk_reads
from frazil.spark.read.native_files import native_files
from tests.spark.shop import rows_of

pytestmark = pytest.mark.spark


def test_equality_deletes_are_applied_on_executors(spark: Any, catalog: frazil.Catalog) -> None:
    made = catalog.create_table("r.t", pa.schema([("id", pa.int64()), ("v", pa.string())]))
    made.append([{"id": i, "v": str(i)} for i in range(6)])
    made.delete("id = 0")
    made.set_properties({"write.equality-deletes.enabled": "true"})
    made.row_delta().add_equality_deletes([{"id": 3}, {"id": 4}], on=["id"]).commit()
    made.append([{"id": 3, "v": "again"}])
    planned = Planned.of(made.scan())
    assert sorted(native_files(planned, spark).tolist()) == [False, True]
    assert rows_of(frazil.spark.table(made)) == [
        (1, "1"),
        (2, "2"),
        (3, "again"),
        (5, "5"),
    ]
    some = frazil.spark.table(made, where="id >= 2", columns=["_row_id", "v"])
    alone = made.scan("id >= 2", ["_row_id", "v"]).to_pylist()
    assert rows_of(some) == sorted((row["_row_id"], row["v"]) for row in alone)


def test_row_keys_are_the_same_on_both_routes(spark: Any, catalog: frazil.Catalog) -> None:
    made = catalog.create_table("r.t", pa.schema([("id", pa.int64())]))
    made.append([{"id": i} for i in range(5)])
    made.set_properties({"write.equality-deletes.enabled": "true"})
    made.row_delta().add_equality_deletes([{"id": 1}], on=["id"]).commit()
    made.append([{"id": i} for i in range(5, 8)])
    scan = made.scan()
    planned = Planned.of(scan)
    frame = bulk_reads.frame(spark, scan, key="k", planned=planned, bridge=bridge_of(spark))
    keys = np.array([row["k"] for row in frame.collect()])
    found = {
        (planned.paths[row], position)
        for row, positions in planned.located(keys)
        for position in positions.tolist()
    }
    wanted = made.scan(columns=["_file", "_pos"]).to_pylist()
    assert found == {(row["_file"], row["_pos"]) for row in wanted}


def test_files_without_field_ids_are_read_through_the_name_mapping(
    spark: Any, catalog: frazil.Catalog, tmp_path: Path
) -> None:
    schema = Schema(
        ice.NestedField(1, "id", ice.LongType()), ice.NestedField(2, "v", ice.StringType())
    )
    made = catalog.create_table(
        "r.t",
        schema,
        properties={"schema.name-mapping.default": schema.name_mapping.json()},
    )
    pq.write_table(pa.table({"v": ["x", "y"], "id": [1, 2]}), tmp_path / "plain.parquet")
    made.add_files([str(tmp_path / "plain.parquet")])
    assert not native_files(Planned.of(made.scan()), spark).any()
    assert rows_of(frazil.spark.table(made, where="v = 'y'")) == [(2, "y")]


def test_files_from_elsewhere_may_call_columns_by_other_names(
    spark: Any, catalog: frazil.Catalog, tmp_path: Path
) -> None:
    made = catalog.create_table("r.t", pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    made.append([{"a": 1, "b": 2}])
    crossed = pa.schema(
        [
            pa.field("b", pa.int64(), metadata={b"PARQUET:field_id": b"1"}),
            pa.field("a", pa.int64(), metadata={b"PARQUET:field_id": b"2"}),
        ]
    )
    pq.write_table(pa.table([[10], [20]], schema=crossed), tmp_path / "crossed.parquet")
    made.add_files([str(tmp_path / "crossed.parquet")])
    frame = frazil.spark.table(made)
    assert rows_of(frame) == [(1, 2), (10, 20)]
    assert rows_of(frame.where("b = 20")) == [(10, 20)]
    assert rows_of(frame.where("b = 10")) == []


def test_file_names_that_spark_would_skip_or_misread_are_read(
    spark: Any, catalog: frazil.Catalog, tmp_path: Path
) -> None:
    made = catalog.create_table("r.t", pa.schema([("a", pa.int64())]))
    one = pa.schema([pa.field("a", pa.int64(), metadata={b"PARQUET:field_id": b"1"})])
    names = ["_hidden.parquet", ".dot.parquet", "a:b.parquet", "sp ace %41#?{}[]*é.parquet"]
    for at, name in enumerate(names):
        pq.write_table(pa.table([[at]], schema=one), str(tmp_path / name))
    made.add_files([f"file://{tmp_path}/{name}" for name in names])
    assert native_files(Planned.of(made.scan()), spark).tolist() == [False, False, False, True]
    frame = frazil.spark.table(made, columns=["a", "_file"])
    assert [(row[0], row[1].rsplit("/", 1)[-1]) for row in rows_of(frame)] == list(enumerate(names))


def test_files_that_changed_since_are_not_read_in_silence(
    spark: Any, catalog: frazil.Catalog
) -> None:
    made = catalog.create_table("r.t", pa.schema([("a", pa.int64())]))
    made.append([{"a": 1}])
    path = made.scan().tasks()[0].source.path
    made._handle.storage.delete(path)
    with pytest.raises(Exception, match=r"FILE_NOT_EXIST|does not exist|FileNotFound"):
        frazil.spark.table(made).collect()


def test_widened_types_read_old_and_new_files(spark: Any, catalog: frazil.Catalog) -> None:
    schema = Schema(
        ice.NestedField(1, "i", ice.IntegerType()),
        ice.NestedField(2, "f", ice.FloatType()),
        ice.NestedField(3, "d", ice.DecimalType(9, 2)),
        ice.NestedField(4, "s", ice.StructType(ice.NestedField(5, "n", ice.IntegerType()))),
        ice.NestedField(6, "l", ice.ListType(7, ice.IntegerType())),
        ice.NestedField(8, "day", ice.DateType()),
    )
    made = catalog.create_table("r.t", schema)
    first = {
        "i": 1,
        "f": 0.5,
        "d": Decimal("1.25"),
        "s": {"n": 1},
        "l": [1],
        "day": date(1400, 1, 1),
    }
    made.append([first])
    with made.evolve_schema() as columns:
        columns.update_column("i", "long")
        columns.update_column("f", "double")
        columns.update_column("d", "decimal(20,2)")
        columns.update_column("s.n", "long")
        columns.update_column("l.element", "long")
        columns.update_column("day", "timestamp")
    big = 2**40
    moment = datetime(2024, 1, 1, 12)
    second = {"i": big, "f": 1e300, "d": Decimal("123456789012.50")}
    made.append([{**second, "s": {"n": big}, "l": [big], "day": moment}])
    frame = frazil.spark.table(made)
    found = sorted((row.asDict(recursive=True) for row in frame.collect()), key=lambda r: r["i"])
    assert found == [
        {**first, "day": datetime(1400, 1, 1)},
        {**second, "s": {"n": big}, "l": [big], "day": moment},
    ]
    assert frame.where(f"i = {big} or d = 1.25").count() == 2
    assert frazil.spark.table(made, where="s.n = 1").count() == 1


def test_added_columns_take_their_initial_default(spark: Any, catalog: frazil.Catalog) -> None:
    made = catalog.create_table("r.t", pa.schema([("id", pa.int64())]))
    made.append([{"id": 1}])
    with made.evolve_schema() as columns:
        columns.add_column("n", "long", default=42)
        columns.add_column("s", "string", default="it's \\ so")
        columns.add_column("d", "date", default=date(2024, 2, 29))
        columns.add_column("c", "decimal(6,2)", default=Decimal("12.50"))
        columns.add_column("z", "timestamptz", default="2024-01-01T00:00:00+00:00")
        columns.add_column("x", "double")
    made.append([{"id": 2, "n": None, "s": "b", "d": None, "c": None, "z": None, "x": 0.5}])
    frame = frazil.spark.table(made)
    first = (1, 42, "it's \\ so", date(2024, 2, 29), Decimal("12.50"), 1704067200, None)
    found = rows_of(frame.selectExpr("id", "n", "s", "d", "c", "unix_seconds(z)", "x"))
    assert found == [first, (2, None, "b", None, None, None, 0.5)]
    assert frame.where("n = 42 and s like 'it%'").count() == 1
    assert frazil.spark.table(made, where="n is null").count() == 1


def test_nested_fields_are_renamed_dropped_and_added_again(
    spark: Any, catalog: frazil.Catalog
) -> None:
    inner = pa.struct([("a", pa.int64()), ("b", pa.int64())])
    made = catalog.create_table(
        "r.t", pa.schema([("id", pa.int64()), ("s", inner), ("l", pa.list_(inner))])
    )
    made.append([{"id": 1, "s": {"a": 1, "b": 2}, "l": [{"a": 3, "b": 4}, None]}])
    with made.evolve_schema() as columns:
        columns.drop_column("s.b")
    with made.evolve_schema() as columns:
        columns.rename_column("s.a", "b")
        columns.rename_column("l.element.a", "c")
    with made.evolve_schema() as columns:
        columns.add_column("s.a", "long")
        columns.move("s.a", first=True)
    made.append([{"id": 2, "s": {"a": 7, "b": 8}, "l": None}])
    frame = frazil.spark.table(made).orderBy("id")
    assert [row.asDict(recursive=True) for row in frame.collect()] == [
        {"id": 1, "s": {"a": None, "b": 1}, "l": [{"c": 3, "b": 4}, None]},
        {"id": 2, "s": {"a": 7, "b": 8}, "l": None},
    ]
    assert rows_of(frame.where("s.b = 1").select("id")) == [(1,)]
    assert rows_of(frame.where("s.a is null").select("id")) == [(1,)]
    assert rows_of(frazil.spark.table(made, where="s.b = 8", columns=["id"])) == [(2,)]


def test_part_of_a_struct_is_read(spark: Any, catalog: frazil.Catalog) -> None:
    inner = pa.struct([("a", pa.int64()), ("b", pa.string())])
    made = catalog.create_table("r.t", pa.schema([("id", pa.int64()), ("s", inner)]))
    made.append([{"id": 1, "s": {"a": 1, "b": "x"}}, {"id": 2, "s": None}])
    frame = frazil.spark.table(made, where="s.a = 1", columns=["s.b"])
    assert frame.schema.simpleString() == "struct<s:struct<b:string>>"
    assert [row.asDict(recursive=True) for row in frame.collect()] == [{"s": {"b": "x"}}]


def test_partitioning_may_change_between_files(spark: Any, catalog: frazil.Catalog) -> None:
    made = catalog.create_table(
        "r.t", pa.schema([("id", pa.int64()), ("c", pa.string())]), partition_by=["c"]
    )
    made.append([{"id": i, "c": "ab"[i % 2]} for i in range(4)])
    with made.evolve_partitions() as parts:
        parts.remove("c")
        parts.add("bucket[2](id)")
    made.append([{"id": i, "c": "ab"[i % 2]} for i in range(4, 8)])
    columns = ["id", "c", "_spec_id", "_partition"]
    frame = frazil.spark.table(made, where="c = 'a'", columns=columns)
    alone = made.scan("c = 'a'", columns).to_pylist()
    found = sorted((row.asDict(recursive=True) for row in frame.collect()), key=lambda r: r["id"])
    assert found == sorted(alone, key=lambda row: row["id"])
    assert [row["id"] for row in found] == [0, 2, 4, 6]

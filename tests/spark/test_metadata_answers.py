"""What Spark is spared: shuffles of tables that are partitioned alike, files for aggregates that
metadata answers, and wrong guesses of sizes."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import frazil
import frazil.spark

pytestmark = pytest.mark.spark

ROWS = 400


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def executed(frame: Any) -> str:
    frame.collect()
    return str(frame._jdf.queryExecution().executedPlan().toString())


def items(first: int, last: int) -> pa.Table:
    ids = list(range(first, last))
    return pa.table(
        {
            "id": pa.array([None if i % 50 == 7 else i for i in ids], pa.int64()),
            "day": [date(2024, 1, 1 + i % 3) for i in ids],
            "name": [f"n{i % 13}" for i in ids],
            "price": pa.array([Decimal(i) / 4 for i in ids], pa.decimal128(10, 2)),
        }
    )


@pytest.fixture
def joined(spark: Any, catalog: frazil.Catalog) -> dict[str, pa.Table]:
    """Two tables in four buckets, one of them with another spec in part, deleted rows, and files
    that are split."""
    frazil.spark.register(spark, catalog)
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    spark.conf.set("spark.sql.requireAllClusterKeysForCoPartition", "false")
    spark.conf.set("spark.sql.iceberg.planning.preserve-data-grouping", "true")
    left, right = items(0, ROWS), items(ROWS // 2, ROWS * 3 // 2)
    a = catalog.create_table("s.a", left.schema, partition_by=["bucket(4, id)"])
    a.append(left)
    a.delete("id = 300")
    b = catalog.create_table("s.b", right.schema, partition_by=["bucket(4, id)"])
    b.append(right.slice(0, ROWS // 2))
    catalog.sql("ALTER TABLE s.b ADD PARTITION FIELD day")
    b.append(right.slice(ROWS // 2))
    return {"a": left.filter(pc.fill_null(pc.not_equal(left["id"], 300), True)), "b": right}


JOIN = "SELECT a.id, a.name, b.price FROM {}a a JOIN {}b b ON a.id = b.id"


def expected(tables: dict[str, pa.Table], query: str) -> list[tuple[Any, ...]]:
    connection = duckdb.connect()
    for name, rows in tables.items():
        connection.register(name, rows)
    return sorted(connection.execute(query).fetchall())


def test_tables_of_equal_buckets_join_without_a_shuffle(
    spark: Any, joined: dict[str, pa.Table]
) -> None:
    for condition in ("", " WHERE a.name = 'n3'", " WHERE b.day = DATE '2024-01-02'"):
        frame = spark.sql(JOIN.format("frazil.s.", "frazil.s.") + condition)
        plan = executed(frame)
        assert "Exchange" not in plan, plan
        assert rows_of(frame) == expected(joined, JOIN.format("", "") + condition)
    counted = spark.sql("SELECT id, count(*) FROM frazil.s.a GROUP BY id")
    assert "Exchange" not in executed(counted)
    spark.conf.set("spark.sql.iceberg.planning.preserve-data-grouping", "false")
    frame = spark.sql(JOIN.format("frazil.s.", "frazil.s."))
    assert "Exchange" in executed(frame)
    assert rows_of(frame) == expected(joined, JOIN.format("", ""))


def test_a_filter_known_when_the_query_runs_keeps_the_groups(
    spark: Any, catalog: frazil.Catalog
) -> None:
    frazil.spark.register(spark, catalog)
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    spark.conf.set("spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly", "false")
    rows = items(0, ROWS)
    for name in ("facts", "days"):
        catalog.create_table(f"s.{name}", rows.schema, partition_by=["day"]).append(rows)
    query = (
        "SELECT count(*), sum(f.price) FROM {}facts f JOIN {}days d ON f.day = d.day "
        "WHERE d.name = 'n3' AND d.id < 30"
    )
    frame = spark.sql(query.format("frazil.s.", "frazil.s."))
    found = executed(frame)
    assert "Exchange hashpartitioning" not in found, found
    assert rows_of(frame) == expected({"facts": rows, "days": rows}, query.format("", ""))


def test_transforms_are_functions_of_the_catalog(spark: Any, catalog: frazil.Catalog) -> None:
    frazil.spark.register(spark, catalog)
    # bucket: the values that Iceberg's specification prints for Murmur3, modulo 2^31 - 1
    found = spark.sql(
        "SELECT frazil.system.bucket(2147483647, 34), frazil.system.bucket(2147483647, 34L),"
        " frazil.system.bucket(2147483647, 14.20BD), frazil.system.bucket(2147483647, 'iceberg'),"
        " frazil.system.bucket(2147483647, X'00010203'),"
        " frazil.system.bucket(2147483647, DATE '2017-11-16'),"
        " frazil.system.bucket(16, CAST(NULL AS INT)),"
        " frazil.system.truncate(10, -1), frazil.system.truncate(3, 'iceberg'),"
        " frazil.system.truncate(50, -0.05BD), frazil.system.years(DATE '1969-12-31'),"
        " frazil.system.months(DATE '2017-12-01'), frazil.system.days(DATE '1969-12-31'),"
        " frazil.system.hours(TIMESTAMP_NTZ '1970-01-02 01:30:00')"
    ).first()
    hashes = [2017239379, 2017239379, -500754589, 1210000089, -188683207, -653330422]
    biggest = 2**31 - 1
    assert list(found)[:6] == [(value & biggest) % biggest for value in hashes]
    assert list(found)[6:] == [
        None,
        -10,
        "ice",
        Decimal("-0.50"),
        -1,
        575,
        date(1969, 12, 31),
        25,
    ]
    names = {row[0] for row in spark.sql("SHOW USER FUNCTIONS IN frazil.system").collect()}
    assert {"frazil.system.bucket", "frazil.system.days"} <= names
    with pytest.raises(Exception, match="bucket"):
        spark.sql("SELECT frazil.system.bucket(4, 1.5D)").collect()


@pytest.fixture
def measured(spark: Any, catalog: frazil.Catalog) -> frazil.Table:
    frazil.spark.register(spark, catalog)
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("day", pa.date32()),
            ("moment", pa.timestamp("us")),
            ("name", pa.string()),
            ("x", pa.float64()),
            ("p", pa.decimal128(9, 2)),
        ]
    )
    table = catalog.create_table("s.m", schema, partition_by=["day"])
    for part in range(2):
        ids = list(range(part * 50, part * 50 + 50))
        columns = {
            "id": ids,
            "day": [date(2024, 1, 1 + i % 2) for i in ids],
            "moment": [datetime(2024, 1, 1, i % 24) for i in ids],
            "name": [None if i % 10 == 0 else f"name {i:03}" for i in ids],
            "x": [float("nan") if i == 3 else float(i) for i in ids],
            "p": [Decimal(i) / 4 for i in ids],
        }
        table.append(pa.table(columns, schema=schema))
    return table


QUERY = "SELECT count(*), count(name), min(id), max(day), min(name), max(p), max(moment) FROM {}"


def test_counts_and_extremes_come_from_metadata(
    spark: Any, catalog: frazil.Catalog, measured: frazil.Table
) -> None:
    rows = measured.scan().to_arrow()
    for condition in ("", " WHERE day = DATE '2024-01-02'", " WHERE day < DATE '2020-01-01'"):
        frame = spark.sql(QUERY.format("frazil.s.m") + condition)
        plan = executed(frame)
        assert "LocalTableScan" in plan
        assert "BatchScan" not in plan
        assert rows_of(frame) == expected({"m": rows}, QUERY.format("m") + condition)
    # rows decide where metadata cannot: NaN, filters within files, deleted rows, distinct values
    for query, value in (
        ("SELECT count(*) FROM frazil.s.m WHERE id < 10", 10),
        ("SELECT count(DISTINCT name) FROM frazil.s.m", 90),
        ("SELECT count(*) FROM frazil.s.m WHERE day = DATE '2024-01-01' AND name IS NULL", 10),
    ):
        assert spark.sql(query).first()[0] == value
    assert str(spark.sql("SELECT max(x) FROM frazil.s.m").first()[0]) == "nan"
    measured.delete("id IN (0, 99)")
    found = spark.sql("SELECT min(id), max(id), count(*), count(name) FROM frazil.s.m").first()
    assert tuple(found) == (1, 98, 98, 89)
    counted = spark.sql("SELECT count(*) FROM frazil.s.m")
    assert counted.first()[0] == 98
    assert "BatchScan" not in executed(counted)


def test_sizes_are_those_of_the_columns_that_are_read(spark: Any, catalog: frazil.Catalog) -> None:
    frazil.spark.register(spark, catalog)
    table = catalog.create_table("s.one", [{"id": 1, "name": "x" * 1000}])
    table.append(pa.table({"id": [1] * 100_000, "name": ["y" * 10] * 100_000}))

    def size(query: str) -> int:
        stats = spark.sql(query)._jdf.queryExecution().optimizedPlan().stats()
        return int(str(stats.sizeInBytes()))

    on_disk = sum(file["file_size_in_bytes"] for file in table.inspect.files.to_pylist())
    assert on_disk < 100_000
    assert 800_000 <= size("SELECT id FROM frazil.s.one") < 2_000_000
    assert size("SELECT name FROM frazil.s.one") >= 1_000_000


def test_the_optimizer_learns_what_columns_hold(
    spark: Any, catalog: frazil.Catalog, measured: frazil.Table
) -> None:
    spark.conf.set("spark.sql.cbo.enabled", "true")
    stats = spark.sql("SELECT * FROM frazil.s.m")._jdf.queryExecution().optimizedPlan().stats()
    assert int(str(stats.rowCount().get())) == 100
    text = str(stats.attributeStats().toString())
    pairs = stats.attributeStats().iterator()
    found = {}
    while pairs.hasNext():
        pair = pairs.next()
        found[pair._1().name()] = pair._2()
    assert set(found) >= {"id", "day", "name"}, text
    assert str(found["id"].min().get()) == "0"
    assert str(found["id"].max().get()) == "99"
    assert str(found["name"].nullCount().get()) == "10"
    assert str(found["day"].distinctCount().get()) == "2"

"""Tables that are partitioned alike join without a shuffle, whatever their files went through, or
with one and the same rows: DuckDB judges every result on the rows as they were written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import frazil
import frazil.spark

pytestmark = pytest.mark.spark

ROWS = 240


def executed(frame: Any) -> str:
    frame.collect()
    return str(frame._jdf.queryExecution().executedPlan().toString())


def items(first: int, last: int) -> pa.Table:
    """Rows with one column of each kind that partitions are made of, and null keys."""
    ids = range(first, last)
    return pa.table(
        {
            "id": pa.array([None if i % 40 == 7 else i for i in ids], pa.int64()),
            "other": pa.array([i % 17 for i in ids], pa.int32()),
            "day": [date(2024, 1, 1 + i % 3) for i in ids],
            "name": [f"name {i % 50}" for i in ids],
            "price": pa.array([Decimal(i % 30) / 4 for i in ids], pa.decimal128(10, 2)),
            "moment": pa.array(
                [datetime(2024, 1, 1 + i % 3, i % 5, i % 7) for i in ids], pa.timestamp("us")
            ),
        }
    )


class Judged:
    """Tables in Frazil and the same rows in DuckDB."""

    def __init__(self, spark: Any, catalog: frazil.Catalog) -> None:
        self.spark = spark
        self.catalog = catalog
        self.plain = duckdb.connect()

    def create(self, name: str, rows: pa.Table, partition_by: Sequence[str]) -> frazil.Table:
        table = self.catalog.create_table(f"s.{name}", rows.schema, partition_by=partition_by)
        table.append(rows)
        self.plain.execute(f"CREATE TABLE {name} AS SELECT * FROM rows")
        return table

    def delete(self, name: str, condition: str) -> None:
        self.catalog.load_table(f"s.{name}").delete(condition)
        self.plain.execute(f"DELETE FROM {name} WHERE {condition}")

    def append(self, name: str, rows: pa.Table) -> None:
        self.catalog.load_table(f"s.{name}").append(rows)
        self.plain.execute(f"INSERT INTO {name} SELECT * FROM rows")

    def plan_of(self, query: str) -> str:
        """The executed plan of a query, once its rows are known to be right."""
        in_spark = re.sub(r"\b(FROM|JOIN) (\w)", r"\1 frazil.s.\2", query)
        frame = self.spark.sql(in_spark)
        expected = sorted(self.plain.execute(query).fetchall(), key=str)
        assert len(expected) > 0
        assert sorted((tuple(row) for row in frame.collect()), key=str) == expected, query
        return executed(frame)


@pytest.fixture
def judged(spark: Any, catalog: frazil.Catalog) -> Judged:
    """With the settings that the guide names, and no broadcasts."""
    frazil.spark.register(spark, catalog)
    for key, value in {
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.requireAllClusterKeysForCoPartition": "false",
        "spark.sql.sources.v2.bucketing.allowJoinKeysSubsetOfPartitionKeys.enabled": "true",
        "spark.sql.iceberg.planning.preserve-data-grouping": "true",
    }.items():
        spark.conf.set(key, value)
    return Judged(spark, catalog)


@pytest.mark.parametrize(
    ("parts", "keys"),
    [
        (["bucket(4, id)"], ["id"]),
        (["bucket(3, name)"], ["name"]),
        (["bucket(3, price)", "day"], ["price", "day"]),
        (["day", "bucket(4, id)"], ["id"]),
        (["day"], ["day", "id"]),
        (["truncate(100, id)", "bucket(2, id)"], ["id"]),
        (["day(moment)"], ["moment"]),
        (["hour(moment)"], ["moment"]),
        (["month(day)"], ["day", "other"]),
        (["year(moment)", "other"], ["other", "moment"]),
    ],
    ids=str,
)
def test_every_transform_spares_the_shuffle(
    judged: Judged, parts: list[str], keys: list[str]
) -> None:
    judged.create("a", items(0, ROWS), parts)
    judged.create("b", items(ROWS // 2, ROWS * 3 // 2), parts)
    judged.delete("a", "id % 3 = 0")
    on = " AND ".join(f"a.{key} = b.{key}" for key in keys)
    plan = judged.plan_of(f"SELECT a.id, b.id, a.name, b.price FROM a JOIN b ON {on}")
    assert "Exchange" not in plan, plan


KINDS = {
    "JOIN": "a.id, a.name, b.price",
    "LEFT JOIN": "a.id, a.name, b.price",
    "RIGHT JOIN": "b.id, a.name, b.price",
    "FULL JOIN": "a.id, b.id, a.name, b.price",
    "LEFT SEMI JOIN": "a.id, a.name",
    "LEFT ANTI JOIN": "a.id, a.name",
}


def test_vectors_and_empty_partitions_in_every_kind_of_join(judged: Judged) -> None:
    judged.create("a", items(0, ROWS), ["bucket(8, id)"])
    judged.create("b", items(90, 110), ["bucket(8, id)"])
    judged.delete("a", "id % 5 < 2")
    judged.delete("b", "id > 104")
    for kind, columns in KINDS.items():
        query = f"SELECT {columns} FROM a {kind} b ON a.id = b.id"
        plan = judged.plan_of(query.replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI"))
        assert "Exchange" not in plan, (kind, plan)


def test_groupings_and_joins_of_three_tables(judged: Judged) -> None:
    for name, first in (("a", 0), ("b", 50), ("c", 100)):
        judged.create(name, items(first, first + ROWS), ["bucket(4, id)"])
        judged.delete(name, f"id % 7 = {first % 7}")
    for query in (
        "SELECT a.id, b.name, c.price FROM a JOIN b ON a.id = b.id JOIN c ON b.id = c.id",
        "SELECT a.id, count(*), max(b.name) FROM a JOIN b ON a.id = b.id GROUP BY a.id",
        "SELECT DISTINCT id FROM a",
        "SELECT a.id, d.id FROM a JOIN (SELECT id, count(*) FROM b GROUP BY id) d ON a.id = d.id",
    ):
        plan = judged.plan_of(query)
        assert "Exchange" not in plan, (query, plan)


def test_files_of_specs_that_share_a_field_are_grouped_by_it(judged: Judged) -> None:
    for name in ("a", "b"):
        table = judged.create(name, items(0, 100), ["bucket(4, id)"])
        judged.catalog.sql(f"ALTER TABLE s.{name} ADD PARTITION FIELD day")
        judged.append(name, items(100, 200))
        judged.delete(name, "id IN (3, 5, 120, 199)")
        assert len({file["spec_id"] for file in table.refresh().inspect.files.to_pylist()}) == 2
    query = "SELECT a.id, b.name FROM a JOIN b ON a.id = b.id"
    for condition in ("", " WHERE a.day = DATE '2024-01-02'", " WHERE b.id > 120"):
        plan = judged.plan_of(query + condition)
        assert "Exchange" not in plan, plan


@pytest.mark.parametrize(
    ("before", "changes"),
    [
        ([], ["ADD PARTITION FIELD bucket(4, id)"]),
        (["bucket(8, id)"], ["REPLACE PARTITION FIELD bucket(8, id) WITH bucket(4, id)"]),
        (["day"], ["ADD PARTITION FIELD bucket(4, id)", "DROP PARTITION FIELD day"]),
    ],
    ids=str,
)
def test_files_of_specs_without_a_shared_field_are_shuffled(
    judged: Judged, before: list[str], changes: list[str]
) -> None:
    judged.create("a", items(0, 100), before)
    for change in changes:
        judged.catalog.sql(f"ALTER TABLE s.a {change}")
    judged.append("a", items(100, 200))
    judged.create("b", items(50, 250), ["bucket(4, id)"])
    judged.delete("a", "id IN (60, 160)")
    plan = judged.plan_of("SELECT a.id, b.name FROM a JOIN b ON a.id = b.id")
    assert "Exchange" in plan, plan
    # Rows of the newer spec alone lie in its buckets again.
    judged.delete("a", "id < 100 OR id IS NULL")
    plan = judged.plan_of("SELECT a.id, b.name FROM a JOIN b ON a.id = b.id")
    assert "Exchange" not in plan, plan


@pytest.mark.parametrize(
    ("left", "right", "on"),
    [
        (["bucket(4, id)"], ["bucket(6, id)"], "a.id = b.id"),
        (["truncate(10, id)"], ["truncate(10, id)"], "a.id = b.id"),
        (["bucket(4, id)"], ["bucket(4, other)"], "a.id = b.other"),
        (["bucket(4, id)"], [], "a.id = b.id"),
        (["bucket(4, id)"], ["bucket(4, id)"], "a.id = b.id + 1"),
        (["day"], ["day(moment)"], "a.day = CAST(b.moment AS DATE)"),
    ],
    ids=str,
)
def test_tables_that_are_partitioned_otherwise_give_the_same_rows(
    judged: Judged, left: list[str], right: list[str], on: str
) -> None:
    judged.create("a", items(0, ROWS), left)
    judged.create("b", items(ROWS // 2, ROWS * 3 // 2), right)
    judged.delete("b", "id % 4 = 1")
    judged.plan_of(f"SELECT a.id, b.id, b.price FROM a JOIN b ON {on}")


def wide(rows: int) -> pa.Table:
    ids = range(rows)
    texts = [f"{i * 7919 % 104729:06}" * 20 for i in ids]
    return pa.table({"id": ids, "day": [date(2024, 1, 1 + i % 2) for i in ids], "text": texts})


def test_files_that_are_split_by_size(judged: Judged) -> None:
    rows = wide(40_000)
    for name in ("a", "b"):
        table = judged.create(name, rows.slice(0, 0), ["bucket(2, id)"])
        table.set_properties({"write.parquet.row-group-limit": "2000"})
        judged.append(name, rows)
        judged.delete(name, "id % 1000 = 5")
        judged.spark.read.option("split-size", 70_000).table(f"frazil.s.{name}")
    expected = judged.plain.execute(
        "SELECT count(*), sum(a.id), min(b.text) FROM a JOIN b ON a.id = b.id"
    ).fetchone()
    query = (
        "SELECT count(*), sum(id), min(text) FROM (SELECT a.id, b.text FROM "
        "frazil.s.a WITH (`split-size` = 70000) a JOIN frazil.s.b WITH (`split-size` = 70000) b "
        "ON a.id = b.id)"
    )
    for partially in ("false", "true"):
        judged.spark.conf.set(
            "spark.sql.sources.v2.bucketing.partiallyClusteredDistribution.enabled", partially
        )
        frame = judged.spark.sql(query)
        assert tuple(frame.collect()[0]) == expected
        plan = executed(frame)
        assert "Exchange hashpartitioning" not in plan, plan
    scanned = judged.spark.read.option("split-size", 70_000).table("frazil.s.a")
    judged.spark.conf.set("spark.sql.sources.v2.bucketing.enabled", "false")
    assert scanned.rdd.getNumPartitions() > 2


def test_a_skewed_table_is_spread_over_copies_of_the_other(judged: Judged) -> None:
    for name, parts in (("a", 9), ("b", 2)):
        judged.create(name, items(0, 60), ["day"])
        for part in range(parts):
            judged.append(name, items(part * 3, part * 3 + 3))
        judged.delete(name, "id IN (2, 11)")
    for key in ("pushPartValues", "partiallyClusteredDistribution"):
        judged.spark.conf.set(f"spark.sql.sources.v2.bucketing.{key}.enabled", "true")
    judged.spark.conf.set("spark.sql.files.openCostInBytes", "100000000")
    for kind in ("JOIN", "LEFT JOIN", "FULL JOIN"):
        plan = judged.plan_of(f"SELECT a.id, b.id, a.name FROM a {kind} b ON a.day = b.day")
        assert "Exchange" not in plan, plan


@pytest.mark.parametrize("chosen", ["d.id < 30", "d.id = 1", "d.id = 4"])
def test_filters_known_when_the_query_runs_keep_the_groups(judged: Judged, chosen: str) -> None:
    judged.spark.conf.set("spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly", "false")
    table = judged.create("f", items(0, 100), ["day", "bucket(4, id)"])
    judged.append("f", items(100, 200))
    judged.create("d", items(0, 60), ["day"])
    judged.delete("f", "id % 9 = 0")
    judged.delete("d", "id = 4")
    plan = judged.plan_of(
        "SELECT count(*), sum(f.id) FROM f JOIN d ON f.day = d.day "
        f"WHERE d.name <> 'name 9' AND ({chosen})"
    )
    assert "dynamicpruning" in plan.lower(), plan
    # The filter's own values may be shuffled: these have a name of their own.
    assert not re.search(r"Exchange hashpartitioning\(day#\d+, ", plan), plan
    assert table.refresh().scan().count() > 0


def test_a_filter_that_leaves_no_file_of_several_specs(judged: Judged) -> None:
    """The field that the files were grouped by is no longer one of the table's current spec."""
    judged.spark.conf.set("spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly", "false")
    judged.create("f", items(0, 100), ["day", "bucket(4, id)"])
    judged.catalog.sql("ALTER TABLE s.f DROP PARTITION FIELD bucket(4, id)")
    judged.create("d", items(0, 60), ["day"])
    for chosen in ("d.id = 1", "d.id = -1"):
        plan = judged.plan_of(
            "SELECT count(*), count(f.id) FROM f JOIN d ON f.day = d.day "
            f"WHERE d.name <> 'name 9' AND ({chosen})"
        )
        assert "dynamicpruning" in plan.lower(), plan

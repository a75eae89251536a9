"""Options of reads and writes: those of Iceberg do what they say, others are refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

import frazil
import frazil.spark
from tests.spark.shop import content, orders

pytestmark = pytest.mark.spark

T = "frazil.shop.orders"


def new(spark: Any, *ids: int) -> Any:
    return spark.createDataFrame(orders(ids))


def tip(table: frazil.Table) -> int:
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    return int(snapshot.snapshot_id)


def ids(frame: Any) -> set[int]:
    return {each.id for each in frame.select("id").collect()}


def test_reads_choose_a_state(spark: Any, table: frazil.Table) -> None:
    first = tip(table)
    table.tag("monday")
    table.append(orders([100]))
    second = tip(table)
    table.branch("audit", create=True).append(orders([200]))
    moment = table.refresh().snapshot(second).timestamp_ms

    def read(**options: Any) -> set[int]:
        return ids(
            spark.read.options(**{k.replace("_", "-"): v for k, v in options.items()}).table(T)
        )

    every = set(range(90))
    assert read(snapshot_id=first) == every
    assert read(tag="monday") == every
    assert read(branch="audit") == {*every, 100, 200}
    assert read(as_of_timestamp=moment) == {*every, 100}
    assert read(start_snapshot_id=first) == {100}
    assert read(start_snapshot_id=first, end_snapshot_id=second) == {100}
    assert ids(spark.sql(f"SELECT * FROM {T} WITH (branch = 'audit')")) == {*every, 100, 200}
    assert read(split_size=1_000_000) == {*every, 100}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"snapshot-ids": "1"}, "snapshot-id"),
        ({"readChangeFeed": "true", "startingVersion": "0"}, "changes"),
        ({"snapshot-id": "1", "tag": "x"}, "exclude each other"),
        ({"end-snapshot-id": "1"}, "start-snapshot-id"),
        ({"snapshot-id": "yesterday"}, "expected a number"),
        ({"vectorization": "true"}, "vectorization"),
    ],
)
def test_other_read_options_are_refused(
    spark: Any, table: frazil.Table, options: dict[str, str], told: str
) -> None:
    with pytest.raises(Exception, match=told) as caught:
        spark.read.options(**options).table(T).collect()
    assert "\tat " not in str(caught.value)


def test_writes_choose_a_branch(spark: Any, table: frazil.Table) -> None:
    table.branch("audit", create=True)
    new(spark, 100).writeTo(T).option("branch", "audit").append()
    spark.sql(
        f"INSERT INTO {T} WITH (branch = 'audit') SELECT 101L, day, country, price FROM {T} "
        "WHERE id = 1"
    )
    assert set(content(table)) == set(range(90))
    assert ids(spark.table(f"{T}.branch_audit")) == {*range(90), 100, 101}
    with pytest.raises(Exception, match="nowhere"):
        new(spark, 102).writeTo(T).option("branch", "nowhere").append()


@pytest.mark.parametrize("option", ["overwrite-mode", "partitionOverwriteMode"])
def test_an_overwrite_may_be_of_partitions_alone(
    spark: Any, table: frazil.Table, option: str
) -> None:
    first_day = new(spark, 300)  # 300 % 3 = 0: the first day
    first_day.write.mode("overwrite").option(option, "dynamic").insertInto(T)
    assert set(content(table)) == {*(id for id in range(90) if id % 3), 300}


def test_summaries_isolation_and_validation(spark: Any, table: frazil.Table) -> None:
    first = tip(table)
    new(spark, 100).writeTo(T).option("snapshot-property.job", "nightly").append()
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    assert snapshot.summary["job"] == "nightly"
    with pytest.raises(Exception, match="conflicts"):
        new(spark, 1).writeTo(T).option("validate-from-snapshot-id", first).overwrite(F.lit(True))
    new(spark, 1).writeTo(T).option("isolation-level", "snapshot").overwrite(F.lit(True))
    assert set(content(table)) == {1}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"replaceWhere": "id > 5"}, "REPLACE WHERE"),
        ({"write-format": "orc"}, "parquet"),
        ({"isolation-level": "loose"}, "serializable"),
        ({"overwrite-mode": "some"}, "dynamic or static"),
        ({"brnch": "audit"}, "branch"),
        ({"txnAppId": "a"}, "txnAppId"),
    ],
)
def test_other_write_options_are_refused(
    spark: Any, table: frazil.Table, options: dict[str, str], told: str
) -> None:
    with pytest.raises(Exception, match=told):
        new(spark, 1).write.mode("overwrite").options(**options).insertInto(T)
    assert set(content(table)) == set(range(90))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"replaceWhere": "id > 5"}, "REPLACE WHERE"),
        ({"partitionOverwriteMode": "dynamic"}, "as a whole"),
        ({"branch": "audit"}, "as a whole"),
        ({"brnch": "audit"}, "branch"),
    ],
)
@pytest.mark.parametrize("name", [T, "frazil.shop.made"])
def test_a_table_is_not_replaced_as_a_whole_where_a_part_is_meant(
    spark: Any, table: frazil.Table, options: dict[str, str], told: str, name: str
) -> None:
    table.branch("audit", create=True)
    with pytest.raises(Exception, match=told) as caught:
        new(spark, 1).write.mode("overwrite").options(**options).saveAsTable(name)
    assert "\tat " not in str(caught.value)
    assert set(content(table)) == set(range(90))
    assert [each.name for each in spark.catalog.listTables("frazil.shop")] == ["orders"]


@pytest.mark.parametrize("name", ["orders", "made"])
def test_a_table_is_replaced_with_a_summary_and_settings_of_its_files(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table, name: str
) -> None:
    writer = new(spark, 1).write.mode("overwrite").option("snapshot-property.job", "nightly")
    writer = writer.option("overwriteSchema", "true").option("compression-codec", "gzip")
    writer.saveAsTable(f"frazil.shop.{name}")
    snapshot = catalog.load_table(f"shop.{name}").current_snapshot()
    assert snapshot is not None
    assert snapshot.summary["job"] == "nightly"
    assert ids(spark.table(f"frazil.shop.{name}")) == {1}


def test_audits_write_to_a_branch_of_the_session(spark: Any, table: frazil.Table) -> None:
    spark.conf.set("spark.wap.branch", "nightly")
    new(spark, 100).writeTo(T).append()
    assert set(content(table)) == {*range(90), 100}  # the table takes no part in audits
    table.set_properties({"write.wap.enabled": "true"})
    assert ids(spark.table(T)) == {*range(90), 100}
    new(spark, 101).writeTo(T).append()
    spark.sql(f"DELETE FROM {T} WHERE id < 89")
    assert set(content(table)) == {*range(90), 100}
    assert ids(spark.table(T)) == {89, 100, 101}
    spark.conf.unset("spark.wap.branch")
    assert ids(spark.table(T)) == {*range(90), 100}


def test_audits_stage_rows_under_an_id(spark: Any, table: frazil.Table) -> None:
    table.set_properties({"write.wap.enabled": "true"})
    spark.conf.set("spark.wap.id", "run-7")
    new(spark, 100).writeTo(T).append()
    spark.conf.unset("spark.wap.id")
    assert set(content(table)) == set(range(90))
    spark.sql("CALL frazil.system.publish_changes('shop.orders', 'run-7')")
    assert set(content(table)) == {*range(90), 100}


def test_one_write_may_have_files_of_its_own_size(spark: Any, table: frazil.Table) -> None:
    before = table.inspect.files.num_rows
    frame = new(spark, *range(1000, 4000)).coalesce(1).filter("id % 3 = 0")
    frame.writeTo(T).option("target-file-size-bytes", "2000").append()
    assert table.refresh().inspect.files.num_rows - before > 1

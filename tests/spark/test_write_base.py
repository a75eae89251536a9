"""Writes whose query reads their own table lose nothing that others commit meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql import functions as F  # noqa: N812

import frazil
import frazil.spark
from tests.spark.shop import content, orders, row

pytestmark = pytest.mark.spark

T = "frazil.shop.orders"


WRITES = {
    "overwrite": lambda frame: frame.writeTo(T).overwrite(F.lit(True)),
    "by condition": lambda frame: frame.writeTo(T).overwrite(F.col("id") >= 0),
    "partitions": lambda frame: frame.writeTo(T).overwritePartitions(),
    "insert overwrite": lambda frame: frame.write.insertInto(T, overwrite=True),
    "replace": lambda frame: frame.writeTo(T).createOrReplace(),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_rows_that_others_appended_are_not_lost(
    spark: Any, table: frazil.Table, write: Any
) -> None:
    frame = spark.table(T).filter("id < 30")  # made before the other commit
    table.append(orders([1000]))
    spark.table(T).count()  # loads the new state into the session
    with pytest.raises(SparkRuntimeException) as caught:
        write(frame)
    assert caught.value.getSqlState() == "40001"
    assert set(content(table)) == {*range(90), 1000}


def test_rows_that_others_deleted_do_not_come_back(spark: Any, table: frazil.Table) -> None:
    frame = spark.table(T).filter("id >= 0")
    table.delete("id = 5")
    spark.table(T).count()
    with pytest.raises(SparkRuntimeException) as caught:
        frame.writeTo(T).overwrite(F.lit(True))
    assert caught.value.getSqlState() == "40001"
    assert 5 not in content(table)


def test_the_functions_know_what_their_frames_read(spark: Any, table: frazil.Table) -> None:
    frame = frazil.spark.table(table).filter("id < 30")
    table.append(orders([1000]))
    with pytest.raises(frazil.CommitConflict):
        frazil.spark.overwrite(table, frame)
    with pytest.raises(frazil.CommitConflict):
        frazil.spark.overwrite_partitions(table, frame.filter("id % 3 = 1"))
    assert set(content(table)) == {*range(90), 1000}


def test_the_data_source_knows_what_its_frames_read(
    spark: Any, table: frazil.Table, tmp_path: Path
) -> None:
    where = {"catalog": str(tmp_path / "warehouse")}
    frame = spark.read.format("frazil").options(**where).load("shop.orders").filter("id < 30")
    frame.schema  # noqa: B018
    table.append(orders([1000]))
    with pytest.raises(SparkRuntimeException) as caught:
        frame.write.format("frazil").options(**where).mode("overwrite").save("shop.orders")
    assert caught.value.getSqlState() == "40001"
    assert set(content(table)) == {*range(90), 1000}


def test_a_state_that_was_asked_for_may_take_the_place_of_the_current_one(
    spark: Any, table: frazil.Table
) -> None:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    table.append(orders([1000]))
    spark.sql(f"INSERT OVERWRITE {T} SELECT * FROM {T} VERSION AS OF {snapshot.snapshot_id}")
    assert content(table) == {id: row(id) for id in range(90)}


def test_a_write_that_reads_other_tables_replaces_what_there_is(
    spark: Any, table: frazil.Table
) -> None:
    frame = spark.createDataFrame(orders([1, 2]))
    table.append(orders([1000]))
    frame.writeTo(T).overwrite(F.lit(True))
    assert set(content(table)) == {1, 2}


def test_a_merge_of_the_table_into_itself_sees_one_state(spark: Any, table: frazil.Table) -> None:
    source = spark.sql(f"SELECT id, price + 1000 AS price FROM {T} WHERE id < 3")
    table.update({"price": 7.0}, "id = 1")
    merge = frazil.spark.merge(table, source, on=["id"]).when_matched_update(
        {"price": frazil.expr("s.price")}
    )
    with pytest.raises(frazil.CommitConflict):
        merge.execute()
    assert content(table)[1][2] == 7.0
    fresh = spark.sql(f"SELECT id, price + 1000 AS price FROM {T} WHERE id < 3")
    frazil.spark.merge(table, fresh, on=["id"]).when_matched_update(
        {"price": frazil.expr("s.price")}
    ).execute()
    assert [content(table)[id][2] for id in range(4)] == [1000.0, 1007.0, 1002.0, 3.0]


def test_self_overwrites_without_rivals_land(spark: Any, table: frazil.Table) -> None:
    spark.sql(f"INSERT OVERWRITE {T} SELECT id, day, country, price + 1 FROM {T} WHERE id < 10")
    assert content(table) == {id: (*row(id)[:2], id + 1.0) for id in range(10)}
    spark.sql(f"CREATE OR REPLACE TABLE {T} AS SELECT id, price FROM {T} WHERE id < 5")
    assert sorted(map(tuple, spark.table(T).collect())) == [(id, id + 1.0) for id in range(5)]


def test_conflicts_have_a_type_that_retries_can_tell(spark: Any, table: frazil.Table) -> None:
    frame = spark.table(T).filter("id >= 0")
    table.append(orders([1000]))
    with pytest.raises(SparkRuntimeException) as caught:
        frame.writeTo(T).overwrite(F.lit(True))
    assert caught.value.getCondition() == "FRAZIL_COMMIT_CONFLICT"
    assert caught.value.getSqlState() == "40001"
    assert "\tat " not in str(caught.value)

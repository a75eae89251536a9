"""Spark's cache after changes of the same session."""

from __future__ import annotations

from typing import Any

import pytest

import frazil
import frazil.spark
from tests.spark.shop import content, orders, row

pytestmark = pytest.mark.spark

T = "frazil.shop.orders"


@pytest.fixture
def cached(spark: Any, table: frazil.Table) -> frazil.Table:
    spark.sql(f"CACHE TABLE {T}")
    assert spark.table(T).count() == 90
    return table


def ids(spark: Any) -> set[int]:
    return {each.id for each in spark.sql(f"SELECT id FROM {T}").collect()}


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"INSERT INTO {T} SELECT 100L, day, country, price FROM {T} WHERE id = 1", {100}),
        (f"INSERT OVERWRITE {T} SELECT * FROM {T} WHERE id < 3", set()),
        (f"INSERT INTO {T} REPLACE WHERE id >= 3 SELECT * FROM {T} WHERE id = 1000", set()),
        (f"DELETE FROM {T} WHERE id >= 3", set()),
        (f"UPDATE {T} SET id = id + 1000 WHERE id = 5", {1005}),
        (
            f"MERGE INTO {T} t USING (SELECT 7L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
            set(),
        ),
        (f"TRUNCATE TABLE {T}", set()),
    ],
)
def test_statements_change_a_cached_table_and_its_cache(
    spark: Any, cached: frazil.Table, text: str, left: set[int]
) -> None:
    spark.sql(text)
    assert ids(spark) == set(content(cached))
    assert ids(spark) != set(range(90))
    assert left <= ids(spark)


def test_a_call_changes_the_cache(spark: Any, cached: frazil.Table) -> None:
    first = cached.current_snapshot()
    assert first is not None
    spark.sql(f"DELETE FROM {T} WHERE id >= 3")
    assert ids(spark) == {0, 1, 2}
    spark.sql(f"CALL frazil.system.rollback_to_snapshot('shop.orders', {first.snapshot_id})")
    assert ids(spark) == set(range(90))


def test_functions_change_the_cache(spark: Any, cached: frazil.Table) -> None:
    frazil.spark.delete(cached, "id >= 3")
    assert ids(spark) == {0, 1, 2}
    frazil.spark.append(cached, spark.createDataFrame(orders([500])))
    assert ids(spark) == {0, 1, 2, 500}


def test_frames_that_are_cached_follow(spark: Any, table: frazil.Table) -> None:
    frame = spark.table(T).filter("id < 10").cache()
    assert frame.count() == 10
    spark.sql(f"DELETE FROM {T} WHERE id < 5")
    assert spark.table(T).filter("id < 10").count() == 5
    assert content(table) == {id: row(id) for id in range(5, 90)}

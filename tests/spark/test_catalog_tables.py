"""Tables of a registered catalog: several catalogs, odd names, defaults, growing schemas, races."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import frazil
import frazil.spark
from frazil.errors import InvalidInput
from tests.spark.shop import ORDERS, content, orders

pytestmark = pytest.mark.spark


def rows(spark: Any, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.sql(query).collect()]


def test_two_catalogs_live_in_one_session(spark: Any, table: frazil.Table, tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "other") as second:
        frazil.spark.register(spark, second, "other")
        spark.sql("CREATE TABLE other.s.t (a BIGINT)")
        spark.sql("INSERT INTO other.s.t SELECT id FROM frazil.shop.orders WHERE id < 3")
        spark.sql("ALTER TABLE other.s.t CREATE TAG early")
        spark.sql("DELETE FROM other.s.t WHERE a IN (SELECT id FROM frazil.shop.orders)")
        assert rows(spark, "SELECT count(*) FROM other.s.t") == [(0,)]
        assert rows(spark, "SELECT a FROM other.s.t.tag_early ORDER BY a") == [(0,), (1,), (2,)]
        assert second.list_tables("s") == ["s.t"]
    assert rows(spark, "SELECT count(*) FROM frazil.shop.orders") == [(90,)]
    spark.sql("ALTER TABLE frazil.shop.orders CREATE BRANCH audit")
    assert table.refresh().branch("audit").scan().count() == 90


def test_names_with_dots_are_read_and_written(spark: Any, catalog: frazil.Catalog) -> None:
    frazil.spark.register(spark, catalog)
    name = "frazil.shop.`odd.name`"
    spark.sql(f"CREATE TABLE {name} (`a.b` INT, `c d` STRING, s STRUCT<`x.y`: INT, z: INT>)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'x', named_struct('x.y', 4, 'z', 5)), (2, 'y', NULL)")
    spark.sql(f"UPDATE {name} SET `a.b` = 5, s.`x.y` = 6 WHERE `A.B` = 1 AND s.`x.y` = 4")
    assert rows(spark, f"SELECT `a.b`, s.`x.y`, s.z FROM {name} WHERE `a.b` > 2") == [(5, 6, 5)]
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT 5 AS k) s ON t.`a.b` = s.k "
        "WHEN MATCHED THEN UPDATE SET t.`c d` = 'm'"
    )
    spark.sql(f"DELETE FROM {name} WHERE `a.b` = 2")
    assert rows(spark, f"SELECT `a.b`, `c d` FROM {name}") == [(5, "m")]


def test_defaults_fill_columns_that_an_insert_leaves_out(
    spark: Any, catalog: frazil.Catalog
) -> None:
    frazil.spark.register(spark, catalog)
    spark.sql("CREATE TABLE frazil.s.t (id BIGINT NOT NULL, n INT DEFAULT 7, d DATE)")
    spark.sql("INSERT INTO frazil.s.t (id) VALUES (1)")
    spark.sql("ALTER TABLE frazil.s.t ADD COLUMN x STRING DEFAULT 'its'")
    spark.sql("ALTER TABLE frazil.s.t ALTER COLUMN n SET DEFAULT 8")
    spark.sql("INSERT INTO frazil.s.t (id) VALUES (2)")
    spark.sql("UPDATE frazil.s.t SET n = DEFAULT WHERE id = 1")
    assert rows(spark, "SELECT id, n, d, x FROM frazil.s.t ORDER BY id") == [
        (1, 8, None, "its"),
        (2, 8, None, "its"),
    ]
    with pytest.raises(Exception, match=r"NOT_NULL|null"):
        spark.sql("INSERT INTO frazil.s.t (id) VALUES (CAST(NULL AS BIGINT))")
    shown = spark.sql("SHOW CREATE TABLE frazil.s.t").first()[0]
    assert "NOT NULL" in shown


def test_new_columns_are_added_where_that_is_asked_for(spark: Any, table: frazil.Table) -> None:
    more = spark.createDataFrame(orders([100])).selectExpr("*", "1 AS extra")
    with pytest.raises(Exception, match="TOO_MANY_DATA_COLUMNS"):
        more.writeTo("frazil.shop.orders").append()
    spark.sql(
        "ALTER TABLE frazil.shop.orders SET TBLPROPERTIES ('write.spark.accept-any-schema'='true')"
    )
    with pytest.raises(Exception, match="extra"):
        more.writeTo("frazil.shop.orders").append()
    more.writeTo("frazil.shop.orders").option("mergeSchema", "true").append()
    found = rows(spark, "SELECT id, extra FROM frazil.shop.orders WHERE id IN (3, 100) ORDER BY id")
    assert found == [(3, None), (100, 1)]
    wider = spark.createDataFrame(orders([101])).selectExpr("*", "2L AS extra", "'n' AS note")
    frazil.spark.append(table.refresh(), wider, merge_schema=True)
    assert rows(spark, "SELECT extra, note FROM frazil.shop.orders WHERE id = 101") == [(2, "n")]


def test_any_condition_says_what_is_overwritten(spark: Any, table: frazil.Table) -> None:
    new = spark.createDataFrame(orders([1000]))
    new.createOrReplaceTempView("new")
    spark.sql("INSERT INTO frazil.shop.orders REPLACE WHERE id % 2 = 0 SELECT * FROM new")
    assert sorted(content(table)) == [*range(1, 90, 2), 1000]
    spark.sql("INSERT OVERWRITE frazil.shop.orders SELECT * FROM new")
    assert sorted(content(table)) == [1000]


def test_overwritten_partitions_are_those_of_rows_under_any_spec(
    spark: Any, catalog: frazil.Catalog
) -> None:
    made = catalog.create_table("shop.orders", ORDERS)
    made.append(orders(range(9)))
    made.evolve_partitions().add("day").commit()
    new = spark.createDataFrame(orders([100, 103]))  # the second and third of their days
    frazil.spark.overwrite_partitions(made.refresh(), new)
    kept = {i for i in range(9) if i % 3 not in (100 % 3, 103 % 3)}
    assert set(content(made)) == kept | {100, 103}


def test_statements_land_beside_native_commits(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table
) -> None:
    """Appends go on meanwhile; a statement that meets a conflict is run again, as users would."""
    done = threading.Event()
    added: list[int] = []

    def append() -> None:
        native = catalog.load_table("shop.orders")
        while not done.is_set() and len(added) < 200:
            id = 1000 + len(added)
            native.refresh().append(orders([id]))
            added.append(id)

    beside = threading.Thread(target=append)
    beside.start()
    try:
        for text in (
            "DELETE FROM frazil.shop.orders WHERE id < 10",
            "UPDATE frazil.shop.orders SET price = -1 WHERE id BETWEEN 10 AND 19",
            "MERGE INTO frazil.shop.orders t USING (SELECT id FROM range(85, 95)) s ON t.id = s.id "
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
        ):
            for _ in range(20):
                try:
                    spark.sql(text)
                    break
                except Exception as error:
                    if "onflict" not in f"{type(error).__name__} {error}":
                        raise
            else:
                raise AssertionError(f"never landed: {text}")
    finally:
        done.set()
        beside.join()
    found = content(table)
    assert added
    assert set(found) == {*range(10, 85), *range(90, 95), *added}
    assert {id for id, (_, _, price) in found.items() if price == -1.0} == set(range(10, 20))


def test_a_session_without_a_catalog_says_what_to_do(spark: Any, catalog: frazil.Catalog) -> None:
    with pytest.raises(InvalidInput, match=r"frazil\.spark\.register"):
        frazil.spark.sql("SELECT 1", catalog=catalog)

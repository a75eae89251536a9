"""Views of a catalog in Spark SQL: stored with the catalog, read by every engine."""

from __future__ import annotations

from typing import Any

import pytest

import frazil
import frazil.spark
from tests.spark.shop import content, orders, rows_of
from tests.support.spark_session import own_session

pytestmark = pytest.mark.spark


def test_a_view_is_created_listed_read_and_dropped(
    spark: Any, spark_context: Any, catalog: frazil.Catalog, table: frazil.Table
) -> None:
    spark.sql(
        "CREATE VIEW frazil.shop.cheap (number COMMENT 'of the order', price) COMMENT 'few' "
        "TBLPROPERTIES ('team' = 'a') AS SELECT id, price FROM frazil.shop.orders WHERE price < 3"
    )
    assert rows_of(spark.sql("SELECT number FROM frazil.shop.cheap")) == [(0,), (1,), (2,)]
    assert rows_of(spark.table("frazil.shop.cheap").where("number > 1")) == [(2, 2.0)]
    listed = spark.sql("SHOW VIEWS IN frazil.shop").collect()
    assert [tuple(row) for row in listed] == [("shop", "cheap", False)]
    assert spark.sql("SHOW VIEWS IN frazil.shop LIKE 'x*'").collect() == []
    described = {
        row.col_name: row.comment for row in spark.sql("DESCRIBE frazil.shop.cheap").collect()
    }
    assert described == {"number": "of the order", "price": None}
    shown = spark.sql("SHOW CREATE TABLE frazil.shop.cheap").first()[0]
    assert shown.startswith("CREATE VIEW `frazil`.`shop`.`cheap` (`number`, `price`) AS\nSELECT id")
    other = own_session(spark_context)
    frazil.spark.register(other, catalog)
    assert other.table("frazil.shop.cheap").count() == 3
    assert catalog.list_tables("shop") == ["shop.orders"]
    with pytest.raises(Exception, match="already exists"):
        spark.sql("CREATE VIEW frazil.shop.cheap AS SELECT 1 AS a")
    spark.sql("CREATE VIEW IF NOT EXISTS frazil.shop.cheap AS SELECT 1 AS a")
    assert spark.table("frazil.shop.cheap").columns == ["number", "price"]
    spark.sql("DROP VIEW frazil.shop.cheap")
    assert catalog.list_views() == []
    with pytest.raises(Exception, match="does not exist"):
        spark.sql("DROP VIEW frazil.shop.cheap")
    spark.sql("DROP VIEW IF EXISTS frazil.shop.cheap")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("SELECT * FROM frazil.shop.cheap")


def test_views_are_altered(spark: Any, catalog: frazil.Catalog, table: frazil.Table) -> None:
    spark.sql("USE frazil.shop")
    spark.sql("CREATE VIEW v AS SELECT id FROM orders WHERE id < 2")
    spark.sql("CREATE OR REPLACE VIEW v AS SELECT id, country FROM orders WHERE id < 1")
    assert rows_of(spark.table("v")) == [(0, "DE")]
    spark.sql("ALTER VIEW v AS SELECT price FROM orders WHERE id = 7")
    assert rows_of(spark.table("v")) == [(7.0,)]
    spark.sql("ALTER VIEW v SET TBLPROPERTIES ('a' = '1', 'b' = '2')")
    spark.sql("ALTER VIEW v UNSET TBLPROPERTIES ('a')")
    assert catalog._pointers.views.load("shop.v").metadata["properties"] == {"b": "2"}
    spark.sql("ALTER VIEW v RENAME TO w")
    assert rows_of(spark.sql("SELECT * FROM w")) == [(7.0,)]
    assert [row.viewName for row in spark.sql("SHOW VIEWS").collect()] == ["w"]


def test_names_in_a_view_start_where_it_was_created(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table
) -> None:
    spark.sql("USE frazil.shop")
    spark.sql("CREATE VIEW few AS WITH x AS (SELECT * FROM orders WHERE id < 4) SELECT * FROM x")
    spark.sql(
        "CREATE VIEW fewer AS SELECT id FROM few WHERE id > (SELECT min(id) FROM shop.few) "
        "AND id IN (SELECT id FROM orders)"
    )
    spark.sql("USE spark_catalog.default")
    assert rows_of(spark.sql("SELECT f.id FROM frazil.shop.fewer f")) == [(1,), (2,), (3,)]
    assert rows_of(spark.sql("SELECT fewer.id FROM frazil.shop.fewer WHERE fewer.id > 2")) == [(3,)]
    joined = "SELECT count(*) FROM frazil.shop.orders o JOIN frazil.shop.fewer f ON o.id = f.id"
    assert spark.sql(joined).first()[0] == 3


def test_other_engines_read_the_view_and_theirs_are_read(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table
) -> None:
    pytest.importorskip("sqlglot")
    spark.sql(
        "CREATE VIEW frazil.shop.days AS "
        "SELECT day, count(*) AS n FROM frazil.shop.orders GROUP BY day"
    )
    assert catalog.sql("SELECT sum(n) AS n FROM shop.days").to_pylist() == [{"n": 90}]
    catalog.sql("CREATE VIEW shop.halves AS SELECT id // 2 AS half, price FROM shop.orders")
    found = spark.sql("SELECT half, sum(price) FROM frazil.shop.halves GROUP BY half")
    assert rows_of(found) == [(i, 4.0 * i + 1) for i in range(45)]


def test_a_view_follows_its_tables_and_keeps_its_settings(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table
) -> None:
    spark.sql("CREATE VIEW frazil.shop.everything AS SELECT * FROM frazil.shop.orders")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    spark.sql("CREATE VIEW frazil.shop.lenient AS SELECT CAST('x' AS INT) AS n")
    table.append(orders([100]))
    spark.sql("ALTER TABLE frazil.shop.orders ADD COLUMN note STRING")
    assert spark.table("frazil.shop.everything").count() == 91
    assert spark.table("frazil.shop.everything").columns == ["id", "day", "country", "price"]
    spark.conf.set("spark.sql.ansi.enabled", "true")
    assert rows_of(spark.table("frazil.shop.lenient")) == [(None,)]
    spark.sql("ALTER TABLE frazil.shop.orders DROP COLUMN price")
    with pytest.raises(Exception, match="price"):
        spark.table("frazil.shop.everything").collect()


def test_views_that_cannot_be_are_refused(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table
) -> None:
    spark.range(3).createOrReplaceTempView("passing")
    for query, told in [
        ("SELECT * FROM passing", "a view of this session alone"),
        ("SELECT * FROM frazil.shop.nothing", "nothing"),
        ("SELECT id, id FROM frazil.shop.orders", "two columns id"),
    ]:
        with pytest.raises(Exception, match=told):
            spark.sql(f"CREATE VIEW frazil.shop.v AS {query}")
    with pytest.raises(Exception, match="names 1 columns, its query has 2"):
        spark.sql("CREATE VIEW frazil.shop.v (a) AS SELECT 1 AS x, 2 AS y")
    with pytest.raises(Exception, match="is a table"):
        spark.sql("CREATE VIEW frazil.shop.orders AS SELECT 1 AS x")
    spark.sql("CREATE VIEW frazil.shop.v AS SELECT * FROM frazil.shop.orders")
    with pytest.raises(Exception, match="reads the view itself"):
        spark.sql("CREATE OR REPLACE VIEW frazil.shop.v AS SELECT * FROM frazil.shop.v")
    with pytest.raises(Exception, match="is a table, not a view"):
        spark.sql("DROP VIEW frazil.shop.orders")
    for statement in [
        "DELETE FROM frazil.shop.v WHERE id = 1",
        "UPDATE frazil.shop.v SET price = 0",
        "INSERT INTO frazil.shop.v SELECT * FROM frazil.shop.orders",
        "INSERT OVERWRITE frazil.shop.v SELECT * FROM frazil.shop.orders",
        "MERGE INTO frazil.shop.v t USING frazil.shop.orders s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE",
    ]:
        with pytest.raises(Exception, match=r"shop\.v is a view"):
            spark.sql(statement)
    assert len(content(table)) == 90


def test_tables_that_accept_any_schema_take_merges_and_updates(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table
) -> None:
    properties = "TBLPROPERTIES ('write.spark.accept-any-schema' = 'true')"
    spark.sql(f"ALTER TABLE frazil.shop.orders SET {properties}")
    spark.sql("UPDATE frazil.shop.orders SET price = -1 WHERE id = 1")
    spark.sql(
        "MERGE INTO frazil.shop.orders t USING (SELECT 2L AS id, 9D AS price) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET t.price = s.price"
    )
    spark.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO frazil.shop.orders t "
        "USING (SELECT 3L AS id, 5 AS fresh) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    spark.sql("DELETE FROM frazil.shop.orders WHERE id > 3")
    found = spark.sql("SELECT id, price, fresh FROM frazil.shop.orders")
    assert rows_of(found.na.fill(0)) == [(0, 0.0, 0), (1, -1.0, 0), (2, 9.0, 0), (3, 3.0, 5)]
    more = spark.sql("SELECT 50L AS id, 'n' AS note")
    more.write.mode("append").option("mergeSchema", "true").saveAsTable("frazil.shop.orders")
    assert spark.table("frazil.shop.orders").where("note = 'n'").count() == 1

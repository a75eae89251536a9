"""Statements as users of Iceberg's catalog type them."""

from __future__ import annotations

from typing import Any

import pytest

import frazil
from tests.spark.shop import content, orders

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("target", ["frazil.shop.sold", "shop.sold"])
def test_a_table_is_renamed_within_its_catalog(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table, target: str
) -> None:
    spark.sql(f"ALTER TABLE frazil.shop.orders RENAME TO {target}")
    assert catalog.list_tables("shop") == ["shop.sold"]
    assert spark.table("frazil.shop.sold").count() == 90


def test_a_name_that_is_missing_in_a_rename_is_told(spark: Any, table: frazil.Table) -> None:
    with pytest.raises(Exception, match="nowhere"):
        spark.sql("ALTER TABLE frazil.shop.orders RENAME TO frazil.nowhere.sold")
    with pytest.raises(Exception, match=r"`?shop`?.`?nothing`?"):
        spark.sql("ALTER TABLE frazil.shop.nothing RENAME TO shop.sold")


def test_a_namespace_called_like_the_catalog_is_one(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table
) -> None:
    catalog.create_namespace("frazil")
    catalog.create_namespace("frazil.shop")
    spark.sql("ALTER TABLE frazil.shop.orders RENAME TO frazil.shop.sold")
    assert catalog.list_tables("frazil.shop") == ["frazil.shop.sold"]


@pytest.mark.parametrize(
    "comment", ["/* nightly */ ", "-- nightly\n", "/* a\n * b */\n-- c\n  ", "/* ALTER */"]
)
def test_comments_may_stand_before_a_statement(
    spark: Any, table: frazil.Table, comment: str
) -> None:
    spark.sql(f"{comment}ALTER TABLE frazil.shop.orders CREATE TAG monday")
    assert "monday" in table.refresh().metadata.refs
    assert spark.sql(f"{comment}SHOW PARTITIONS frazil.shop.orders").count() == 3
    spark.sql(f"{comment}CREATE TABLE frazil.shop.same LIKE frazil.shop.orders")
    assert spark.table("frazil.shop.same").count() == 0


@pytest.mark.parametrize(
    ("text", "order", "mode"),
    [
        ("ORDERED BY (id)", ["id"], None),
        ("ORDERED BY (id DESC, price)", ["id", "price"], None),
        ("DISTRIBUTED BY PARTITION", [], "hash"),
        ("DISTRIBUTED BY PARTITION LOCALLY ORDERED BY price, id", ["price", "id"], "hash"),
    ],
)
def test_how_rows_are_written_is_declared(
    spark: Any, table: frazil.Table, text: str, order: list[str], mode: str | None
) -> None:
    spark.sql(f"ALTER TABLE frazil.shop.orders WRITE {text}")
    table.refresh()
    names = {field.field_id: field.name for field in table.schema.fields}
    assert [names[field.source_id] for field in table.sort_order.fields] == order
    assert table.properties.get("write.distribution-mode") == mode


@pytest.mark.parametrize("version", ["2", "3"])
def test_format_versions_of_iceberg_are_noted_not_stored(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table, version: str, caplog: Any
) -> None:
    properties = f"TBLPROPERTIES ('format-version' = '{version}', 'owner.team' = 'a')"
    spark.sql(f"CREATE TABLE frazil.shop.made (id BIGINT) {properties}")
    spark.sql(f"ALTER TABLE frazil.shop.orders SET {properties}")
    for name in ("shop.made", "shop.orders"):
        assert dict(catalog.load_table(name).properties) == {"owner.team": "a"}
    assert f"format-version {version} is not stored" in caplog.text
    with pytest.raises(Exception, match="format-version"):
        spark.sql("ALTER TABLE frazil.shop.orders SET TBLPROPERTIES ('format-version' = '9')")


def test_a_moment_is_part_of_a_name(spark: Any, table: frazil.Table) -> None:
    first = table.current_snapshot()
    assert first is not None
    table.append(orders([100]))
    name = f"frazil.shop.orders.at_timestamp_{first.timestamp_ms}"
    assert spark.table(name).count() == 90
    assert spark.table("frazil.shop.orders").count() == 91
    with pytest.raises(Exception, match="can only be read"):
        spark.sql(f"DELETE FROM {name} WHERE id = 1")
    with pytest.raises(Exception, match="not a table"):
        spark.sql(f"DROP TABLE {name}")
    assert len(content(table)) == 91


def test_rows_that_every_match_deletes_may_match_repeatedly(
    spark: Any, table: frazil.Table
) -> None:
    spark.sql("SELECT explode(array(3L, 3L, 4L, 200L, 200L)) AS id").createOrReplaceTempView("gone")
    spark.sql(
        "MERGE INTO frazil.shop.orders t USING gone s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT (id, day) VALUES (s.id, date'2024-01-01')"
    )
    found = spark.sql("SELECT id, count(*) FROM frazil.shop.orders GROUP BY id").collect()
    wanted = {i: 1 for i in range(90) if i not in (3, 4)} | {200: 2}
    assert {row[0]: row[1] for row in found} == wanted


def test_a_namespace_goes_with_all_that_it_holds(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table
) -> None:
    catalog.sql("CREATE VIEW shop.cheap AS SELECT * FROM shop.orders WHERE price < 3")
    catalog.create_table("shop.inner.deep", orders([1]))
    catalog.create_table("shops.other", orders([1]))
    with pytest.raises(Exception, match="not empty"):
        spark.sql("DROP NAMESPACE frazil.shop")
    assert catalog.list_views("shop") == ["shop.cheap"]
    spark.sql("DROP NAMESPACE frazil.shop CASCADE")
    assert catalog.list_namespaces() == ["shops"]
    assert catalog.list_views() == []
    with pytest.raises(Exception, match="shop"):
        spark.sql("DROP NAMESPACE frazil.shop CASCADE")

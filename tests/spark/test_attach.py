"""Tables and metadata tables as views, queried and filled with SQL."""

from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow as pa
import pytest

import frazil
import frazil.spark
from frazil.spark.source_options import METADATA_TABLES

pytestmark = pytest.mark.spark

ORDERS = pa.schema([("order_id", pa.int64()), ("day", pa.date32()), ("country", pa.string())])


def orders(first: int, last: int) -> list[dict[str, Any]]:
    return [
        {
            "order_id": i,
            "day": date(2024, 1, 1 + i % 2),
            "country": "US" if i % 3 else "CA",
        }
        for i in range(first, last)
    ]


@pytest.fixture
def table(catalog: frazil.Catalog) -> frazil.Table:
    made = catalog.create_table("shop.orders", ORDERS, partition_by=["day"])
    made.append(orders(0, 20))
    return made


def test_sql_sees_tables_and_their_metadata(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table
) -> None:
    catalog.create_table("shop.empty", ORDERS)
    attached = frazil.spark.attach(spark, catalog, "shop")
    assert attached.views == {"shop.orders": "orders", "shop.empty": "empty"}
    names = {view.name for view in spark.catalog.listTables() if view.isTemporary}
    assert names >= {"orders", "empty", *(f"orders__{each}" for each in METADATA_TABLES)}
    rows = spark.sql(
        "SELECT country, count(*) FROM orders WHERE day = date'2024-01-01' GROUP BY 1 ORDER BY 1"
    ).collect()
    assert [tuple(row) for row in rows] == [("CA", 4), ("US", 6)]
    assert spark.sql("SELECT * FROM empty").count() == 0
    assert spark.sql("SELECT * FROM empty__files").count() == 0


def test_metadata_tables_hold_what_inspection_shows(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table
) -> None:
    table.tag("first")
    table.delete("order_id = 3")
    frazil.spark.attach(spark, catalog, "shop")
    for name in METADATA_TABLES:
        wanted = getattr(table.inspect, name)
        found = spark.sql(f"SELECT * FROM orders__{name}")
        assert found.columns == wanted.column_names, name
        assert found.count() == wanted.num_rows, name
    snapshots = spark.sql(
        "SELECT snapshot_id, parent_id, operation, unix_millis(committed_at), summary "
        "FROM orders__snapshots ORDER BY sequence_number"
    ).collect()
    kept = table.snapshots()
    assert [tuple(row)[:4] for row in snapshots] == [
        (kept[0].snapshot_id, None, "append", kept[0].timestamp_ms),
        (kept[1].snapshot_id, kept[0].snapshot_id, "delete", kept[1].timestamp_ms),
    ]
    assert snapshots[0]["summary"]["added-records"] == "20"
    files = spark.sql(
        "SELECT record_count, partition.day, readable_metrics.order_id.upper_bound "
        "FROM orders__files ORDER BY 2"
    ).collect()
    assert [tuple(row) for row in files] == [
        (10, date(2024, 1, 1), 18),
        (10, date(2024, 1, 2), 19),
    ]
    assert {row["name"] for row in spark.table("orders__refs").collect()} == {"main", "first"}


def test_insert_into_a_view_writes_to_the_table(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table
) -> None:
    attached = frazil.spark.attach(spark, catalog, "shop")
    spark.sql("INSERT INTO orders VALUES (100, date'2024-01-05', 'FR'), (101, NULL, 'FR')")
    assert table.refresh().scan("country = 'FR'").count() == 2
    assert spark.sql("SELECT count(*) FROM orders").first()[0] == 20
    attached.refresh()
    assert spark.sql("SELECT count(*) FROM orders").first()[0] == 22
    spark.sql("INSERT OVERWRITE orders SELECT * FROM orders WHERE order_id < 5")
    assert table.refresh().scan().count() == 5
    with pytest.raises(Exception, match="metadata tables cannot be written to"):
        spark.sql("INSERT INTO orders__refs SELECT * FROM orders__refs")


def test_refresh_follows_created_and_dropped_tables(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table
) -> None:
    attached = frazil.spark.attach(spark, catalog, "shop")
    catalog.rename_table("shop.orders", "shop.sales")
    assert attached.refresh().views == {"shop.sales": "sales"}
    assert not spark.catalog.tableExists("orders")
    assert not spark.catalog.tableExists("orders__files")
    assert spark.table("sales").count() == 20


def test_views_show_what_was_there_when_they_were_made(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table
) -> None:
    empty = catalog.create_table("shop.empty", ORDERS)
    with table.evolve_schema() as columns:
        columns.add_column("odd name`s", "struct<`a b`: int>")
    attached = frazil.spark.attach(spark, catalog, "shop")
    table.append([{**row, "odd name`s": {"a b": 7}} for row in orders(20, 25)])
    empty.append(orders(0, 3))
    assert spark.table("orders").columns == ["order_id", "day", "country", "odd name`s"]
    assert spark.sql("SELECT count(*), count(`odd name``s`) FROM orders").first() == (20, 0)
    assert spark.table("empty").count() == spark.table("empty__files").count() == 0
    attached.refresh()
    assert spark.sql("SELECT sum(`odd name``s`.`a b`) FROM orders").first()[0] == 35
    assert spark.table("empty").count() == 3


def test_attached_sessions_know_their_catalog(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table
) -> None:
    frazil.spark.attach(spark, catalog)
    assert frazil.spark.table(spark, "shop.orders", where="order_id > 17").count() == 2


def test_names_that_two_namespaces_share_are_refused(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table
) -> None:
    catalog.create_table("archive.orders", ORDERS)
    with pytest.raises(frazil.InvalidInput, match="several namespaces have tables named orders"):
        frazil.spark.attach(spark, catalog)
    assert frazil.spark.attach(spark, catalog, "archive").views == {"archive.orders": "orders"}

"""What a statement declares is what the table gets, or it is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import frazil
import frazil.spark
from frazil.storage import local_path

pytestmark = pytest.mark.spark


@pytest.fixture
def shop(spark: Any, catalog: frazil.Catalog) -> frazil.Catalog:
    frazil.spark.register(spark, catalog)
    spark.sql("CREATE TABLE frazil.shop.plain (id INT, name STRING)")
    return catalog


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("CREATE TABLE frazil.shop.t (id INT) USING orc", "USING orc"),
        ("CREATE TABLE frazil.shop.t USING delta AS SELECT 1 AS id", "USING delta"),
        ("CREATE OR REPLACE TABLE frazil.shop.plain USING csv AS SELECT 1 AS id", "USING csv"),
        ("CREATE TABLE frazil.shop.t (name STRING COLLATE UNICODE_CI)", "UNICODE_CI"),
        ("CREATE TABLE frazil.shop.t (s STRUCT<n: STRING COLLATE UNICODE_CI>)", "UNICODE_CI"),
        ("CREATE TABLE frazil.shop.t AS SELECT 'a' COLLATE UNICODE_CI AS name", "UNICODE_CI"),
        ("ALTER TABLE frazil.shop.plain ADD COLUMN n STRING COLLATE UNICODE_CI", "UNICODE_CI"),
        ("ALTER TABLE frazil.shop.plain SET LOCATION '/tmp/elsewhere'", "location"),
    ],
)
def test_what_a_table_cannot_have_is_refused(
    spark: Any, shop: frazil.Catalog, text: str, told: str
) -> None:
    with pytest.raises(Exception, match=told) as caught:
        spark.sql(text)
    assert "\tat " not in str(caught.value)
    assert shop.list_tables("shop") == ["shop.plain"]
    table = shop.load_table("shop.plain")
    assert [field.name for field in table.schema.fields] == ["id", "name"]
    assert "location" not in table.properties


@pytest.mark.parametrize("provider", ["frazil", "iceberg", "parquet"])
def test_formats_that_the_table_has_may_be_named(
    spark: Any, shop: frazil.Catalog, provider: str
) -> None:
    spark.sql(f"CREATE TABLE frazil.shop.t USING {provider} AS SELECT 1 AS id")
    assert spark.table("frazil.shop.t").count() == 1


def test_a_table_made_from_a_query_is_seen_when_it_is_full(
    spark: Any, shop: frazil.Catalog
) -> None:
    seen: list[list[str]] = []
    create = shop._pointers.create_table

    def spy(*arguments: Any) -> Any:
        seen.append(shop.list_tables("shop"))
        return create(*arguments)

    shop._pointers.create_table = spy  # type: ignore[method-assign, assignment]
    spark.sql("CREATE TABLE frazil.shop.made AS SELECT id FROM range(10)")
    assert seen == [["shop.plain"]]
    table = shop.load_table("shop.made")
    assert Path(local_path(table.location)).name == "made"
    assert [each.operation for each in table.snapshots()] == ["append"]
    assert spark.table("frazil.shop.made").count() == 10


def test_a_query_that_fails_leaves_no_table(spark: Any, shop: frazil.Catalog) -> None:
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        spark.sql("CREATE TABLE frazil.shop.made AS SELECT 1 / (id - 3) AS x FROM range(10)")
    assert shop.list_tables("shop") == ["shop.plain"]
    spark.sql("CREATE TABLE frazil.shop.made AS SELECT id FROM range(0)")
    assert spark.table("frazil.shop.made").count() == 0
    with pytest.raises(Exception, match="already exists"):
        spark.sql("CREATE TABLE frazil.shop.made AS SELECT 1 AS id")


def test_mistakes_are_told_without_a_trace(spark: Any, shop: frazil.Catalog) -> None:
    for text in (
        "SELECT * FROM frazil.shop.nothing",
        "INSERT INTO frazil.shop.plain VALUES (1)",
        "DELETE FROM frazil.shop.plain WHERE nothing = 1",
        "ALTER TABLE frazil.shop.plain DROP COLUMN nothing",
        "SELECT * FROM frazil.shop.plain VERSION AS OF 17",
        "CREATE TABLE frazil.shop.plain (id INT)",
        "UPDATE frazil.shop.plain SET id = 'x'",
    ):
        with pytest.raises(Exception) as caught:
            spark.sql(text).collect()
        told = str(caught.value)
        assert "\tat " not in told, text
        assert "`unknown`" not in told, text


def test_frames_of_the_data_source_are_not_changed(
    spark: Any, shop: frazil.Catalog, tmp_path: Path
) -> None:
    options = {"catalog": str(tmp_path / "warehouse")}
    frame = spark.read.format("frazil").options(**options).load("shop.plain")
    frame.createOrReplaceTempView("v")
    with pytest.raises(Exception, match="take the name of a table in a Frazil catalog"):
        spark.sql("DELETE FROM v")


def test_partitions_are_made_from_several_columns(spark: Any, shop: frazil.Catalog) -> None:
    spark.sql(
        "CREATE TABLE frazil.shop.sales (id INT, name STRING, price INT) "
        "PARTITIONED BY (bucket(4, id, name))"
    )
    spark.sql(
        "INSERT INTO frazil.shop.sales "
        "SELECT CAST(id AS INT), concat('n', id % 3), CAST(id * 10 AS INT) FROM range(60)"
    )
    table = shop.load_table("shop.sales")
    (part,) = table.spec.fields
    assert (part.name, str(part.transform)) == ("id_name_bucket_4", "bucket[4]")
    where = "id = 17 AND name = 'n2'"
    assert table.scan(where).plan().files.num_rows == 1
    rows = spark.sql(f"SELECT price FROM frazil.shop.sales WHERE {where}").collect()
    assert [row.price for row in rows] == [170]
    assert spark.table("frazil.shop.sales").count() == 60
    described = spark.sql("DESCRIBE EXTENDED frazil.shop.sales").collect()
    assert any("bucket(4, id, name)" in f"{row.col_name} {row.data_type}" for row in described)

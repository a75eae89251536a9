"""Spark on a catalog in a bucket: the driver commits, executors read and write objects.

No pickle that reaches an executor holds a credential, whatever route a statement takes.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import frazil
import frazil.spark
from frazil.spark.session import carried_credentials
from tests.support.object_server import SECRET, Bucket

pytestmark = pytest.mark.spark

ORDERS = pa.schema({"id": pa.int64(), "amount": pa.int64(), "day": pa.string()})


def orders(ids: range) -> pa.Table:
    return pa.table(
        {
            "id": list(ids),
            "amount": [10 * id for id in ids],
            "day": [f"2026-01-0{id % 3 + 1}" for id in ids],
        },
        schema=ORDERS,
    )


@pytest.fixture
def catalog(
    spark: Any, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> Iterator[frazil.Catalog]:
    """An empty catalog in a bucket, registered as `lake`; the environment has no credentials."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with frazil.connect(bucket.warehouse, **bucket.properties) as made:
        frazil.spark.register(spark, made, "lake")
        yield made


@pytest.fixture
def pickles(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Everything that PySpark pickles for executors, and what Frazil does."""
    from pyspark.serializers import CloudPickleSerializer

    made: list[bytes] = []
    dumps, cloud = pickle.dumps, CloudPickleSerializer.dumps

    def kept(value: Any, *options: Any, **named: Any) -> bytes:
        made.append(dumps(value, *options, **named))
        return made[-1]

    def kept_cloud(self: Any, value: Any) -> bytes:
        made.append(cloud(self, value))
        return made[-1]

    monkeypatch.setattr(pickle, "dumps", kept)
    monkeypatch.setattr(CloudPickleSerializer, "dumps", kept_cloud)
    return made


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def test_statements_on_a_bucket(spark: Any, catalog: frazil.Catalog, pickles: list[bytes]) -> None:
    spark.sql("CREATE NAMESPACE lake.shop")
    spark.sql(
        "CREATE TABLE lake.shop.orders (id BIGINT, amount BIGINT, day STRING) PARTITIONED BY (day)"
    )
    spark.sql("INSERT INTO lake.shop.orders VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'a')")
    spark.sql("DELETE FROM lake.shop.orders WHERE id = 3")
    spark.sql("UPDATE lake.shop.orders SET amount = amount + 1 WHERE id = 2")
    new = spark.createDataFrame([(2, 200), (4, 400)], "id long, amount long")
    new.createOrReplaceTempView("new")
    spark.sql(
        "MERGE INTO lake.shop.orders t USING new s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET amount = s.amount "
        "WHEN NOT MATCHED THEN INSERT (id, amount, day) VALUES (s.id, s.amount, 'b')"
    )
    expected = [(1, 10, "a"), (2, 200, "b"), (4, 400, "b")]
    assert rows(spark.table("lake.shop.orders")) == expected
    assert rows(spark.sql("SELECT id FROM lake.shop.orders WHERE day = 'b'")) == [(2,), (4,)]
    table = catalog.load_table("shop.orders")
    assert sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist()) == expected
    assert pickles
    assert not [sent for sent in pickles if SECRET.encode() in sent]


def test_functions_and_jobs_on_a_bucket(
    spark: Any, catalog: frazil.Catalog, pickles: list[bytes]
) -> None:
    table = catalog.create_table("shop.orders", ORDERS, partition_by=["day"])
    for start in (0, 10, 20):
        table.append(orders(range(start, start + 10)))
    frazil.spark.append("shop.orders", spark.createDataFrame(orders(range(30, 40))))
    assert frazil.spark.table("shop.orders").count() == 40
    assert rows(frazil.spark.table("shop.orders").where("id >= 37").select("id").toDF("id")) == [
        (37,),
        (38,),
        (39,),
    ]
    frazil.spark.jobs.rewrite_data_files(table)
    frazil.spark.jobs.remove_orphan_files(table, dry_run=True)
    found = catalog.load_table("shop.orders").scan().to_arrow()
    assert sorted(found["id"].to_pylist()) == list(range(40))
    assert pickles
    assert not [sent for sent in pickles if SECRET.encode() in sent]


def test_the_data_source_on_a_bucket(spark: Any, catalog: frazil.Catalog, bucket: Bucket) -> None:
    catalog.create_table("shop.orders", ORDERS).append(orders(range(5)))
    frame = (
        spark.read.format("frazil")
        .option("catalog", bucket.warehouse)
        .options(**bucket.properties)
        .load("shop.orders")
    )
    assert [row.id for row in frame.orderBy("id").collect()] == [0, 1, 2, 3, 4]
    writer = spark.createDataFrame(orders(range(5, 7))).write.format("frazil").mode("append")
    writer.option("catalog", bucket.warehouse).options(**bucket.properties).save("shop.orders")
    assert catalog.load_table("shop.orders").scan().count() == 7


def test_spark_hides_the_settings_that_carry_credentials(
    spark: Any, catalog: frazil.Catalog
) -> None:
    catalog.create_table("shop.orders", ORDERS).append(orders(range(5)))
    assert frazil.spark.table("shop.orders").count() == 5
    pickle.dumps(catalog._pointers)
    shown = [tuple(row) for row in spark.sql("SET").collect()]
    carried = [value for key, value in shown if key.startswith(carried_credentials.PREFIX)]
    assert carried
    assert not [value for value in carried if SECRET in value]
    assert SECRET not in str(spark.conf.get("spark.frazil.catalog"))

"""Spark Connect: a client without a JVM reads and writes through the data source."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pyarrow as pa
import pytest

import frazil

pytestmark = pytest.mark.spark

CLIENT = """
import json, sys
from pyspark.sql import SparkSession
import frazil, frazil.spark

warehouse = sys.argv[1]
spark = SparkSession.builder.remote("local[2]").getOrCreate()
found = {"client": type(spark).__module__}
source = spark.read.format("frazil").option("catalog", warehouse)
found["rows"] = source.load("shop.orders").count()
found["where"] = source.option("where", "order_id < 3").load("shop.orders").count()
rows = spark.sql("SELECT 7000L AS order_id, 'DE' AS country")
rows.write.format("frazil").option("catalog", warehouse).mode("append").save("shop.orders")
try:
    frazil.spark.register(spark, warehouse)
except frazil.Unsupported as error:
    found["refused"] = str(error)
frazil.spark.append("shop.orders", spark.sql("SELECT 8000L AS order_id, 'FR' AS country"),
    catalog=warehouse)
frazil.spark.table("shop.orders", catalog=warehouse).createOrReplaceTempView("orders")
found["sql"] = [row["order_id"] for row in spark.sql(
    "SELECT order_id FROM orders WHERE order_id >= 7000 ORDER BY 1").collect()]
found["native"] = frazil.spark.table(
    "shop.orders", where="order_id < 3", catalog=warehouse).count()
extra = spark.createDataFrame([(1, "XX"), (9000, "IT")], "order_id long, country string")
table = frazil.connect(warehouse).load_table("shop.orders")
merged = frazil.spark.merge(table, extra, on=["order_id"]).upsert().execute()
found["merged"] = [merged.rows_updated, merged.rows_added]
more = extra.where("order_id > 8999").selectExpr("order_id + 1 AS order_id", "country")
frazil.spark.append(table, more)
found["asked"] = [list(row) for row in frazil.spark.sql(
    "SELECT o.country, count(*) FROM frazil.shop.orders o JOIN range(9000) r ON o.order_id = r.id "
    "WHERE order_id >= 7000 GROUP BY 1 ORDER BY 1", catalog=warehouse).collect()]
frazil.spark.sql("DELETE FROM shop.orders WHERE order_id = 2", catalog=warehouse)
print("FOUND " + json.dumps(found))
spark.stop()
"""


def test_a_client_of_spark_connect_reads_and_writes(tmp_path: Path) -> None:
    schema = pa.schema([("order_id", pa.int64()), ("country", pa.string())])
    catalog = frazil.connect(tmp_path / "warehouse")
    table = catalog.create_table("shop.orders", schema)
    table.append([{"order_id": i, "country": "US"} for i in range(10)])
    done = subprocess.run(
        [sys.executable, "-c", dedent(CLIENT), str(tmp_path / "warehouse")],
        capture_output=True,
        text=True,
        timeout=550,
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        check=False,
    )
    _, marked, answer = done.stdout.partition("FOUND ")
    assert marked, done.stderr[-3000:]
    found = json.loads(answer.splitlines()[0])
    assert found["client"].startswith("pyspark.sql.connect")
    assert found["rows"] == 10
    assert found["where"] == 3
    assert found["sql"] == [7000, 8000]
    assert "cannot register a catalog" in found["refused"]
    assert found["native"] == 3
    assert found["merged"] == [1, 1]
    table.refresh()
    kept = {row["order_id"]: row["country"] for row in table.scan().to_arrow().to_pylist()}
    assert kept[1] == "XX"
    assert kept[9000] == kept[9001] == "IT"
    assert found["asked"] == [["DE", 1], ["FR", 1]]
    assert len(kept) == 13
    assert 2 not in kept

"""Catalogs that a session's configuration names, with and without Spark Connect, and older Sparks.

Each session needs a virtual machine of its own, so it runs in a process of its own.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import frazil
from tests.support.other_spark import ran, statements_on
from tests.support.venvs import ICEBERG_SPARK

pytestmark = pytest.mark.spark

CONFIGURED = """
import json, sys
from contextlib import redirect_stdout
from io import StringIO
from pyspark.sql import SparkSession
from frazil.spark import jar_path

warehouse, mode = sys.argv[1:3]
builder = SparkSession.builder
builder = builder.remote("local[2]") if mode == "connect" else builder.master("local[2]")
for key, value in {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.jars": jar_path(),
    "spark.sql.extensions": "frazil.spark.Extensions",
    "spark.sql.catalog.lake": "frazil.spark.FrazilCatalog",
    "spark.sql.catalog.lake.uri": warehouse,
    "spark.sql.catalog.nowhere": "frazil.spark.FrazilCatalog",
}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
for text in (
    "CREATE TABLE lake.s.t (id BIGINT, x STRING) PARTITIONED BY (bucket(2, id))",
    "INSERT INTO lake.s.t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    "ALTER TABLE lake.s.t CREATE TAG first",
    "DELETE FROM lake.s.t WHERE id = 2",
    "UPDATE lake.s.t SET x = upper(x) WHERE id = 3",
    "MERGE INTO lake.s.t t USING (SELECT 9L AS id, 'n' AS x) s ON t.id = s.id "
    "WHEN NOT MATCHED THEN INSERT *",
):
    spark.sql(text).collect()
found = {"session": type(spark).__module__}
found["rows"] = [list(row) for row in spark.sql("SELECT * FROM lake.s.t ORDER BY id").collect()]
found["tagged"] = spark.sql("SELECT * FROM lake.s.t.tag_first").count()
found["expired"] = len(spark.sql("CALL lake.system.expire_snapshots(table => 's.t')").collect())
source = spark.read.format("frazil").option("catalog", warehouse).load("s.t").where("id > 1")
found["source"] = sorted(row.id for row in source.collect())
with redirect_stdout(StringIO()) as told:
    source.explain()
found["plan"] = told.getvalue()
try:
    spark.sql("SHOW TABLES IN nowhere.s").collect()
except Exception as error:
    found["refused"] = str(error)
print("FOUND " + json.dumps(found))
spark.stop()
"""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", ["classic", "connect"])
def test_a_catalog_of_the_configuration_serves_plain_sql(tmp_path: Path, mode: str) -> None:
    found = ran(CONFIGURED, str(tmp_path / "warehouse"), mode, cwd=tmp_path)
    assert (".connect." in found["session"]) == (mode == "connect")
    assert found["rows"] == [[1, "a"], [3, "C"], [9, "n"]]
    assert (found["tagged"], found["expired"]) == (3, 1)
    assert found["source"] == [3, 9]
    assert "frazil s.t (" in found["plan"]  # the driver's scan, not Spark's Python source
    assert "set spark.sql.catalog.nowhere.uri" in found["refused"]
    with frazil.connect(tmp_path / "warehouse") as catalog:
        assert catalog.load_table("s.t").scan().count() == 3


@pytest.mark.peers
@pytest.mark.timeout(900)
def test_statements_on_the_oldest_spark(tmp_path: Path) -> None:
    names = ["merge", "delete", "update", "branches"]
    found = statements_on(ICEBERG_SPARK, tmp_path, names)
    windows = [True, False, True, False]  # twice each: inside, outside
    assert found == {
        "version": "4.1.4",
        "done": names,
        "source": [2, 3, 4],
        "windows": windows,
    }

"""Avro data files in Spark: read through Arrow, beside Parquet files that Spark reads itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import frazil
import frazil.spark
from tests.support.avro_table import ROWS, upgraded_avro_table

pytestmark = pytest.mark.spark


def test_spark_reads_and_changes_them(spark: Any, catalog: frazil.Catalog, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    upgraded_avro_table(catalog, tmp_path / "theirs")
    frazil.spark.register(spark, catalog)
    spark.sql("INSERT INTO frazil.old.avro VALUES (100, 'parquet')")
    spark.sql("DELETE FROM frazil.old.avro WHERE id = 3")
    found = {row.id: row.name for row in spark.sql("SELECT * FROM frazil.old.avro").collect()}
    expected = {row["id"]: row["name"] for row in ROWS} | {100: "parquet"}
    del expected[3]
    assert found == expected
    few = spark.sql("SELECT id FROM frazil.old.avro WHERE id > 37 ORDER BY id").collect()
    assert [row.id for row in few] == [38, 39, 100]

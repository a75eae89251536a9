"""What a script leaves on the terminal when it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

SCRIPT = """
import sys
import frazil
import frazil.spark
from pyspark.sql import SparkSession

catalog = frazil.connect(sys.argv[1])
catalog.create_table("shop.orders", [{"id": 1}])
catalog.sql("SELECT id FROM shop.orders").to_pylist()
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.getOrCreate()
frazil.spark.register(spark, catalog)
print(spark.sql("SELECT count(*) AS n FROM frazil.shop.orders").first()["n"])
"""


def test_nothing_is_reported_as_leaked(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "lake")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    assert done.stdout.splitlines()[-1] == "1"
    assert "leaked" not in done.stdout + done.stderr

"""Iceberg Java on Spark: format version 3, merge on read, a Hadoop catalog on the local disk."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

from pyspark.sql import SparkSession

from bench.drivers.base import serve
from bench.drivers.spark_steps import CONF, SqlSteps
from tests.support.java import ICEBERG_RUNTIME, maven_jar


class Driver:
    """The steps of the Spark workload."""

    def about(self) -> dict[str, Any]:
        """Versions and settings."""
        return {
            "version": f"1.12.0 on PySpark {version('pyspark')}",
            "settings": "format version 3, merge-on-read with deletion vectors, Hadoop catalog",
        }

    def create(self, folder: str, rows: int, files: int) -> None:
        """Start Spark and fill the table."""
        builder = SparkSession.builder.master("local[2]")
        settings = {
            **CONF,
            "spark.jars": str(maven_jar(ICEBERG_RUNTIME)),
            "spark.sql.extensions": (
                "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
            ),
            "spark.sql.catalog.bench": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.bench.type": "hadoop",
            "spark.sql.catalog.bench.warehouse": f"file://{folder}/warehouse",
        }
        for key, value in settings.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        spark.sql("create namespace if not exists bench.shop")
        self.steps = SqlSteps(
            spark,
            "bench.shop.orders",
            folder=Path(folder),
            rows=rows,
            using=(
                "using iceberg {by} tblproperties ('format-version'='3', "
                "'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read', "
                "'write.merge.mode'='merge-on-read')"
            ),
            compact="call bench.system.rewrite_data_files(table => '{table}')",
        )
        self.steps.create(files)

    def small_files(self, count: int) -> None:
        """Tables for the compaction step."""
        self.steps.small_files(count)

    def bucketed(self, rows: int) -> None:
        """Tables for the join."""
        self.steps.bucketed(rows)

    def step(self, step: str, turn: int) -> float:
        """One job, timed."""
        return self.steps.step(step, turn)

    def planned(self, step: str, files: int, at: str) -> float:
        """One step on a table of many files, by the path of its metadata."""
        read = self.steps.spark.read.format("iceberg")
        return self.steps.planned(step, files, lambda: read.load(at))

    def stream(self, batches: int) -> dict[str, list[float]]:
        """Small batches through foreachBatch."""
        return self.steps.stream(batches)

    def sink(self, batches: int) -> list[float]:
        """Small batches through Iceberg's streaming sink."""
        return self.steps.sink(
            batches, lambda writer: writer.option("fanout-enabled", "true").toTable(self.steps.name)
        )


if __name__ == "__main__":
    serve(Driver())

"""Frazil on Spark: the native route for bulk, row-level jobs, and a stream of small batches."""

from __future__ import annotations

import os
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

import pyarrow as pa
from pyspark.sql import SparkSession

import frazil
import frazil.spark
from bench.drivers import spark_rows
from bench.drivers.base import serve, timed
from frazil.spark.delete import delete
from frazil.spark.foreach import foreach_batch
from frazil.spark.merge import merge


class Driver:
    """The steps of the Spark workload."""

    def about(self) -> dict[str, Any]:
        """Versions and settings."""
        return {
            "version": f"{frazil.__version__} on PySpark {version('pyspark')}",
            "settings": "embedded catalog, native route (Spark's Parquet reader), deletion vectors",
        }

    def create(self, folder: str, rows: int, files: int) -> None:
        """Start Spark and fill the table: one commit per file's worth of rows."""
        self.rows = rows
        self.spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.driver.memory", "2g")
            .config("spark.parquet.compression.codec", "zstd")
            .config("spark.sql.parquet.fieldId.read.enabled", "true")
            .config("spark.sql.python.filterPushdown.enabled", "true")
            .getOrCreate()
        )
        self.folder = Path(folder)
        self.catalog = frazil.connect(self.folder / "warehouse")
        schema = pa.schema(
            [
                ("order_id", pa.int64()),
                ("order_date", pa.date32()),
                ("country", pa.string()),
                ("price", pa.float64()),
                ("quantity", pa.int32()),
                ("note", pa.string()),
            ]
        )
        self.table = self.catalog.create_table(
            "shop.orders", schema, partition_by=["day(order_date)"]
        )
        step = -(-rows // files)
        for start in range(0, rows, step):
            self._append(start, min(start + step, rows))
        self._noop(frazil.spark.table(self.spark, self.table))

    def _append(self, start: int, stop: int) -> None:
        frazil.spark.append(spark_rows.frame(self.spark, start, stop), self.table)

    @staticmethod
    def _noop(frame: Any) -> None:
        frame.write.format("noop").mode("overwrite").save()

    def step(self, step: str, turn: int) -> float:
        """One job, timed."""
        extra = max(1000, self.rows // 20)
        work = {
            "full scan": lambda: self._noop(frazil.spark.table(self.spark, self.table)),
            "scan with deletes": lambda: self._noop(frazil.spark.table(self.spark, self.table)),
            "selective scan": lambda: self._noop(
                frazil.spark.table(
                    self.spark,
                    self.table,
                    where="order_date = '2024-01-01' and country = 'US' and order_id < 1000",
                )
            ),
            "append": lambda: self._append(
                self.rows + turn * extra, self.rows + (turn + 1) * extra
            ),
            "delete 1 %": lambda: (
                delete(self.spark, self.table, f"quantity = {turn}")
                if turn
                else delete(self.spark, self.table, "quantity < 10")
            ),
            "merge": lambda: self._merge(turn),
        }[step]
        return timed(work)[0]

    def _merge(self, turn: int) -> None:
        width = max(1000, self.rows // 100)
        source = spark_rows.frame(self.spark, turn * width, (turn + 1) * width)
        source = source.selectExpr(
            "order_id", "order_date", "country", "price + 1 as price", "quantity", "note"
        )
        merge(self.table, source, on=["order_id"]).upsert().execute()

    def stream(self, batches: int) -> dict[str, list[float]]:
        """Small batches through foreachBatch; how long a batch and our commit in it took."""
        source = self.folder / "arriving"
        for number in range(batches):
            rows = spark_rows.frame(
                self.spark, 10_000_000 + number * 100, 10_000_100 + number * 100
            )
            rows.coalesce(1).write.parquet(str(source / f"part-{number}"))
        frames = self.spark.readStream.schema(spark_rows.frame(self.spark, 0, 1).schema).option(
            "maxFilesPerTrigger", 1
        )
        arriving = frames.parquet(str(source / "*"))
        into = foreach_batch(self.table)
        spent: list[float] = []

        def batch(frame: Any, number: int) -> None:
            began = time.perf_counter()
            into(frame, number)
            spent.append((time.perf_counter() - began) * 1000)

        query = (
            arriving.writeStream.foreachBatch(batch)
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return {"batch": spent[1:] or spent, "commit": []}


if __name__ == "__main__":
    serve(Driver())

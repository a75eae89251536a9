"""Iceberg Java on Spark: format version 3, merge on read, a Hadoop catalog on the local disk."""

from __future__ import annotations

import os
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

from pyspark.sql import SparkSession

from bench.drivers import spark_rows
from bench.drivers.base import serve, timed
from tests.support.java import ICEBERG_RUNTIME, maven_jar

NAME = "bench.shop.orders"


class Driver:
    """The steps of the Spark workload."""

    def about(self) -> dict[str, Any]:
        """Versions and settings."""
        return {
            "version": f"1.12.0 on PySpark {version('pyspark')}",
            "settings": "format version 3, merge-on-read with deletion vectors, Hadoop catalog",
        }

    def create(self, folder: str, rows: int, files: int) -> None:
        """Start Spark and fill the table: one commit per file's worth of rows."""
        self.rows = rows
        self.folder = Path(folder)
        self.spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.driver.memory", "2g")
            .config("spark.jars", str(maven_jar(ICEBERG_RUNTIME)))
            .config(
                "spark.sql.extensions",
                "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            )
            .config("spark.sql.catalog.bench", "org.apache.iceberg.spark.SparkCatalog")
            .config("spark.sql.catalog.bench.type", "hadoop")
            .config("spark.sql.catalog.bench.warehouse", f"file://{folder}/warehouse")
            .getOrCreate()
        )
        self.spark.sql("create namespace if not exists bench.shop")
        self.spark.sql(
            f"create table {NAME} (order_id bigint, order_date date, country string, "
            "price double, quantity int, note string) using iceberg "
            "partitioned by (days(order_date)) tblproperties ('format-version'='3', "
            "'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read', "
            "'write.merge.mode'='merge-on-read')"
        )
        step = -(-rows // files)
        for start in range(0, rows, step):
            self._append(start, min(start + step, rows))
        self._noop(self.spark.table(NAME))

    def _append(self, start: int, stop: int) -> None:
        spark_rows.frame(self.spark, start, stop).writeTo(NAME).append()

    @staticmethod
    def _noop(frame: Any) -> None:
        frame.write.format("noop").mode("overwrite").save()

    def step(self, step: str, turn: int) -> float:
        """One job, timed."""
        extra = max(1000, self.rows // 20)
        condition = f"quantity = {turn}" if turn else "quantity < 10"
        work = {
            "full scan": lambda: self._noop(self.spark.table(NAME)),
            "scan with deletes": lambda: self._noop(self.spark.table(NAME)),
            "selective scan": lambda: self._noop(
                self.spark.table(NAME).where(spark_rows.SELECTIVE)
            ),
            "append": lambda: self._append(
                self.rows + turn * extra, self.rows + (turn + 1) * extra
            ),
            "delete 1 %": lambda: self.spark.sql(f"delete from {NAME} where {condition}"),
            "merge": lambda: self._merge(turn),
        }[step]
        return timed(work)[0]

    def _merge(self, turn: int) -> None:
        width = max(1000, self.rows // 100)
        source = spark_rows.frame(self.spark, turn * width, (turn + 1) * width)
        source.selectExpr(
            "order_id", "order_date", "country", "price + 1 as price", "quantity", "note"
        ).createOrReplaceTempView("source")
        self.spark.sql(
            f"merge into {NAME} t using source s on t.order_id = s.order_id "
            "when matched then update set * when not matched then insert *"
        )

    def stream(self, batches: int) -> dict[str, list[float]]:
        """Small batches through foreachBatch."""
        arriving = spark_rows.arriving(self.spark, self.folder / "arriving", batches)
        spent: list[float] = []

        def batch(frame: Any, number: int) -> None:
            began = time.perf_counter()
            frame.writeTo(NAME).append()
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

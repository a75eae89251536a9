"""Frazil on Spark: the native route for bulk, row-level jobs, and a stream of small batches."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import frazil
import frazil.spark
from bench.drivers import shop, spark_rows
from bench.drivers.base import serve, timed
from bench.drivers.frazil_driver import entries_of, schema_of
from bench.drivers.spark_steps import CONF, SqlSteps
from frazil.commit.handle import TableHandle
from frazil.spark.bridge.verbs import bridge_of
from frazil.spark.rows.delete import delete
from frazil.spark.rows.foreach import foreach_batch


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
        builder = SparkSession.builder.master("local[2]")
        for key, value in CONF.items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()
        self.folder = Path(folder)
        self.catalog = frazil.connect(self.folder / "warehouse")
        frazil.spark.register(self.spark, self.catalog)
        self.steps = SqlSteps(
            self.spark,
            "frazil.shop.orders",
            folder=self.folder,
            rows=rows,
            using="using frazil {by}",
            compact="call frazil.system.rewrite_data_files(table => '{table}')",
        )
        self.steps.create(files)
        self.table = self.catalog.load_table("shop.orders")

    @staticmethod
    def _noop(frame: Any) -> None:
        SqlSteps.noop(frame)

    def small_files(self, count: int) -> None:
        """Tables for the compaction step."""
        self.steps.small_files(count)

    def bucketed(self, rows: int) -> None:
        """Tables for the join."""
        self.steps.bucketed(rows)

    def step(self, step: str, turn: int) -> float:
        """One job, timed."""
        if step == "selective scan, by the function":
            where = spark_rows.SELECTIVE
            return timed(lambda: frazil.spark.table(self.table, where=where).collect())[0]
        return self.steps.step(step, turn)

    def stream(self, batches: int) -> dict[str, list[float]]:
        """Small batches through foreachBatch; how long a batch and our commit in it took."""
        arriving = spark_rows.arriving(self.spark, self.folder / "arriving", batches)
        into = foreach_batch(self.table)
        spent: list[float] = []

        def batch(frame: Any, number: int) -> None:
            began = time.perf_counter()
            into(frame, number)
            spent.append((time.perf_counter() - began) * 1000)

        with _commits_timed() as commits:
            query = (
                arriving.writeStream.foreachBatch(batch)
                .option("checkpointLocation", str(self.folder / "checkpoint"))
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
        return {"batch": spent[1:] or spent, "commit": commits[1:] or commits}

    def sink(self, batches: int) -> list[float]:
        """Small batches through Frazil's streaming sink."""
        warehouse = str(self.folder / "warehouse")
        return self.steps.sink(
            batches,
            lambda writer: (
                writer.format("frazil")
                .option("catalog", warehouse)
                .option("path", "shop.orders")
                .start()
            ),
        )

    # Beside plain Parquet, in one session

    def scans(self, repeats: int) -> dict[str, list[list[float]]]:
        """The same files read by name and through the table, then with one row of 100 deleted."""
        data = f"{self.table.location.removeprefix('file://')}/data"
        plain = self._turns(
            repeats,
            lambda: self._noop(frazil.spark.table(self.table)),
            lambda: self._noop(self.spark.read.parquet(data)),
        )
        snapshot = self.table.current_snapshot()
        assert snapshot is not None
        before = snapshot.snapshot_id
        delete(self.table, "quantity < 10")
        deleted = self._turns(
            repeats,
            lambda: self._noop(frazil.spark.table(self.table)),
            lambda: self._noop(frazil.spark.table(self.table, as_of=before)),
        )
        return {"plain": plain, "deleted": deleted}

    def appends(self, rows: int, repeats: int) -> list[list[float]]:
        """The same frame appended, and written as Parquet with the same clustering."""
        frame = spark_rows.frame(self.spark, 0, rows)
        target = self.catalog.create_table(
            "shop.appended", self.table.schema, partition_by=["order_date"]
        )
        places = (str(self.folder / f"plain-{turn}") for turn in range(repeats + 1))

        def plain() -> None:
            clustered = frame.repartition("order_date").sortWithinPartitions("order_date")
            clustered.write.partitionBy("order_date").parquet(next(places))

        return self._turns(repeats, lambda: frazil.spark.append(target, frame), plain)

    def many_files(self, count: int, repeats: int) -> list[list[float]]:
        """One order out of many small files."""
        folder = self.folder / "many"
        folder.mkdir()
        each = 20
        for number in range(count):
            ids = pa.array(range(number * each, (number + 1) * each), pa.int64())
            rows = pa.table({"order_id": ids, "price": pa.repeat(1.5, each)})
            pq.write_table(rows, folder / f"{number:06d}.parquet")
        found = self.catalog.create_table("shop.many", rows.schema)
        found.add_files([str(path) for path in sorted(folder.iterdir())])
        wanted = f"order_id = {count * each // 2}"
        return self._turns(
            repeats,
            lambda: frazil.spark.table(found, where=wanted).collect(),
            lambda: self.spark.read.parquet(str(folder)).where(wanted).collect(),
        )

    def many_entries(self, files: int) -> str:
        """A table of so many files that are in its metadata alone, and where Iceberg finds it."""
        made = self.catalog.create_table(
            f"shop.files_{files}", schema_of(12), partition_by=["day(order_date)"]
        )
        expression = made.metadata.expressions[0].expr_id
        made._add_entries(entries_of(shop.files(0, files, total=files), expression))
        return made.publish().metadata_location

    def planned(self, step: str, files: int, at: str) -> float:
        """One step on such a table, of which nothing is cached."""
        self.catalog._cache.clear()
        bridge_of(self.spark)._plans.clear()
        name = f"frazil.shop.files_{files}"
        return self.steps.planned(step, files, lambda: self.spark.table(name))

    def listed(self, count: int, repeats: int) -> list[float]:
        """Planning many files and handing them to Spark, which makes partitions of them."""
        listed = self.catalog.create_table(
            "shop.listed", schema_of(12), partition_by=["day(order_date)"]
        )
        expression = listed.metadata.expressions[0].expr_id
        listed._add_entries(entries_of(shop.files(0, count, total=count), expression))

        def work() -> None:
            self.catalog._cache.clear()
            frame = frazil.spark.table(self.catalog.load_table("shop.listed"))
            assert frame.rdd.getNumPartitions() > 0

        return [timed(work)[0] for _ in range(repeats + 1)][1:]

    @staticmethod
    def _turns(repeats: int, ours: Any, other: Any) -> list[list[float]]:
        """Both in turn, the first turn not counted."""
        found = [[timed(ours)[0], timed(other)[0]] for _ in range(repeats + 1)]
        return [list(times) for times in zip(*found[1:], strict=True)]


@contextmanager
def _commits_timed() -> Iterator[list[float]]:
    """How long every commit takes meanwhile."""
    spent: list[float] = []
    original = TableHandle.commit

    def commit(self: TableHandle, *given: Any, **named: Any) -> Any:
        began = time.perf_counter()
        try:
            return original(self, *given, **named)
        finally:
            spent.append((time.perf_counter() - began) * 1000)

    TableHandle.commit = commit  # type: ignore[method-assign]
    try:
        yield spent
    finally:
        TableHandle.commit = original  # type: ignore[method-assign]


if __name__ == "__main__":
    serve(Driver())

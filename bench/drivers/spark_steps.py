"""The steps of the Spark workload as plain SQL: the same texts for every table format."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.drivers import shop, spark_rows
from bench.drivers.base import timed

COLUMNS = (
    "order_id bigint, order_date date, country string, price double, quantity int, note string"
)
CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "2g",
    "spark.sql.parquet.compression.codec": "zstd",
}
SMALL_FILE_ROWS = 20
BUCKETED_JOIN = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.sources.v2.bucketing.enabled": "true",
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.iceberg.planning.preserve-data-grouping": "true",
}
"""The settings that Iceberg documents for joins without a shuffle; other formats ignore its own."""


class SqlSteps:
    """Steps on the table `name`, whose namespace takes further tables beside it."""

    def __init__(
        self, spark: Any, name: str, *, folder: Path, rows: int, using: str, compact: str
    ) -> None:
        self.spark = spark
        self.name = name
        self.folder = folder
        self.rows = rows
        self.using = using
        self.space = name.rpartition(".")[0]
        self.compact_text = compact

    def create(self, files: int) -> None:
        """Fill the table: one commit per file's worth of rows."""
        self._table(self.name, "days(order_date)")
        self._table(f"{self.space}.plain", None)
        self._table(f"{self.space}.parts", "truncate(1, note), bucket(2, order_id)")
        step = -(-self.rows // files)
        for start in range(0, self.rows, step):
            self.append(self.name, start, min(start + step, self.rows))
        self.noop(self.spark.table(self.name))

    def _table(self, name: str, by: str | None) -> None:
        partitioned = f"partitioned by ({by})" if by else ""
        self.spark.sql(f"create table {name} ({COLUMNS}) {self.using.format(by=partitioned)}")

    def append(self, name: str, start: int, stop: int) -> None:
        """Rows of the workload, by number."""
        spark_rows.frame(self.spark, start, stop).writeTo(name).append()

    @staticmethod
    def noop(frame: Any) -> None:
        """Read all rows and columns, keep nothing."""
        frame.write.format("noop").mode("overwrite").save()

    def step(self, step: str, turn: int) -> float:
        """One job, timed."""
        return timed(lambda: self._work(step)(turn))[0]

    def _work(self, step: str) -> Callable[[int], Any]:
        sql, name = self.spark.sql, self.name
        return {
            "full scan": lambda turn: self.noop(self.spark.table(name)),
            "scan, 1 % deleted": lambda turn: self.noop(self.spark.table(name)),
            "count": lambda turn: sql(f"select count(*) from {name}").collect(),
            "count, 1 % deleted": lambda turn: sql(f"select count(*) from {name}").collect(),
            "selective scan": lambda turn: sql(
                f"select * from {name} where {spark_rows.SELECTIVE}"
            ).collect(),
            "append": lambda turn: self._append(turn, "plain"),
            "append to 30 partitions": lambda turn: self._append(turn, "parts"),
            "delete 1 %": lambda turn: sql(f"delete from {name} where {self._percent(turn)}"),
            "delete 0.1 %": lambda turn: sql(f"delete from {name} where quantity = {500 + turn}"),
            "update 0.1 %": lambda turn: sql(
                f"update {name} set price = price + 1 where quantity = {600 + turn}"
            ),
            "update 1 %": lambda turn: sql(
                f"update {name} set price = price + 1 "
                f"where quantity >= {700 + 10 * turn} and quantity < {710 + 10 * turn}"
            ),
            "merge 1 %": lambda turn: self._merge(turn, max(1000, self.rows // 100)),
            "merge 10 %": lambda turn: self._merge(turn, self.rows // 10),
            "join of bucketed tables": lambda turn: self._join(),
            "min, max, count of a column": lambda turn: sql(
                f"select min(order_id), max(order_id), count(order_id) from {self.space}.lefts"
            ).collect(),
            "compaction": self._compact,
        }[step]

    @staticmethod
    def _percent(turn: int) -> str:
        return f"quantity >= {10 * turn} and quantity < {10 * turn + 10}"

    def _append(self, turn: int, table: str) -> None:
        name = f"{self.space}.{table}"
        self.append(name, turn * self.rows // 4, (turn + 1) * self.rows // 4)

    def _merge(self, turn: int, width: int) -> None:
        """Half of the source meets a row, half is new."""
        first = turn * width
        old = spark_rows.frame(self.spark, first, first + width // 2)
        far = 2 * self.rows + first
        source = old.union(spark_rows.frame(self.spark, far, far + width - width // 2))
        source.selectExpr(
            "order_id", "order_date", "country", "price + 1 as price", "quantity", "note"
        ).createOrReplaceTempView("source")
        self.spark.sql(
            f"merge into {self.name} t using source s on t.order_id = s.order_id "
            "when matched then update set * when not matched then insert *"
        )

    def bucketed(self, rows: int) -> None:
        """Two tables with equal buckets of the key that they are joined by."""
        for name in ("lefts", "rights"):
            table = f"{self.space}.{name}"
            by = self.using.format(by="partitioned by (bucket(8, order_id))")
            self.spark.sql(f"create table {table} (order_id bigint, price bigint) {by}")
            ids = self.spark.range(rows).selectExpr("id as order_id", "id % 1000 as price")
            ids.writeTo(table).append()

    def _join(self) -> None:
        for key, value in BUCKETED_JOIN.items():
            self.spark.conf.set(key, value)
        try:
            joined = self.spark.sql(
                "select count(*) as rows, sum(l.price + r.price) as total "
                f"from {self.space}.lefts l join {self.space}.rights r on l.order_id = r.order_id"
            )
            joined.collect()
        finally:
            for key in BUCKETED_JOIN:
                self.spark.conf.unset(key)

    def small_files(self, count: int) -> None:
        """A table of many small files for `compaction`, made by one append."""
        self._table(f"{self.space}.small", None)
        rows = self.spark.range(0, count * SMALL_FILE_ROWS, 1, count)
        rows.selectExpr(*spark_rows.COLUMNS).writeTo(f"{self.space}.small").append()

    def _compact(self, turn: int) -> None:
        table = f"{self.space.partition('.')[2]}.small"
        self.spark.sql(self.compact_text.format(table=table)).collect()

    @staticmethod
    def planned(step: str, files: int, table: Callable[[], Any]) -> float:
        """A step on a table whose files are in its metadata alone."""

        def tasks(frame: Any) -> int:
            plan = frame._jdf.queryExecution().executedPlan()
            return int(plan.execute().getNumPartitions())

        def work() -> int:
            if step == "count":
                return int(table().count())
            if step == "plan":
                return tasks(table())
            return tasks(table().where(f"order_id = {files * shop.ROWS // 2}"))

        took, result = timed(work)
        assert step != "count" or result == files * shop.ROWS
        assert step != "one order" or 1 <= result <= 4  # the tasks of one file
        return took

    def stream(self, batches: int) -> dict[str, list[float]]:
        """Small batches through foreachBatch."""
        arriving = spark_rows.arriving(self.spark, self.folder / "arriving", batches)
        spent: list[float] = []

        def batch(frame: Any, number: int) -> None:
            began = time.perf_counter()
            frame.writeTo(self.name).append()
            spent.append((time.perf_counter() - began) * 1000)

        query = (
            arriving.writeStream.foreachBatch(batch)
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return {"batch": spent[1:] or spent, "commit": []}

    def sink(self, batches: int, into: Callable[[Any], Any]) -> list[float]:
        """Small batches through the format's own streaming sink; how long every trigger took."""
        arriving = spark_rows.arriving(self.spark, self.folder / "sinking", batches)
        writer = arriving.writeStream.option("checkpointLocation", str(self.folder / "sink"))
        query = into(writer.trigger(availableNow=True))
        query.awaitTermination()
        spent = [
            float(progress["durationMs"]["triggerExecution"])
            for progress in query.recentProgress
            if progress["numInputRows"]
        ]
        return spent[1:] or spent

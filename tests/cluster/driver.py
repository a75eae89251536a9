"""What the cluster tests run: a driver that works on a standalone cluster and reports as JSON.

python -m tests.cluster.driver <master> <pids of master and workers> <warehouse>
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import frazil
import frazil.spark
from frazil.spark import jobs
from frazil.spark.session.jar import PACKAGED
from frazil.storage import local_path
from tests.support.spark_cluster import executor_pids

ROWS = 40_000
BATCH = 2_000
EVENTS = pa.schema([("id", pa.int64()), ("part", pa.int64()), ("text", pa.string())])
SMALL_FILES = {"write.target-file-size-bytes": "20000", "write.parquet.row-group-limit": "1000"}


def session(master: str) -> Any:
    made = SparkSession.builder.master(master).appName("frazil-cluster-tests")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "600m",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.sql.shuffle.partitions": "2",
    }.items():
        made = made.config(key, value)
    return made.getOrCreate()


def events(spark: Any, first: int, last: int) -> Any:
    return spark.range(first, last, numPartitions=2).selectExpr(
        "id", "id % 4 AS part", "repeat(sha2(cast(id AS string), 256), 2) AS text"
    )


def ordinary_work(spark: Any, catalog: frazil.Catalog) -> dict[str, Any]:
    """Everything that ships code and data to executors, once."""
    table = catalog.create_table("shop.events", EVENTS, partition_by=["part"])
    frazil.spark.append(table, events(spark, 0, 1000))
    hosts = spark.range(0, 8, numPartitions=8).mapInArrow(_where, "pid long").collect()
    frazil.spark.delete(table, "id < 10")
    frazil.spark.update(table, {"text": "new"}, "id between 10 and 19")
    source = events(spark, 990, 1010)
    frazil.spark.merge(table, source, on=["id"]).upsert().execute()
    rewritten = jobs.rewrite_data_files(table, min_input_files=2)
    keys = pa.table({"id": pa.array([500], pa.int64())})
    table.set_properties({"write.equality-deletes.enabled": "true"})
    table.row_delta().add_equality_deletes(keys, ["id"]).commit()
    jobs.convert_equality_deletes(table)
    jobs.rewrite_manifests(table)
    planned = jobs.plan_distributed(table, "part = 3")
    feed = frazil.spark.changes(table).groupBy("_change_type").count().collect()
    options = {"catalog": str(catalog._origin["uri"]) if catalog._origin else ""}
    plain = spark.read.format("frazil").options(**options).load("shop.events")
    plain.filter("id = 42").write.format("frazil").options(**options).mode("append").save(
        "shop.events"
    )
    return {
        "processes": len({row[0] for row in hosts}),
        "files_after": rewritten.files_after,
        "planned": planned.files.num_rows,
        "feed": {row[0]: row[1] for row in feed},
        "count": frazil.spark.table(catalog.load_table("shop.events")).count(),
    }


def plain_sql(spark: Any, catalog: frazil.Catalog) -> dict[str, Any]:
    """Statements of Spark SQL on a registered catalog."""
    frazil.spark.register(spark, catalog)
    for text in (
        "CREATE TABLE frazil.shop.letters (id BIGINT, x STRING) PARTITIONED BY (bucket(4, id))",
        "INSERT INTO frazil.shop.letters SELECT id, chr(97 + id) FROM range(0, 6, 1, 3)",
        "DELETE FROM frazil.shop.letters WHERE id IN (1, 4, 5)",
        "UPDATE frazil.shop.letters SET x = upper(x) WHERE id = 3",
        "MERGE INTO frazil.shop.letters t USING (SELECT 0L AS id, 'zero' AS x UNION SELECT 7, 'g') "
        "s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    ):
        spark.sql(text)
    rows = spark.sql("SELECT * FROM frazil.shop.letters ORDER BY id").collect()
    return {"packaged": PACKAGED.is_file(), "rows": [list(row) for row in rows]}


def _where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        ids = pa.array([os.getppid()] * batch.num_rows, pa.int64())
        yield pa.RecordBatch.from_arrays([ids], names=["pid"])


class Troubled:
    """Passes rows on; the first attempt of the second task fails, or waits to be killed."""

    def __init__(self, *, waits: bool) -> None:
        self.waits = waits

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        is_first = context.partitionId() == 1 and context.attemptNumber() == 0
        for number, batch in enumerate(batches):
            if is_first and number == 6:
                if not self.waits:
                    raise ValueError("a task that fails on purpose")
                time.sleep(60)
            yield batch


def failing_task(spark: Any, catalog: frazil.Catalog) -> dict[str, Any]:
    """A task fails after it has written files; Spark runs it again."""
    table = catalog.create_table("shop.failing", EVENTS, properties=SMALL_FILES)
    rows = events(spark, 0, ROWS)
    frazil.spark.append(table, rows.mapInArrow(Troubled(waits=False).run, rows.schema))
    return _left(spark, table)


def killed_executor(spark: Any, catalog: frazil.Catalog, workers: set[int]) -> dict[str, Any]:
    """An executor is killed while its task writes files; Spark runs the task elsewhere."""
    table = catalog.create_table("shop.killed", EVENTS, properties=SMALL_FILES)
    app = spark.sparkContext.applicationId
    before = executor_pids(workers, app)
    folder = Path(local_path(table.location)) / "data"
    killed: list[int] = []

    def kill() -> None:
        """Kill whoever holds a data file open, once the healthy task has come to its end."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not killed:
            busy = _busy_executors(before, folder)
            if len(busy) == 1 and _is_quiet(folder):
                os.kill(busy[0], signal.SIGKILL)
                killed.append(busy[0])
            time.sleep(0.2)

    watcher = threading.Thread(target=kill)
    watcher.start()
    rows = events(spark, 0, ROWS)
    frazil.spark.append(table, rows.mapInArrow(Troubled(waits=True).run, rows.schema))
    watcher.join()
    return {**_left(spark, table), "killed": len(killed), "executors": len(before)}


def _busy_executors(executors: list[int], folder: Path) -> list[int]:
    """Executors one of whose Python workers has a file below the folder open."""
    found = []
    for executor in executors:
        for pid in _descendants(executor):
            try:
                opened = [os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir()]
            except OSError:
                continue
            if any(name.startswith(str(folder)) for name in opened):
                found.append(executor)
                break
    return found


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            children = (task / "children").read_text().split()
        except OSError:
            continue
        for child in children:
            found += [int(child), *_descendants(int(child))]
    return found


def _is_quiet(folder: Path) -> bool:
    newest = max((file.stat().st_mtime for file in folder.rglob("*.parquet")), default=0.0)
    return time.time() - newest > 1.0


def _left(spark: Any, table: frazil.Table) -> dict[str, Any]:
    """What is in the table, and what lies about that is not."""
    later = datetime.now(UTC) + timedelta(hours=1)
    orphans = jobs.remove_orphan_files(table, older_than=later)
    again = jobs.remove_orphan_files(table, older_than=later, dry_run=True)
    return {"orphans": len(orphans.files), "orphans_again": len(again.files)}


def lost_source(spark: Any, catalog: frazil.Catalog, workers: set[int]) -> dict[str, Any]:
    """An executor is killed after the source of a merge was looked at, before it is joined."""
    from frazil.spark.rows.merge_source import SparkSource

    frazil.spark.register(spark, catalog)
    table = catalog.create_table("shop.merged", EVENTS)
    frazil.spark.append(table, events(spark, 0, 1000))
    # Which row is where depends on the order in which the shuffle's blocks arrive.
    source = events(spark, 500, 3000).repartition(5).withColumn("text", F.lit("merged"))
    source.createOrReplaceTempView("incoming")
    looked = SparkSource.keys
    killed: list[int] = []

    def keys(self: SparkSource, *arguments: Any, **options: Any) -> Any:
        answer = looked(self, *arguments, **options)
        if not killed:
            pids = executor_pids(workers, spark.sparkContext.applicationId)
            killed.append(pids[0])
            os.kill(pids[0], signal.SIGKILL)
        return answer

    SparkSource.keys = keys  # type: ignore[method-assign]
    try:
        spark.sql(
            "MERGE INTO frazil.shop.merged t USING incoming s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
    finally:
        SparkSource.keys = looked  # type: ignore[method-assign]
    return {"killed": len(killed)}


def main() -> None:
    """Run everything and print one line of JSON."""
    master, pids, warehouse = sys.argv[1:4]
    workers = {int(pid) for pid in pids.split(",")}
    spark = session(master)
    spark.sparkContext.setLogLevel("OFF")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(BATCH))
    with frazil.connect(warehouse) as catalog:
        results = {
            "ordinary": ordinary_work(spark, catalog),
            "sql": plain_sql(spark, catalog),
            "failing": failing_task(spark, catalog),
            "killed": killed_executor(spark, catalog, workers),
            "lost source": lost_source(spark, catalog, workers),
        }
    spark.stop()
    print("RESULTS " + json.dumps(results))


if __name__ == "__main__":
    main()

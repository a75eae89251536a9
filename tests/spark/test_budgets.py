"""What a statement costs apart from its rows: calls to Spark, and modules that workers load."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from py4j.clientserver import JavaClient
from py4j.java_gateway import GatewayClient

import frazil
import frazil.spark
from frazil.spark.bridge.verbs import bridge_of
from frazil.spark.session.executor_tasks import _Named, answers
from tests.support.orders import served_orders

LOADED = """
import json, sys
import pyspark.worker
import {module}
print(json.dumps(sorted(sys.modules)))
"""


def loaded(module: str) -> list[str]:
    """What a worker has loaded when it has loaded a module."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LOADED.format(module=module)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return list(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("module", "most"),
    [
        ("write.key_bitmaps", 6),
        ("session.executor_tasks", 7),
        ("write.write_task", 90),
        ("write.sink_task", 135),
    ],
)
def test_workers_load_what_their_task_needs(module: str, most: int) -> None:
    found = loaded(f"frazil.spark.{module}")
    own = [name for name in found if name.startswith("frazil")]
    assert len(own) <= most
    tops = {name.split(".")[0] for name in found}
    assert not tops & {"rich", "duckdb", "sqlglot", "fastapi", "sqlite3"}
    assert not [name for name in own if name.startswith(("frazil.table", "frazil.catalog."))]


@contextmanager
def counted() -> Iterator[list[int]]:
    """Calls to Spark's virtual machine, without the notes that an object is no longer needed."""
    calls = [0]
    owner = JavaClient if "send_command" in vars(JavaClient) else GatewayClient
    original = owner.send_command

    def send(self: Any, command: str, *given: Any, **named: Any) -> Any:
        calls[0] += not command.startswith("m\nd\n")
        return original(self, command, *given, **named)

    owner.send_command = send
    try:
        yield calls
    finally:
        owner.send_command = original


@pytest.mark.spark
def test_a_merge_costs_few_calls_for_every_column(spark: Any, catalog: frazil.Catalog) -> None:
    frazil.spark.register(spark, catalog)
    found = {}
    for width in (2, 30):
        names = [f"c{at}" for at in range(width)]
        table = f"frazil.shop.wide{width}"
        spark.sql(f"CREATE TABLE {table} (id BIGINT, {', '.join(f'{n} INT' for n in names)})")
        spark.sql(f"INSERT INTO {table} SELECT id, {', '.join('1' for _ in names)} FROM range(9)")
        spark.range(5, 12).selectExpr("id", *(f"2 AS {n}" for n in names)).createOrReplaceTempView(
            "source"
        )
        with counted() as calls:
            spark.sql(
                f"MERGE INTO {table} t USING source s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            )
        found[width] = calls[0]
        assert spark.sql(f"SELECT sum(c0), count(*) FROM {table}").first()[:] == (19, 12)
    # PySpark hands the columns of a job's rows over one by one; expressions cost nothing each.
    assert found[30] - found[2] <= 28 * 5
    assert found[2] <= 600


@pytest.mark.spark
def test_what_passes_to_java_does_not_grow_with_the_files(
    spark: Any, catalog: frazil.Catalog
) -> None:
    """Columns in a file that Java maps; as text, a million files filled the driver's memory."""
    table = served_orders(catalog, 3_000, files_per_day=100)
    frazil.spark.register(spark, catalog)
    answers: dict[int, int] = {}
    for days, files in ((1, 100), (30, 3_000)):
        bridge_of(spark)._plans.clear()
        frame = spark.sql(
            "SELECT order_id, country FROM frazil.shop.orders "
            f"WHERE order_date < date_add(date'2024-01-01', {days})"
        )
        plan = frame._jdf.queryExecution().executedPlan()
        assert f"({files} of 3000 files" in plan.toString()
        # Files of 1 MB, with 4 MB for opening each: at least 20 are read by one task.
        assert 0 < plan.execute().getNumPartitions() <= files // 20
        answers[files] = max(map(len, bridge_of(spark)._plans.values()))
    assert answers[3_000] < answers[100] + 2_000
    assert answers[3_000] < 10_000
    assert table.scan().plan().files.num_rows == 3_000


@pytest.mark.spark
def test_tasks_of_a_plan_are_made_once(spark: Any, catalog: frazil.Catalog) -> None:
    served_orders(catalog, 300, files_per_day=100)
    frazil.spark.register(spark, catalog)
    frame = spark.sql("SELECT order_id FROM frazil.shop.orders")
    leaf = frame._jdf.queryExecution().executedPlan().collectLeaves().head()
    first, again = leaf.scan().planInputPartitions(), leaf.batch().planInputPartitions()
    assert len(first) == len(again) > 1
    assert all(one.equals(other) for one, other in zip(first, again, strict=True))
    assert leaf.scan().outputPartitioning().numPartitions() == len(first)


@pytest.mark.spark
def test_many_columns_are_read_in_batches(spark: Any, table: frazil.Table) -> None:
    """Spark's own reader gives rows beyond `spark.sql.codegen.maxFields`, at more than twice the
    cost."""
    table.delete("id < 40")
    for settings, is_columnar in (
        ({"spark.sql.codegen.maxFields": "2"}, True),
        ({"spark.sql.parquet.enableVectorizedReader": "false"}, False),
    ):
        for key, value in settings.items():
            spark.conf.set(key, value)
        rows = spark.table("frazil.shop.orders")
        plan = rows._jdf.queryExecution().executedPlan().toString()
        assert ("ColumnarToRow" in plan) is is_columnar
        assert sorted(row["id"] for row in rows.collect()) == list(range(40, 90))


def objects_looked_at(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """How many objects the garbage collector of a worker sees when it collects after a task."""
    import frazil.spark.write.write_task  # noqa: F401

    for _ in batches:
        pass
    seen = f"{os.getpid()} {len(gc.get_objects())}".encode()
    yield pa.RecordBatch.from_arrays([pa.array([seen])], names=["seen"])


@pytest.mark.spark
def test_workers_collect_garbage_without_looking_at_modules(spark: Any) -> None:
    """PySpark collects after each task: 40 ms, where modules of a write are looked at."""
    rows = spark.range(0, 1, 1, 1)
    seen: dict[str, list[int]] = {}
    for _ in range(12):
        worker, objects = answers(rows, objects_looked_at)[0].decode().split()
        seen.setdefault(worker, []).append(int(objects))
    later = [objects for found in seen.values() for objects in found[1:]]
    assert later
    assert max(later) < 20_000


def test_a_driver_keeps_its_objects_in_view() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1])], names=["c0"])
    assert len(list(_Named(("id",), objects_looked_at).run(iter([batch])))) == 1
    assert gc.get_freeze_count() == 0

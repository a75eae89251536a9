"""What a statement costs apart from its rows: calls to Spark, and modules that workers load."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from py4j.clientserver import JavaClient
from py4j.java_gateway import GatewayClient

import frazil
import frazil.spark

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
    [("key_bitmaps", 4), ("shipping", 6), ("write_task", 75), ("sink_task", 115)],
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

"""A driver whose statements lose an executor, in a chosen phase or in one after the other.

A phase is a stage of a job that the statement starts. When its first task begins, the executor that
runs it is killed; what earlier phases left there is lost as well.

python -m tests.cluster.killing <master> <pids of master and workers> <warehouse> <phase or all>
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.java_gateway import ensure_callback_server_started

import frazil
import frazil.spark
from tests.cluster.driver import EVENTS, session
from tests.support.spark_cluster import executor_pids

ROWS = 600
STATEMENTS = {
    "merge": (
        "MERGE INTO frazil.{t} t USING (SELECT id, id % 4 AS part, 'merged' AS text "
        "FROM range(400, 900) DISTRIBUTE BY id) s ON t.id = s.id "
        "WHEN MATCHED AND s.id < 420 THEN DELETE WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT *"
    ),
    "update": "UPDATE frazil.{t} SET text = 'updated' WHERE id % 3 = 0",
    "delete": "DELETE FROM frazil.{t} WHERE id IN (SELECT id * 3 FROM range(100))",
    "overwrite": (
        "INSERT OVERWRITE frazil.{t} SELECT id, part, upper(text) FROM frazil.{t} WHERE id % 2 = 0"
    ),
    "compaction": (
        "CALL frazil.system.rewrite_data_files(table => '{t}', strategy => 'sort', "
        "sort_order => 'id', options => map('rewrite-all', 'true'))"
    ),
}
BEFORE = {id: f"t{id}" for id in range(ROWS)}
AFTER = {
    "merge": {
        **{id: text for id, text in BEFORE.items() if id < 400},
        **dict.fromkeys(range(420, 900), "merged"),
    },
    "update": {id: text if id % 3 else "updated" for id, text in BEFORE.items()},
    "delete": {id: text for id, text in BEFORE.items() if id % 3 or id >= 300},
    "overwrite": {id: text.upper() for id, text in BEFORE.items() if id % 2 == 0},
    "compaction": BEFORE,
}
"""What each statement leaves, by id."""


class Phases:
    """Hears of every phase that begins, and kills whoever runs the first task of the chosen one."""

    def __init__(self, kill: Callable[[str], bool]) -> None:
        self._kill = kill
        self._stages: list[int] = []
        self._chosen = -1
        self.killed = False

    def choose(self, chosen: int) -> None:
        """Count anew; kill in the phase of this number, from zero."""
        self._stages, self._chosen, self.killed = [], chosen, False

    @property
    def count(self) -> int:
        """How many phases there have been."""
        return len(self._stages)

    def onTaskStart(self, started: Any) -> None:  # noqa: N802
        """The name that Spark calls."""
        stage = started.stageId()
        if stage in self._stages:
            return
        self._stages.append(stage)
        if len(self._stages) - 1 == self._chosen:
            self.killed = self._kill(started.taskInfo().executorId())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("on"):  # what else there is to hear
            return lambda *_: None
        raise AttributeError(name)

    class Java:
        """What Spark's bus of listeners calls."""

        implements = ["org.apache.spark.scheduler.SparkListenerInterface"]


def filled(catalog: frazil.Catalog, name: str) -> None:
    """Eight files in four partitions, written without Spark."""
    table = catalog.create_table(name, EVENTS, partition_by=["part"])
    for ids in (range(ROWS // 2), range(ROWS // 2, ROWS)):
        columns = {"id": ids, "part": [id % 4 for id in ids], "text": [BEFORE[id] for id in ids]}
        table.append(pa.table(columns, schema=EVENTS))


def main() -> None:
    """Run every statement; print the names of the tables whose statement lost an executor."""
    master, pids, warehouse, phase = sys.argv[1:5]
    workers = {int(pid) for pid in pids.split(",")}
    spark = session(master)
    spark.sparkContext.setLogLevel("OFF")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    context = spark._jsparkSession.sparkContext()

    def kill(executor: str) -> bool:
        for pid in executor_pids(workers, spark.sparkContext.applicationId):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            if words[words.index("--executor-id") + 1] == executor:
                os.kill(pid, signal.SIGKILL)
                return True
        return False

    ensure_callback_server_started(spark.sparkContext._gateway)
    phases = Phases(kill)
    context.addSparkListener(phases)

    def run(catalog: frazil.Catalog, name: str, statement: str, chosen: int) -> None:
        filled(catalog, name)
        context.listenerBus().waitUntilEmpty()
        phases.choose(chosen)
        spark.sql(statement.format(t=name)).collect()
        context.listenerBus().waitUntilEmpty()

    lost: dict[str, list[str]] = {}
    with frazil.connect(warehouse) as catalog:
        frazil.spark.register(spark, catalog)
        for kind, statement in STATEMENTS.items():
            chosen = [int(phase)] if phase != "all" else []
            if not chosen:
                run(catalog, f"kills.{kind}", statement, -1)
                chosen = list(range(phases.count))
            lost[kind] = []
            for number in chosen:
                name = f"kills.{kind}_{number}"
                run(catalog, name, statement, number)
                if phases.killed:
                    lost[kind].append(name)
    spark.stop()
    print("RESULTS " + json.dumps(lost))


if __name__ == "__main__":
    main()

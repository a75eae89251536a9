"""Count distinct values of columns with executors, which make sketches of the files they read."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from frazil.rows.scan import DEFAULT_SPLIT_BYTES, Scan
from frazil.spark.read.group_reader import OPEN_COST_BYTES, task_bytes
from frazil.spark.session.executor_tasks import answers, groups, received, spread
from frazil.value_classes import dataclass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from frazil.data.read.read_files import Reading
    from frazil.format.metadata.statistics_files import ThetaSketch


@dataclass(frozen=True, slots=True)
class ExecutorCounter:
    """Counts the values of a scan with a Spark job."""

    spark: SparkSession

    def __call__(self, scan: Scan) -> Iterator[Mapping[str, ThetaSketch]]:
        """Sketches of the columns, of one group of files after the other."""
        tasks = scan.tasks()
        weights = [task_bytes(task) for task in tasks]
        work = [
            [tasks[at] for at in group]
            for group in groups(weights, DEFAULT_SPLIT_BYTES, cost=OPEN_COST_BYTES)
        ]
        if work:
            counting = _Counting(scan._reading())
            for answer in answers(spread(self.spark, work), counting.run):
                yield pickle.loads(answer)


@dataclass(frozen=True, slots=True)
class _Counting:
    """Reads groups of files; travels to executors."""

    reading: Reading

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row per group: its sketches."""
        from frazil.maintenance.table_statistics import sketches_of
        from frazil.scan.tasks import TaskReader

        reader = TaskReader(self.reading)
        for group in received(batches):
            rows = (batch for task in group for batch in reader.read(task))
            sketches = pickle.dumps(sketches_of(self.reading.schema, rows))
            yield pa.RecordBatch.from_arrays([pa.array([sketches], pa.binary())], names=["answer"])

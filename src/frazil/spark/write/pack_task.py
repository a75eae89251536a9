"""What a task of a rewrite does to pack files: it reads them and writes their rows, in their order.

Rows stay in Arrow from file to file, as on one machine, and never become rows of Spark. A worker
loads this module and what it needs, so it knows nothing of catalogs and sessions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from frazil.data.read.read_files import Reading
from frazil.scan.tasks import Task, TaskReader
from frazil.spark.read.group_reader import task_bytes
from frazil.spark.session.executor_tasks import received
from frazil.spark.write.write_task import WriteTask, sent
from frazil.value_classes import frozen


@frozen
class PackTask:
    """How files are read and their rows written; travels to executors."""

    reading: Reading
    target: WriteTask

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The entries of new files, packed, for each list of tasks that reached this executor."""
        for tasks in received(batches):
            rows = TaskReader(self.reading).read_ahead(tasks)
            yield from sent(self.target.write_conforming(rows))


def shares(tasks: Sequence[Task], count: int) -> list[list[Task]]:
    """Tasks in as many runs, of about the same number of bytes each; none is empty."""
    sizes = np.array([task_bytes(task) for task in tasks], dtype=np.float64)
    middles = np.cumsum(sizes) - sizes / 2
    numbers = (middles * count / max(sizes.sum(), 1)).astype(np.intp)
    starts = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
    return [list(tasks[start:end]) for start, end in pairwise([*starts, len(tasks)])]

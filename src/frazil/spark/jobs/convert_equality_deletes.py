"""Turn equality deletes into deletion vectors: executors find the rows, one commit swaps them.

The rows of the table stay the same, so it lands as a `replace`. A data file that was rewritten
meanwhile is a conflict, and the whole is begun again.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from frazil.commit.change import Change, VectorEdit
from frazil.commit.result import CommitResult
from frazil.data.read.read_files import Reading
from frazil.errors import CommitConflict
from frazil.format.entries.fields import ContentType
from frazil.format.vectors import bitmap
from frazil.rows.scan import DEFAULT_SPLIT_BYTES, Scan
from frazil.scan.tasks import Positions, Task, TaskReader, tasks_of
from frazil.spark.jobs.bars import progress_bars
from frazil.spark.read.group_reader import OPEN_COST_BYTES, task_bytes
from frazil.spark.session.executor_tasks import groups, received, spread
from frazil.spark.session.find_table import CatalogLike, session, table_of
from frazil.table.table import Table
from frazil.text_format import counted
from frazil.value_classes import dataclass, frozen, replace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ATTEMPTS = 3


@frozen
class Converted:
    """What a conversion did. `snapshot_id` is None when there were no equality deletes."""

    snapshot_id: int | None
    delete_files: int = 0
    data_files: int = 0
    rows: int = 0
    ms: float = 0.0

    def __str__(self) -> str:
        return (
            f"{counted(self.delete_files, 'equality delete file')} converted to deletion vectors "
            f"of {counted(self.data_files, 'data file')}, {counted(self.rows, 'row')}, "
            f"{self.ms / 1000:.1f} s"
        )


def convert_equality_deletes(
    table: Table | str,
    *,
    catalog: CatalogLike | None = None,
    summary: Mapping[str, str] | None = None,
    progress: bool | None = None,
) -> Converted:
    """Replace all equality deletes of the table with deletion vectors, in one snapshot."""
    spark = session()
    began = time.perf_counter()
    target = table_of(spark, table, catalog)
    target._handle.check_writable()
    with progress_bars(f"convert deletes of {target.name}", visible=progress) as report:
        report(0, 1, "searches")
        landed = _landed(spark, target, dict(summary or {}))
        report(1, 1, "searches")
    if landed is None:
        return Converted(snapshot_id=None)
    change, result = landed
    assert result.snapshot is not None
    return Converted(
        snapshot_id=int(result.snapshot.snapshot_id),
        delete_files=0 if change.replaced is None else change.replaced.num_rows,
        data_files=len(change.vectors),
        rows=sum(len(edit.positions) for edit in change.vectors),
        ms=(time.perf_counter() - began) * 1000,
    )


def _landed(
    spark: SparkSession, table: Table, summary: Mapping[str, str]
) -> tuple[Change, CommitResult] | None:
    for attempt in range(_ATTEMPTS):
        change = _change(spark, table, table.scan(), summary)
        if change is None:
            return None
        try:
            return change, table._handle.commit(change)
        except CommitConflict:
            if attempt + 1 == _ATTEMPTS:
                raise
            table.refresh()
    raise AssertionError("the loop returns or raises")


def _change(
    spark: SparkSession, table: Table, scan: Scan, summary: Mapping[str, str]
) -> Change | None:
    plan = scan.plan()
    if plan.deletes is None or scan.snapshot is None:
        return None
    equality = plan.deletes.filter(
        plan.deletes.numpy("content_type") == ContentType.EQUALITY_DELETES
    )
    if not equality.num_rows:
        return None
    tasks = [
        task
        for task in tasks_of(plan, location=table.location)
        if any(file.equality_ids for file in task.deletes)
    ]
    reader = TaskReader(scan._reading())
    vectors = tuple(
        VectorEdit(
            location=tasks[at].location,
            positions=positions,
            resolved=reader.resolved(tasks[at]),
            leaf=tasks[at].leaf,
            position=tasks[at].position,
            first_row_id=tasks[at].source.first_row_id,
        )
        for at, positions in _deleted_positions(spark, scan, tasks)
    )
    return Change(
        branch=table.branch_name,
        base_snapshot_id=int(scan.snapshot.snapshot_id),
        replaced=equality.select(["location"]),
        vectors=vectors,
        is_rewrite=True,
        summary=summary,
    )


def _deleted_positions(
    spark: SparkSession, scan: Scan, tasks: list[Task]
) -> Iterator[tuple[int, Positions]]:
    """Per task that loses rows: its place, and the positions."""
    if not tasks:
        return
    weights = [task_bytes(task) for task in tasks]
    work = [
        [(at, tasks[at]) for at in group]
        for group in groups(weights, DEFAULT_SPLIT_BYTES, cost=OPEN_COST_BYTES)
    ]
    search = _Search(scan._reading())
    for row in spread(spark, work).mapInArrow(search.run, "found binary").collect():
        at, data = pickle.loads(bytes(row["found"]))
        yield at, np.array(BitMap64.deserialize(data).to_array(), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _Search:
    """Finds the rows that equality deletes take; travels to executors."""

    reading: Reading

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One result per file that loses rows."""
        reader = TaskReader(self.reading)
        for group in received(batches):
            for at, task in group:
                others = tuple(file for file in task.deletes if not file.equality_ids)
                without = reader.positions(replace(task, deletes=others))
                gone = bitmap.difference(without, reader.positions(task))
                if gone.size:
                    encoded = BitMap64(gone.astype(np.uint64)).serialize()
                    data = pickle.dumps((at, encoded))
                    yield pa.RecordBatch.from_arrays([pa.array([data])], names=["found"])

"""Rows that match a filter, taken out: whole files where that can be told, positions elsewhere.

Finding the positions is a Spark job; each of its tasks hands back one compact bitmap of row keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from frazil.commit.change import VectorEdit
from frazil.format.batch import EntryBatch
from frazil.rows.planned import Longs, Planned
from frazil.rows.scan import Scan
from frazil.scan.plan import MUST_MATCH
from frazil.scan.tasks import Task, TaskReader
from frazil.spark.native import frame
from frazil.tree.read import LEAF, POSITION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KEY = "__frazil_key"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Removal:
    """What a commit takes out: files by location, and positions of others."""

    removed: EntryBatch | None
    vectors: tuple[VectorEdit, ...]
    rows: int | None
    """How many rows go, where that is known without reading delete files."""


def removal(spark: SparkSession, scan: Scan, *, exclusive: bool = False) -> Removal:
    """The rows of a scan's snapshot that match its filter."""
    planned = Planned.of(scan)
    sure = np.array(planned.plan.files.pylist(MUST_MATCH), dtype=np.bool_)
    gone = planned.tasks(np.flatnonzero(sure)) if len(sure) else []
    partial = np.flatnonzero(~sure) if len(sure) else np.zeros(0, dtype=np.intp)
    keys = np.zeros(0, dtype=np.int64)
    some = planned.part(partial)
    if some.num_files:
        keys = collected_keys(_keys_of(spark, some))
    found = removal_of(some, keys, exclusive=exclusive)
    whole = [*gone, *found[0]]
    counts = [task.live_records for task in gone]
    total = None if None in counts else sum(count or 0 for count in counts) + len(keys)
    return Removal(removed=entries_of(whole), vectors=found[1], rows=total)


def removal_of(
    planned: Planned, keys: Longs, *, exclusive: bool = False
) -> tuple[list[Task], tuple[VectorEdit, ...]]:
    """Row keys of a plan as files that lose every row, and vector edits of the others.

    Rows that are `exclusive` live on elsewhere: their files stay, so that conflicts are seen.
    """
    located = list(planned.located(keys)) if len(keys) else []
    tasks = planned.tasks(np.array([row for row, _ in located], dtype=np.intp)) if located else []
    reader = TaskReader(planned.scan.reading())
    whole: list[Task] = []
    edits: list[VectorEdit] = []
    for task, (_, positions) in zip(tasks, located, strict=True):
        if not exclusive and task.live_records == len(positions):
            whole.append(task)
            continue
        edits.append(
            VectorEdit(
                location=task.location,
                positions=positions,
                resolved=reader.resolved(task),
                leaf=task.leaf,
                position=task.position,
                exclusive=exclusive,
            )
        )
    return whole, tuple(edits)


def entries_of(tasks: list[Task]) -> EntryBatch | None:
    """Files as a commit removes them."""
    if not tasks:
        return None
    return EntryBatch.from_rows(
        [{"location": task.location, LEAF: task.leaf, POSITION: task.position} for task in tasks],
        {LEAF: pa.string(), POSITION: pa.int64()},
    )


def _keys_of(spark: SparkSession, planned: Planned) -> DataFrame:
    scan = replace(planned.scan, columns=(), max_rows=None)
    return frame(spark, scan, key=_KEY, planned=Planned(scan, planned.plan))


def collected_keys(keys: DataFrame) -> Longs:
    """The values of a frame's one long column, brought to the driver as bitmaps."""
    rows = keys.mapInArrow(_bitmaps, "keys binary").collect()
    merged = BitMap64()
    for row in rows:
        merged |= BitMap64.deserialize(bytes(row["keys"]))
    return np.array(merged.to_array(), dtype=np.int64) if len(merged) else np.zeros(0, np.int64)


def _bitmaps(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    found = BitMap64()
    for batch in batches:
        found |= BitMap64(np.asarray(batch.column(0)).astype(np.uint64))
    if found:
        yield pa.RecordBatch.from_arrays([pa.array([found.serialize()])], names=["keys"])

"""Rows that leave: whole files where that can be told, positions elsewhere.

Finding the positions is a Spark job; each of its tasks hands back one compact bitmap of row keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyiceberg.expressions import BooleanExpression
from pyroaring import BitMap64
from pyspark.sql import functions as F  # noqa: N812

from frazil.commit.change import VectorEdit
from frazil.format.batch import EntryBatch
from frazil.rows.planned import Longs, Planned
from frazil.scan.plan import MUST_MATCH
from frazil.scan.tasks import Task, TaskReader
from frazil.spark.conditions import condition, quoted
from frazil.spark.scan_plan import KEY
from frazil.spark.target import Binding, Condition, Target
from frazil.tree.read import LEAF, POSITION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from frazil.table.table import Table


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Removal:
    """What a commit takes out: files by location, and positions of others."""

    removed: EntryBatch | None
    vectors: tuple[VectorEdit, ...]
    conflict_filter: BooleanExpression
    base_snapshot_id: int | None


def removal(
    spark: SparkSession,
    table: Table,
    where: Condition | BooleanExpression,
    *,
    bound: Binding | None = None,
) -> Removal:
    """The rows of a table that match a condition of Spark."""
    target = Target.of(spark, table, bound=bound)
    matched = _matched(target, where)
    planned, pushed = target.planned(matched)
    gone: list[Task] = []
    if pushed.is_exact:
        exact = Planned.of(replace(planned.scan, matching=pushed.expression, columns=None))
        sure = np.array(exact.plan.files.pylist(MUST_MATCH), dtype=np.bool_)
        gone = exact.tasks(np.flatnonzero(sure)) if sure.any() else []
    whole = {task.location for task in gone}
    rest = [at for at, task in enumerate(planned.tasks()) if task.location not in whole]
    if whole and rest:
        part = planned.part(np.array(rest, dtype=np.intp))
        again = Target.of(spark, table, bound=bound, scan=part)
        matched = _matched(again, where)
    keys = collected_keys(matched) if rest else np.zeros(0, dtype=np.int64)
    found, vectors = removal_of(planned, keys)
    snapshot = planned.scan.snapshot
    return Removal(
        removed=entries_of([*gone, *found]),
        vectors=vectors,
        conflict_filter=pushed.expression,
        base_snapshot_id=None if snapshot is None else int(snapshot.snapshot_id),
    )


def _matched(target: Target, where: Condition | BooleanExpression) -> DataFrame:
    rows = target.rows
    if isinstance(where, BooleanExpression):
        where = condition(where, lambda reference: F.col(quoted(*reference.path)))
    return rows.filter(where).select(KEY)


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

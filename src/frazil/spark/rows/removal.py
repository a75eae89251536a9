"""Rows that leave: whole files where that can be told, positions elsewhere.

Finding the positions is a Spark job; each of its tasks hands back one compact bitmap of row keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import functions as F  # noqa: N812

from frazil.commit.change import VectorEdit
from frazil.format.entries.batch import EntryBatch
from frazil.iceberg.expressions import BooleanExpression
from frazil.rows.actions import KEY, entries_of, removal_of
from frazil.rows.planned import Planned
from frazil.rows.scan import Scan
from frazil.scan.plan import MUST_MATCH
from frazil.scan.tasks import Task
from frazil.spark.expressions.conditions import condition, quoted
from frazil.spark.rows.changed_rows import Binding, ChangedRows, Condition
from frazil.spark.write.sinks import collected_keys
from frazil.value_classes import frozen, replace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from frazil.table.table import Table


@frozen(eq=False)
class Removal:
    """What a commit takes out: files by location, and positions of others."""

    removed: EntryBatch | None
    vectors: tuple[VectorEdit, ...]
    filter: BooleanExpression
    base_snapshot_id: int | None


def removal(
    spark: SparkSession,
    table: Table,
    where: Condition | BooleanExpression,
    *,
    scan: Scan | None = None,
    bound: Binding | None = None,
    metadata_columns: Sequence[str] = (),
) -> Removal:
    """The rows of a table, or of a scan of it, that match a condition of Spark."""
    target = ChangedRows.of(spark, table, bound=bound, scan=scan, metadata_columns=metadata_columns)
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
        again = ChangedRows.of(
            spark, table, bound=bound, scan=part, metadata_columns=metadata_columns
        )
        matched = _matched(again, where)
    keys = collected_keys(matched) if rest else np.zeros(0, dtype=np.int64)
    files, vectors = removal_of(planned, keys)
    return Removal(
        removed=entries_of([*gone, *files]),
        vectors=vectors,
        filter=pushed.expression,
        base_snapshot_id=planned.base_snapshot_id,
    )


def _matched(target: ChangedRows, where: Condition | BooleanExpression) -> DataFrame:
    rows = target.rows
    if isinstance(where, BooleanExpression):
        where = condition(where, lambda reference: F.col(quoted(*reference.path)))
    return rows.filter(where).select(KEY)

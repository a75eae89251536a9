"""Rows that leave: whole files where that can be told, positions elsewhere.

Finding the positions is a Spark job; each of its tasks hands back one compact bitmap of row keys.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from pyiceberg.expressions import BooleanExpression
from pyspark.sql import functions as F  # noqa: N812

from frazil.commit.change import VectorEdit
from frazil.format.batch import EntryBatch
from frazil.rows.actions import KEY, entries_of, removal_of
from frazil.rows.planned import Planned
from frazil.scan.plan import MUST_MATCH
from frazil.scan.tasks import Task
from frazil.spark.conditions import condition, quoted
from frazil.spark.row_level import base_of
from frazil.spark.sinks import collected_keys
from frazil.spark.target import Binding, Condition, Target

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
    return Removal(
        removed=entries_of([*gone, *found]),
        vectors=vectors,
        conflict_filter=pushed.expression,
        base_snapshot_id=base_of(planned),
    )


def _matched(target: Target, where: Condition | BooleanExpression) -> DataFrame:
    rows = target.rows
    if isinstance(where, BooleanExpression):
        where = condition(where, lambda reference: F.col(quoted(*reference.path)))
    return rows.filter(where).select(KEY)

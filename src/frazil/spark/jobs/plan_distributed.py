"""Plan a scan with executors reading the leaves: for trees with very many of them.

The driver reads the root and prunes it; the leaves that are left are read and pruned by the same
code on executors, which hand back only the files that may match.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.expressions import BooleanExpression

from frazil.scan.plan import LeafPlan, LeafPlanner, Plan, plan
from frazil.spark.session.executor_tasks import groups, received, spread
from frazil.spark.session.find_table import CatalogLike, session, table_of
from frazil.spark.write.write_task import packed, unpacked
from frazil.table.refs import AsOf
from frazil.table.table import Table
from frazil.tree.read import LeafRef
from frazil.value_classes import dataclass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LEAVES_PER_TASK = 16


def plan_distributed(
    table: Table | str,
    where: str | BooleanExpression | None = None,
    *,
    as_of: AsOf | None = None,
    leaves_per_task: int = _LEAVES_PER_TASK,
    catalog: CatalogLike | None = None,
) -> Plan:
    """Plan a scan on executors; returns the same plan as `table.scan(where).plan()`."""
    spark = session()
    scan = table_of(spark, table, catalog).scan(where, as_of=as_of)
    return plan(
        scan._handle.reader(),
        scan.snapshot,
        schema=scan.table_schema,
        where=scan.filter,
        each_leaf=_OnExecutors(spark, leaves_per_task),
    )


@dataclass(frozen=True, slots=True)
class _OnExecutors:
    spark: SparkSession
    leaves_per_task: int

    def __call__(self, planner: LeafPlanner, leaves: Sequence[LeafRef]) -> Iterator[LeafPlan]:
        """Plans of the leaves, in their order."""
        if not leaves:
            return
        work = [
            [(at, leaves[at]) for at in group]
            for group in groups([1] * len(leaves), self.leaves_per_task)
        ]
        rows = (
            spread(self.spark, work)
            .mapInArrow(_Planning(planner).run, "at int, found binary")
            .collect()
        )
        for row in sorted(rows, key=lambda row: int(row["at"])):
            files, report = pickle.loads(bytes(row["found"]))
            yield unpacked(files), report


@dataclass(frozen=True, slots=True)
class _Planning:
    """Plans leaves; travels to executors."""

    planner: LeafPlanner

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row per leaf."""
        for group in received(batches):
            for at, leaf in group:
                files, report = self.planner.plan(leaf)
                packed_plan = pickle.dumps((packed(files), report))
                yield pa.RecordBatch.from_arrays(
                    [pa.array([at], pa.int32()), pa.array([packed_plan], pa.binary())],
                    names=["at", "found"],
                )

"""Leaves read and pruned by executors, which hand back only the files that may match.

The driver reads the root and prunes it; the same code as on the driver looks into the leaves that
are left.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from frazil.properties.registry import DATA_PLANNING_MODE
from frazil.scan.plan import EachLeaf, LeafPlan, LeafPlanner
from frazil.spark.session.executor_tasks import groups, plain_errors, received, spread
from frazil.spark.session.packed_entries import packed, unpacked
from frazil.tree.read import LeafRef
from frazil.value_classes import dataclass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from frazil.rows.scan import Scan

_BYTES_PER_CORE: Final = 128 << 20
"""Bytes of leaves that come to each core of a driver which reads them itself, as in Iceberg."""


def each_leaf(spark: SparkSession, scan: Scan) -> EachLeaf | None:
    """Where the leaves of a scan are read, as its table says; None for the driver."""
    mode = DATA_PLANNING_MODE.of(scan._handle.metadata.properties)
    if mode == "local":
        return None
    if mode == "distributed":
        return OnExecutors(spark)
    cores = os.cpu_count() or 1
    return OnExecutors(spark, min_bytes=_BYTES_PER_CORE * cores, min_cores=cores + 1)


@dataclass(frozen=True, slots=True)
class OnExecutors:
    """Plans leaves on executors; here, where the leaves are smaller or the executors fewer."""

    spark: SparkSession
    leaves_per_task: int | None = None
    min_bytes: int = 0
    min_cores: int = 0

    def __call__(self, planner: LeafPlanner, leaves: Sequence[LeafRef]) -> Iterable[LeafPlan]:
        """Plans of the leaves, in their order."""
        if not leaves:
            return []
        if sum(leaf.file_size_in_bytes for leaf in leaves) < self.min_bytes:
            return planner.reader.map(leaves, planner.plan)
        size = self.leaves_per_task
        if size is None:
            cores = int(self.spark.sparkContext.defaultParallelism)
            if cores < self.min_cores:
                return planner.reader.map(leaves, planner.plan)
            size = -(-len(leaves) // cores)
        return self._planned(planner, leaves, size)

    def _planned(
        self, planner: LeafPlanner, leaves: Sequence[LeafRef], size: int
    ) -> Iterator[LeafPlan]:
        work = [[(at, leaves[at]) for at in group] for group in groups([1] * len(leaves), size)]
        with plain_errors():
            rows = (
                spread(self.spark, work)
                .mapInArrow(_Planning(planner).run, "at int, plan binary")
                .collect()
            )
        for row in sorted(rows, key=lambda row: int(row["at"])):
            files, report = pickle.loads(bytes(row["plan"]))
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
                answer = pickle.dumps((packed(files), report))
                yield pa.RecordBatch.from_arrays(
                    [pa.array([at], pa.int32()), pa.array([answer], pa.binary())],
                    names=["at", "plan"],
                )

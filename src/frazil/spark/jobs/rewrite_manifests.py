"""Rewrites leaves, clustered by partition and bounds: many on executors, few on the driver."""

from __future__ import annotations

import time

from frazil.errors import InvalidInput
from frazil.maintenance.rewrite_manifests import rewrite_manifests as rewrite
from frazil.spark.jobs.bars import progress_bars
from frazil.spark.jobs.rewrite_leaves import OnExecutors
from frazil.spark.session.find_table import CatalogLike, session, table_of
from frazil.table.table import Table
from frazil.text_format import counted
from frazil.value_classes import dataclass

_LEAVES_PER_TASK = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenManifests:
    """What a rewrite of leaves did. `snapshot_id` is None when there was nothing to gain."""

    snapshot_id: int | None
    leaves_before: int
    leaves_after: int
    ms: float

    def __str__(self) -> str:
        if self.snapshot_id is None:
            return "no leaf is worth rewriting"
        after = counted(self.leaves_after, "leaf", "leaves")
        if not self.leaves_before:
            return f"moved the root's entries to {after}, {self.ms / 1000:.1f} s"
        before = counted(self.leaves_before, "leaf", "leaves")
        return f"rewrote {before} as {after}, {self.ms / 1000:.1f} s"


def rewrite_manifests(
    table: Table | str,
    *,
    leaves_per_task: int = _LEAVES_PER_TASK,
    catalog: CatalogLike | None = None,
    progress: bool | None = None,
) -> RewrittenManifests:
    """Rewrite every leaf, together with the root's entries, so that each covers a narrow range.

    A tree of more leaves than one task takes is rewritten by executors.
    """
    if leaves_per_task < 1:
        raise InvalidInput(f"leaves_per_task is {leaves_per_task}; expected at least 1")
    spark = session()
    began = time.perf_counter()
    target = table_of(spark, table, catalog)
    before = _leaves(target)
    with progress_bars(f"rewrite manifests of {target.name}", visible=progress) as report:
        rewritten = rewrite(
            target._handle,
            branch=target.branch_name,
            elsewhere=OnExecutors(spark, leaves_per_task) if before > leaves_per_task else None,
            progress=report,
        )
    return RewrittenManifests(
        snapshot_id=rewritten.snapshot_id,
        leaves_before=before,
        leaves_after=_leaves(target),
        ms=(time.perf_counter() - began) * 1000,
    )


def _leaves(table: Table) -> int:
    return len(table._handle.reader().tree(table.current_snapshot(), keys=()).leaves())

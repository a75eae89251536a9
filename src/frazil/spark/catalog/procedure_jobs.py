"""Procedures that Spark's executors carry out: CALL rewrite_data_files, rewrite_manifests,
remove_orphan_files, compute_table_stats, and the deletes of expire_snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from frazil.spark.jobs.remove_orphan_files import ExecutorDeleter, remove_orphan_files
from frazil.spark.jobs.rewrite_data_files import rewrite_data_files
from frazil.spark.jobs.rewrite_leaves import rewrite_manifests
from frazil.spark.jobs.value_counts import ExecutorCounter
from frazil.spark.session.find_table import session
from frazil.sql.run.procedures import (
    Rewriting,
    expired,
    on_branch,
    parsed_options,
    rewritten,
    rewritten_manifests,
)

if TYPE_CHECKING:
    from frazil.sql.run.procedures import Run, Values
    from frazil.table.table import Table

_OPTIONS: Final[Mapping[str, tuple[str, type]]] = {
    "target-file-size-bytes": ("target_file_bytes", int),
    "min-file-size-bytes": ("min_file_bytes", int),
    "max-file-size-bytes": ("max_file_bytes", int),
    "min-input-files": ("min_input_files", int),
    "delete-ratio-threshold": ("delete_ratio", float),
    "max-file-group-size-bytes": ("max_group_bytes", int),
    "rewrite-all": ("rewrite_all", bool),
    "partial-progress.enabled": ("partial_progress", bool),
    "partial-progress.max-commits": ("max_commits", int),
    "max-concurrent-file-group-rewrites": ("concurrent_groups", int),
}


def _rewrite(table: Table, values: Values, _: Any) -> pa.Table:
    asked = Rewriting.of(values)
    result = rewrite_data_files(
        on_branch(table, values),
        asked.where,
        strategy=asked.strategy,
        by=asked.by or None,
        progress=False,
        **parsed_options(values.get("options", {}), _OPTIONS),
    )
    return rewritten(
        removed=result.files_before,
        added=result.files_after,
        size=result.bytes_before,
        failed=sum(len(group.locations) for group in result.failed),
    )


def _orphans(table: Table, values: Values, _: Any) -> pa.Table:
    removed = remove_orphan_files(
        table,
        older_than=values.get("older_than"),
        location=values.get("location"),
        dry_run=values.get("dry_run", False),
        progress=False,
    )
    paths = [file.path for file in removed.files]
    return pa.table({"orphan_file_location": pa.array(paths, pa.string())})


def _expire(table: Table, values: Values, _: Any) -> pa.Table:
    return expired(table, values, deleter=ExecutorDeleter(session()))


def _compute_stats(table: Table, values: Values, _: Any) -> pa.Table:
    counter = ExecutorCounter(session())
    statistics = table._compute_statistics(
        values.get("columns"), values.get("snapshot_id"), counter
    )
    return pa.table({"statistics_file": pa.array([statistics.statistics_file])})


def _manifests(table: Table, _: Values, __: Any) -> pa.Table:
    result = rewrite_manifests(table, progress=False)
    return rewritten_manifests(
        result.snapshot_id is not None,
        before=result.leaves_before,
        after=result.leaves_after,
    )


RUNS: Final[Mapping[str, Run]] = {
    "rewrite_data_files": _rewrite,
    "rewrite_manifests": _manifests,
    "remove_orphan_files": _orphans,
    "expire_snapshots": _expire,
    "compute_table_stats": _compute_stats,
}

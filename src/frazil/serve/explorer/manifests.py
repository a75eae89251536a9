"""How many manifests a reader of Iceberg v2 or v3 would open for the same filter.

Such a table would have a manifest for every leaf, and one for every commit whose files are still
in the root. Its manifest list knows the ranges of partition fields alone, so a filter on any other
column opens everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.transforms import IdentityTransform

from frazil.filter.prune.prune import Filter
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import stats_key
from frazil.format.metadata.metadata import TableMetadata
from frazil.format.partition_fields import source_ids

ASSUMPTION = (
    "Counted as one manifest for each leaf and one for each commit whose files are still in the "
    "root, pruned by the ranges of partition fields, which is all that a manifest list of v2 or v3 "
    "knows. No merging of manifests is assumed beyond what this table did."
)
_COUNTS = ("value_count", "null_value_count", "nan_value_count")
_BOUNDS = ("lower_bound", "upper_bound")


def opened(
    judge: Filter, metadata: TableMetadata, root: EntryBatch, leaves: Any, inline: Any
) -> tuple[int, int]:
    """Manifests that would be opened, and all of them."""
    count = 0
    total = 0
    for batch in _manifests(metadata, root, np.asarray(leaves), np.asarray(inline)):
        count += int(judge.might_match(batch).sum())
        total += batch.num_rows
    return count, total


def _manifests(
    metadata: TableMetadata, root: EntryBatch, leaves: Any, inline: Any
) -> Iterator[EntryBatch]:
    """What would be manifests, by spec, with what a list would know of them; a leaf of several
    specs has none."""
    specs = metadata.specs_by_id()
    only = next(iter(specs.values())) if len(specs) == 1 else None
    stated = root.numpy("spec_id")
    for rows, grouped in ((leaves, False), (inline, True)):
        for spec_id in np.unique(stated[rows]) if len(rows) else ():
            chosen = rows[stated[rows] == spec_id]
            spec = specs.get(int(spec_id)) or only
            batch = _of_partitions(root, spec, metadata).take(chosen)
            yield _by_commit(batch) if grouped else batch


def _by_commit(batch: EntryBatch) -> EntryBatch:
    """Files of one commit as the manifest that would hold them."""
    key = "tracking.snapshot_id"
    columns: dict[str, pa.Array] = {key: batch.column(key)}
    how: list[tuple[str, str]] = []
    unknown: list[tuple[str, str]] = []
    for name in batch.keys:
        if not name.startswith("content_stats."):
            continue
        kind = name.rpartition(".")[2]
        if kind in _BOUNDS or kind in _COUNTS:
            columns[name] = batch.column(name)
            how.append((name, "sum" if kind in _COUNTS else "min" if "lower" in kind else "max"))
            unknown.append((name, "count"))
    grouped = (
        pa.table(columns)
        .group_by(key, use_threads=False)
        .aggregate([*how, *unknown, ([], "count_all")])
    )
    size = grouped.column("count_all").to_numpy()
    by_name: dict[str, Any] = {}
    for name, column in how:
        values = grouped.column(f"{name}_{column}")
        whole = grouped.column(f"{name}_count").to_numpy() == size
        by_name[name] = pa.array(
            [value if known else None for value, known in zip(values, whole, strict=True)],
            values.type,
        )
    return EntryBatch(pa.table({key: grouped.column(key), **by_name}))


def _of_partitions(
    batch: EntryBatch, spec: PartitionSpec | None, metadata: TableMetadata
) -> EntryBatch:
    """The batch with the statistics of partition fields alone."""
    kept: set[str] = set()
    for field in () if spec is None else spec.fields:
        ids: list[int] = [
            expression.expr_id
            for expression in metadata.expressions
            if expression.partition_field_id == field.field_id
        ]
        if isinstance(field.transform, IdentityTransform):
            ids = [*ids, field.source_id]
        kept |= {stats_key(id, name) for id in ids for name in (*_BOUNDS, *_COUNTS)}
    return batch.select([key for key in batch.keys if key in kept or key == "tracking.snapshot_id"])


def prunes_by_partition(metadata: TableMetadata, column_ids: list[int]) -> bool:
    """Whether a filter on these columns says anything about partitions."""
    fields = (field for spec in metadata.partition_specs for field in spec.fields)
    return any(set(source_ids(field)) <= set(column_ids) for field in fields)

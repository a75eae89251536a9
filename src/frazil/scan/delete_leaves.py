"""Which delete manifests of a root a plan has to open.

One is left closed when every data file that is left is younger than its deletes, when it belongs to
a data manifest that was pruned, or when it is a manifest of one partition spec whose partitions the
filter rules out: a delete of a partition applies to no other. Bounds of other columns tell nothing,
as only the delete files themselves say which columns they compare.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from frazil.filter.prune.prune import Filter
from frazil.format.entries import tracking
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType, stats_key
from frazil.tree.partition_tuples import PartitionColumns
from frazil.tree.read import LeafRef, leaf_refs

MIN_SEQUENCE = "manifest_info.min_sequence_number"
_MEMBERS = ("lower_bound", "upper_bound", "value_count", "null_value_count", "nan_value_count")


def leaves_to_open(
    root: EntryBatch,
    *,
    data_rows: np.ndarray[Any, np.dtype[np.int64]],
    opened: Collection[str],
    filter: Filter,
    partitions: PartitionColumns,
) -> list[LeafRef]:
    """Delete manifests that may apply to what the root's `data_rows` (files and leaves) hold."""
    if not data_rows.size:
        return []
    kind = root.numpy("content_type")
    listed = np.flatnonzero(tracking.live_mask(root) & (kind == ContentType.DELETE_MANIFEST))
    if not listed.size:
        return []
    oldest = _oldest(root, data_rows)
    leaves = [
        leaf
        for leaf in leaf_refs(root, listed)
        if (leaf.referenced_file is None or leaf.referenced_file in opened)
        and leaf.sequence_number >= oldest
    ]
    return _in_partitions(root, leaves, filter, partitions)


def _oldest(root: EntryBatch, rows: np.ndarray[Any, np.dtype[np.int64]]) -> int:
    """The smallest data sequence number that a file of these entries can have."""
    picked = root.select({"content_type", MIN_SEQUENCE, "tracking.sequence_number"}).take(rows)
    in_leaf = picked.numpy("content_type") == ContentType.DATA_MANIFEST
    least = picked.numpy(MIN_SEQUENCE, missing=0)
    own = picked.numpy("tracking.sequence_number", missing=0)
    return int(np.where(in_leaf, least, own).min())


def _in_partitions(
    root: EntryBatch, leaves: Sequence[LeafRef], filter: Filter, partitions: PartitionColumns
) -> list[LeafRef]:
    """Those whose partitions the filter does not rule out."""
    kept: set[int] = set()
    by_spec: dict[int | None, list[LeafRef]] = {}
    for leaf in leaves:
        # Leaves of v4 may hold files of several specs.
        spec_id = leaf.spec_id if leaf.format_version == 0 else None
        by_spec.setdefault(spec_id, []).append(leaf)
    for spec_id, group in by_spec.items():
        fields = [part.stats_id for part in partitions.of_spec(spec_id)]
        keys = {stats_key(id, name) for id in fields if id is not None for name in _MEMBERS}
        rows = np.array([leaf.row for leaf in group], dtype=np.int64)
        if keys:
            entries = root.select({"content_type", *keys & set(root.keys)}).take(rows)
            rows = rows[filter.might_match(entries)]
        kept.update(rows.tolist())
    return [leaf for leaf in leaves if leaf.row in kept]


__all__ = ["MIN_SEQUENCE", "leaves_to_open"]

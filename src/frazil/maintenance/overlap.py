"""How much leaves of a tree cover the same ground: what a filter cannot prune."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType, stats_key
from frazil.format.metadata.metadata import TableMetadata
from frazil.tree.clusters import cluster_columns
from frazil.tree.read import Tree
from frazil.value_classes import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Of a data leaf with others: on average and at most, judged by one column."""

    column: str | None = None
    average: float = 0.0
    most: int = 0


def overlap_of(tree: Tree, metadata: TableMetadata) -> Overlap:
    """Overlap in the column that leaves are clustered by first and have bounds for.

    Leaves that meet in one value at their ends do not overlap.
    """
    kind = tree.root.numpy("content_type")
    refs = [ref.row for ref in tree.leaves() if kind[ref.row] == ContentType.DATA_MANIFEST]
    leaves = tree.root.take(np.array(refs, dtype=np.int64))
    if leaves.num_rows < 2:
        return Overlap()
    for field_id, name in cluster_columns(metadata):
        ends = _ranks(leaves, field_id)
        if ends is not None:
            counts = shared_ranges(*ends)
            return Overlap(column=name, average=float(counts.mean()), most=int(counts.max()))
    return Overlap()


def _ranks(leaves: EntryBatch, field_id: int) -> tuple[Any, Any] | None:
    """Bounds as places in one order; None when a leaf has none."""
    lower = leaves.column(stats_key(field_id, "lower_bound"))
    upper = leaves.column(stats_key(field_id, "upper_bound"))
    if lower.null_count or upper.null_count or pa.types.is_null(lower.type):
        return None
    if pa.types.is_nested(lower.type):
        return None
    both = pa.concat_arrays([*lower.chunks, *upper.cast(lower.type).chunks])
    ranks = np.asarray(pc.rank(both, tiebreaker="dense"))
    return ranks[: leaves.num_rows], ranks[leaves.num_rows :]


def shared_ranges(lower: Any, upper: Any) -> Any:
    """With how many others each range shares more than an end."""
    starts, ends = np.sort(lower), np.sort(upper)
    begun = np.searchsorted(starts, upper, side="left")
    ended = np.searchsorted(ends, lower, side="right")
    single = lower == upper
    points = np.sort(lower[single])
    at_once = np.searchsorted(points, lower, side="right") - np.searchsorted(points, lower)
    # A range counts itself among those begun; a single value counts its like among those ended.
    return begun - ended + np.where(single, at_once, -1)

"""What leaves are clustered by, in whose bounds entries lie, and how much leaves cover the same
ground: what a filter cannot prune.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType, stats_key
from frazil.format.entries.stats import tracked_fields
from frazil.format.metadata.metadata import TableMetadata
from frazil.tree.read import Tree
from frazil.value_classes import frozen

_COLUMNS = 3
"""Columns whose bounds are compared: later ones hardly distinguish leaves."""

Counts = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


def cluster_columns(metadata: TableMetadata) -> list[tuple[int, str]]:
    """Columns by which entries are ordered in leaves, first ones first."""
    derived = {column.partition_field_id: column for column in metadata.expressions}
    columns: list[tuple[int, str]] = []
    for part in metadata.spec().fields:
        column = derived.get(part.field_id)
        columns.append(
            (part.source_id, part.name) if column is None else (column.expr_id, part.name)
        )
    schema = metadata.schema()
    names = {field.id: field.full_name for field in tracked_fields(schema)}
    order = metadata.row_order()
    sources = [field.source_id for field in order.fields] if order is not None else []
    sources = sources or list(names)[:2]
    return columns + [(id, names[id]) for id in sources if id in names]


def entries_within(entries: EntryBatch, leaves: EntryBatch, metadata: TableMetadata) -> Counts:
    """Per leaf: how many of the entries lie within its bounds, in every column that it has bounds
    for. None do when it has no bounds."""
    inside = np.ones((leaves.num_rows, entries.num_rows), dtype=np.bool_)
    compared = np.zeros(leaves.num_rows, dtype=np.bool_)
    for lower, upper in _bounds(entries, leaves, metadata):
        low, high = entries.column(lower), entries.column(upper)
        for index in range(leaves.num_rows):
            lowest, highest = leaves.column(lower)[index], leaves.column(upper)[index]
            if lowest.is_valid and highest.is_valid:
                inside[index] &= _between(low, high, lowest, highest)
                compared[index] = True
    return np.where(compared, inside.sum(axis=1), 0).astype(np.int64)


def outside_bounds(entries: EntryBatch, others: EntryBatch, metadata: TableMetadata) -> Mask:
    """Which entries would widen the bounds that the others have together."""
    if not others.num_rows:
        return np.ones(entries.num_rows, dtype=np.bool_)
    outside = np.zeros(entries.num_rows, dtype=np.bool_)
    for lower, upper in _bounds(entries, others, metadata):
        lowest, highest = pc.min(others.column(lower)), pc.max(others.column(upper))
        if lowest.is_valid and highest.is_valid:
            outside |= ~_between(entries.column(lower), entries.column(upper), lowest, highest)
    return outside


def _bounds(
    entries: EntryBatch, others: EntryBatch, metadata: TableMetadata
) -> Iterator[tuple[str, str]]:
    """Keys of the bounds that both have."""
    for field_id, _ in cluster_columns(metadata)[:_COLUMNS]:
        keys = stats_key(field_id, "lower_bound"), stats_key(field_id, "upper_bound")
        types = {batch.column(key).type for batch in (entries, others) for key in keys}
        if len(types) == 1 and not any(
            pa.types.is_nested(kind) or pa.types.is_null(kind) for kind in types
        ):
            yield keys


def _between(low: Any, high: Any, lowest: pa.Scalar, highest: pa.Scalar) -> Mask:
    """Where bounds lie between two others; those that are not known do."""
    fits = pc.and_(pc.greater_equal(low, lowest), pc.less_equal(high, highest))
    return arrow_values.to_numpy(pc.fill_null(fits, True))


@frozen
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
    ranks = arrow_values.to_numpy(pc.rank(both, tiebreaker="dense"))
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


__all__ = [
    "Overlap",
    "cluster_columns",
    "entries_within",
    "outside_bounds",
    "overlap_of",
    "shared_ranges",
]

"""What leaves are clustered by, and in whose bounds entries lie."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import stats_key
from frazil.format.entries.stats import tracked_fields
from frazil.format.metadata.metadata import TableMetadata

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
    return np.asarray(pc.fill_null(fits, True))


__all__ = ["cluster_columns", "entries_within", "outside_bounds"]

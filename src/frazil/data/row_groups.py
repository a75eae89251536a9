"""Row groups that cannot hold a matching row, by the statistics in the Parquet footer.

The statistics become an `EntryBatch`, one entry per row group, and go through the same pruning as
the entries of a manifest: one function decides at every level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.schema import Schema

from frazil.data.footer import footer_stats
from frazil.data.sources import Block
from frazil.expr.prune import PruneContext, might_match
from frazil.expr.row_filter import columns_of
from frazil.format.batch import EntryBatch
from frazil.format.metrics import FULL, MetricsConfig
from frazil.format.stats import stats_types, tracked_fields

if TYPE_CHECKING:
    from pyiceberg.table.name_mapping import NameMapping


def surviving(
    blocks: list[Block],
    footer: pq.FileMetaData,
    row_filter: BooleanExpression,
    schema: Schema,
    mapping: NameMapping | None,
) -> list[Block]:
    """The row groups that may hold a matching row.

    A file of one row group is kept: the file's own statistics say the same, and were asked before.
    """
    if isinstance(row_filter, AlwaysTrue) or footer.num_row_groups < 2 or not blocks:
        return blocks
    needed = columns_of(row_filter)
    fields = [field for field in schema.fields if needed & _ids(field)]
    compared = Schema(*fields)
    config = MetricsConfig(default=FULL)
    entries = []
    for block in blocks:
        group: Any = _OneRowGroup(footer, block.index)
        stats = footer_stats(group, compared, config, name_mapping=mapping)
        entries.append({"content_type": 0, "record_count": block.rows, **stats})
    batch = EntryBatch.from_rows(entries, stats_types(tracked_fields(compared)))
    mask = might_match(row_filter, batch, PruneContext(schema=schema))
    return [block for block, keep in zip(blocks, mask, strict=True) if keep]


def _ids(field: Any) -> set[int]:
    below = getattr(field.field_type, "fields", ())
    return {field.field_id}.union(*(_ids(child) for child in below))


class _OneRowGroup:
    """A footer as if the file had only one of its row groups."""

    def __init__(self, footer: pq.FileMetaData, index: int) -> None:
        self._group = footer.row_group(index)
        self.schema = footer.schema
        self.num_columns = footer.num_columns
        self.num_rows = self._group.num_rows
        self.num_row_groups = 1

    def row_group(self, _: int) -> pq.RowGroupMetaData:
        """The one row group."""
        return self._group

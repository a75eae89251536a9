"""Rows in the order of a sort order.

Iceberg's order where it differs from Arrow's: nulls go where each field says, and NaN is greater
than every number, so a descending field starts with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema

from frazil.data.metadata_columns import column_at, path_of
from frazil.expr.transforms import transform_array

if TYPE_CHECKING:
    from pyiceberg.table.sorting import SortOrder


def sort_rows(batch: pa.RecordBatch, order: SortOrder, schema: Schema) -> pa.RecordBatch:
    """The rows of a batch in a sort order; rows that compare equal keep their places."""
    from pyiceberg.table.sorting import NullOrder, SortDirection

    columns: list[pa.Array] = []
    keys: list[tuple[str, str]] = []

    def add(values: pa.Array, direction: str) -> None:
        columns.append(values)
        keys.append((str(len(keys)), direction))

    for field in order.fields:
        kind = schema.find_field(field.source_id).field_type
        source = column_at(batch, path_of(schema, field.source_id))
        values = transform_array(field.transform, source, kind)
        direction = "ascending" if field.direction == SortDirection.ASC else "descending"
        if values.null_count:  # True comes after False
            first = field.null_order == NullOrder.NULLS_FIRST
            add(pc.is_null(values), "descending" if first else "ascending")
        if pa.types.is_floating(values.type):
            add(pc.is_nan(values), direction)
        add(values, direction)
    if not keys or batch.num_rows < 2:
        return batch
    table = pa.table(columns, names=[name for name, _ in keys])
    return batch.take(pc.sort_indices(table, options=pc.SortOptions(sort_keys=keys)))

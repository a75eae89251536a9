"""Another definition and other rows for a table that exists; its history stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from frazil.commit.updates import SetSchema, SetSortOrder, SetSpec
from frazil.iceberg.partitioning import UNPARTITIONED, PartitionSpec, fresh_spec
from frazil.iceberg.schema import Schema, freshly_numbered
from frazil.iceberg.sorting import UNSORTED, SortOrder, fresh_order
from frazil.table.table import Table
from frazil.table.transaction import Transaction


def replacing(
    table: Table,
    schema: Schema,
    *,
    spec: PartitionSpec = UNPARTITIONED,
    order: SortOrder = UNSORTED,
    properties: Mapping[str, str] | None = None,
    expressions: Sequence[str] = (),
) -> Transaction:
    """A transaction that replaces the definition and deletes every row; add rows and commit it."""
    metadata = table.metadata
    last = metadata.last_column_id
    fresh = freshly_numbered(schema, first=last + 1)
    tx = table.transaction()
    if table.current_snapshot() is not None:
        tx.delete("true")
    _define(tx, UNPARTITIONED, UNSORTED)  # the old ones name columns that go
    if metadata.has_sql_expressions:
        tx.set_expressions([])
    tx._apply_update(
        SetSchema(
            schema=fresh,
            based_on_schema_id=metadata.current_schema_id,
            based_on_last_column_id=last,
        )
    )
    _define(
        tx,
        fresh_spec(spec, schema, fresh),
        fresh_order(order, schema, fresh),
    )
    if expressions:
        tx.set_expressions(expressions)
    if properties:
        tx.set_properties(properties)
    return tx


def _define(tx: Transaction, spec: PartitionSpec, order: SortOrder) -> None:
    now = tx.metadata
    if spec.fields != now.spec().fields:
        tx._apply_update(SetSpec(spec=spec, based_on_spec_id=now.default_spec_id))
    if order.fields != now.sort_order().fields:
        tx._apply_update(SetSortOrder(order=order, based_on_order_id=now.default_sort_order_id))

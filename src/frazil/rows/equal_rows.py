"""Rows of a snapshot that equal given ones in some columns: what an equality delete would remove,
found now and told by position."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.commit.change import VectorEdit
from frazil.commit.handle import TableHandle
from frazil.data.metadata_columns import column_at, path_of
from frazil.data.read.delete_files import equality_schema
from frazil.data.read.equality import EqualityDeletes
from frazil.data.schema import arrow_schema
from frazil.data.write.row_input import Rows, conformed
from frazil.errors import InvalidInput
from frazil.filter.bind.bind import conjunction, keys_predicate
from frazil.filter.bind.filter_columns import ColumnIndex
from frazil.format.metadata.metadata import Snapshot
from frazil.iceberg.expressions import AlwaysTrue, BooleanExpression
from frazil.iceberg.literals import literal
from frazil.iceberg.schema import Schema
from frazil.rows.engine import MAX_KEYS_IN_FILTER
from frazil.rows.scan import Scan
from frazil.scan.tasks import TaskReader
from frazil.value_classes import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EqualRows:
    """Rows to delete, one edit per entry that has some, and a filter that every such row passes."""

    edits: tuple[VectorEdit, ...]
    filter: BooleanExpression


def equal_rows(
    handle: TableHandle, snapshot: Snapshot | None, rows: Rows, on: Sequence[str]
) -> EqualRows:
    """The live rows that equal one of `rows` in the `on` columns; null equals null."""
    schema = handle.metadata.schema()
    ids = key_ids(schema, on)
    columns = equality_schema(schema, ids)
    keys = _one_batch(pa.Table.from_batches(list(conformed(rows, columns)), arrow_schema(columns)))
    values = pa.table(
        [column_at(keys, path_of(columns, id)) for id in ids], names=[str(id) for id in ids]
    )
    deletes = EqualityDeletes(ids, values)
    scan = Scan(
        _handle=handle,
        snapshot=snapshot,
        matching=_passed_by(values, ids, schema),
        columns=(*(column.name for column in columns.fields), "_pos"),
    )
    paths = [path_of(scan.read_schema, id) for id in ids]
    reader = TaskReader(replace(scan._reading(), row_filter=AlwaysTrue()))
    edits: list[VectorEdit] = []
    for task in scan.tasks() if keys.num_rows else ():
        parts = []
        for batch in reader.read(task):
            matched = deletes.matches([column_at(batch, path) for path in paths])
            parts.append(np.asarray(batch.column("_pos"))[matched])
        positions = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
        if positions.size:
            edits.append(
                VectorEdit(
                    location=task.location,
                    positions=positions,
                    leaf=task.leaf,
                    position=task.position,
                    first_row_id=task.source.first_row_id,
                )
            )
    return EqualRows(edits=tuple(edits), filter=scan.filter)


def key_ids(schema: Schema, on: Sequence[str]) -> tuple[int, ...]:
    """Field ids of the columns that rows are compared by."""
    names = {schema.find_column_name(id) for id in schema.field_ids}
    unknown = [name for name in on if name not in names]
    if unknown:
        raise InvalidInput(
            f"unknown column {', '.join(unknown)}; the table has "
            + ", ".join(column.name for column in schema.fields)
        )
    return tuple(schema.find_field(name).field_id for name in on)


def _one_batch(rows: pa.Table) -> pa.RecordBatch:
    batches = rows.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], rows.schema)


def _passed_by(values: pa.Table, ids: Sequence[int], schema: Schema) -> BooleanExpression:
    """What statistics can prune by. Columns with nulls or of other types restrict nothing."""
    columns = ColumnIndex.of(schema)
    parts: list[BooleanExpression] = []
    for id, column in zip(ids, values.columns, strict=True):
        kind = column.type
        is_plain = pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_date(kind)
        if not is_plain or column.null_count or not len(column):
            continue
        about = columns.with_id(id)
        distinct = pc.unique(column)
        is_all = len(distinct) <= MAX_KEYS_IN_FILTER
        key_values = distinct.to_pylist() if is_all else pc.min_max(column).as_py().values()
        keys = [literal(value) for value in key_values]
        parts.append(keys_predicate(about, keys, is_all=is_all))
    return conjunction(parts) if parts else AlwaysTrue()


__all__ = ["EqualRows", "equal_rows", "key_ids"]

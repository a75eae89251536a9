"""Rows of a snapshot that equal given ones in some columns: what an equality delete would remove,
found now and told by position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.expressions.literals import literal
from pyiceberg.schema import Schema

from frazil.commit.handle import TableHandle
from frazil.data.delete_files import equality_schema
from frazil.data.equality import EqualityDeletes
from frazil.data.metadata_columns import column_at, path_of
from frazil.data.row_input import Rows, conformed
from frazil.data.schema import arrow_schema
from frazil.errors import InvalidInput
from frazil.expr.bind import conjunction, predicate
from frazil.expr.filter_columns import ColumnIndex
from frazil.expr.operators import Op
from frazil.format.metadata import Snapshot
from frazil.rows.scan import Scan
from frazil.scan.tasks import TaskReader

_MAX_KEYS_IN_FILTER = 200

Positions = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EqualRows:
    """Positions by data file, ascending, and a filter that every such row passes."""

    positions: Mapping[str, Positions]
    filter: BooleanExpression


def equal_rows(
    handle: TableHandle, snapshot: Snapshot | None, rows: Rows, on: Sequence[str]
) -> EqualRows:
    """The live rows that equal one of `rows` in the `on` columns; null equals null."""
    schema = handle.metadata.schema()
    ids = key_ids(schema, on)
    held = equality_schema(schema, ids)
    keys = _one_batch(pa.Table.from_batches(list(conformed(rows, held)), arrow_schema(held)))
    values = pa.table(
        [column_at(keys, path_of(held, id)) for id in ids], names=[str(id) for id in ids]
    )
    deletes = EqualityDeletes(ids, values)
    scan = Scan(
        _handle=handle,
        snapshot=snapshot,
        matching=_passed_by(values, ids, schema),
        columns=(*(column.name for column in held.fields), "_pos"),
    )
    paths = [path_of(scan.schema, id) for id in ids]
    reader = TaskReader(replace(scan._reading(), row_filter=AlwaysTrue()))
    found: dict[str, Positions] = {}
    for task in scan.tasks() if keys.num_rows else ():
        parts = []
        for batch in reader.read(task):
            matched = deletes.matches([column_at(batch, path) for path in paths])
            parts.append(np.asarray(batch.column("_pos"))[matched])
        positions = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
        if positions.size:
            found[task.location] = positions
    return EqualRows(positions=found, filter=scan.filter)


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
    whole = rows.combine_chunks().to_batches()
    return whole[0] if whole else pa.RecordBatch.from_pylist([], rows.schema)


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
        if len(distinct) <= _MAX_KEYS_IN_FILTER:
            literals = [literal(value) for value in distinct.to_pylist()]
            parts.append(predicate(Op.IN, about, literals))
        else:
            ends = pc.min_max(column)
            parts.append(predicate(Op.GE, about, [literal(ends["min"].as_py())]))
            parts.append(predicate(Op.LE, about, [literal(ends["max"].as_py())]))
    return conjunction(parts) if parts else AlwaysTrue()


__all__ = ["EqualRows", "equal_rows", "key_ids"]

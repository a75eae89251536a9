"""Columns that rows have and a table lacks: what `append(…, schema="merge")` adds to the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from frazil.data.conform import Conformer
from frazil.data.write.row_input import Rows, inferred, record_batches, refuse_untyped
from frazil.errors import InvalidInput
from frazil.iceberg.schema import Schema


def columns_to_merge(rows: Rows, schema: Schema) -> tuple[pa.Schema, Rows]:
    """Columns that the table lacks or has in a narrower type, and the rows to write after them. A
    stream is opened for its columns, so the rows are the opened stream then."""
    if isinstance(rows, Mapping):
        return _new({name: rows[name] for name in rows if not _has(schema, name)}), rows
    if isinstance(rows, Iterable) and not hasattr(rows, "__arrow_c_stream__"):
        rows = rows if isinstance(rows, list | tuple | pa.RecordBatchReader) else _listed(rows)
    if isinstance(rows, list | tuple) and rows and isinstance(rows[0], Mapping):
        names = dict.fromkeys(name for row in rows for name in row if not _has(schema, name))
        return _new({name: [row.get(name) for row in rows] for name in names}), rows
    reader = record_batches(rows, schema)
    new_columns = pa.schema([field for field in reader.schema if not _fits(field, schema)])
    refuse_untyped(new_columns)
    return new_columns, reader


def _listed(rows: Iterable[Any]) -> Any:
    """Python's own streams as lists: their columns are known when the last row is. Frames and
    datasets stay as they are."""
    return list(rows) if type(rows).__module__ in ("builtins", "itertools") else rows


def _has(schema: Schema, name: str) -> bool:
    return any(field.name == name for field in schema.fields)


def _new(columns: Mapping[str, Any]) -> pa.Schema:
    if not columns:
        return pa.schema([])
    new_columns = inferred(columns).schema
    refuse_untyped(new_columns)
    return new_columns


def _fits(field: pa.Field, schema: Schema) -> bool:
    columns = [column for column in schema.fields if column.name == field.name]
    try:
        Conformer.between(pa.schema([field]), Schema(*columns))
    except InvalidInput:
        return False
    return True

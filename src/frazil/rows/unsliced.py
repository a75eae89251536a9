"""Arrow data as DuckDB reads it right.

DuckDB 1.5 overlooks where a slice begins inside a struct of a struct, and gives the values of other
rows. Such columns are copied, so that they begin with their first row.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def is_misread(schema: pa.Schema) -> bool:
    """Whether a slice of such rows would be read wrongly."""
    return any(map(_has_deep_struct, schema.types))


def unsliced(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows, copied where DuckDB would read others."""
    if not is_misread(batch.schema):
        return batch
    every = pa.array(range(batch.num_rows), pa.int64())
    columns = [
        column.take(every) if _has_deep_struct(column.type) else column for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def unsliced_stream(stream: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """The same stream, of batches that DuckDB reads right."""
    if not is_misread(stream.schema):
        return stream
    return pa.RecordBatchReader.from_batches(stream.schema, map(unsliced, stream))


class UnslicedRows:
    """Anything that gives an Arrow stream, for DuckDB. Every read makes a new stream."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A new stream of the rows."""
        stream = unsliced_stream(pa.RecordBatchReader.from_stream(self._rows))
        return stream.__arrow_c_stream__(requested_schema)


def _has_deep_struct(kind: pa.DataType, *, inside: bool = False) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return False
    if pa.types.is_struct(kind):
        return inside or any(_has_deep_struct(field.type, inside=True) for field in kind)
    return any(
        _has_deep_struct(kind.field(at).type, inside=inside) for at in range(kind.num_fields)
    )

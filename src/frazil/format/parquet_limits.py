"""Parquet metadata files read within `Limits`: what the footer says is held against them first.

Encodings repeat: a run of one number, or a dictionary with one long text, can stand for any number
of rows. Numbers are bounded by the count of values. Texts of a dictionary are bounded only by
reading: where they could be too large together, rows are read a few at a time and counted.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.limits import Limits

_LEAST_BYTES = 4
"""What a value takes in memory at the least, but for booleans."""
_TEXT = "BYTE_ARRAY"


def read_columns(
    file: pq.ParquetReader, indices: Sequence[int], *, stored: int, limits: Limits, path: str
) -> pa.Table:
    """The leaf columns at `indices`, in full; FormatError when they are more than is allowed."""
    footer = file.metadata
    least = widest = 0
    for group in range(footer.num_row_groups):
        row_group = footer.row_group(group)
        for index in indices:
            column = row_group.column(index)
            least += max(column.total_uncompressed_size, _LEAST_BYTES * column.num_values)
            if column.has_dictionary_page and column.physical_type == _TEXT:
                widest = max(widest, column.total_uncompressed_size)
    limits.check(max(least, footer.num_rows), stored=stored, path=path)
    allowed = limits.allowed(stored)
    if widest * footer.num_rows <= allowed:
        return file.read_all(column_indices=indices, use_threads=False)
    groups = list(range(footer.num_row_groups))
    batches: list[pa.RecordBatch] = []
    total = 0
    rows = max(1, allowed // widest)
    for batch in file.iter_batches(rows, groups, column_indices=indices, use_threads=False):
        total += batch.nbytes
        limits.check(total, stored=stored, path=path)
        batches.append(batch)
    return pa.Table.from_batches(batches, None if batches else file.schema_arrow)

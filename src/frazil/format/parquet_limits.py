"""What the footer of a Parquet metadata file claims, held against `Limits` before it is read.

Encodings repeat: a run of one number can stand for any number of rows. Only counts of whole row
groups are looked at: asking pyarrow for the details of a column ends the process when they are
damaged.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.limits import Limits

_LEAST_BYTES = 4
"""What a value takes in memory, but for booleans."""


def check_footer(
    footer: pq.FileMetaData, *, columns: int, stored: int, limits: Limits, path: str
) -> None:
    """Refuse a file of which `columns` leaf columns would take more than is allowed."""
    groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
    rows = max(footer.num_rows, sum(group.num_rows for group in groups))
    plain = sum(group.total_byte_size for group in groups)
    limits.check(max(plain, rows * columns * _LEAST_BYTES), stored=stored, path=path)


def read_columns(
    file: pq.ParquetReader, indices: Sequence[int], *, stored: int, limits: Limits, path: str
) -> pa.Table:
    """The leaf columns at `indices`, in full; FormatError when they are more than is allowed."""
    check_footer(file.metadata, columns=len(indices), stored=stored, limits=limits, path=path)
    return file.read_all(column_indices=indices, use_threads=False)

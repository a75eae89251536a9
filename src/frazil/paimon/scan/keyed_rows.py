"""Rows of primary-key files with what Paimon keeps beside them: sequence number and row kind.

Columns of the table are read as those of any file. The other two have ids that Iceberg gives to
columns of its own, so they are read by name and put beside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from frazil.data.read.read_files import Reading, read_file
from frazil.data.schema import arrow_schema
from frazil.data.slices import DataFileSlice
from frazil.errors import FormatError
from frazil.paimon.read.vector_files import Positions
from frazil.paimon.scan.merge_rules import KIND, SEQUENCE
from frazil.value_classes import frozen

_SYSTEM: Final = pa.schema([(SEQUENCE, pa.int64()), (KIND, pa.int32())])


@frozen(eq=False)
class KeyedFile:
    """A primary-key file, and the positions of its deleted rows."""

    source: DataFileSlice
    dropped: Positions | None = None


def keyed_rows(files: Sequence[KeyedFile], reading: Reading) -> pa.Table:
    """All rows of the files in the columns of `reading.schema`, sequence number and row kind."""
    tables = [_keyed(file, reading) for file in files]
    return pa.concat_tables(tables) if tables else _schema(reading).empty_table()


def _schema(reading: Reading) -> pa.Schema:
    return pa.schema([*arrow_schema(reading.schema), *_SYSTEM])


def _keyed(file: KeyedFile, reading: Reading) -> pa.Table:
    batches = list(read_file(file.source, reading, dropped=file.dropped))
    rows = pa.Table.from_batches(batches, schema=arrow_schema(reading.schema))
    system = _system(file, reading)
    if system.num_rows != rows.num_rows:
        raise FormatError(
            f"has {rows.num_rows} rows and {system.num_rows} sequence numbers",
            path=file.source.path,
        )
    for column in _SYSTEM:
        rows = rows.append_column(column, system[column.name])
    return rows


def _system(file: KeyedFile, reading: Reading) -> pa.Table:
    path = file.source.path
    try:
        with reading.storage.open(path).arrow() as source:
            is_orc = file.source.file_format == "orc"
            opened = orc.ORCFile(source) if is_orc else pq.ParquetFile(source)
            table = opened.read(columns=_SYSTEM.names).select(_SYSTEM.names).cast(_SYSTEM)
    except (pa.ArrowException, KeyError, OSError) as error:
        raise FormatError(f"has no rows of a primary-key table: {error}", path=path) from error
    if file.dropped is None or not len(file.dropped):
        return table
    return table.filter(pa.array(kept(table.num_rows, file.dropped)))


def kept(count: int, dropped: Positions) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which of so many rows are left."""
    mask = np.ones(count, dtype=np.bool_)
    mask[dropped] = False
    return mask

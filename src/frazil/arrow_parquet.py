"""pyarrow's compiled Parquet reader and writer, without `pyarrow.parquet`.

Importing `pyarrow.parquet` loads every file system that Arrow knows, TLS and the client of S3 among
them, and ends them when the process ends: an eighth of a first plan's time. The classes here are
the ones it is written on. The writer takes the same options, has the same defaults and writes the
same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa
from pyarrow import _parquet
from pyarrow._parquet import ParquetReader as ParquetReader

if TYPE_CHECKING:
    from pyarrow._parquet import ColumnChunkMetaData as ColumnChunkMetaData
    from pyarrow._parquet import FileMetaData as FileMetaData
    from pyarrow._parquet import RowGroupMetaData as RowGroupMetaData

_DEFAULTS: Final = {
    "version": "2.6",
    "compression": "snappy",
    "use_dictionary": True,
    "write_statistics": True,
    "writer_engine_version": "V2",
    "data_page_version": "1.0",
}


class ParquetWriter:
    """`pyarrow.parquet.ParquetWriter` for a stream; `metadata` is the footer, once it is closed."""

    def __init__(self, sink: Any, schema: pa.Schema, **options: Any) -> None:
        self._compiled = _parquet.ParquetWriter(sink, schema, **{**_DEFAULTS, **options})
        self._is_open = True

    @property
    def metadata(self) -> FileMetaData:
        """The file's footer."""
        return self._compiled.metadata

    def write_table(self, table: pa.Table, *, row_group_size: int) -> None:
        """Add row groups; ValueError when the columns are not the file's."""
        self._compiled.write_table(table, row_group_size=row_group_size)

    def add_key_value_metadata(self, metadata: Mapping[str, str]) -> None:
        """Add to the footer's key-value metadata."""
        self._compiled.add_key_value_metadata(metadata)

    def close(self) -> None:
        """Complete the file."""
        if self._is_open:
            self._compiled.close()
            self._is_open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def footer_of(source: pa.NativeFile) -> FileMetaData:
    """A file's footer."""
    reader = ParquetReader()
    reader.open(source)
    return reader.metadata


def row_group_offsets(footer: FileMetaData) -> tuple[int, ...]:
    """Where each row group of a file starts."""
    return tuple(_start(footer.row_group(at)) for at in range(footer.num_row_groups))


def _start(group: RowGroupMetaData) -> int:
    if group.num_columns == 0:
        return 0
    column = group.column(0)
    dictionary = column.dictionary_page_offset
    first = int(column.data_page_offset)
    return min(first, int(dictionary)) if dictionary is not None and dictionary > 0 else first


@cache
def accepts(option: str) -> bool:
    """Whether the installed pyarrow's writer knows an option."""
    try:
        ParquetWriter(pa.BufferOutputStream(), pa.schema([]), **{option: None}).close()
    except TypeError:
        return False
    return True

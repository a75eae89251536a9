"""A column file being written: some columns for every row of a data file, in its row groups."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from frazil.data.metadata_columns import LAST_UPDATED
from frazil.data.schema import arrow_schema
from frazil.data.write.parquet_file import FileShape, ParquetFile
from frazil.data.write.write_options import WriteOptions
from frazil.format.entries.column_files import ColumnFile
from frazil.format.entries.metrics import MetricsConfig
from frazil.format.entries.stats import ROW_LINEAGE, stats_types, tracked_fields
from frazil.format.paths import relativise
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import NestedField
from frazil.storage import Storage
from frazil.value_classes import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenColumns:
    """A column file that is complete, and the statistics of its columns."""

    file: ColumnFile
    stats_ids: frozenset[int]
    stats: Mapping[str, Any]
    stats_types: Mapping[str, pa.DataType]


def column_schema(fields: Iterable[NestedField]) -> Schema:
    """The columns of a column file. None is required: deleted rows have no values."""
    optional = [replace(column, required=False) for column in fields]
    return Schema(*optional, LAST_UPDATED)


class ColumnFileWriter:
    """Writes column files of one update."""

    def __init__(
        self,
        fields: Sequence[NestedField],
        *,
        storage: Storage,
        location: str,
        options: WriteOptions,
        metrics: MetricsConfig,
        written: list[str],
    ) -> None:
        self.schema = column_schema(fields)
        self.arrow = arrow_schema(self.schema)
        self._shape = FileShape(self.schema, options, metrics)
        self._storage = storage
        self._location = location
        self._folder = (options.data_path or f"{location.rstrip('/')}/data").rstrip("/")
        self._written = written
        tracked = (*tracked_fields(self.schema), *ROW_LINEAGE)
        self._types = stats_types(tracked)
        self._stats_ids = frozenset(field.id for field in tracked_fields(self.schema))
        self._stats_ids |= {*(column.field_id for column in fields), LAST_UPDATED.field_id}

    def write(self, columns: pa.Table, row_groups: Sequence[int]) -> WrittenColumns:
        """All rows of a data file, in its row groups."""
        path = f"{self._folder}/{uuid.uuid4()}-columns.parquet"
        self._written.append(path)
        file = ParquetFile(self._storage, path, self._shape)
        try:
            start = 0
            for rows in row_groups:
                file.write_row_group(columns.slice(start, rows))
                start += rows
            written = file.close()
        except BaseException:
            file.abort()
            raise
        return WrittenColumns(
            file=ColumnFile(
                location=relativise(self._location, path),
                field_ids=tuple(column.field_id for column in self.schema.fields),
                file_format="parquet",
                file_size_in_bytes=written.size_in_bytes,
            ),
            stats_ids=self._stats_ids,
            stats=written.stats,
            stats_types=self._types,
        )


__all__ = ["ColumnFileWriter", "WrittenColumns", "column_schema"]

"""Rows of many small files at once.

What `read_file` does for each file (planning its columns, computing row ids, building batches)
takes longer than decoding a small one. Here files with the same columns are decoded one by one and
become rows together; the outcome is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.data import metadata_columns
from frazil.data.metadata_columns import FILE, LAST_UPDATED, PARTITION_ID, POS, ROW_ID, SPEC_ID
from frazil.data.projection import FileField, file_fields, needed_leaves
from frazil.data.read.read_files import Positions, Reading, checked_positions, read_file
from frazil.data.read.sources import ParquetSource, explained, open_source
from frazil.data.reshape import record_batch
from frazil.data.slices import DataFileSlice
from frazil.errors import FormatError
from frazil.iceberg.expressions import AlwaysTrue
from frazil.iceberg.transforms import IdentityTransform
from frazil.value_classes import dataclass, field, replace

SMALL_BYTES: Final = 1 << 18
"""Files up to this size are read together."""
_PER_FILE: Final = frozenset({FILE.field_id, POS.field_id, SPEC_ID.field_id, PARTITION_ID})


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeFile:
    """A file to read as a whole, but for the positions that are dropped; they ascend."""

    source: DataFileSlice
    dropped: Positions | None = None


def is_small(source: DataFileSlice) -> bool:
    """Whether a file can be read together with others."""
    return (
        source.file_size_in_bytes <= SMALL_BYTES
        and source.file_format.lower() == "parquet"
        and source.start == 0
        and source.length is None
        and source.first_row_id is not None
        and source.data_sequence_number is not None
        and not source.column_files
    )


def read_together(files: Sequence[WholeFile], reading: Reading) -> Iterator[pa.RecordBatch]:
    """The rows of small files that are left, in order, whatever the filter says."""
    reading = replace(reading, row_filter=AlwaysTrue())
    constants = _PER_FILE | {
        part.source_id
        for spec in reading.specs.values()
        for part in spec.fields
        if isinstance(part.transform, IdentityTransform)
    }
    constant_ids = constants & reading.schema.field_ids
    run = _Run(reading=reading)
    for file in files:
        with explained(file.source.path):
            opened = _opened(file.source, reading)
            same = run.arrow is not None and run.arrow.equals(opened.schema, check_metadata=True)
            following = run if same else _Run.of(opened, reading)
        if not same:
            yield from run.rows()
            run = following
        if constant_ids and not constant_ids <= run.stored:
            yield from read_file(file.source, reading, dropped=file.dropped)
            continue
        with explained(file.source.path):
            run.add(file, opened)
    yield from run.rows()


def _opened(source: DataFileSlice, reading: Reading) -> ParquetSource:
    opened = open_source(reading.storage, source, verify_checksums=reading.verify_checksums)
    assert isinstance(opened, ParquetSource)
    return opened


@dataclass(slots=True, kw_only=True)
class _Run:
    """Files with the same columns, decoded."""

    reading: Reading
    arrow: pa.Schema | None = None
    fields: tuple[FileField, ...] = ()
    leaves: list[int] = field(default_factory=list)
    stored: frozenset[int | None] = frozenset()
    files: list[WholeFile] = field(default_factory=list)
    tables: list[pa.Table] = field(default_factory=list)

    @staticmethod
    def of(opened: ParquetSource, reading: Reading) -> _Run:
        fields = file_fields(opened.schema, reading.name_mapping)
        return _Run(
            reading=reading,
            arrow=opened.schema,
            fields=fields,
            leaves=needed_leaves(fields, reading.schema.fields),
            stored=frozenset(column.field_id for column in fields),
        )

    def add(self, file: WholeFile, opened: ParquetSource) -> None:
        """Decode a file of this run."""
        if self.leaves:
            table = opened.read(self.leaves)
            if table.num_rows != file.source.record_count:
                raise FormatError(
                    f"the row groups have {table.num_rows} rows; the footer says "
                    f"{file.source.record_count}"
                )
            self.tables.append(table)
        self.files.append(file)

    def rows(self) -> Iterator[pa.RecordBatch]:
        """The rows of the files so far, as one batch."""
        if not any(file.source.record_count for file in self.files):
            return
        try:
            batch = self._together()
        except (pa.ArrowException, FormatError):  # reading one by one tells which file it is
            for file in self.files:
                yield from read_file(file.source, self.reading, dropped=file.dropped)
            return
        if batch.num_rows:
            yield batch

    def _together(self) -> pa.RecordBatch:
        counts = np.array([file.source.record_count for file in self.files], dtype=np.int64)
        schema = self.reading.schema
        raw = self._raw(int(counts.sum()))
        fields = file_fields(raw.schema, self.reading.name_mapping) if raw.num_columns else ()
        rows = self.reading.shapes.projection(fields, schema, {}).project(raw)
        starts = np.cumsum(counts) - counts
        columns = list(rows.columns)
        for at, column in enumerate(schema.fields):
            if column.field_id == ROW_ID.field_id:
                columns[at] = metadata_columns.with_defaults(
                    columns[at], self._row_ids(starts, counts)
                )
            elif column.field_id == LAST_UPDATED.field_id:
                numbers = self._longs("data_sequence_number")
                columns[at] = metadata_columns.with_defaults(
                    columns[at], np.repeat(numbers, counts)
                )
        rows = record_batch(columns, rows.schema, rows.num_rows)
        dropped = [
            checked_positions(file.dropped, file.source) + start
            for file, start in zip(self.files, starts, strict=True)
            if file.dropped is not None
        ]
        if not dropped:
            return rows
        mask = np.ones(rows.num_rows, dtype=np.bool_)
        mask[np.concatenate(dropped)] = False
        if not rows.num_columns:
            return record_batch([], pa.schema([]), int(np.count_nonzero(mask)))
        return pc.filter(rows, arrow_values.array(mask))

    def _raw(self, num_rows: int) -> pa.RecordBatch:
        if not self.tables:
            return record_batch([], pa.schema([]), num_rows)
        table = pa.concat_tables(self.tables).combine_chunks()
        if any(column.num_chunks > 1 for column in table.columns):
            raise pa.ArrowCapacityError("a column has more bytes than an array can hold")
        columns = [column.chunk(0) for column in table.columns]
        return pa.RecordBatch.from_arrays(columns, schema=table.schema)

    def _row_ids(
        self, starts: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        bases = self._longs("first_row_id") - starts
        return np.repeat(bases, counts) + np.arange(int(counts.sum()), dtype=np.int64)

    def _longs(self, name: str) -> npt.NDArray[np.int64]:
        values: list[Any] = [getattr(file.source, name) for file in self.files]
        return np.array(values, dtype=np.int64)


__all__ = ["SMALL_BYTES", "WholeFile", "is_small", "read_together"]

"""A data file and its column files as one source: columns stitched by position.

All of them have the same rows, as many as metadata records. Each column is read from exactly one
file; the row groups of the files need not align. Positions, deletes and filters are applied to the
stitched rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

import pyarrow as pa

from frazil import arrow_parquet as pq
from frazil.data.metadata_columns import FILE, PARTITION_ID, POS, SPEC_ID
from frazil.data.projection import FileField, file_fields
from frazil.data.read.sources import Block, OpenDataFile, ParquetSource, explained, open_source
from frazil.data.slices import DataFileSlice
from frazil.errors import FormatError, Unsupported
from frazil.format.entries.column_files import ColumnFile
from frazil.format.entries.fields import COLUMN_FILES
from frazil.iceberg.partitioning import PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.storage import Storage
from frazil.value_classes import dataclass

_COMPUTED: Final = {FILE.field_id, POS.field_id, SPEC_ID.field_id, PARTITION_ID}
"""Columns that no file stores."""


def stitched(
    source: DataFileSlice,
    needed: Schema,
    *,
    storage: Storage,
    schema: Schema,
    spec: PartitionSpec | None,
    verify_checksums: bool = True,
) -> OpenDataFile:
    """The data file with the columns of its column files in place of its own. Of these files, those
    that have a needed column are opened."""
    _check_columns(source, schema, spec)
    ids = {column.field_id for column in needed.fields}
    elsewhere = {id for file in source.column_files for id in file.field_ids}
    parts = [
        _Part.of(_opened(file, source, storage, verify_checksums), file)
        for file in source.column_files
        if not ids.isdisjoint(file.field_ids)
    ]
    is_split = source.start != 0 or source.length is not None
    if parts and not is_split and ids - elsewhere <= _COMPUTED:
        return StitchedSource(parts, hidden=set())
    base = open_source(storage, source, verify_checksums=verify_checksums)
    fields = _identified(base, source.path)
    own = [column for column in fields if column.field_id not in elsewhere]
    hidden = [column for column in fields if column.field_id in elsewhere]
    first = _Part(source=base, fields=tuple(own), path=source.path)
    return StitchedSource([first, *parts], hidden=_ids(hidden))


def _check_columns(source: DataFileSlice, schema: Schema, spec: PartitionSpec | None) -> None:
    """Column files have whole columns, and none that rows are partitioned by."""
    top_level = {column.field_id for column in schema.fields}
    sources = {part.source_id for part in spec.fields} if spec is not None else set()
    for file in source.column_files:
        for id in file.field_ids:
            if id in schema.field_ids and id not in top_level:
                raise Unsupported(
                    f"{source.path}: column file {file.location} has field {id}, a part of a "
                    "column; only whole columns are read from column files",
                    feature="nested fields in column files",
                )
            if id in sources:
                raise Unsupported(
                    f"{source.path}: column file {file.location} has field {id}, which the table "
                    "is partitioned by",
                    feature="partition columns in column files",
                )


def _opened(
    file: ColumnFile, source: DataFileSlice, storage: Storage, verify_checksums: bool
) -> ParquetSource:
    part = DataFileSlice(
        path=file.location,
        file_format=file.file_format,
        record_count=source.record_count,
        file_size_in_bytes=file.file_size_in_bytes,
    )
    opened = open_source(storage, part, verify_checksums=verify_checksums)
    assert isinstance(opened, ParquetSource)
    return opened


def _identified(base: OpenDataFile, path: str) -> tuple[FileField, ...]:
    try:
        return file_fields(base.schema)
    except FormatError as error:
        raise Unsupported(
            f"{path}: it has column files and no field ids of its own, so that it is not known "
            "which of its columns they replace",
            feature="column files of a file without field ids",
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A file and the columns that are read from it."""

    source: OpenDataFile
    fields: tuple[FileField, ...]
    path: str

    @staticmethod
    def of(source: ParquetSource, file: ColumnFile) -> _Part:
        known = {column.field_id: column for column in _identified(source, file.location)}
        missing = [id for id in file.field_ids if id not in known]
        if missing:
            raise FormatError(
                f"the column file has no field {missing[0]}; the entry says it has",
                path=file.location,
                field=COLUMN_FILES,
            )
        fields = tuple(known[id] for id in file.field_ids)
        return _Part(source=source, fields=fields, path=file.location)

    @property
    def ids(self) -> set[int | None]:
        """The columns and their parts."""
        return _ids(self.fields)


def _ids(fields: Iterable[FileField]) -> set[int | None]:
    ids: set[int | None] = set()
    for column in fields:
        ids |= {column.field_id, *_ids(column.children)}
    return ids


@lru_cache(maxsize=128)
def _together(parts: tuple[tuple[bytes, tuple[int, ...]], ...]) -> pa.Schema:
    """Some columns of several schemas: those of wide files take long to put together, and files of
    a table are mostly alike."""
    schemas = [(pa.ipc.read_schema(pa.py_buffer(stored)), places) for stored, places in parts]
    return pa.schema([schema.field(at) for schema, places in schemas for at in places])


class StitchedSource:
    """Several files of the same rows; its blocks are those of the first. Its `hidden` columns and
    parts of columns are read from others."""

    def __init__(self, parts: Sequence[_Part], *, hidden: set[int | None]) -> None:
        self._parts = parts
        self._hidden = hidden
        self.schema = _together(
            tuple(
                (
                    part.source.schema.serialize().to_pybytes(),
                    tuple(column.index for column in part.fields),
                )
                for part in parts
            )
        )
        self._leaves = [
            (number, leaf)
            for number, part in enumerate(parts)
            for column in part.fields
            for leaf in column.leaves
        ]

    @property
    def num_rows(self) -> int:
        """How many rows it has."""
        return self._parts[0].source.num_rows

    @property
    def blocks(self) -> list[Block]:
        """The blocks of the data file."""
        return self._parts[0].source.blocks

    def footer_of(self, needed: Collection[int]) -> pq.FileMetaData | None:
        """The footer of the one file that has all these columns, if its row groups are the blocks:
        statistics of another one say nothing of the stitched rows."""
        first, *others = self._parts
        stored = self._hidden.union(*(part.ids for part in others))
        if not stored.intersection(needed):
            return first.source.footer if isinstance(first.source, ParquetSource) else None
        for part in others:
            if part.ids.issuperset(needed) and isinstance(part.source, ParquetSource):
                rows = [block.rows for block in part.source.blocks]
                return part.source.footer if rows == [b.rows for b in self.blocks] else None
        return None

    def batches(self, block: Block, leaves: list[int], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of a block, with the top-level columns that hold these leaves."""
        asked: dict[int, list[int]] = {}
        for leaf in leaves:
            number, own = self._leaves[leaf]
            asked.setdefault(number, []).append(own)
        cursors = [
            _Cursor(self._parts[number], block, sorted(own), batch_rows)
            for number, own in sorted(asked.items())
        ]
        at = 0
        while at < block.rows:
            rows = min(batch_rows, *(cursor.available() for cursor in cursors))
            pieces = [cursor.take(rows) for cursor in cursors]
            fields = [field for piece in pieces for field in piece.schema]
            columns = [column for piece in pieces for column in piece.columns]
            yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))
            at += rows


class _Cursor:
    """Rows of one file that stand beside a block of another, piece by piece."""

    def __init__(self, part: _Part, block: Block, leaves: list[int], batch_rows: int) -> None:
        self._path = part.path
        self._batches = _rows_beside(part.source, block, leaves, batch_rows)
        self._held: pa.RecordBatch | None = None

    def available(self) -> int:
        """How many rows can be taken at once; at least one."""
        while self._held is None or not self._held.num_rows:
            with explained(self._path):
                self._held = next(self._batches, None)
            if self._held is None:
                raise FormatError("has fewer rows than its footer says", path=self._path)
        return int(self._held.num_rows)

    def take(self, rows: int) -> pa.RecordBatch:
        """The next rows."""
        assert self._held is not None
        piece, self._held = self._held.slice(0, rows), self._held.slice(rows)
        return piece


def _rows_beside(
    source: OpenDataFile, block: Block, leaves: list[int], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """The rows of a file at the positions of a block, whichever row groups hold them."""
    end = block.first_row + block.rows
    for own in source.blocks:
        if own.first_row + own.rows <= block.first_row or own.first_row >= end:
            continue
        at = own.first_row
        for batch in source.batches(own, leaves, batch_rows):
            first, last = max(at, block.first_row), min(at + batch.num_rows, end)
            if first < last:
                yield batch.slice(first - at, last - first)
            at += batch.num_rows


__all__ = ["StitchedSource", "stitched"]

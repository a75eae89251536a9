"""Data files as streams of raw batches with the position of their first row.

One class per file format, the same few members each: the file's Arrow schema, its row count, and
batches of chosen leaf columns. Whole blocks (row groups, stripes) are skipped by whoever chooses
them; positions stay right because every block knows where it starts. Nothing here knows tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Protocol

import pyarrow as pa

from frazil import arrow_parquet as pq
from frazil.data.slices import DataFileSlice
from frazil.errors import FormatError, FrazilError, Unsupported
from frazil.format.entries import seal
from frazil.limits import Limits
from frazil.storage import RandomAccess, Storage, is_local
from frazil.text_format import first_line
from frazil.value_classes import dataclass

_FEW_VALUES = 1 << 17  # handing so few to other threads costs more than decoding them


_POOL = pa.system_memory_pool()
"""For small files, which are in memory before they are decoded. With Arrow's own pool, threads that
decode many of them hold each other up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A run of rows that is read or skipped as a whole."""

    index: int
    first_row: int
    rows: int
    offset: int


class OpenDataFile(Protocol):
    """An open data file."""

    @property
    def schema(self) -> pa.Schema:
        """Its columns, with field ids where it has them."""

    @property
    def num_rows(self) -> int:
        """How many rows it has."""

    @property
    def blocks(self) -> list[Block]:
        """Its rows, in order."""

    def batches(self, block: Block, leaves: list[int], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of a block, with the top-level columns that hold these leaves."""


def open_source(
    storage: Storage, source: DataFileSlice, *, verify_checksums: bool = True
) -> OpenDataFile:
    """Open a data file and check that it is the one the metadata describes."""
    access = storage.open(source.path, size=source.file_size_in_bytes)
    if access.size != source.file_size_in_bytes:
        raise FormatError(
            f"the file has {access.size} bytes; the metadata records "
            f"{source.file_size_in_bytes}. The data file was changed after it was committed",
            path=source.path,
        )
    with explained(source.path):
        opened = _opened(access, source, storage.limits, verify_checksums=verify_checksums)
        rows = opened.num_rows
    if rows != source.record_count:
        raise wrong_rows(source.path, rows, source.record_count)
    return opened


def _opened(
    access: RandomAccess, source: DataFileSlice, limits: Limits, *, verify_checksums: bool
) -> OpenDataFile:
    match source.file_format.lower():
        case "parquet":
            return ParquetSource(access, verify_checksums=verify_checksums)
        case "orc":
            return OrcSource(access)
        case "avro":
            return AvroSource(access, limits)
    raise Unsupported(
        f"{source.path}: data files of format '{source.file_format}' cannot be read; expected "
        "parquet, orc or avro. Rewrite the file with an engine that reads it.",
        feature=f"reading {source.file_format}",
    )


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Arrow's complaints about a file's content, as errors that name the file."""
    try:
        yield
    except FormatError as error:
        raise error.at(path) from error
    except FrazilError:
        raise
    except (pa.ArrowException, OSError, EOFError) as error:
        raise FormatError(f"cannot be read: {first_line(error)}", path=path) from error


class ParquetSource:
    """A Parquet file; its blocks are row groups.

    Checksums of pages and of the footer are verified where the file has them.
    """

    def __init__(self, access: RandomAccess, *, verify_checksums: bool = True) -> None:
        opened = access.arrow()
        verified = seal.Verified.NOTHING
        if verify_checksums:
            verified = seal.verify(opened, path=access.path, all_pages=True)
        is_held = isinstance(opened, pa.BufferReader)
        # A disk is read ahead by Arrow; what a store is asked for is told to it before.
        self._fetched = None if is_held or is_local(access.path) else access
        self._file = pq.ParquetReader(memory_pool=_POOL if is_held else None)
        self._file.open(
            opened,
            pre_buffer=not is_held and self._fetched is None,
            page_checksum_verification=verify_checksums and verified is not seal.Verified.WHOLE,
            coerce_int96_timestamp_unit="us",
            arrow_extensions_enabled=False,
        )
        self.schema: pa.Schema = self._file.schema_arrow

    @cached_property
    def blocks(self) -> list[Block]:
        """The row groups."""
        return list(self._row_groups())

    @property
    def num_rows(self) -> int:
        """How many rows the row groups have."""
        footer = self._file.metadata
        return sum(int(footer.row_group(at).num_rows) for at in range(footer.num_row_groups))

    @property
    def footer(self) -> pq.FileMetaData:
        """The file's metadata."""
        return self._file.metadata

    def batches(self, block: Block, leaves: list[int], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of a row group."""
        if self._fetched is not None:
            group = self._file.metadata.row_group(block.index)
            self._fetched.fetch([_chunk(group.column(leaf)) for leaf in leaves])
        batches = self._file.iter_batches(
            batch_rows,
            row_groups=[block.index],
            column_indices=leaves,
            use_threads=block.rows * len(leaves) > _FEW_VALUES,
        )
        return iter(batches)

    def read(self, leaves: list[int]) -> pa.Table:
        """All rows, in this thread; for a small file."""
        return self._file.read_all(column_indices=leaves, use_threads=False)

    def read_all(self) -> None:
        """Decode every page of every column, to find damage."""
        groups = list(range(self._file.metadata.num_row_groups))
        for _ in self._file.iter_batches(1 << 16, row_groups=groups):
            pass

    def _row_groups(self) -> Iterator[Block]:
        first_row = 0
        for index, offset in enumerate(pq.row_group_offsets(self._file.metadata)):
            rows = int(self._file.metadata.row_group(index).num_rows)
            yield Block(index=index, first_row=first_row, rows=rows, offset=offset)
            first_row += rows


def _chunk(column: pq.ColumnChunkMetaData) -> tuple[int, int]:
    """Where a column of a row group lies: offset and length."""
    dictionary = column.dictionary_page_offset
    start = int(column.data_page_offset)
    if dictionary is not None and 0 < dictionary < start:
        start = int(dictionary)
    return start, int(column.total_compressed_size)


def check_whole(storage: Storage, path: str) -> None:
    """Read a whole data file and compare it with its seal, if it has one."""
    seal.verify_whole(storage.open(path).arrow(), path=path)


def check_rows(storage: Storage, path: str, rows: int) -> None:
    """Refuse a Parquet file with another number of rows than metadata records."""
    actual = pq.footer_of(storage.open(path).arrow()).num_rows
    if actual != rows:
        raise wrong_rows(path, actual, rows)


def wrong_rows(path: str, actual: int, recorded: int) -> FormatError:
    """A file has another number of rows than metadata records."""
    return FormatError(
        f"the file has {actual} rows; the metadata records {recorded}. "
        "The data file was changed after it was committed",
        path=path,
    )


class OrcSource:
    """An ORC file, read as one block: Arrow does not say where its stripes lie."""

    def __init__(self, access: RandomAccess) -> None:
        import pyarrow.orc as orc

        self._file = orc.ORCFile(access.arrow())
        self.schema: pa.Schema = self._file.schema
        self.num_rows = int(self._file.nrows)
        self.blocks = [Block(index=0, first_row=0, rows=self.num_rows, offset=0)]

    def batches(self, block: Block, leaves: list[int], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """All rows, stripe after stripe."""
        names = list(_top_level(self.schema, leaves))
        for stripe in range(self._file.nstripes):
            rows: Any = self._file.read_stripe(stripe, columns=names)
            for start in range(0, rows.num_rows, batch_rows):
                yield rows.slice(start, batch_rows)


class AvroSource:
    """An Avro file, read as one block."""

    def __init__(self, access: RandomAccess, limits: Limits) -> None:
        from frazil import avro
        from frazil.avro.by_row import RowReader

        data = access.read_at(0, access.size)
        header = avro.read_header(data, path=access.path)
        self._rows = RowReader(data, header, path=access.path, limits=limits)
        self.schema: pa.Schema = self._rows.schema
        self.num_rows = self._rows.num_rows
        self.blocks = [Block(index=0, first_row=0, rows=self.num_rows, offset=0)]

    def batches(self, block: Block, leaves: list[int], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """All rows."""
        return self._rows.batches(set(_top_level(self.schema, leaves)), batch_rows)


def _top_level(schema: pa.Schema, leaves: Iterable[int]) -> Iterator[str]:
    leaf_set = set(leaves)
    leaf = 0
    for field in schema:
        count = _leaf_count(field.type)
        if leaf_set & set(range(leaf, leaf + count)):
            yield field.name
        leaf += count


def _leaf_count(kind: pa.DataType) -> int:
    if kind.num_fields == 0:
        return 1
    if pa.types.is_map(kind):
        return _leaf_count(kind.key_type) + _leaf_count(kind.item_type)
    return sum(_leaf_count(kind.field(at).type) for at in range(kind.num_fields))

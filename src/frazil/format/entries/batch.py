"""A manifest in memory: `EntryBatch`, one flat Arrow column per on-disk leaf field.

Flat columns make edits cheap (set a status, drop rows, append rows) and keep whatever grows with
the table in Arrow. A column that is absent is null in every row. Nesting happens only when a
manifest is written (`frazil.format.entries.manifest`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.format.entries import fields
from frazil.format.values.types import promote
from frazil.iceberg.types import TimestampNanoType, TimestampType

Column: TypeAlias = Any
"""An Arrow array, or a chunked one where entries of several manifests are listed."""
_SPARSE = 4


class EntryBatch:
    """Entries as flat columns keyed by dotted path. Immutable; every edit returns a new batch.

    Columns are held one by one rather than as an Arrow table: a root has about a hundred, and a
    commit sets a dozen of them in turn.
    """

    __slots__ = ("_columns", "_nbytes", "_num_rows", "_table")
    _columns: Mapping[str, Column]
    _num_rows: int
    _table: pa.Table | None
    _nbytes: int | None

    def __init__(self, table: pa.Table) -> None:
        self._columns = {
            name: column.chunk(0) if column.num_chunks == 1 else column
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
        self._num_rows = table.num_rows
        self._table = table
        self._nbytes = None

    @staticmethod
    def of(columns: Mapping[str, Column], num_rows: int) -> EntryBatch:
        """Entries from their columns, each of which has `num_rows` values."""
        batch = EntryBatch.__new__(EntryBatch)
        batch._columns, batch._num_rows = columns, num_rows
        batch._table = batch._nbytes = None
        return batch

    @staticmethod
    def empty() -> EntryBatch:
        """No entries, every fixed column present so that types are known."""
        return EntryBatch.of(
            {key: arrow_values.array([], leaf.type) for key, leaf in fields.LEAVES.items()}, 0
        )

    @staticmethod
    def from_rows(
        rows: Sequence[Mapping[str, Any]], types: Mapping[str, pa.DataType] | None = None
    ) -> EntryBatch:
        """Entries from Python mappings; for the few that one commit touches, not for manifests.

        `types` gives the Arrow types of table-dependent columns (stats and partition). Columns
        that are null in every row are left out.
        """
        columns: dict[str, Column] = {}
        for key in dict.fromkeys(key for row in rows for key in row):
            values = [row.get(key) for row in rows]
            if all(value is None for value in values):
                continue
            leaf = fields.LEAVES.get(key)
            kind = leaf.type if leaf is not None else (types or {}).get(key)
            columns[key] = arrow_values.array(values, kind)
        return EntryBatch.of(columns, len(rows)) if columns else EntryBatch.empty()

    @staticmethod
    def concat(batches: Iterable[EntryBatch], *, combine: bool = True) -> EntryBatch:
        """All entries of the batches, in order; a column missing from one is null there.

        Where a column's type differs (a promoted column), the wider type is taken. Without
        `combine` nothing is copied: right for results that are large and read once.
        """
        parts = list(batches)
        full = [batch for batch in parts if batch.num_rows]
        if not full:
            return parts[0] if parts else EntryBatch.empty()
        if len(full) == 1:
            return full[0]
        columns: dict[str, Column] = {}
        for key in _keys(full):
            chunks = _chunks_of(full, key)
            try:
                columns[key] = pa.concat_arrays(chunks) if combine else pa.chunked_array(chunks)
            except (pa.ArrowInvalid, TypeError):  # types differ
                tables = _widened([batch.table for batch in full])
                merged = pa.concat_tables(tables, promote_options="permissive")
                return EntryBatch(merged.combine_chunks() if combine else merged)
        return EntryBatch.of(columns, sum(batch.num_rows for batch in full))

    @property
    def table(self) -> pa.Table:
        """The entries as an Arrow table."""
        if self._table is None:
            arrays, names = list(self._columns.values()), list(self._columns)
            self._table = pa.Table.from_arrays(arrays, names=names)
        return self._table

    @property
    def num_rows(self) -> int:
        """How many entries."""
        return self._num_rows

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the columns that are present."""
        return tuple(self._columns)

    def types(self) -> Iterator[tuple[str, pa.DataType]]:
        """Keys and types of the columns that are present."""
        for key, column in self._columns.items():
            yield key, column.type

    def arrays(self) -> Iterator[tuple[str, pa.Array]]:
        """Keys and values of the columns that are present, each in one piece."""
        for key, column in self._columns.items():
            yield key, column if isinstance(column, pa.Array) else single_chunk(column)

    @property
    def nbytes(self) -> int:
        """Memory that the columns hold on to."""
        if self._nbytes is None:
            sizes = (column.get_total_buffer_size() for column in self._columns.values())
            self._nbytes = sum(sizes)
        return self._nbytes

    def has(self, key: str) -> bool:
        """Whether the column is present (it may still be null everywhere)."""
        return key in self._columns

    def column(self, key: str) -> pa.ChunkedArray:
        """The column, or nulls of its type when absent."""
        column = self._column(key)
        return pa.chunked_array([column]) if isinstance(column, pa.Array) else column

    def _column(self, key: str) -> Column:
        column = self._columns.get(key)
        if column is not None:
            return column
        leaf = fields.LEAVES.get(key)
        kind = leaf.type if leaf is not None and leaf.type is not None else pa.null()
        return pa.nulls(self.num_rows, kind)

    def numpy(self, key: str, *, missing: int = -1) -> np.ndarray[Any, np.dtype[Any]]:
        """An integer column as numpy, nulls replaced by `missing`."""
        column = self._column(key)
        if pa.types.is_null(column.type):
            return np.full(self.num_rows, missing)
        if column.null_count:
            column = pc.fill_null(column, arrow_values.scalar(missing, column.type))
        return arrow_values.to_numpy(column)

    def nulls(self, key: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Where a column has no value. Columns with values everywhere or nowhere cost nothing."""
        column = self._columns.get(key)
        if column is None or column.null_count == self._num_rows:
            return np.ones(self._num_rows, dtype=np.bool_)
        if not column.null_count:
            return np.zeros(self._num_rows, dtype=np.bool_)
        return arrow_values.to_numpy(pc.is_null(column))

    def pylist(self, key: str, rows: np.ndarray[Any, np.dtype[Any]] | None = None) -> list[Any]:
        """The column as Python values: of all entries, or at these ascending positions."""
        column = self._column(key)
        if rows is None:
            return list(column.to_pylist())
        if not rows.size:
            return []
        if rows.size * _SPARSE < rows[-1]:
            return list(pc.take(column, arrow_values.array(rows)).to_pylist())
        # Leaves come first in a root, so what is asked for is mostly the beginning.
        values = column.slice(0, int(rows[-1]) + 1).to_pylist()
        return [values[row] for row in rows]

    def row(self, index: int) -> dict[str, Any]:
        """One entry as a mapping of its present, non-null columns."""
        values = {key: column[index].as_py() for key, column in self._columns.items()}
        return {key: value for key, value in values.items() if value is not None}

    def filter(self, mask: np.ndarray[Any, np.dtype[np.bool_]] | pa.Array) -> EntryBatch:
        """The entries where the mask is true."""
        if isinstance(mask, np.ndarray):
            if mask.all():
                return self
            mask = arrow_values.array(mask)
        return EntryBatch(pc.filter(self.table, mask))

    def take(self, indices: np.ndarray[Any, np.dtype[Any]] | Sequence[int]) -> EntryBatch:
        """The entries at these positions, in that order."""
        positions = arrow_values.array(np.asarray(indices, dtype=np.int64))
        return EntryBatch(pc.take(self.table, positions))

    def slice(self, offset: int, length: int | None = None) -> EntryBatch:
        """A run of entries, without copying."""
        return EntryBatch(self.table.slice(offset, length))

    def with_column(
        self, key: str, values: pa.Array | pa.ChunkedArray | Sequence[Any]
    ) -> EntryBatch:
        """The batch with one column set or replaced."""
        leaf = fields.LEAVES.get(key)
        if not isinstance(values, pa.Array | pa.ChunkedArray):
            values = arrow_values.array(values, leaf.type if leaf is not None else None)
        elif leaf is not None and leaf.type is not None and values.type != leaf.type:
            values = pc.cast(values, leaf.type)
        rows = self.num_rows if self._columns else len(values)
        if len(values) != rows:
            raise ValueError(f"{key} has {len(values)} values for {rows} entries")
        return EntryBatch.of({**self._columns, key: values}, rows)

    def with_constant(self, key: str, value: Any) -> EntryBatch:
        """The batch with one fixed column set to the same value in every row."""
        return self.with_constants({key: value})

    def with_constants(self, values: Mapping[str, Any]) -> EntryBatch:
        """The batch with fixed columns set, each to the same value in every row."""
        rows = self.num_rows
        constants = {
            key: arrow_values.repeat(arrow_values.scalar(value, fields.LEAVES[key].type), rows)
            for key, value in values.items()
        }
        return EntryBatch.of({**self._columns, **constants}, rows)

    def without(self, *keys: str) -> EntryBatch:
        """The batch without these columns (they become null)."""
        gone = self._columns.keys() & set(keys)
        if not gone:
            return self
        columns = {key: column for key, column in self._columns.items() if key not in gone}
        return EntryBatch.of(columns, self.num_rows)

    def select(self, keys: Iterable[str]) -> EntryBatch:
        """Only these columns, those that are present."""
        picked = {key: self._columns[key] for key in keys if key in self._columns}
        return EntryBatch.of(picked, self.num_rows)

    def with_columns(self, more: EntryBatch) -> EntryBatch:
        """The same entries with more columns."""
        return EntryBatch.of({**self._columns, **more._columns}, self.num_rows)

    def __reduce__(self) -> tuple[type[EntryBatch], tuple[pa.Table]]:
        return EntryBatch, (self.table,)


def _keys(batches: Sequence[EntryBatch]) -> Iterable[str]:
    """Columns of all batches, those of the widest first."""
    keys = dict.fromkeys(max(batches, key=lambda batch: len(batch._columns))._columns)
    for batch in batches:
        keys.update(dict.fromkeys(batch._columns))
    return keys


def single_chunk(column: Column) -> pa.Array:
    """A column as one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _chunks_of(batches: Sequence[EntryBatch], key: str) -> list[pa.Array]:
    """The column of all batches, nulls where it is missing."""
    chunks: list[pa.Array] = []
    for batch in batches:
        column = batch._columns.get(key)
        if column is None:
            kind = next(batch._columns[key].type for batch in batches if key in batch._columns)
            chunks.append(pa.nulls(batch._num_rows, kind))
        elif isinstance(column, pa.ChunkedArray):
            chunks += column.chunks
        else:
            chunks.append(column)
    return chunks


def _widened(tables: Sequence[pa.Table]) -> Sequence[pa.Table]:
    """The tables with dates as timestamps where another table has timestamps: Arrow itself does
    not take the two for one column."""
    moments: dict[str, pa.DataType] = {}
    dates: set[str] = set()
    for table in tables:
        for field in table.schema:
            if pa.types.is_timestamp(field.type):
                moments[field.name] = field.type
            elif pa.types.is_date32(field.type):
                dates.add(field.name)
    widened = dates & moments.keys()
    if not widened:
        return tables
    return [_with_moments(table, {name: moments[name] for name in widened}) for table in tables]


def _with_moments(table: pa.Table, moments: Mapping[str, pa.DataType]) -> pa.Table:
    for name, kind in moments.items():
        at = table.schema.get_field_index(name)
        if at >= 0 and pa.types.is_date32(table.schema.field(at).type):
            to = TimestampNanoType() if kind.unit == "ns" else TimestampType()
            table = table.set_column(at, name, promote(table.column(at), to))
    return table

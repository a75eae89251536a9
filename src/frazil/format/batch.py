"""A manifest in memory: `EntryBatch`, one flat Arrow column per on-disk leaf field.

Flat columns make edits cheap (set a status, drop rows, append rows) and keep whatever grows with
the table in Arrow. A column that is absent is null in every row. Nesting happens only when a
manifest is written (`frazil.format.manifest`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import TimestampNanoType, TimestampType

from frazil.format import fields
from frazil.format.types import promote


@dataclass(frozen=True, slots=True, eq=False)
class EntryBatch:
    """Entries as flat columns keyed by dotted path. Immutable; every edit returns a new batch."""

    table: pa.Table

    @staticmethod
    def empty() -> EntryBatch:
        """No entries, every fixed column present so that types are known."""
        return EntryBatch(
            pa.table({key: pa.array([], leaf.type) for key, leaf in fields.LEAVES.items()})
        )

    @staticmethod
    def from_rows(
        rows: Sequence[Mapping[str, Any]], types: Mapping[str, pa.DataType] | None = None
    ) -> EntryBatch:
        """Entries from Python mappings; for the few that one commit touches, not for manifests.

        `types` gives the Arrow types of table-dependent columns (stats and partition). Columns
        that are null in every row are left out.
        """
        columns: dict[str, pa.Array] = {}
        for key in dict.fromkeys(key for row in rows for key in row):
            values = [row.get(key) for row in rows]
            if all(value is None for value in values):
                continue
            leaf = fields.LEAVES.get(key)
            kind = leaf.type if leaf is not None else (types or {}).get(key)
            columns[key] = pa.array(values, kind)
        if not columns:
            return EntryBatch(EntryBatch.empty().table)
        return EntryBatch(pa.table(columns))

    @staticmethod
    def concat(batches: Iterable[EntryBatch], *, combine: bool = True) -> EntryBatch:
        """All entries of the batches, in order; a column missing from one is null there.

        Where a column's type differs (a promoted column), the wider type is taken. Without
        `combine` nothing is copied: right for results that are large and read once.
        """
        tables = [batch.table for batch in batches]
        full = [table for table in tables if table.num_rows]
        if not full:
            return EntryBatch(tables[0]) if tables else EntryBatch.empty()
        if len(full) == 1:
            return EntryBatch(full[0])
        schema = _common_schema(full)
        if schema is None:
            merged = pa.concat_tables(_widened(full), promote_options="permissive")
            return EntryBatch(merged.combine_chunks() if combine else merged)
        alike = [_aligned(table, schema) for table in full]
        if not combine:
            return EntryBatch(pa.concat_tables(alike))
        pieces = [piece for table in alike for piece in table.to_batches()]
        return EntryBatch(pa.Table.from_batches([pa.concat_batches(pieces)]))

    @property
    def num_rows(self) -> int:
        """How many entries."""
        return int(self.table.num_rows)

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the columns that are present."""
        return tuple(self.table.column_names)

    def has(self, key: str) -> bool:
        """Whether the column is present (it may still be null everywhere)."""
        return bool(self.table.schema.get_field_index(key) >= 0)

    def column(self, key: str) -> pa.ChunkedArray:
        """The column, or nulls of its type when absent."""
        index = self.table.schema.get_field_index(key)
        if index >= 0:
            return self.table.column(index)
        leaf = fields.LEAVES.get(key)
        kind = leaf.type if leaf is not None and leaf.type is not None else pa.null()
        return pa.chunked_array([pa.nulls(self.num_rows, kind)])

    def numpy(self, key: str, *, missing: int = -1) -> np.ndarray[Any, np.dtype[Any]]:
        """An integer column as numpy, nulls replaced by `missing`."""
        column = self.column(key)
        if column.null_count:
            column = pc.fill_null(column, pa.scalar(missing, column.type))
        return np.asarray(column.to_numpy())

    def pylist(self, key: str) -> list[Any]:
        """The column as Python values."""
        return list(self.column(key).to_pylist())

    def row(self, index: int) -> dict[str, Any]:
        """One entry as a mapping of its present, non-null columns."""
        values = self.table.slice(index, 1).to_pylist()[0]
        return {key: value for key, value in values.items() if value is not None}

    def filter(self, mask: np.ndarray[Any, np.dtype[np.bool_]] | pa.Array) -> EntryBatch:
        """The entries where the mask is true."""
        if isinstance(mask, np.ndarray):
            if mask.all():
                return self
            mask = pa.array(mask)
        return EntryBatch(self.table.filter(mask))

    def take(self, indices: np.ndarray[Any, np.dtype[Any]] | Sequence[int]) -> EntryBatch:
        """The entries at these positions, in that order."""
        return EntryBatch(self.table.take(pa.array(np.asarray(indices, dtype=np.int64))))

    def slice(self, offset: int, length: int | None = None) -> EntryBatch:
        """A run of entries, without copying."""
        return EntryBatch(self.table.slice(offset, length))

    def with_column(
        self, key: str, values: pa.Array | pa.ChunkedArray | Sequence[Any]
    ) -> EntryBatch:
        """The batch with one column set or replaced."""
        leaf = fields.LEAVES.get(key)
        if not isinstance(values, pa.Array | pa.ChunkedArray):
            values = pa.array(values, leaf.type if leaf is not None else None)
        elif leaf is not None and leaf.type is not None and values.type != leaf.type:
            values = values.cast(leaf.type)
        index = self.table.schema.get_field_index(key)
        if index >= 0:
            return EntryBatch(self.table.set_column(index, key, values))
        return EntryBatch(self.table.append_column(key, values))

    def with_constant(self, key: str, value: Any) -> EntryBatch:
        """The batch with one fixed column set to the same value in every row."""
        kind = fields.LEAVES[key].type
        return self.with_column(key, pa.repeat(pa.scalar(value, kind), self.num_rows))

    def without(self, *keys: str) -> EntryBatch:
        """The batch without these columns (they become null)."""
        present = [key for key in keys if self.has(key)]
        return EntryBatch(self.table.drop_columns(present)) if present else self

    def select(self, keys: Iterable[str]) -> EntryBatch:
        """Only these columns, those that are present."""
        return EntryBatch(self.table.select([key for key in keys if self.has(key)]))

    def combined(self) -> EntryBatch:
        """The same entries in one chunk; without this a long series of edits slows down."""
        return EntryBatch(self.table.combine_chunks())


def _common_schema(tables: Sequence[pa.Table]) -> pa.Schema | None:
    """The columns of all tables; None when two of them differ in a column's type."""
    widest: pa.Schema = max(tables, key=lambda table: table.num_columns).schema
    more: dict[str, pa.Field] = {}
    for table in tables:
        if table.schema.equals(widest):
            continue
        for field in table.schema:
            index = widest.get_field_index(field.name)
            known = more.setdefault(field.name, field) if index < 0 else widest.field(index)
            if known.type != field.type:
                return None
    return pa.schema([*widest, *more.values()]) if more else widest


def _aligned(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with all columns of the schema, in its order."""
    if table.schema.equals(schema):
        return table
    arrays = []
    for field in schema:
        index = table.schema.get_field_index(field.name)
        arrays.append(table.column(index) if index >= 0 else pa.nulls(table.num_rows, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


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

"""Rows that Frazil's own reader gives to an engine, as an Arrow dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyiceberg.schema import Schema

from frazil import arrow_compute as pc
from frazil.data.metadata_columns import POS, with_columns
from frazil.data.schema import arrow_schema, for_display
from frazil.rows.actions import KEY
from frazil.rows.duckdb.duckdb_failures import kept
from frazil.rows.duckdb.duckdb_source import unsliced
from frazil.rows.planned import Longs
from frazil.scan.tasks import Task, TaskReader
from frazil.value_classes import dataclass, replace


class StreamedTasks(ds.Dataset):  # type: ignore[misc]
    """Rows of tasks by Frazil's own reader. DuckDB asks a dataset for the columns that a query
    needs; of other objects it takes all. Every scan makes a new stream, so that a query may use the
    rows more than once. With `bases`, rows have their number in the plan as a last column."""

    def __init__(self, reader: TaskReader, tasks: Sequence[Task], bases: Longs | None) -> None:
        self._whole = _Stream(
            reader=reader,
            tasks=tasks,
            bases=bases,
            columns=reader.reading.schema,
            has_key=bases is not None,
        )

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._whole.schema

    def scanner(
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **_: Any
    ) -> _Stream:
        """The rows with some columns; filters may come for the numbers of the rows alone, as
        others are over expressions."""
        whole = self._whole
        asked = set(self.schema.names if columns is None else columns)
        if filter is not None:
            asked |= {name for name in self.schema.names if name in str(filter)}
        fields = [column for column in whole.columns.fields if column.name in asked]
        return replace(whole, columns=Schema(*fields), has_key=KEY in asked, condition=filter)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stream:
    """A pass over the rows."""

    reader: TaskReader
    tasks: Sequence[Task]
    bases: Longs | None
    columns: Schema
    has_key: bool
    condition: pc.Expression | None = None

    @property
    def schema(self) -> pa.Schema:
        """What the rows have."""
        read = self._read_schema
        return self._shaped(arrow_schema(read).empty_table(), read, 0).schema

    @property
    def _read_schema(self) -> Schema:
        has_pos = any(column.field_id == POS.field_id for column in self.columns.fields)
        return with_columns(self.columns, (POS,)) if self.has_key and not has_pos else self.columns

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows, from the first on."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        schema = self._read_schema
        reader = TaskReader(replace(self.reader.reading, schema=schema))
        with kept():
            for at, task in enumerate(self.tasks):
                for batch in reader.read(task):
                    shaped = self._shaped(pa.Table.from_batches([batch]), schema, at)
                    if self.condition is not None:
                        shaped = shaped.filter(self.condition)
                    yield from map(unsliced, shaped.to_batches())

    def _shaped(self, rows: pa.Table, schema: Schema, at: int) -> pa.Table:
        shaped = for_display(rows, schema)
        if not self.has_key:
            return shaped
        base = 0 if self.bases is None or not len(self.bases) else int(self.bases[at])
        keys = pc.add(rows.column(POS.name), pa.scalar(base, pa.int64()))
        names = [column.name for column in self.columns.fields]
        return shaped.select(names).append_column(KEY, keys)

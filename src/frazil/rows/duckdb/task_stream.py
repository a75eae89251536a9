"""Rows that Frazil's own reader gives to an engine, as a stream of Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.data.metadata_columns import POS, with_columns
from frazil.data.schema import display_schema, for_display
from frazil.iceberg.schema import Schema
from frazil.rows.actions import KEY
from frazil.rows.duckdb.duckdb_failures import kept
from frazil.rows.duckdb.duckdb_source import unsliced
from frazil.rows.planned import Longs
from frazil.scan.tasks import Task, TaskReader, has_few_values
from frazil.storage import readers_at
from frazil.threads import in_threads
from frazil.value_classes import dataclass, replace

if TYPE_CHECKING:
    from frazil.arrow_compute import Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStream:
    """The rows of tasks, from the first on each time that they are asked for. With `bases`, rows
    have their number in the plan as a last column."""

    reader: TaskReader
    tasks: Sequence[Task]
    bases: Longs | None
    columns: Schema
    has_key: bool
    condition: Expression | None = None

    @staticmethod
    def of(reader: TaskReader, tasks: Sequence[Task], bases: Longs | None) -> TaskStream:
        """All columns of a reader's rows."""
        return TaskStream(
            reader=reader,
            tasks=tasks,
            bases=bases,
            columns=reader.reading.schema,
            has_key=bases is not None,
        )

    @property
    def schema(self) -> pa.Schema:
        """What the rows have."""
        shown = display_schema(self.columns)
        return shown.append(pa.field(KEY, pa.int64())) if self.has_key else shown

    @property
    def _read_schema(self) -> Schema:
        has_pos = any(column.field_id == POS.field_id for column in self.columns.fields)
        return with_columns(self.columns, (POS,)) if self.has_key and not has_pos else self.columns

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows, from the first on."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def __arrow_c_schema__(self) -> Any:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        schema = self._read_schema
        reader = TaskReader(replace(self.reader.reading, schema=schema))

        def rows_of(at: int) -> Iterator[pa.RecordBatch]:
            for batch in reader.read(self.tasks[at]):
                shaped = self._shaped(pa.Table.from_batches([batch]), schema, at)
                if self.condition is not None:
                    shaped = shaped.filter(self.condition)
                yield from map(unsliced, shaped.to_batches())

        with kept():
            numbers = range(len(self.tasks))
            if not has_few_values(self.tasks, schema):
                for at in numbers:
                    yield from rows_of(at)
                return
            threads = readers_at(self.tasks[0].source.path)
            for batches in in_threads(numbers, lambda at: list(rows_of(at)), threads=threads):
                yield from batches

    def _shaped(self, rows: pa.Table, schema: Schema, at: int) -> pa.Table:
        shaped = for_display(rows, schema)
        if not self.has_key:
            return shaped
        base = 0 if self.bases is None or not len(self.bases) else int(self.bases[at])
        keys = pc.add(rows.column(POS.name), arrow_values.scalar(base, pa.int64()))
        names = [column.name for column in self.columns.fields]
        return shaped.select(names).append_column(KEY, keys)


__all__ = ["TaskStream"]

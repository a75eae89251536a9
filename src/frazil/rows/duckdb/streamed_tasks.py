"""Rows that Frazil's own reader gives to an engine, as an Arrow stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from frazil.data.metadata_columns import POS, with_columns
from frazil.data.schema import arrow_schema, for_display
from frazil.rows.actions import KEY
from frazil.rows.duckdb.duckdb_failures import kept
from frazil.rows.duckdb.duckdb_source import unsliced
from frazil.rows.planned import Longs
from frazil.scan.tasks import Task, TaskReader
from frazil.value_classes import replace


class StreamedTasks:
    """Rows of tasks by Frazil's own reader. Every read makes a new stream, so that a query may use
    them more than once. With `bases`, rows have their number in the plan as a last column."""

    def __init__(self, reader: TaskReader, tasks: Sequence[Task], bases: Longs | None) -> None:
        schema = reader.reading.schema
        self._tasks = tasks
        self._bases = bases
        self._names = [column.name for column in schema.fields]
        self._add_pos = bases is not None and POS.name not in self._names
        self._schema = with_columns(schema, (POS,)) if self._add_pos else schema
        self._reader = TaskReader(replace(reader.reading, schema=self._schema))

    def _batches(self) -> Iterator[pa.RecordBatch]:
        with kept():
            for at, task in enumerate(self._tasks):
                for batch in self._reader.read(task):
                    shaped = self._shaped(pa.Table.from_batches([batch]), at)
                    yield from map(unsliced, shaped.to_batches())

    def _shaped(self, rows: pa.Table, at: int) -> pa.Table:
        shaped = for_display(rows, self._schema)
        if self._bases is None:
            return shaped
        keys = pc.add(rows.column(POS.name), pa.scalar(self._bases[at], pa.int64()))
        return shaped.select(self._names).append_column(KEY, keys)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A new stream of the rows."""
        schema = self._shaped(arrow_schema(self._schema).empty_table(), 0).schema
        stream = pa.RecordBatchReader.from_batches(schema, self._batches())
        return stream.__arrow_c_stream__(requested_schema)

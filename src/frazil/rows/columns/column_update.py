"""New values of columns, written as column files beside the data files.

The values come by the number of the row, in any order; a row without a value keeps the one it has,
a deleted row gets none. Memory holds the new columns of about a million rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from frazil.commit.column_edits import ColumnEdit
from frazil.commit.handle import TableHandle
from frazil.data.metadata_columns import LAST_UPDATED, POS
from frazil.data.projection import file_fields
from frazil.data.read.sources import open_source
from frazil.data.schema import arrow_schema
from frazil.data.write.column_file import ColumnFileWriter
from frazil.data.write.row_input import conformed
from frazil.data.write.write_files import metrics_of
from frazil.data.write.write_options import WriteOptions
from frazil.errors import FormatError, InvalidInput, Unsupported
from frazil.format.entries import fields as entry_fields
from frazil.format.entries.revisions import revision_to_write
from frazil.format.metadata.metadata import TableMetadata
from frazil.properties.registry import FORMAT_REVISION
from frazil.rows.actions import KEY
from frazil.rows.planned import Longs, Planned
from frazil.scan.tasks import Task, TaskReader

_CHUNK_ROWS: Final = 1 << 20
_KEY_FIELD: Final = NestedField(
    field_id=2_000_000_000, name=KEY, field_type=LongType(), required=True
)

Compute = Callable[[Planned], Generator[pa.RecordBatch]]
"""New values of the rows of a plan: columns by name, and `KEY`, the number of the row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatedColumns:
    """What was written, and how many rows got new values."""

    edits: tuple[ColumnEdit, ...]
    rows: int


def refusal(metadata: TableMetadata, fields: Sequence[NestedField]) -> str | None:
    """Why columns of a table cannot be written to column files; None where they can."""
    if revision_to_write(metadata.properties) is entry_fields.REVISION_1_12:
        return (
            f"{FORMAT_REVISION.key} is 1.12, which has no column files (field 158); set it to "
            f"{entry_fields.LATEST.name}, or update with mode='rows'"
        )
    sources = {part.source_id for spec in metadata.partition_specs for part in spec.fields}
    sources |= {id for column in metadata.expressions for id in column.source_ids}
    for column in fields:
        if sources & _ids(column):
            return (
                f"the table is or was partitioned by {column.name}, and column files cannot move "
                "rows to other partitions; update with mode='rows'"
            )
    return None


def _ids(column: NestedField) -> set[int]:
    below = getattr(column.field_type, "fields", ())
    return {column.field_id}.union(*(_ids(child) for child in below))


@dataclass(kw_only=True)
class ColumnUpdate:
    """Writes column files for the files of a plan."""

    planned: Planned
    fields: tuple[NestedField, ...]
    handle: TableHandle
    metadata: TableMetadata
    written: list[str]

    def __post_init__(self) -> None:
        why = refusal(self.metadata, self.fields)
        if why is not None:
            raise Unsupported(f"{self.handle.name}: {why}", feature="column updates")
        properties = self.metadata.properties
        self._known = {column.field_id for column in self.planned.scan.table_schema.fields}
        self._writer = ColumnFileWriter(
            self.fields,
            storage=self.handle.storage,
            location=self.handle.location,
            options=WriteOptions.from_properties(properties),
            metrics=metrics_of(
                properties,
                self.metadata.schema(),
                self.metadata.spec(),
                self.metadata.sort_order(),
            ),
            written=self.written,
        )
        self._orders = {
            order.order_id: {part.source_id for part in order.fields}
            for order in self.metadata.sort_orders
        }

    def run(self, compute: Compute) -> UpdatedColumns:
        """Compute the values file by file and write those of files where there are any."""
        edits: list[ColumnEdit] = []
        rows = 0
        for chunk in self._chunks():
            part = self.planned.part(chunk)
            with closing(compute(part)) as batches:
                values = _Values.of(batches, self.fields)
            work = [
                (place, int(row), task)
                for place, (row, task) in enumerate(zip(chunk, part.tasks(), strict=True))
            ]
            write = partial(self._file, part, values)
            for edit, count in self.handle.reader().map(work, write):
                rows += count
                if edit is not None:
                    edits.append(edit)
        return UpdatedColumns(edits=tuple(edits), rows=rows)

    def _chunks(self) -> Iterator[npt.NDArray[np.intp]]:
        """Files, as rows of the plan, of about so many rows together."""
        ends = np.cumsum(self.planned.records)
        numbers = (ends - self.planned.records) // _CHUNK_ROWS if len(ends) else ends
        for number in np.unique(numbers):
            yield np.flatnonzero(numbers == number)

    def _file(
        self, part: Planned, values: _Values, item: tuple[int, int, Task]
    ) -> tuple[ColumnEdit | None, int]:
        place, row, task = item
        base, records = int(part.bases[place]), task.source.record_count
        positions, rows = values.of_file(base, records)
        if not len(positions):
            return None, 0
        if part.plan.matches.get(place):
            raise Unsupported(
                f"{task.location}: delete files apply to it, which would not apply to updated "
                "columns; compact the table first, or update with mode='rows'",
                feature="column updates under delete files",
            )
        columns = self._columns(task, values, positions, rows)
        done = self._writer.write(columns, self._row_groups(task))
        order = part.plan.files.pylist("sort_order_id")[place]
        updated = {id for column in self.fields for id in _ids(column)}
        edit = ColumnEdit(
            location=task.location,
            file=done.file,
            replaces=self._replaced(row),
            stats_ids=done.stats_ids,
            stats=done.stats,
            stats_types=done.stats_types,
            unsorted=bool(order and self._orders.get(order, set()) & updated),
            leaf=task.leaf,
            position=task.position,
            first_row_id=task.source.first_row_id,
        )
        return edit, len(positions)

    def _replaced(self, row: int) -> tuple[str, ...]:
        stored = self.planned.plan.files.column(entry_fields.COLUMN_FILES)[row].as_py()
        return tuple(file["location"] for file in stored or ())

    def _row_groups(self, task: Task) -> list[int]:
        """Rows of the row groups of a data file, which must say what its columns are."""
        opened = open_source(self.handle.storage, task.source)
        try:
            file_fields(opened.schema)
        except FormatError as error:
            raise Unsupported(
                f"{task.location}: its columns have no field ids, so that column files cannot "
                "replace them; compact the table first, or update with mode='rows'",
                feature="column updates of files without field ids",
            ) from error
        return [block.rows for block in opened.blocks]

    def _columns(
        self, task: Task, values: _Values, positions: Longs, rows: npt.NDArray[np.intp]
    ) -> pa.Table:
        """The new columns of every row of a file, and when each row was updated last."""
        count = task.source.record_count
        new = values.table.take(pa.array(rows))
        live = task.live_records
        old = None if live == len(positions) else self._old(task)
        places = np.full(count, -1, dtype=np.int64)
        if old is not None:
            places[np.asarray(old.column(POS.name))] = np.arange(old.num_rows) + len(rows)
        places[positions] = np.arange(len(rows))
        index = pa.array(places, mask=places < 0)
        columns: list[Any] = []
        for field in self._writer.arrow:
            if field.name == LAST_UPDATED.name:
                chunks = [pa.nulls(len(rows), pa.int64())]
            else:
                chunks = [*new.column(field.name).cast(field.type).chunks]
            if old is not None:
                chunks += old.column(field.name).cast(field.type).chunks
            columns.append(pa.chunked_array(chunks, field.type).take(index))
        return pa.Table.from_arrays(columns, schema=self._writer.arrow)

    def _old(self, task: Task) -> pa.Table:
        """The values that live rows of a file have, and their lineage."""
        schema = Schema(*self._writer.schema.fields, POS)
        reading = replace(self.planned.reading(), schema=schema, row_filter=AlwaysTrue())
        table = pa.Table.from_batches(TaskReader(reading).read(task), schema=arrow_schema(schema))
        ages = table.column(LAST_UPDATED.name)
        # Rows that this transaction has changed before have the age of its commit.
        is_staged = pc.greater(ages, self.metadata.last_sequence_number)
        ages = pc.if_else(pc.fill_null(is_staged, False), pa.scalar(None, pa.int64()), ages)
        at = table.schema.get_field_index(LAST_UPDATED.name)
        return table.set_column(at, table.schema.field(at), ages)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Values:
    """New values of the rows of several files, by the numbers of the rows."""

    table: pa.Table
    keys: Longs
    order: npt.NDArray[np.intp]

    @staticmethod
    def of(batches: Iterator[pa.RecordBatch], fields: Sequence[NestedField]) -> _Values:
        schema = Schema(_KEY_FIELD, *fields)
        held = [piece for batch in batches for piece in conformed(batch, schema)]
        table = pa.Table.from_batches(held, schema=arrow_schema(schema))
        keys = np.asarray(table.column(KEY).combine_chunks(), dtype=np.int64)
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        repeated = int((ordered[1:] == ordered[:-1]).sum())
        if repeated:
            raise InvalidInput(
                f"{repeated} rows of the table have more than one new value; the keys of the new "
                "values must be unique"
            )
        return _Values(table=table.drop_columns([KEY]), keys=ordered, order=order)

    def of_file(self, base: int, records: int) -> tuple[Longs, npt.NDArray[np.intp]]:
        """Positions in a file that have new values, and the rows of the table with them."""
        start, end = np.searchsorted(self.keys, [base, base + records])
        return self.keys[start:end] - base, self.order[start:end]


__all__ = ["ColumnUpdate", "Compute", "UpdatedColumns", "refusal"]

"""Column files of one update: what is to be written, and the writer of each file's.

A sink is picklable, so that engines can take it elsewhere; what it writes for a file comes back as
an edit of the file's entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.commit.column_edits import ColumnEdit
from frazil.commit.handle import TableHandle
from frazil.data.metadata_columns import LAST_UPDATED, POS
from frazil.data.projection import file_fields
from frazil.data.read.read_files import Reading
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
from frazil.iceberg.expressions import AlwaysTrue
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import LongType, NestedField
from frazil.properties.registry import FORMAT_REVISION
from frazil.rows.actions import KEY
from frazil.rows.planned import Longs, Planned
from frazil.scan.tasks import Task, TaskReader
from frazil.value_classes import dataclass, replace

_KEY_FIELD: Final = NestedField(
    field_id=2_000_000_000, name=KEY, field_type=LongType(), required=True
)


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
                f"the table is or was partitioned by {column.name}, or has statistics of an "
                "expression of it, and column files cannot change these; update with mode='rows'"
            )
    return None


def _ids(column: NestedField) -> set[int]:
    below = getattr(column.field_type, "fields", ())
    return {column.field_id}.union(*(_ids(child) for child in below))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileToUpdate:
    """A data file, the number of its first row in the plan, and the column files it has."""

    task: Task
    base: int
    replaces: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UpdatedFile:
    """The edit of a file, and how many of its rows got new values."""

    edit: ColumnEdit
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSink:
    """What an update of columns needs to write them. `written` collects the files on this
    machine, so that a failed commit can remove them."""

    fields: tuple[NestedField, ...]
    metadata: TableMetadata
    location: str
    reading: Reading
    written: list[str] | None = None

    @staticmethod
    def of(
        planned: Planned,
        fields: Sequence[NestedField],
        *,
        handle: TableHandle,
        metadata: TableMetadata,
        written: list[str] | None = None,
    ) -> ColumnSink:
        """A sink for columns of a plan's files; refuses those that column files cannot have."""
        why = refusal(metadata, fields)
        if why is not None:
            raise Unsupported(f"{handle.name}: {why}", feature="column updates")
        return ColumnSink(
            fields=tuple(fields),
            metadata=metadata,
            location=handle.location,
            reading=replace(planned.reading(), row_filter=AlwaysTrue()),
            written=written,
        )

    @property
    def value_schema(self) -> Schema:
        """Rows with new values: the number of the row, and the columns."""
        return Schema(_KEY_FIELD, *self.fields)

    def files(self, planned: Planned) -> list[FileToUpdate]:
        """The files of a plan, as a writer takes them."""
        stored = planned.plan.files.pylist(entry_fields.COLUMN_FILES)
        return [
            FileToUpdate(
                task=task, base=base, replaces=tuple(file["location"] for file in held or ())
            )
            for task, base, held in zip(
                planned.tasks(), planned.bases.tolist(), stored, strict=True
            )
        ]

    def writer(self) -> SinkWriter:
        """What writes, on the machine it is called on."""
        return SinkWriter(self)


class SinkWriter:
    """Writes the column files of a sink."""

    def __init__(self, sink: ColumnSink) -> None:
        metadata = sink.metadata
        self.fields = sink.fields
        self._sink = sink
        self._storage = sink.reading.storage
        self._writer = ColumnFileWriter(
            sink.fields,
            storage=self._storage,
            location=sink.location,
            options=WriteOptions.from_properties(metadata.properties),
            metrics=metrics_of(
                metadata.properties, metadata.schema(), metadata.spec(), metadata.sort_order()
            ),
            written=[] if sink.written is None else sink.written,
        )
        updated = {id for column in sink.fields for id in _ids(column)}
        self._unsorts = frozenset(
            order.order_id
            for order in metadata.sort_orders
            if updated & {part.source_id for part in order.fields}
        )

    def write(self, file: FileToUpdate, values: NewValues) -> UpdatedFile | None:
        """The column file of a data file; None where no row has a new value."""
        task = file.task
        positions, new = values.of_file(file.base, task.source.record_count)
        if not len(positions):
            return None
        if task.deletes:
            raise Unsupported(
                f"{task.location}: delete files apply to it, which would not apply to updated "
                "columns; compact the table first, or update with mode='rows'",
                feature="column updates under delete files",
            )
        columns = self._columns(task, positions, new)
        written = self._writer.write(columns, self._row_groups(task))
        edit = ColumnEdit(
            location=task.location,
            file=written.file,
            replaces=file.replaces,
            stats_ids=written.stats_ids,
            stats=written.stats,
            stats_types=written.stats_types,
            unsorts=self._unsorts,
            leaf=task.leaf,
            position=task.position,
            first_row_id=task.source.first_row_id,
        )
        return UpdatedFile(edit=edit, rows=len(positions))

    def _row_groups(self, task: Task) -> list[int]:
        """Rows of the row groups of a data file, which must say what its columns are."""
        opened = open_source(self._storage, task.source)
        try:
            file_fields(opened.schema)
        except FormatError as error:
            raise Unsupported(
                f"{task.location}: its columns have no field ids, so that column files cannot "
                "replace them; compact the table first, or update with mode='rows'",
                feature="column updates of files without field ids",
            ) from error
        return [block.rows for block in opened.blocks]

    def _columns(self, task: Task, positions: Longs, new: pa.Table) -> pa.Table:
        """The new columns of every row of a file, and when each row was updated last."""
        count = task.source.record_count
        live = task.live_records
        old = None if live == len(positions) else self._old(task)
        index = None  # where every row has a new value, these are the column
        if len(positions) < count:
            places = np.full(count, -1, dtype=np.int64)
            if old is not None:
                held = arrow_values.to_numpy(old.column(POS.name))
                places[held] = np.arange(old.num_rows) + len(positions)
            places[positions] = np.arange(len(positions))
            index = arrow_values.array(places, mask=places < 0)
        columns: list[Any] = []
        for field in self._writer.arrow:
            if field.name == LAST_UPDATED.name:
                chunks = [pa.nulls(len(positions), pa.int64())]
            else:
                chunks = [*pc.cast(new.column(field.name), field.type).chunks]
            if old is not None:
                chunks += pc.cast(old.column(field.name), field.type).chunks
            column = pa.chunked_array(chunks, field.type)
            columns.append(column if index is None else pc.take(column, index))
        return pa.Table.from_arrays(columns, schema=self._writer.arrow)

    def _old(self, task: Task) -> pa.Table:
        """The values that live rows of a file have, and their lineage."""
        schema = Schema(*self._writer.schema.fields, POS)
        reading = replace(self._sink.reading, schema=schema)
        table = pa.Table.from_batches(TaskReader(reading).read(task), schema=arrow_schema(schema))
        ages = table.column(LAST_UPDATED.name)
        # Rows that this transaction has changed before have the age of its commit.
        is_staged = pc.greater(ages, self._sink.metadata.last_sequence_number)
        ages = pc.if_else(pc.fill_null(is_staged, False), pa.scalar(None, pa.int64()), ages)
        at = table.schema.get_field_index(LAST_UPDATED.name)
        return table.set_column(at, table.schema.field(at), ages)


def refuse_repeated(values: int) -> None:
    """Refuse so many values for rows that have one already."""
    if values:
        raise InvalidInput(
            f"rows of the table have more than one new value, {values:,} too many; the keys of the "
            "new values must be unique"
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewValues:
    """New values of the rows of several files, by the numbers of the rows."""

    table: pa.Table
    keys: Longs
    order: npt.NDArray[np.intp] | None
    """Which row of the table has each key; None if they are in order."""

    @staticmethod
    def of(batches: Iterable[pa.RecordBatch], fields: Sequence[NestedField]) -> NewValues:
        schema = Schema(_KEY_FIELD, *fields)
        held = [piece for batch in batches for piece in conformed(batch, schema)]
        table = pa.Table.from_batches(held, schema=arrow_schema(schema))
        keys = arrow_values.to_numpy(table.column(KEY))
        values, order = table.drop_columns([KEY]), None
        if not (keys[1:] > keys[:-1]).all():
            order = np.argsort(keys, kind="stable")
            keys = keys[order]
            refuse_repeated(int((keys[1:] == keys[:-1]).sum()))
        return NewValues(table=values, keys=keys, order=order)

    def of_file(self, base: int, records: int) -> tuple[Longs, pa.Table]:
        """Positions in a file that have new values, and these."""
        start, end = np.searchsorted(self.keys, [base, base + records])
        positions = self.keys[start:end] - base
        if self.order is None:
            return positions, self.table.slice(start, end - start)
        return positions, pc.take(self.table, arrow_values.array(self.order[start:end]))


__all__ = [
    "ColumnSink",
    "FileToUpdate",
    "NewValues",
    "SinkWriter",
    "UpdatedFile",
    "refusal",
    "refuse_repeated",
]

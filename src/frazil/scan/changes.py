"""What changed between two snapshots: files and rows, snapshot by snapshot.

Per snapshot, its root and the leaves that root names are read, nothing else; rows come from the
files that were added, removed, or got a larger deletion vector. A `replace` moves rows and changes
none. Memory is bounded by one file's rows plus the row ids that one snapshot moved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.schema import Schema

from frazil.data.columns import ROW_ID, with_columns
from frazil.data.read import Reading
from frazil.data.schema import arrow_schema
from frazil.format import bitmap
from frazil.format.batch import EntryBatch
from frazil.format.fields import ContentType
from frazil.format.metadata import Snapshot
from frazil.scan.plan import Plan, plan
from frazil.scan.report import ScanReport
from frazil.scan.tasks import Task, TaskReader, tasks_of
from frazil.tree.changes import TreeChanges, changes_of
from frazil.tree.read import TreeReader

Positions = np.ndarray[Any, np.dtype[np.int64]]


class ChangeType(StrEnum):
    """What happened to a row."""

    INSERT = "insert"
    DELETE = "delete"
    UPDATE_PREIMAGE = "update_preimage"
    UPDATE_POSTIMAGE = "update_postimage"


CHANGE_COLUMNS = pa.schema(
    [
        pa.field("_change_type", pa.string(), nullable=False),
        pa.field("_change_ordinal", pa.int64(), nullable=False),
        pa.field("_commit_snapshot_id", pa.int64(), nullable=False),
        pa.field("_commit_timestamp", pa.timestamp("us", tz="UTC"), nullable=False),
    ]
)
"""Columns that follow the table's own and `_row_id` in a feed of rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFeed:
    """Reads row changes of snapshots. `reading` has the table's columns and `_row_id`."""

    reader: TreeReader
    reading: Reading
    pair_updates: bool = True

    @staticmethod
    def of(reader: TreeReader, reading: Reading, *, pair_updates: bool = True) -> RowFeed:
        """A feed of the columns of `reading.schema`, with row ids."""
        names = {field.name for field in reading.schema.fields}
        schema = reading.schema if ROW_ID.name in names else with_columns(reading.schema, [ROW_ID])
        return RowFeed(
            reader=reader,
            reading=replace(reading, schema=schema),
            pair_updates=pair_updates,
        )

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the batches."""
        return feed_schema(self.reading.schema)

    def batches(
        self, snapshots: Sequence[Snapshot], *, first_ordinal: int = 0
    ) -> Iterator[pa.RecordBatch]:
        """Row changes of snapshots, which are given oldest first."""
        for ordinal, snapshot in enumerate(snapshots, start=first_ordinal):
            yield from self._snapshot(snapshot, ordinal)

    def _snapshot(self, snapshot: Snapshot, ordinal: int) -> Iterator[pa.RecordBatch]:
        if snapshot.operation == "replace":
            return
        changes = changes_of(self.reader, snapshot)
        removed = list(self._removed(changes))
        added = self._tasks(_data(changes.added))
        moved = self._moved(removed, added) if self.pair_updates and removed and added else None
        stamp = _Stamp(snapshot=snapshot, ordinal=ordinal, schema=self.arrow_schema)
        for task, positions in removed:
            for batch in self._rows(task, only=positions):
                yield stamp.mark(batch, ChangeType.DELETE, ChangeType.UPDATE_PREIMAGE, moved)
        for task in added:
            for batch in self._rows(task, only=None):
                yield stamp.mark(batch, ChangeType.INSERT, ChangeType.UPDATE_POSTIMAGE, moved)

    def _rows(self, task: Task, *, only: Positions | None) -> Iterator[pa.RecordBatch]:
        return TaskReader(self.reading).read(task, only=only)

    def _removed(self, changes: TreeChanges) -> Iterator[tuple[Task, Positions | None]]:
        """Tasks with the positions that were removed; None stands for all that were left."""
        for task in self._tasks(_data(changes.deleted)):
            yield task, None
        before = {task.location: task for task in self._tasks(_data(changes.replaced))}
        for task in self._tasks(_data(changes.modified)):
            old = before.get(task.location, replace(task, vector=None))
            gone = bitmap.difference(self._positions(task), self._positions(old))
            if gone.size:
                yield old, gone
        yield from self._by_equality(changes)

    def _by_equality(self, changes: TreeChanges) -> Iterator[tuple[Task, Positions | None]]:
        """Rows that equality deletes of this snapshot removed, found in the files they apply to."""
        added = changes.added
        kinds = added.numpy("content_type")
        if not (kinds == ContentType.EQUALITY_DELETES).any():
            return
        new = set(added.filter(kinds == ContentType.EQUALITY_DELETES).pylist("location"))
        planned = plan(self.reader, changes.snapshot)
        fresh = set(_data(added).pylist("location"))
        for task in tasks_of(planned, location=self.reader.location):
            if task.location in fresh or not task.deletes:
                continue
            mine = [d for d in task.deletes if _stored(d.source.path, new)]
            if not mine:
                continue
            before = replace(task, deletes=tuple(d for d in task.deletes if d not in mine))
            left = self._pos_of(task)
            gone = bitmap.difference(self._pos_of(before), left)
            if gone.size:
                yield before, gone

    def _pos_of(self, task: Task) -> Positions:
        from frazil.data.columns import POS

        reading = replace(self.reading, schema=Schema(POS))
        parts = [np.asarray(b.column(0)) for b in TaskReader(reading).read(task)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    def _positions(self, task: Task) -> Positions:
        if task.vector is None:
            return np.zeros(0, dtype=np.int64)
        return task.vector.positions(
            self.reading.storage, record_count=task.source.record_count
        )

    def _tasks(self, files: EntryBatch) -> list[Task]:
        report = ScanReport(snapshot_id=None, filter="")
        made = Plan(snapshot=None, files=files, deletes=None, report=report)
        return list(tasks_of(made, location=self.reader.location))

    def _moved(
        self, removed: Sequence[tuple[Task, Positions | None]], added: Sequence[Task]
    ) -> pa.Array | None:
        """Row ids that one snapshot both removed and added: its updates."""
        reading = replace(
            self.reading, schema=Schema(ROW_ID), row_filter=AlwaysTrue()
        )
        reader = TaskReader(reading)

        def ids(task: Task, only: Positions | None) -> list[pa.Array]:
            return [batch.column(0) for batch in reader.read(task, only=only)]

        gone = [part for task, only in removed for part in ids(task, only)]
        came = [part for task in added for part in ids(task, None)]
        if not gone or not came:
            return None
        left, right = pa.chunked_array(gone), pa.chunked_array(came)
        both = left.filter(pc.is_in(left, value_set=right.combine_chunks()))
        return both.combine_chunks() if len(both) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stamp:
    snapshot: Snapshot
    ordinal: int
    schema: pa.Schema

    def mark(
        self, batch: pa.RecordBatch, alone: ChangeType, paired: ChangeType, moved: pa.Array | None
    ) -> pa.RecordBatch:
        rows = batch.num_rows
        kinds = pa.repeat(pa.scalar(alone.value), rows)
        if moved is not None:
            is_update = pc.is_in(batch.column(ROW_ID.name), value_set=moved)
            kinds = pc.if_else(is_update, paired.value, kinds)
        stamp = pa.scalar(self.snapshot.timestamp_ms * 1000, pa.timestamp("us", tz="UTC"))
        columns = [
            *batch.columns,
            kinds.cast(pa.string()),
            pa.repeat(pa.scalar(self.ordinal, pa.int64()), rows),
            pa.repeat(pa.scalar(int(self.snapshot.snapshot_id), pa.int64()), rows),
            pa.repeat(stamp, rows),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def feed_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema of a feed whose columns and `_row_id` are those of `schema`."""
    return pa.schema([*arrow_schema(schema), *CHANGE_COLUMNS])


def _data(batch: EntryBatch) -> EntryBatch:
    return batch.filter(batch.numpy("content_type") == ContentType.DATA)


def _stored(path: str, names: set[str]) -> bool:
    return any(path == name or path.endswith(f"/{name}") for name in names)

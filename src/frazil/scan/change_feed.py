"""What changed between two snapshots: files and rows, snapshot by snapshot or in the end.

Per snapshot its root is read and the leaves that root names, nothing else; of appends that follow
one another, the last root and the leaves written meanwhile. Rows come from the files that were
added, removed, or lost rows; where delete files are in force those are read too. File changes are a
table with one row per file that a snapshot touched, from metadata alone. A `replace` moves rows and
changes none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.argument_checks import check_arguments
from frazil.data.arrow_rows import ArrowRows
from frazil.data.read.read_files import Reading
from frazil.format import paths
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType
from frazil.format.metadata.metadata import Snapshot
from frazil.format.vectors import bitmap
from frazil.scan.change_steps import Modified
from frazil.scan.deletes_in_force import tasks_for
from frazil.scan.row_changes import CHANGE_COLUMNS, ChangeType, RowFeed, feed_columns, feed_schema
from frazil.scan.tasks import Positions, Task
from frazil.text_format import card, counted
from frazil.tree.changes import CHANGE_KEYS, append_runs, appended, changes_of
from frazil.tree.locate import Rows
from frazil.tree.read import TreeReader
from frazil.tree.stored_vectors import read_vector
from frazil.value_classes import frozen


@check_arguments
@frozen
class Changes(ArrowRows):
    """The changes of a range of snapshots. Lazy: nothing is read until needed.

    `snapshots` are those after `since` up to the last one, oldest first. `starts_whole` means that
    all rows of the first one count as inserted, because the snapshots before it have expired.
    """

    _reader: TreeReader
    _reading: Reading
    source: str
    """The uuid of the table that changed."""
    since: Snapshot | None
    snapshots: tuple[Snapshot, ...]
    collapse: bool = False
    pair_updates: bool = True
    starts_whole: bool = False

    def __repr__(self) -> str:
        after = "the beginning" if self.since is None else f"snapshot {self.since.snapshot_id}"
        kind = "net changes" if self.collapse else "changes"
        return f"Changes({kind} of {counted(len(self.snapshots), 'snapshot')} after {after})"

    def _repr_html_(self) -> str:
        facts = {
            "after": None if self.since is None else self.since.snapshot_id,
            "up to": self.snapshots[-1].snapshot_id if self.snapshots else None,
            "snapshots": len(self.snapshots),
        }
        return card("net changes" if self.collapse else "changes", facts)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the row feed."""
        return self._feed().arrow_schema

    def files(self, *, positions: bool = False) -> pa.Table:
        """Files that were added, deleted, replaced or modified, one row each.

        `positions` adds the positions of the rows a file lost, which reads deletion vectors.
        """
        return file_changes(
            self._reader, self.snapshots, starts_whole=self.starts_whole, positions=positions
        )

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Row changes, file by file, in bounded memory."""
        feed = self._feed()
        if self.collapse:
            since = None if self.starts_whole else self.since
            yield from feed.net_batches(since, self.snapshots)
        else:
            yield from feed.batches(self.snapshots, starts_whole=self.starts_whole)

    def to_reader(self) -> pa.RecordBatchReader:
        """Row changes as an Arrow stream."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def to_arrow(self) -> pa.Table:
        """All row changes as an Arrow table."""
        return pa.Table.from_batches(list(self.to_batches()), schema=self.schema)

    def _feed(self) -> RowFeed:
        return RowFeed.of(self._reader, self._reading, pair_updates=self.pair_updates)


def snapshot_ids(snapshots: Sequence[Snapshot]) -> list[int]:
    """The ids of snapshots, in their order."""
    return [int(snapshot.snapshot_id) for snapshot in snapshots]


FILE_CHANGES = pa.schema(
    [
        pa.field("change_ordinal", pa.int64(), nullable=False),
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("committed_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("operation", pa.string()),
        pa.field("change", pa.string(), nullable=False),
        pa.field("content", pa.string(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("file_format", pa.string()),
        pa.field("record_count", pa.int64()),
        pa.field("file_size_in_bytes", pa.int64()),
        pa.field("spec_id", pa.int32()),
        pa.field("first_row_id", pa.int64()),
        pa.field("rows_added", pa.int64()),
        pa.field("rows_removed", pa.int64()),
    ]
)
"""`change` is added, deleted, replaced (by other files with the same rows) or modified (lost rows).
`rows_added` and `rows_removed` are counted by deletion vectors; other delete files are not read."""

POSITIONS = pa.field("positions_removed", pa.list_(pa.int64()))

_CONTENT = {
    ContentType.DATA: "data",
    ContentType.POSITION_DELETES: "position-deletes",
    ContentType.EQUALITY_DELETES: "equality-deletes",
}


def file_changes(
    reader: TreeReader,
    snapshots: Sequence[Snapshot],
    *,
    starts_whole: bool = False,
    positions: bool = False,
) -> pa.Table:
    """Every file change of snapshots, which are given oldest first.

    `starts_whole` takes every file of the first one as added. `positions` adds the rows that
    modified files lost.
    """
    schema = FILE_CHANGES.append(POSITIONS) if positions else FILE_CHANGES
    sheet = _Sheet(reader, snapshots, positions)
    start = 0
    if starts_whole and snapshots:
        tree = reader.tree(snapshots[0], keys=CHANGE_KEYS)
        for batch in reader.all_live(tree, keys=CHANGE_KEYS):
            sheet.add(0, "added", batch)
        start = 1
    for run in append_runs(snapshots[start:]):
        together = appended(reader, run)
        if together is not None:
            sheet.add(start + together.by, "added", together.files)
        else:
            for ordinal in range(start, start + len(run)):
                sheet.add_changes(ordinal)
        start += len(run)
    return pa.concat_tables([schema.empty_table(), *sheet.tables]).combine_chunks()


class _Sheet:
    """The rows of snapshots. `ordinal` is the place of one, or an array with one per file."""

    def __init__(self, reader: TreeReader, snapshots: Sequence[Snapshot], positions: bool) -> None:
        self._reader = reader
        self._ids = np.array([int(snapshot.snapshot_id) for snapshot in snapshots], dtype=np.int64)
        self._moments = np.array(
            [snapshot.timestamp_ms * 1000 for snapshot in snapshots], dtype=np.int64
        )
        self._operations = pa.array([snapshot.operation for snapshot in snapshots], pa.string())
        self._snapshots = snapshots
        self._positions = positions
        self.tables: list[pa.Table] = []

    def add_changes(self, ordinal: int) -> None:
        changes = changes_of(self._reader, self._snapshots[ordinal])
        self.add(ordinal, "added", changes.added)
        self.add(ordinal, "deleted", changes.deleted)
        if not (changes.replaced.num_rows or changes.modified.num_rows):
            return
        files = Modified.of(changes)
        for kind in (ContentType.POSITION_DELETES, ContentType.EQUALITY_DELETES):
            same = changes.replaced.numpy("content_type") == kind
            self.add(ordinal, "replaced", changes.replaced.filter(same))
        self.add(ordinal, "replaced", files.others)
        self.add(ordinal, "modified", files.after, before=files.before)

    def add(
        self,
        ordinal: int | Rows,
        change: str,
        batch: EntryBatch,
        *,
        before: EntryBatch | None = None,
    ) -> None:
        rows = batch.num_rows
        if not rows:
            return
        records = batch.column("record_count")
        dead = _cardinality(batch)
        live = pc.subtract(records, dead)
        none = pa.nulls(rows, pa.int64())
        added = live if change == "added" else none
        if before is not None:
            removed = pc.subtract(dead, _cardinality(before))
        else:
            removed = none if change == "added" else live
        at = np.broadcast_to(np.asarray(ordinal, dtype=np.int64), rows)
        columns = [
            pa.array(at),
            pa.array(self._ids[at]),
            pa.array(self._moments[at], pa.timestamp("us", tz="UTC")),
            self._operations.take(pa.array(at)),
            pa.repeat(pa.scalar(change), rows),
            pa.array([_CONTENT[ContentType(kind)] for kind in batch.pylist("content_type")]),
            paths.resolve_all(self._reader.location, batch.column("location")),
            batch.column("file_format"),
            records,
            batch.column("file_size_in_bytes"),
            batch.column("spec_id"),
            batch.column("tracking.first_row_id"),
            added,
            removed,
        ]
        schema = FILE_CHANGES
        if self._positions:
            schema = schema.append(POSITIONS)
            columns.append(self._removed(batch, before))
        self.tables.append(pa.table(columns, schema=schema))

    def _removed(self, batch: EntryBatch, before: EntryBatch | None) -> pa.Array:
        if before is None:
            return pa.nulls(batch.num_rows, POSITIONS.type)
        old = tasks_for(self._reader, before, None)
        new = tasks_for(self._reader, batch, None)
        rows = [
            bitmap.difference(self._vector(after), self._vector(earlier))
            for earlier, after in zip(old, new, strict=True)
        ]
        return pa.array(rows, POSITIONS.type)

    def _vector(self, task: Task) -> Positions:
        return read_vector(self._reader.storage, task.vector, record_count=task.source.record_count)


def _cardinality(batch: EntryBatch) -> pa.ChunkedArray:
    """Rows that vectors of data files delete; an old vector's own entry counts as a file."""
    is_data = pc.equal(batch.column("content_type"), int(ContentType.DATA))
    dead = pc.fill_null(batch.column("deletion_vector.cardinality"), 0)
    return pc.if_else(is_data, dead, 0)


__all__ = [
    "CHANGE_COLUMNS",
    "FILE_CHANGES",
    "POSITIONS",
    "ChangeType",
    "Changes",
    "RowFeed",
    "feed_columns",
    "feed_schema",
    "file_changes",
    "snapshot_ids",
]

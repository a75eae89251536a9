"""Row changes as record batches: rows that went, rows that came, and pairs of the two.

Over a range of snapshots, change sets are folded into one first: an entry that came and went inside
the range leaves no trace, and one that changed several times is told by its first and its last
state. A file that was removed and added again is two entries: its rows have other ids.

Memory is bounded by one batch of rows plus the row ids that one step removed and added.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import chain

import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.data.metadata_columns import LAST_UPDATED, ROW_ID
from frazil.data.read.read_files import Reading
from frazil.data.schema import arrow_schema
from frazil.errors import InvalidInput
from frazil.format.entries.batch import EntryBatch
from frazil.format.metadata.metadata import Snapshot
from frazil.iceberg.expressions import AlwaysTrue
from frazil.iceberg.schema import Schema
from frazil.scan.change_steps import ChangeStep, FileSets, StepPlanner
from frazil.scan.tasks import TaskReader
from frazil.tree.changes import append_runs, appended, changes_of
from frazil.tree.locate import ByEntry, EntryKey, entry_keys
from frazil.tree.read import TreeReader
from frazil.value_classes import dataclass, frozen, replace

_STATE = ("deletion_vector.location", "deletion_vector.offset", "tracking.sequence_number")
"""What changes when an entry loses rows or has columns updated."""


@dataclass(slots=True)
class _FileSpan:
    """An entry at the start and at the end of a range; None where it is not there."""

    start: EntryBatch | None
    end: EntryBatch | None

    @property
    def is_same(self) -> bool:
        if self.start is None or self.end is None:
            return self.start is self.end
        return all(self.start.pylist(key) == self.end.pylist(key) for key in _STATE)


def net_files(reader: TreeReader, snapshots: Iterable[Snapshot]) -> FileSets:
    """The files that a range of snapshots, oldest first, changed in the end."""
    fates = ByEntry[_FileSpan]()
    for run in append_runs(snapshots):
        together = appended(reader, run)
        if together is not None:
            _fold_added(fates, together.files)
        else:
            for snapshot in run:
                _fold(fates, FileSets.of(changes_of(reader, snapshot)))
    changed = [fate for fate in fates.values() if not fate.is_same]
    stayed = [fate for fate in changed if fate.start is not None and fate.end is not None]
    return FileSets(
        gone=_concat(fate.start for fate in changed if fate.end is None),
        before=_concat(fate.start for fate in stayed),
        after=_concat(fate.end for fate in stayed),
        added=_concat(fate.end for fate in changed if fate.start is None),
    )


def _fold(fates: ByEntry[_FileSpan], files: FileSets) -> None:
    for key, entry in _each(files.gone):
        _live(fates, key, entry).end = None
    for (key, old), (_, new) in zip(_each(files.before), _each(files.after), strict=True):
        _live(fates, key, old).end = new
    _fold_added(fates, files.added)


def _live(fates: ByEntry[_FileSpan], key: EntryKey, entry: EntryBatch) -> _FileSpan:
    """The fate of an entry that is there: one not met before was there at the start."""
    fate = fates.find(key, lambda known: known.end is not None)
    if fate is None:
        fate = _FileSpan(entry, entry)
        fates.put(key, fate)
    return fate


def _fold_added(fates: ByEntry[_FileSpan], added: EntryBatch) -> None:
    for key, entry in _each(added):
        fates.put(key, _FileSpan(None, entry))


def _each(batch: EntryBatch) -> Iterable[tuple[EntryKey, EntryBatch]]:
    for row, key in enumerate(entry_keys(batch)):
        yield key, batch.slice(row, 1)


def _concat(entries: Iterable[EntryBatch | None]) -> EntryBatch:
    batches = [entry for entry in entries if entry is not None]
    return EntryBatch.concat(batches) if batches else EntryBatch.empty()


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


def feed_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema of a feed whose columns and `_row_id` are those of `schema`."""
    return pa.schema([*arrow_schema(schema), *CHANGE_COLUMNS])


def feed_columns(schema: Schema) -> Schema:
    """The columns of a feed: the table's and `_row_id`; names that the feed uses are refused."""
    fields = [field for field in schema.fields if field.field_id != ROW_ID.field_id]
    clashes = {field.name for field in fields} & {ROW_ID.name, *CHANGE_COLUMNS.names}
    if clashes:
        raise InvalidInput(
            f"the table has columns that a change feed names itself: {', '.join(sorted(clashes))}; "
            "choose other columns, or rename them"
        )
    return Schema(*fields, ROW_ID)


@frozen
class RowFeed:
    """Reads row changes of snapshots. `reading` has the table's columns and `_row_id`."""

    reader: TreeReader
    reading: Reading
    pair_updates: bool = True

    @staticmethod
    def of(reader: TreeReader, reading: Reading, *, pair_updates: bool = True) -> RowFeed:
        """A feed of the columns of `reading.schema`, with row ids."""
        return RowFeed(
            reader=reader,
            reading=replace(reading, schema=feed_columns(reading.schema)),
            pair_updates=pair_updates,
        )

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the batches."""
        return feed_schema(self.reading.schema)

    def batches(
        self, snapshots: Sequence[Snapshot], *, first_ordinal: int = 0, starts_whole: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Row changes of snapshots, which are given oldest first.

        `starts_whole` takes every row of the first one as inserted, whatever made it.
        """
        planner = StepPlanner(reader=self.reader, reading=self.reading)
        full_snapshots = snapshots[:1] if starts_whole else ()
        steps = chain(
            map(planner.whole, full_snapshots), planner.steps(snapshots[len(full_snapshots) :])
        )
        for ordinal, (snapshot, step) in enumerate(zip(snapshots, steps, strict=True)):
            yield from self._step(step, snapshot, first_ordinal + ordinal)

    def net_batches(
        self, since: Snapshot | None, snapshots: Sequence[Snapshot]
    ) -> Iterator[pa.RecordBatch]:
        """What the snapshots after `since`, oldest first, changed in the end.

        Rows that came and went in between are not there, nor are rows that were only moved.
        """
        if not snapshots:
            return
        until = snapshots[-1]
        planner = StepPlanner(reader=self.reader, reading=self.reading)
        if since is None:
            step = planner.whole(until)
        else:
            step = planner.between(since, until, net_files(self.reader, snapshots))
        yield from self._step(step, until, 0)

    def _step(self, step: ChangeStep, snapshot: Snapshot, ordinal: int) -> Iterator[pa.RecordBatch]:
        moves = self._moves(step)
        stamp = _Stamp(snapshot=snapshot, ordinal=ordinal, schema=self.arrow_schema, moves=moves)
        reader = TaskReader(self.reading)
        for part in step.removed:
            for batch in reader.read(part.task, only=part.positions):
                yield from stamp.mark(batch, ChangeType.DELETE, ChangeType.UPDATE_PREIMAGE)
        for part in step.added:
            for batch in reader.read(part.task, only=part.positions):
                yield from stamp.mark(batch, ChangeType.INSERT, ChangeType.UPDATE_POSTIMAGE)

    def _moves(self, step: ChangeStep) -> _Moves | None:
        """Row ids that a step both removed and added."""
        if not step.removed or not step.added:
            return None
        lineage = replace(
            self.reading, schema=Schema(ROW_ID, LAST_UPDATED), row_filter=AlwaysTrue()
        )
        reader = TaskReader(lineage)
        deleted = [
            batch.column(0)
            for part in step.removed
            for batch in reader.read(part.task, only=part.positions)
        ]
        deleted_ids = pa.chunked_array(deleted, pa.int64()).drop_null().combine_chunks()
        if not len(deleted_ids):
            return None
        updated: list[pa.Array] = []
        carried: list[pa.Array] = []
        for part in step.added:
            for batch in reader.read(part.task, only=part.positions):
                ids, ages = batch.column(0), batch.column(1)
                is_deleted = pc.is_in(ids, value_set=deleted_ids)
                old = pc.fill_null(pc.less_equal(ages, step.since_sequence_number), False)
                carried.append(ids.filter(pc.and_(is_deleted, old)))
                updated.append(ids.filter(pc.and_(is_deleted, pc.invert(old))))
        return _Moves(updated=_ids(updated) if self.pair_updates else None, carried=_ids(carried))


def _ids(parts: Sequence[pa.Array]) -> pa.Array | None:
    row_ids = pa.chunked_array(parts, pa.int64()).combine_chunks()
    return row_ids if len(row_ids) else None


@frozen(eq=False)
class _Moves:
    """Ids of rows that live on elsewhere: with new values, or as they were."""

    updated: pa.Array | None
    carried: pa.Array | None


@frozen(eq=False)
class _Stamp:
    snapshot: Snapshot
    ordinal: int
    schema: pa.Schema
    moves: _Moves | None

    def mark(
        self, batch: pa.RecordBatch, alone: ChangeType, paired: ChangeType
    ) -> Iterator[pa.RecordBatch]:
        """The batch as changes, without rows that were only moved."""
        moves = self.moves
        if moves is not None and moves.carried is not None:
            only_moved = pc.is_in(batch.column(ROW_ID.name), value_set=moves.carried)
            batch = batch.filter(pc.invert(only_moved))
        rows = batch.num_rows
        if not rows:
            return
        kinds = pa.repeat(pa.scalar(alone.value), rows)
        if moves is not None and moves.updated is not None:
            is_update = pc.is_in(batch.column(ROW_ID.name), value_set=moves.updated)
            kinds = pc.if_else(is_update, paired.value, kinds)
        moment = pa.scalar(self.snapshot.timestamp_ms * 1000, pa.timestamp("us", tz="UTC"))
        columns = [
            *batch.columns,
            kinds.cast(pa.string()),
            pa.repeat(pa.scalar(self.ordinal, pa.int64()), rows),
            pa.repeat(pa.scalar(int(self.snapshot.snapshot_id), pa.int64()), rows),
            pa.repeat(moment, rows),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


__all__ = ["CHANGE_COLUMNS", "ChangeType", "RowFeed", "feed_columns", "feed_schema", "net_files"]

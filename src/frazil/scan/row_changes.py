"""Row changes as record batches: rows that went, rows that came, and pairs of the two.

Memory is bounded by one batch of rows plus the row ids that one step removed and added.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import chain

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.schema import Schema

from frazil import arrow_compute as pc
from frazil.data.metadata_columns import LAST_UPDATED, ROW_ID
from frazil.data.read.read_files import Reading
from frazil.data.schema import arrow_schema
from frazil.errors import InvalidInput
from frazil.format.metadata.metadata import Snapshot
from frazil.scan.change_steps import ChangeStep, StepPlanner
from frazil.scan.net_changes import net_files
from frazil.scan.tasks import TaskReader
from frazil.tree.read import TreeReader
from frazil.value_classes import dataclass, replace


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
    own = [field for field in schema.fields if field.field_id != ROW_ID.field_id]
    taken = {field.name for field in own} & {ROW_ID.name, *CHANGE_COLUMNS.names}
    if taken:
        raise InvalidInput(
            f"the table has columns that a change feed names itself: {', '.join(sorted(taken))}; "
            "choose other columns, or rename them"
        )
    return Schema(*own, ROW_ID)


@dataclass(frozen=True, slots=True, kw_only=True)
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
        whole = snapshots[:1] if starts_whole else ()
        steps = chain(map(planner.whole, whole), planner.steps(snapshots[len(whole) :]))
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
        gone = [
            batch.column(0)
            for part in step.removed
            for batch in reader.read(part.task, only=part.positions)
        ]
        left = pa.chunked_array(gone, pa.int64()).drop_null().combine_chunks()
        if not len(left):
            return None
        updated: list[pa.Array] = []
        carried: list[pa.Array] = []
        for part in step.added:
            for batch in reader.read(part.task, only=part.positions):
                ids, ages = batch.column(0), batch.column(1)
                met = pc.is_in(ids, value_set=left)
                old = pc.fill_null(pc.less_equal(ages, step.since_sequence_number), False)
                carried.append(ids.filter(pc.and_(met, old)))
                updated.append(ids.filter(pc.and_(met, pc.invert(old))))
        return _Moves(updated=_ids(updated) if self.pair_updates else None, carried=_ids(carried))


def _ids(parts: Sequence[pa.Array]) -> pa.Array | None:
    row_ids = pa.chunked_array(parts, pa.int64()).combine_chunks()
    return row_ids if len(row_ids) else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Moves:
    """Ids of rows that live on elsewhere: with new values, or as they were."""

    updated: pa.Array | None
    carried: pa.Array | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
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


__all__ = ["CHANGE_COLUMNS", "ChangeType", "RowFeed", "feed_columns", "feed_schema"]

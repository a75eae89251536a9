"""Row-level changes as one Spark job: new rows are written and old ones retired in a single pass.

A job gets a frame that says, row by row, what is to happen (`ACTION`) and to which row of the table
(`KEY`, a number of `Planned`). Each task writes the rows that live on and hands back its entries
with bitmaps of the rows that leave; the driver makes one commit of it. Because rows are read once,
a source that gives other rows when it is read again cannot do harm.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import BooleanExpression
from pyroaring import BitMap64

from frazil.commit.change import Change, Isolation, VectorEdit
from frazil.commit.result import CommitResult
from frazil.data.conform import Conformer
from frazil.data.metadata_columns import LINEAGE, with_columns
from frazil.errors import InvalidInput
from frazil.format.batch import EntryBatch
from frazil.rows.planned import Longs, Planned
from frazil.spark.distribution import Distribution, distributed
from frazil.spark.removal import entries_of, removal_of
from frazil.spark.scan_plan import KEY
from frazil.spark.session import prepare
from frazil.spark.spark_types import incoming
from frazil.spark.target import Target
from frazil.spark.writer import WriteTask, commit_added, discard_entries, packed, unpacked
from frazil.table.table import Table
from frazil.words import counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SOURCE = "__frazil_source"
ACTION = "__frazil_action"
_RESULT = "result"


Then: TypeAlias = "Callable[[BitMap64], DataFrame | None]"


class Action(IntEnum):
    """What happens to a row."""

    KEEP = 0
    DELETE = 1
    UPDATE = 2
    INSERT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLevelJob:
    """A frame of rows with actions, to be carried out on the files of a plan."""

    target: Target
    with_lineage: bool
    isolation: Isolation
    summary: Mapping[str, str] = field(default_factory=dict)
    meets_once: bool = True
    """Whether a row of the table may be met by one row only."""

    @property
    def table(self) -> Table:
        """The table that changes."""
        return self.target.table

    def run(self, frame: DataFrame, then: Then | None = None) -> CommitResult:
        """Carry the actions out; one snapshot.

        `then` makes a second frame, of rows to insert, once it is known which rows of a source the
        first one has met.
        """
        began = time.perf_counter()
        planned, pushed = self.target.planned(frame)
        found = self._written(frame)
        try:
            if then is not None and (more := then(_sources(found))) is not None:
                found += self._written(more)
            outcome = _Outcome.of(found)
            if self.meets_once:
                outcome.check()
        except BaseException:
            discard_entries(self.table, _entries(found))
            raise
        entries = _entries(found)
        done = commit_added(
            self.table,
            entries,
            lambda: self._change(planned, pushed.expression, outcome, entries),
            summary=self.summary,
        )
        return replace(done, ms=(time.perf_counter() - began) * 1000)

    def _written(self, frame: DataFrame) -> list[TaskResult]:
        metadata = self.table.metadata
        schema = metadata.schema()
        if self.with_lineage:
            schema = with_columns(schema, LINEAGE)
        spark = frame.sparkSession
        prepare(spark, (column.field_type for column in schema.fields))
        rows = frame.drop(KEY, ACTION, SOURCE)
        Conformer.between(incoming(rows.schema, schema), schema)
        placed = distributed(
            frame,
            schema=schema,
            spec=metadata.spec(),
            sort_order=metadata.sort_order(),
            mode=Distribution.of(metadata.properties, metadata.spec()),
        )
        write = WriteTask.of(
            metadata, schema, storage=self.table._handle.storage, location=self.table.location
        )
        task = RowLevelTask(write)
        results = placed.mapInArrow(task.run, f"{_RESULT} binary").collect()
        return [pickle.loads(bytes(row[_RESULT])) for row in results]

    def _change(
        self,
        planned: Planned,
        conflict_filter: BooleanExpression,
        outcome: _Outcome,
        entries: EntryBatch,
    ) -> Change:
        removed, vectors = retired(planned, outcome.deleted, outcome.updated)
        return Change(
            branch=self.table.branch_name,
            base_snapshot_id=base_of(planned),
            added=entries if entries.num_rows else None,
            removed=removed,
            vectors=vectors,
            conflict_filter=conflict_filter,
            isolation=self.isolation,
            rows_updated=outcome.rows_updated,
        )


def _entries(found: list[TaskResult]) -> EntryBatch:
    return EntryBatch.concat([unpacked(part.entries) for part in found if part.entries])


def _sources(found: list[TaskResult]) -> BitMap64:
    seen = BitMap64()
    for part in found:
        if part.sources is not None:
            seen |= BitMap64.deserialize(part.sources)
    return seen


def base_of(planned: Planned) -> int | None:
    """The id of the snapshot that was planned."""
    snapshot = planned.scan.snapshot
    return None if snapshot is None else int(snapshot.snapshot_id)


def retired(
    planned: Planned, deleted: Longs, updated: Longs
) -> tuple[EntryBatch | None, tuple[VectorEdit, ...]]:
    """Rows that leave, as files that go and vector edits; a file is named once.

    A file that an update moves rows out of stays, with the vector edit that reveals conflicts.
    """
    moved_from = {row for row, _ in planned.located(updated)} if len(updated) else set()
    alone: list[Longs] = []
    beside: list[Longs] = [updated]
    for row, positions in planned.located(deleted) if len(deleted) else ():
        keys = positions + planned.bases[row]
        (beside if row in moved_from else alone).append(keys)
    gone, plain = removal_of(planned, _joined(alone))
    _, exclusive = removal_of(planned, _joined(beside), exclusive=True)
    return entries_of(gone), (*plain, *exclusive)


def _joined(parts: list[Longs]) -> Longs:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


# What tasks do


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What one task hands back: its entries, the keys it saw by action, and counts by action."""

    entries: bytes | None
    keys: Mapping[int, bytes]
    counts: Mapping[int, int]
    sources: bytes | None = None
    """Numbers of the source rows it saw, where the frame has them."""


@dataclass(frozen=True, slots=True)
class RowLevelTask:
    """Writes the rows that live on and notes those that leave; travels to executors."""

    write: WriteTask

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One result per task that had rows."""
        notes = _Notes()
        entries = self.write.write(notes.living(batches))
        if notes.counts:
            result = TaskResult(
                packed(entries) if entries.num_rows else None,
                {action: keys.serialize() for action, keys in notes.keys.items()},
                notes.counts,
                notes.sources.serialize() if notes.sources else None,
            )
            yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(result)])], names=[_RESULT])


class _Notes:
    """Takes keys and actions off the rows that pass by."""

    def __init__(self) -> None:
        self.keys: dict[int, BitMap64] = {}
        self.counts: dict[int, int] = {}
        self.sources = BitMap64()

    def living(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows to write, without the columns of the job."""
        for batch in batches:
            actions = np.asarray(batch.column(ACTION))
            keys = batch.column(KEY)
            if SOURCE in batch.schema.names:
                self.sources |= BitMap64(np.asarray(batch.column(SOURCE)).astype(np.uint64))
                batch = batch.drop_columns([SOURCE])
            for action in np.unique(actions).tolist():
                mine = actions == action
                self.counts[action] = self.counts.get(action, 0) + int(mine.sum())
                if action != Action.INSERT:
                    found = np.asarray(keys.filter(pa.array(mine))).astype(np.uint64)
                    self.keys[action] = self.keys.get(action, BitMap64()) | BitMap64(found)
            lives = actions >= Action.UPDATE
            if lives.any():
                rows = batch if lives.all() else pc.filter(batch, pa.array(lives))
                yield rows.drop_columns([KEY, ACTION])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Outcome:
    """Results of all tasks."""

    keys: Mapping[int, BitMap64]
    counts: Mapping[int, int]

    @staticmethod
    def of(results: list[TaskResult]) -> _Outcome:
        keys: dict[int, BitMap64] = {}
        counts: dict[int, int] = {}
        for result in results:
            for action, data in result.keys.items():
                keys[action] = keys.get(action, BitMap64()) | BitMap64.deserialize(data)
            for action, count in result.counts.items():
                counts[action] = counts.get(action, 0) + count
        return _Outcome(keys=keys, counts=counts)

    def check(self) -> None:
        """Refuse a row of the table that was met more than once."""
        met = sum(count for action, count in self.counts.items() if action != Action.INSERT)
        distinct = BitMap64()
        for keys in self.keys.values():
            distinct |= keys
        if met > len(distinct):
            raise InvalidInput(
                f"{counted(met - len(distinct), 'source row')} too many: each row of the table may "
                "match one source row only; make the source distinct first"
            )

    @property
    def deleted(self) -> Longs:
        return _longs(self.keys.get(Action.DELETE))

    @property
    def updated(self) -> Longs:
        return _longs(self.keys.get(Action.UPDATE))

    @property
    def rows_updated(self) -> int:
        return self.counts.get(Action.UPDATE, 0)


def _longs(keys: BitMap64 | None) -> Longs:
    if keys is None or not len(keys):
        return np.zeros(0, dtype=np.int64)
    return np.array(keys.to_array(), dtype=np.int64)

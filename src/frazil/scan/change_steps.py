"""From changed files to the rows to read: what a step removed and what it added.

A step is one snapshot, or everything between two. Either way it is told by files: some went, some
came, some stayed with a larger deletion vector, other column files or under new delete files. What
a `replace` moved comes out as rows that went and came with the same ids, and is recognised by their
age.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from frazil import arrow_compute as pc
from frazil.data.metadata_columns import LAST_UPDATED, POS
from frazil.data.read.read_files import Reading
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType
from frazil.format.metadata.metadata import Snapshot
from frazil.format.vectors import bitmap
from frazil.iceberg.expressions import AlwaysTrue
from frazil.iceberg.schema import Schema
from frazil.scan.deletes_in_force import DeleteSets, live_deletes, reach_of, tasks_for
from frazil.scan.plan import plan
from frazil.scan.tasks import Positions, Task, TaskReader
from frazil.tree.changes import TreeChanges, append_runs, appended, changes_of
from frazil.tree.locate import ByEntry, entry_keys
from frazil.tree.read import TreeReader
from frazil.value_classes import frozen, replace


@frozen(eq=False)
class FileRows:
    """Rows of a file: all that are left, or those at `positions`."""

    task: Task
    positions: Positions | None = None


@frozen(eq=False)
class ChangeStep:
    """Rows to read: those that went, of files as they were before, and those that came. One that is
    in both lists, no younger than `since_sequence_number`, moved."""

    removed: tuple[FileRows, ...] = ()
    added: tuple[FileRows, ...] = ()
    since_sequence_number: int = -1


@frozen(eq=False)
class FileSets:
    """Data files by what became of them. `before` and `after` are the same entries, row by row."""

    gone: EntryBatch
    before: EntryBatch
    after: EntryBatch
    added: EntryBatch

    @staticmethod
    def of(changes: TreeChanges) -> FileSets:
        """The files of one snapshot's change set."""
        modified = Modified.of(changes)
        return FileSets(
            gone=EntryBatch.concat([data_files(changes.deleted), modified.others]),
            before=modified.before,
            after=modified.after,
            added=data_files(changes.added),
        )


@frozen(eq=False)
class Modified:
    """Data files that a snapshot changed, before and after, row by row. `others` were replaced too,
    and nothing of them stayed."""

    before: EntryBatch
    after: EntryBatch
    others: EntryBatch

    @staticmethod
    def of(changes: TreeChanges) -> Modified:
        """MODIFIED entries with the REPLACED ones that they followed."""
        modified = data_files(changes.modified)
        replaced = data_files(changes.replaced)
        rows_of = ByEntry[int]()
        for row, key in enumerate(entry_keys(replaced)):
            rows_of.put(key, row)
        replaced_rows = [rows_of.pop(key) for key in entry_keys(modified)]
        rows = [-1 if row is None else row for row in replaced_rows]
        old = replaced.take(rows) if -1 not in rows else _predecessors(replaced, modified, rows)
        earlier = replaced.take(sorted(rows_of.values()))
        return Modified(before=old, after=modified, others=earlier)


def _predecessors(replaced: EntryBatch, modified: EntryBatch, rows: Sequence[int]) -> EntryBatch:
    """Entries before a change; one that has no dead predecessor had no vector."""
    parts = [
        replaced.slice(row, 1) if row >= 0 else without_vector(modified.slice(index, 1))
        for index, row in enumerate(rows)
    ]
    return EntryBatch.concat(parts)


def data_files(batch: EntryBatch) -> EntryBatch:
    """The data files among entries."""
    return batch.filter(batch.numpy("content_type") == ContentType.DATA)


def without_vector(batch: EntryBatch) -> EntryBatch:
    """Entries as they are without their deletion vectors."""
    return batch.without(*(key for key in batch.keys if key.startswith("deletion_vector.")))


@frozen
class StepPlanner:
    """Finds the rows that steps of one table changed; reads metadata and deletes, not rows."""

    reader: TreeReader
    reading: Reading

    def steps(self, snapshots: Iterable[Snapshot]) -> Iterator[ChangeStep]:
        """What each of the snapshots did, which are given oldest first."""
        for run in append_runs(snapshots):
            together = appended(self.reader, run)
            if together is None:
                yield from map(self.snapshot, run)
                continue
            deletes = live_deletes(self.reader, run[-1])  # none of them changed those
            for place, snapshot in enumerate(run):
                yield ChangeStep(
                    added=_whole(tasks_for(self.reader, together.of(place), deletes)),
                    since_sequence_number=snapshot.sequence_number - 1,
                )

    def snapshot(self, snapshot: Snapshot) -> ChangeStep:
        """What one snapshot did."""
        if snapshot.operation == "replace":
            return ChangeStep()
        changes = changes_of(self.reader, snapshot)
        removed = EntryBatch.concat([changes.deleted, changes.replaced])
        deletes = DeleteSets.around(self.reader, snapshot, added=changes.added, removed=removed)
        # Snapshots of v1 have no sequence numbers, and their rows no age.
        before = snapshot.sequence_number - 1
        return self._step(FileSets.of(changes), deletes, snapshot, since_sequence_number=before)

    def between(self, since: Snapshot, until: Snapshot, files: FileSets) -> ChangeStep:
        """What a range of snapshots did in the end, given what became of the files."""
        before, after = live_deletes(self.reader, since), live_deletes(self.reader, until)
        return self._step(
            files,
            DeleteSets.of(before, after),
            until,
            since_sequence_number=since.sequence_number,
        )

    def whole(self, snapshot: Snapshot | None) -> ChangeStep:
        """Every row of a snapshot as added."""
        files = plan(self.reader, snapshot).files
        return ChangeStep(
            added=_whole(tasks_for(self.reader, files, live_deletes(self.reader, snapshot)))
        )

    def _step(
        self,
        files: FileSets,
        deletes: DeleteSets,
        snapshot: Snapshot,
        *,
        since_sequence_number: int,
    ) -> ChangeStep:
        reader = self.reader
        removed = [FileRows(task=task) for task in tasks_for(reader, files.gone, deletes.before)]
        before = tasks_for(reader, files.before, deletes.before)
        after = tasks_for(reader, files.after, deletes.after)
        removed += self._shrunk(before, after)
        came: list[FileRows] = []
        for old, new in self._updated(before, after, since_sequence_number):
            removed.append(old)
            came.append(new)
        if deletes.fresh is not None:
            removed += self._swept(deletes, snapshot, EntryBatch.concat([files.added, files.after]))
        added = (*_whole(tasks_for(reader, files.added, deletes.after)), *came)
        return ChangeStep(
            removed=tuple(removed), added=added, since_sequence_number=since_sequence_number
        )

    def _updated(
        self, before: Sequence[Task], after: Sequence[Task], since_sequence_number: int
    ) -> Iterator[tuple[FileRows, FileRows]]:
        """Rows whose columns were updated in column files, before and after."""
        lineage = replace(self.reading, schema=Schema(POS, LAST_UPDATED), row_filter=AlwaysTrue())
        reader = TaskReader(lineage)
        for old, new in zip(before, after, strict=True):
            if old.source.column_files == new.source.column_files:
                continue
            parts = [
                np.asarray(
                    batch.column(0).filter(pc.greater(batch.column(1), since_sequence_number))
                )
                for batch in reader.read(new)
            ]
            positions = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
            if positions.size:
                yield (
                    FileRows(task=old, positions=positions),
                    FileRows(task=new, positions=positions),
                )

    def _swept(
        self, deletes: DeleteSets, snapshot: Snapshot, changed: EntryBatch
    ) -> list[FileRows]:
        """Rows that new delete files took from files that are otherwise as they were."""
        assert deletes.fresh is not None
        metadata = self.reader.metadata
        where = reach_of(deletes.fresh, metadata.schema())
        files = plan(self.reader, snapshot, where=where).files
        seen_entries = ByEntry[bool]()
        for key in entry_keys(changed):
            seen_entries.put(key, True)
        stayed = np.array([not seen_entries.pop(key) for key in entry_keys(files)], dtype=np.bool_)
        touched = files.filter(stayed)
        hit = [bool(task.deletes) for task in tasks_for(self.reader, touched, deletes.fresh)]
        touched = touched.filter(np.array(hit, dtype=np.bool_))
        before = tasks_for(self.reader, touched, deletes.before)
        return list(self._shrunk(before, tasks_for(self.reader, touched, deletes.after)))

    def _shrunk(self, before: Sequence[Task], after: Sequence[Task]) -> Iterator[FileRows]:
        """Rows that files lost, by the files' tasks before and after, in the same order."""
        reader = TaskReader(self.reading)
        for old, new in zip(before, after, strict=True):
            if any(file.equality_ids for file in (*old.deletes, *new.deletes)):
                deleted = bitmap.difference(reader.positions(old), reader.positions(new))
            else:
                deleted = bitmap.difference(_dropped(reader, new), _dropped(reader, old))
            if deleted.size:
                yield FileRows(task=old, positions=deleted)


def _whole(tasks: Iterable[Task]) -> tuple[FileRows, ...]:
    return tuple(FileRows(task=task) for task in tasks)


def _dropped(reader: TaskReader, task: Task) -> Positions:
    positions = reader.dropped(task)
    return np.zeros(0, dtype=np.int64) if positions is None else positions

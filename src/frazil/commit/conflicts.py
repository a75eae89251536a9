"""Whether a change may be replayed on a head that moved. Pure: what others did comes in as values.

| this change                 | conflicts with a concurrent commit that…                        |
|-----------------------------|-----------------------------------------------------------------|
| append                      | never                                                           |
| remove files                | removed one of them                                             |
| rewrite files, or swap them | removed one of them, or put a deletion vector on one of them:   |
| for others by name          | the new files would bring the deleted rows back                 |
| delete rows (vectors)       | removed the file; update also: deleted one of the same rows     |
| by filter, serializable     | added a file that could match the filter, unless it moved rows  |
| overwrite by filter         | also, since its rows were read: deleted rows of such a file     |
| update columns of files     | removed one, updated columns of it, or took rows of it elsewhere|
| any but append              | updated columns of a file whose rows it changes or removes      |

A change that writes rows of the table again (rewrites, updates, merges, overwrites) also conflicts
with an equality delete that could match one of them: what is written now is younger than the
delete, which therefore would not apply to it. A rewrite whose files keep their age is exempt.

Whatever looks at the history refuses a branch that was moved to another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from frazil import arrow_compute as pc
from frazil.commit.change import Change, Isolation, Searched
from frazil.errors import Conflict
from frazil.filter.prune.prune import PruneContext, might_match
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.column_files import have_column_files
from frazil.format.entries.fields import (
    COLUMN_FILES,
    STATS_PREFIX,
    ContentType,
    split_stats_key,
)
from frazil.iceberg.expressions import AlwaysTrue, BooleanExpression
from frazil.iceberg.partitioning import PartitionSpec
from frazil.iceberg.transforms import VoidTransform
from frazil.tree.changes import TreeChanges


def needs_history(change: Change) -> bool:
    """Whether the snapshots committed in the meantime must be checked."""
    return bool(_serializable(change) or _rewritten(change) or change.columns)


def _serializable(change: Change) -> list[BooleanExpression]:
    """Filters that nothing may have been added to."""
    return [
        searched.filter
        for searched in change.searched
        if searched.isolation is Isolation.SERIALIZABLE
    ]


def _rewritten(change: Change) -> list[EntryBatch]:
    """Files whose rows the change writes again elsewhere, as they were when it was planned.

    Files removed by a filter are not among them: what is added beside does not come from them,
    unless the filter was read (`Searched.read`), which `check_read` judges.
    """
    batches = [change.replaced]
    if not change.searched and change.added is not None:
        batches.append(change.removed)
    return [batch for batch in batches if batch is not None and batch.num_rows]


def check(
    change: Change, meanwhile: Iterable[TreeChanges], context: PruneContext
) -> list[Conflict]:
    """Conflicts of a change with snapshots that landed since it was planned."""
    conflicts: list[Conflict] = []
    for changes in meanwhile:
        by = int(changes.snapshot.snapshot_id)
        for files in _rewritten(change):
            conflicts += [
                Conflict(what="deletion vector changed", where=location, by_snapshot_id=by)
                for location in _shared(changes.modified, files)
            ]
        if changes.snapshot.operation == "replace":
            continue  # its new files hold rows that were there before, or that others added
        conflicts += _rows_moved(change, changes)
        for expression in _serializable(change):
            for what, entries in (
                ("file added that could match", changes.added),
                ("columns updated that could match", changes.column_updates()),
            ):
                conflicts += [
                    Conflict(what=what, where=location, by_snapshot_id=by)
                    for location in _could_match(entries, expression, context)
                ]
    return conflicts


def _rows_moved(change: Change, changes: TreeChanges) -> list[Conflict]:
    """Files whose columns a change updates and some of whose rows an update or merge took to other
    files: there they lack the new values."""
    if not change.columns or not changes.added.num_rows:
        return []
    edited = EntryBatch.from_rows([{"location": edit.location} for edit in change.columns])
    return [
        Conflict(
            what="rows of the file were updated meanwhile",
            where=location,
            by_snapshot_id=int(changes.snapshot.snapshot_id),
        )
        for location in _shared(changes.modified, edited)
    ]


def check_columns(change: Change, before: EntryBatch, *, planned_at: int) -> list[Conflict]:
    """Conflicts of a change that was planned on values of files, which column files that came later
    replace: `before` are entries that it changes or removes."""
    if not before.has(COLUMN_FILES):
        return []
    edited = {edit.location for edit in change.columns}  # these compare the column files themselves
    numbers = before.numpy("tracking.sequence_number")
    ages = before.numpy("tracking.file_sequence_number")
    updated = have_column_files(before) & (numbers > planned_at) & (ages <= planned_at)
    return [
        Conflict(what="columns of the file were updated meanwhile", where=location)
        for location in before.filter(updated).pylist("location")
        if location not in edited
    ]


def check_read(
    searched: Searched, meanwhile: Iterable[TreeChanges], context: PruneContext
) -> list[Conflict]:
    """Conflicts of an overwrite with snapshots that landed since the caller read the rows that it
    computed the new ones from: they changed rows that the caller did not know."""
    conflicts: list[Conflict] = []
    for changes in meanwhile:
        if changes.snapshot.operation == "replace":
            continue  # the rows are the same
        kinds = [("rows changed that could match", changes.modified)]
        kinds.append(("file removed that could match", changes.deleted))
        if searched.isolation is Isolation.SERIALIZABLE:
            kinds.append(("file added that could match", changes.added))
        conflicts += [
            Conflict(what=what, where=where, by_snapshot_id=int(changes.snapshot.snapshot_id))
            for what, entries in kinds
            for where in _could_match(entries, searched.filter, context)
        ]
    return conflicts


def missing(locations: Sequence[str]) -> list[Conflict]:
    """Conflicts for files that are not live any more."""
    return [Conflict(what="file is no longer in the table", where=where) for where in locations]


def _shared(entries: EntryBatch, others: EntryBatch) -> list[str]:
    if not entries.num_rows:
        return []
    mask = pc.is_in(
        entries.column("location"), value_set=others.column("location").combine_chunks()
    )
    return list(entries.column("location").filter(mask).to_pylist())


def _could_match(
    entries: EntryBatch, expression: BooleanExpression, context: PruneContext
) -> list[str]:
    files = entries.filter(entries.numpy("content_type") == ContentType.DATA)
    if not files.num_rows:
        return []
    mask = might_match(expression, files, context)
    return list(files.filter(mask).column("location").to_pylist())


# --- equality deletes ---------------------------------------------------------------------------


def heeds_equality_deletes(change: Change) -> bool:
    """Whether equality deletes that are younger than its base concern a change."""
    return bool(_written_again(change))


def check_equality_deletes(
    change: Change, deletes: EntryBatch, context: PruneContext
) -> list[Conflict]:
    """Conflicts of a change with the equality deletes in force that are younger than its base."""
    escaped = deletes.filter(~_still_apply(change, deletes, context))
    conflicts: list[Conflict] = []
    for ids, batch in _by_columns(escaped):
        # Statistics of other columns say nothing of the rows that the delete takes.
        others = [key for key in batch.keys if _is_stat(key) and split_stats_key(key)[0] not in ids]
        bounds = batch.without(*others)
        hit = np.zeros(batch.num_rows, dtype=np.bool_)
        for expression in _written_again(change):
            hit |= might_match(expression, bounds, context)
        conflicts += [
            Conflict(
                what="equality delete that could match",
                where=row["location"],
                by_snapshot_id=row.get("tracking.snapshot_id"),
            )
            for row in map(batch.row, np.flatnonzero(hit).tolist())
        ]
    return conflicts


def _written_again(change: Change) -> list[BooleanExpression]:
    """Filters that every row passes which was in the table when the change was planned and which
    its new files may hold."""
    if change.columns:
        return [AlwaysTrue()]  # the files get a younger age, with all their rows
    if not _adds_rows(change):
        return []
    if _rewritten(change):
        return [AlwaysTrue()]
    if any(edit.exclusive for edit in change.vectors):
        return [searched.filter for searched in change.searched] or [AlwaysTrue()]
    read = [searched.filter for searched in change.searched if searched.read is not None]
    return _serializable(change) + read


def _adds_rows(change: Change) -> bool:
    added = change.added
    return added is not None and bool((added.numpy("content_type") == ContentType.DATA).any())


def _still_apply(
    change: Change, deletes: EntryBatch, context: PruneContext
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which deletes apply to the change's files as to those they replace: a rewrite may give its
    files the age of their rows. A delete of one partition does not reach files of another spec."""
    added = change.added
    none = np.zeros(deletes.num_rows, dtype=np.bool_)
    age = "tracking.sequence_number"
    if added is None or not change.is_rewrite or not added.has(age):
        return none
    if added.column(age).null_count:
        return none
    older = np.asarray(deletes.numpy(age) > added.numpy(age).max())
    specs = deletes.pylist("spec_id")
    partitioned = {id for id, spec in context.specs.items() if _has_partitions(spec)}
    spec_ids = set(added.pylist("spec_id"))
    reaches = [spec not in partitioned or spec_ids == {spec} for spec in specs]
    reach = np.array(reaches, dtype=np.bool_)
    return older & reach


def _has_partitions(spec: PartitionSpec) -> bool:
    return any(not isinstance(part.transform, VoidTransform) for part in spec.fields)


def _is_stat(key: str) -> bool:
    return key.startswith(STATS_PREFIX)


def _by_columns(deletes: EntryBatch) -> Iterable[tuple[frozenset[int], EntryBatch]]:
    """Equality deletes by the columns that they compare."""
    ids = [frozenset(value or ()) for value in deletes.pylist("equality_ids")]
    for distinct in dict.fromkeys(ids):
        yield distinct, deletes.filter(np.array([own == distinct for own in ids], dtype=np.bool_))

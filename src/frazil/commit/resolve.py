"""The addresses of everything a change touches in one tree, and its new deletion vectors.

What a change names by location is found in the root or in a leaf; what is not there any more is a
conflict. Knows nothing of how the tree adapts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.commit import conflicts, summary
from frazil.commit.change import Change, Positions, VectorEdit
from frazil.commit.column_edits import ColumnEdit, moved_meanwhile, with_columns_edited
from frazil.commit.deletion_vectors import VectorMerger
from frazil.errors import CommitConflict, Conflict, InvalidInput
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import partition_key
from frazil.format.metadata.metadata import TableMetadata
from frazil.tree.edit import LeafEdit
from frazil.tree.locate import (
    FIRST_ROW_ID,
    ByEntry,
    EntryKey,
    Located,
    Mention,
    Rows,
    locate,
    locate_apart,
)
from frazil.tree.read import LEAF, POSITION, Tree, TreeReader, delete_leaves
from frazil.value_classes import frozen

_NOTHING = Located(
    locations=(), leaf=np.zeros(0, dtype=np.int64), position=np.zeros(0, dtype=np.int64)
)


_AGE_KEYS = ("tracking.sequence_number", "tracking.file_sequence_number")


@frozen
class Resolved:
    """A change with the addresses of everything it touches in one tree.

    `before` are the entries of files whose deletion vector or columns change, `modified` the same
    entries with the new ones; `vectors` is where they are. `rows_carried` of their rows had been
    retired by delete files before.
    """

    removed: Located = _NOTHING
    replaced: Located = _NOTHING
    vectors: Located = _NOTHING
    removed_entries: EntryBatch | None = None
    replaced_entries: EntryBatch | None = None
    before: EntryBatch | None = None
    modified: EntryBatch | None = None
    rows_carried: int = 0

    @property
    def replaced_rows(self) -> Rows:
        """Rows of the root that leave as REPLACED."""
        return np.concatenate([self.replaced.root_rows, self.vectors.root_rows])

    @property
    def root_rows(self) -> Rows:
        """Rows of the root that list files this change touches."""
        return np.concatenate([self.removed.root_rows, self.replaced_rows])

    def leaf_edits(self) -> dict[int, LeafEdit]:
        """Positions that die, by the leaf's row in the root."""
        deleted = self.removed.by_leaf()
        gone = self.replaced.by_leaf()
        changed = self.vectors.by_leaf()
        nothing = _NOTHING.position
        return {
            row: LeafEdit(
                deleted=deleted.get(row, nothing),
                replaced=np.union1d(gone.get(row, nothing), changed.get(row, nothing)),
            )
            for row in sorted({*deleted, *gone, *changed})
        }


def resolve(change: Change, reader: TreeReader, tree: Tree, merger: VectorMerger) -> Resolved:
    """Find what the change touches and write its new vectors; CommitConflict when that cannot be.

    Vectors are written by `merger`, once for all attempts of a commit.
    """
    if change.only_adds:
        return Resolved()
    if _named_twice(change):
        removed, replaced, vectors = _located_apart(reader, tree, change)
    else:
        removed = _located(reader, tree, change.removed)
        replaced = _located(reader, tree, change.replaced)
        vectors = _located(reader, tree, edited_files(change))
    gone = [*removed.missing, *replaced.missing, *vectors.missing]
    if gone:
        raise CommitConflict(
            f"{change.operation}: files it needs are no longer in the table",
            conflicts.missing(gone),
        )
    keys = [*summary.SUMMARY_KEYS, *_AGE_KEYS, *_partition_keys(reader.metadata)]
    before = modified = None
    rows_carried = 0
    if vectors.locations:
        before = vectors.entries(reader, tree, keys=None).without(LEAF, POSITION)
        modified, rows_carried = _modified(before, reader, tree, change, merger)
        spent = _spent(modified)
        if spent.any():
            removed = removed.plus(vectors.where(spent))
            vectors, before = vectors.where(~spent), before.filter(~spent)
            modified = modified.filter(~spent)
    return Resolved(
        removed=removed,
        replaced=replaced,
        vectors=vectors,
        removed_entries=_entries(removed, reader, tree, keys),
        replaced_entries=_entries(replaced, reader, tree, keys),
        before=before,
        modified=modified,
        rows_carried=rows_carried,
    )


def _modified(
    before: EntryBatch, reader: TreeReader, tree: Tree, change: Change, merger: VectorMerger
) -> tuple[EntryBatch, int]:
    """The entries with their new vectors and columns, and how many rows had gone before."""
    entries, rows_carried = before, 0
    count = len(change.vectors)  # the entries of the vectors come first
    if count:
        merged = merger.write_merged(before.slice(0, count), _carried(reader, tree, change))
        _refuse(change, merged.conflicts)
        entries = EntryBatch.concat([merged.entries, before.slice(count)])
        rows_carried = merged.rows_carried
    if change.columns:
        _, by_entry = _edited_entries(change)
        _refuse(change, moved_meanwhile(before, by_entry))
        entries = with_columns_edited(entries, by_entry)
    return entries, rows_carried


def _refuse(change: Change, problems: Sequence[Conflict]) -> None:
    if problems:
        raise CommitConflict(
            f"{change.operation}: rows it changes were changed meanwhile; run it again", problems
        )


def _carried(reader: TreeReader, tree: Tree, change: Change) -> dict[str, Positions]:
    """Rows that delete files of older versions retire, of files whose edits do not say."""
    unknown = {edit.location for edit in change.vectors if edit.resolved is None}
    old = [leaf for leaf in delete_leaves(tree.leaves()) if leaf.format_version == 0]
    if not unknown or not old:
        return {}
    return reader.older(old[0].location).deleted_rows(reader, tree, unknown)


def _spent(entries: EntryBatch) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Files whose every row is deleted: they leave the table instead of getting a vector."""
    cardinality = entries.numpy("deletion_vector.cardinality")
    return np.asarray(cardinality >= entries.numpy("record_count"))


def _named_twice(change: Change) -> list[str]:
    """Files that the change names more than once."""
    edits, _ = _edited_entries(change)
    mentions: Counter[Any] = Counter(edit.location for edit in edits)
    for batch in (change.removed, change.replaced):
        if batch is not None:
            mentions.update(batch.pylist("location"))
    return sorted(str(location) for location, count in mentions.items() if count > 1)


def _located_apart(
    reader: TreeReader, tree: Tree, change: Change
) -> tuple[Located, Located, Located]:
    """Files that leave and files that get vectors, where the change names one more than once.

    A table lists a file twice when it was added again without a check. Each entry is then changed
    on its own, as rows of each have ids, and maybe a vector, of their own. What a change means that
    names a file more often than the table lists it is not clear, unless the table has moved on
    since it was planned and lacks an entry that it had.
    """
    batches = [change.removed, change.replaced, edited_files(change)]
    mentions = [[] if batch is None else _mentions(batch) for batch in batches]
    located = locate_apart(reader, tree, [mention for part in mentions for mention in part])
    twice = set(_named_twice(change)).intersection(located.missing)
    torn = twice.difference(located.never_found)
    tip = None if tree.snapshot is None else int(tree.snapshot.snapshot_id)
    if torn and change.base_snapshot_id in (None, tip):
        raise InvalidInput(
            f"{change.operation} names {len(torn)} files more than once, {min(torn)} among them; "
            "a file can be removed, replaced or given a deletion vector once for each time that "
            "the table lists it"
        )
    kind = np.repeat(np.arange(3), [len(part) for part in mentions])
    removed, replaced, vectors = (located.where(kind == number) for number in range(3))
    return removed, replaced, vectors


def _mentions(batch: EntryBatch) -> list[Mention]:
    leaves = pc.cast(batch.column(LEAF), pa.string()).to_pylist()
    columns = (batch.pylist("location"), leaves, batch.pylist(POSITION), batch.pylist(FIRST_ROW_ID))
    return [
        Mention(location=location, leaf=leaf, position=position, first_row_id=first)
        for location, leaf, position, first in zip(*columns, strict=True)
    ]


def _located(reader: TreeReader, tree: Tree, files: EntryBatch | None) -> Located:
    if files is None or not files.num_rows:
        return _NOTHING
    return locate(reader, tree, files)


def edited_files(change: Change) -> EntryBatch | None:
    """The entries whose vectors or columns a change edits, as they are looked for."""
    if not change.vectors and not change.columns:
        return None
    edits, _ = _edited_entries(change)
    return EntryBatch.from_rows(
        [
            {
                "location": edit.location,
                LEAF: edit.leaf,
                POSITION: edit.position,
                FIRST_ROW_ID: edit.first_row_id,
            }
            for edit in edits
        ]
    )


def _edited_entries(
    change: Change,
) -> tuple[list[VectorEdit | ColumnEdit], list[list[ColumnEdit]]]:
    """An edit of each entry that a change edits, those of vectors first; and its column edits."""
    edits: list[VectorEdit | ColumnEdit] = [*change.vectors]
    columns: list[list[ColumnEdit]] = [[] for _ in edits]
    places = ByEntry[int]()
    for place, vector in enumerate(change.vectors):
        places.put(EntryKey(vector.location, vector.first_row_id, None), place)
    for edit in change.columns:
        key = EntryKey(edit.location, edit.first_row_id, None)
        entry = places.find(key)
        if entry is not None:
            columns[entry].append(edit)
            continue
        places.put(key, len(edits))
        edits.append(edit)
        columns.append([edit])
    return edits, columns


def _entries(
    located: Located, reader: TreeReader, tree: Tree, keys: list[str]
) -> EntryBatch | None:
    return located.entries(reader, tree, keys=keys) if located.locations else None


def _partition_keys(metadata: TableMetadata) -> list[str]:
    fields = {field.field_id for spec in metadata.partition_specs for field in spec.fields}
    return [*(partition_key(id) for id in sorted(fields)), "spec_id"]


__all__ = ["Resolved", "edited_files", "resolve"]

"""How the tree adapts while a change is written: new leaves, flushes, compactions, dropped leaves.

`policy` says when; this module carries it out and remembers what it wrote, so that the next attempt
of the same commit reuses leaves instead of writing them again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.commit.change import CarriedDeletes, Change, LeavesToRewrite
from frazil.commit.resolve import Resolved
from frazil.commit.summary import ENTRIES_FLUSHED, LEAVES_MERGED, LEAVES_SPLIT, LEAVES_WRITTEN
from frazil.errors import CommitConflict, Conflict, InvalidInput, Unsupported
from frazil.format.entries import tracking
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import VECTOR_KEYS, ContentType
from frazil.format.entries.tracking import Status
from frazil.format.metadata.metadata import TableMetadata
from frazil.tree import clusters, policy
from frazil.tree.edit import RootEdit
from frazil.tree.locate import Rows
from frazil.tree.policy import Decision, LeafShape, RootShape, Thresholds
from frazil.tree.read import POSITION, LeafRef, Tree, TreeReader, data_leaves
from frazil.tree.table_shape import shape_of
from frazil.tree.write import TreeWriter
from frazil.value_classes import frozen

_DATA, _EQUALITY_DELETES = int(ContentType.DATA), int(ContentType.EQUALITY_DELETES)
_MODIFIED_BY = "tracking.modified_snapshot_id"
_GIVEN = frozenset({"tracking.sequence_number", "tracking.first_row_id"})
"""Tracking that a caller may give an added file: a rewrite keeps the age and ids of its rows."""


@frozen
class Adapted:
    """The edit of the root, and the leaves this commit wrote for it.

    `flushed` entries left the root for leaves, `merged` leaves were folded into others; `split`
    leaves share what would not fit one.
    """

    edit: RootEdit
    leaves: EntryBatch | None
    flushed: int = 0
    merged: int = 0
    split: int = 0

    def summary(self) -> dict[str, str]:
        """What a snapshot's summary says of it; what did not happen is left out."""
        written = 0 if self.leaves is None else self.leaves.num_rows
        happened = {ENTRIES_FLUSHED: self.flushed, LEAVES_MERGED: self.merged}
        happened[LEAVES_SPLIT] = self.split
        return {
            LEAVES_WRITTEN: str(written),
            **{key: str(count) for key, count in happened.items() if count},
        }


class Adapter:
    """Adapts the trees that one commit meets, attempt after attempt."""

    def __init__(self, change: Change, *, snapshot_id: int) -> None:
        self._change = change
        self._added = added_entries(change.added, snapshot_id=snapshot_id)
        self._added_leaves: dict[tuple[bool, bool], EntryBatch] = {}
        self._moved: _Moved | None = None

    def adapt(
        self, reader: TreeReader, writer: TreeWriter, tree: Tree, resolved: Resolved
    ) -> Adapted:
        """What the new root is to be made of. Writes leaves."""
        limits = Thresholds.of(reader.metadata.properties)
        at = _Attempt.of(tree, resolved)
        decision = self._decide(at, limits)
        added, added_leaves = self._place_added(reader.metadata, writer, decision, at)
        moved = self._move(reader, writer, at, decision, limits)
        edit = RootEdit(
            deleted_rows=resolved.removed.root_rows,
            replaced_rows=resolved.replaced_rows,
            leaf_edits=resolved.leaf_edits(),
            modified=resolved.modified,
            added=added,
            added_leaves=added_leaves,
            dropped_rows=_dropped(reader, at, moved),
            moved_to=None if moved is None else moved.leaves,
        )
        written = [part for part in (edit.added_leaves, edit.moved_to) if part is not None]
        return Adapted(
            edit=edit,
            leaves=EntryBatch.concat(written) if written else None,
            flushed=0 if moved is None else moved.flushed,
            merged=0 if moved is None else moved.merged,
            split=0 if moved is None else moved.split,
        )

    def _decide(self, at: _Attempt, limits: Thresholds) -> Decision:
        asked = self._change.rewrite_leaves
        if asked is not None:
            if self._change.carried_deletes is not None:
                _check_there(at, asked)
            rows = tuple(leaf.row for leaf in at.untouched if leaf.location in set(asked))
            return Decision(flush_data=True, flush_deletes=True, compact=rows)
        new = self._added.numpy("content_type") if self._added is not None else at.kind[:0]
        root = at.tree.root
        data = int((at.carried & (at.kind == _DATA)).sum())
        shape = RootShape(
            carried_data=data,
            carried_deletes=int((at.carried & (at.kind == _EQUALITY_DELETES)).sum()),
            carried_bytes=root.nbytes * data // root.num_rows if data else 0,
            new_data=int((new == _DATA).sum()),
            new_deletes=int((new == _EQUALITY_DELETES).sum()),
            leaves=at.shapes(),
            old_leaves=at.old_shapes(),
        )
        return policy.decide(shape, limits)

    def _place_added(
        self, metadata: TableMetadata, writer: TreeWriter, decision: Decision, at: _Attempt
    ) -> tuple[EntryBatch | None, EntryBatch | None]:
        """Which added entries go to the root, and the leaves that hold the others."""
        added = self._added
        choice = (decision.new_data_to_leaf, decision.new_deletes_to_leaf)
        if added is None or not any(choice):
            return added, None
        kind = added.numpy("content_type")
        to_leaf = ((kind == _DATA) & choice[0]) | ((kind == _EQUALITY_DELETES) & choice[1])
        leaves = self._added_leaves.get(choice)
        if leaves is None:  # written once: they do not depend on the head that is built on
            target = bulk_target(metadata, files=at.data_files() + added.num_rows)
            leaves = writer.leaves(added.filter(to_leaf), target_entries=target)
            self._added_leaves[choice] = leaves
        return added.filter(~to_leaf), leaves

    def _move(
        self,
        reader: TreeReader,
        writer: TreeWriter,
        at: _Attempt,
        decision: Decision,
        limits: Thresholds,
    ) -> _Moved | None:
        """Flush carried entries and compact untouched leaves into new EXISTING leaves."""
        flushed = at.carried & (
            ((at.kind == _DATA) & decision.flush_data)
            | ((at.kind == _EQUALITY_DELETES) & decision.flush_deletes)
        )
        rows = np.flatnonzero(flushed)
        if not rows.size and not decision.compact:
            return None
        if self._moved is not None and self._moved.rows_in(at) is not None:
            return self._moved  # an earlier attempt moved the same entries: its leaves still fit
        root = at.tree.root
        refs = {leaf.row: leaf for leaf in at.untouched}
        carried = self._change.carried_deletes
        flush = [_taking_over(tracking.carry(root.take(rows)), carried)] if rows.size else []
        absorbed: tuple[int, ...] = ()
        target = limits.leaf_target_entries
        if self._change.rewrite_leaves is not None:
            target = bulk_target(reader.metadata, files=at.data_files())
        compacted = [refs[row] for row in decision.compact]
        if self._change.rewrite_elsewhere is not None:
            work = LeavesToRewrite(
                reader=reader,
                writer=writer,
                leaves=compacted,
                flushed=flush[0] if flush else None,
                carried_deletes=carried,
                target_entries=target,
            )
            leaves = [self._change.rewrite_elsewhere(work)]
        else:
            merge = [live_entries(reader, leaf, carried) for leaf in compacted]
            if self._change.rewrite_leaves is not None:
                groups = [flush + merge]
            else:
                # What is flushed and what is compacted stay apart: their entries differ in age.
                fresh, modified = _apart(flush, reader.metadata)
                absorbed = _absorbing(at, modified, decision, limits, reader.metadata)
                joined = [live_entries(reader, refs[row], carried) for row in absorbed]
                groups = [fresh, modified + joined, merge]
            leaves = [
                writer.leaves(EntryBatch.concat(group), target_entries=target)
                for group in groups
                if any(batch.num_rows for batch in group)
            ]
        left = [*(int(row) for row in rows), *absorbed, *decision.compact]
        self._moved = _Moved(
            identities=_identities(root, left),
            leaves=EntryBatch.concat(leaves) if leaves else None,
            flushed=int(rows.size),
            merged=len(absorbed) + len(decision.compact),
            split=sum(_split(batch) for batch in leaves),
        )
        return self._moved


def bulk_target(metadata: TableMetadata, *, files: int) -> int:
    """Entries of the leaves that a large commit or a rewrite writes."""
    columns = len(shape_of(metadata).current)
    return policy.bulk_leaf_entries(metadata.properties, files=files, columns=columns)


def _split(leaves: EntryBatch) -> int:
    """How many leaves of one kind a group of entries was spread over, if over several."""
    counts = np.unique(leaves.numpy("content_type"), return_counts=True)[1]
    return int(counts[counts > 1].sum())


def _apart(
    flush: list[EntryBatch], metadata: TableMetadata
) -> tuple[list[EntryBatch], list[EntryBatch]]:
    """Entries to flush: recent ones, and older ones that a change brought back to the root and that
    would widen the leaf of the recent ones."""
    if not flush or not flush[0].has(_MODIFIED_BY):
        return flush, []
    (batch,) = flush
    modified = arrow_values.to_numpy(pc.is_valid(batch.column(_MODIFIED_BY)))
    data = batch.numpy("content_type") == _DATA
    if not (modified & data).any():
        return flush, []
    recent = batch.filter(~modified & data)
    alone = np.zeros(batch.num_rows, dtype=np.bool_)
    alone[modified & data] = clusters.outside_bounds(
        batch.filter(modified & data), recent, metadata
    )
    return [batch.filter(~alone)], [batch.filter(alone)] if alone.any() else []


def _absorbing(
    at: _Attempt,
    modified: list[EntryBatch],
    decision: Decision,
    limits: Thresholds,
    metadata: TableMetadata,
) -> tuple[int, ...]:
    """Leaves that take the modified entries in; not those that are compacted anyway."""
    shapes = [shape for shape in at.shapes() if shape.row not in decision.compact]
    if not modified or not shapes:
        return ()
    (batch,) = modified
    leaves = at.tree.root.take(np.array([shape.row for shape in shapes], dtype=np.int64))
    within = clusters.entries_within(batch, leaves, metadata)
    return policy.absorbing(shapes, within.tolist(), batch.num_rows, limits)


def added_entries(added: EntryBatch | None, *, snapshot_id: int) -> EntryBatch | None:
    """New files as leaf and root take them: ADDED, everything that inherits left null."""
    if added is None or not added.num_rows:
        return None
    kind = added.numpy("content_type")
    if not ((kind == _DATA) | (kind == _EQUALITY_DELETES)).all():
        raise InvalidInput(
            "only data files and equality delete files can be added; a deletion vector belongs "
            "to the entry of its data file"
        )
    inherited = [
        key
        for key in added.keys
        if key.startswith("@") or (key.startswith("tracking.") and key not in _GIVEN)
    ]
    batch = added.without(*inherited).with_constant("tracking.status", int(Status.ADDED))
    if batch.has("deletion_vector.location"):
        born = pc.is_valid(batch.column("deletion_vector.location"))
        nothing = arrow_values.scalar(None, pa.int64())
        ids = pc.if_else(born, arrow_values.scalar(snapshot_id, pa.int64()), nothing)
        batch = batch.with_column("tracking.modified_snapshot_id", ids)
    return batch


@frozen
class _Attempt:
    """A parent tree as one attempt sees it: what it carries, what the change leaves alone."""

    tree: Tree
    leaves: tuple[LeafRef, ...]
    kind: Rows
    carried: np.ndarray[Any, np.dtype[np.bool_]]
    touched: frozenset[int]

    @staticmethod
    def of(tree: Tree, resolved: Resolved) -> _Attempt:
        carried = tracking.live_mask(tree.root)
        carried[resolved.root_rows] = False
        files = (resolved.removed, resolved.replaced, resolved.vectors)
        return _Attempt(
            tree=tree,
            leaves=tree.leaves(),
            kind=tree.root.numpy("content_type"),
            carried=carried,
            touched=frozenset(row for located in files for row in located.by_leaf()),
        )

    @property
    def untouched(self) -> tuple[LeafRef, ...]:
        return tuple(leaf for leaf in self.leaves if leaf.row not in self.touched)

    def shapes(self) -> list[LeafShape]:
        """Untouched leaves of v4."""
        return [_shape(leaf) for leaf in self.untouched if leaf.format_version > 0]

    def data_files(self) -> int:
        """Data files of the parent."""
        live = int((self.carried & (self.kind == _DATA)).sum())
        return live + sum(leaf.record_count - leaf.dead for leaf in data_leaves(self.leaves))

    def old_shapes(self) -> list[LeafShape]:
        """Untouched data manifests of v1 to v3. The first commit on a table of such a version
        assigns row ids to their files and leaves them as they are."""
        if self.tree.snapshot is None or self.tree.snapshot.root_manifest is None:
            return []
        return [
            _shape(leaf)
            for leaf in self.untouched
            if leaf.format_version == 0
            and leaf.content_type is ContentType.DATA_MANIFEST
            and leaf.first_row_id is not None
        ]


def _shape(leaf: LeafRef) -> LeafShape:
    return LeafShape(
        row=leaf.row,
        entries=leaf.record_count,
        dead=leaf.dead,
        holds_data=leaf.content_type is ContentType.DATA_MANIFEST,
    )


_IDENTITY_KEYS = (
    "location",
    "tracking.snapshot_id",
    "tracking.first_row_id",
    "tracking.sequence_number",
    "deletion_vector.location",
    "deletion_vector.offset",
    "manifest_info.dv",
)
"""The columns that identify an entry across roots, including its deletion vector; new column files
raise its sequence number."""

_Identity = tuple[Any, ...]


def _identities(root: EntryBatch, rows: Sequence[int]) -> tuple[_Identity, ...]:
    picked = root.take(np.asarray(rows, dtype=np.int64))
    return tuple(zip(*(picked.pylist(key) for key in _IDENTITY_KEYS), strict=True))


@frozen
class _Moved:
    """Entries that flush and compaction moved to new leaves, by what they were in the root."""

    identities: tuple[_Identity, ...]
    leaves: EntryBatch | None
    flushed: int
    merged: int
    split: int

    def rows_in(self, at: _Attempt) -> Rows | None:
        """Their rows in a root; None when it does not carry all of them, unchanged."""
        where = self._where(at)
        if not all(identity in where for identity in self.identities):
            return None
        return np.array([where[identity] for identity in self.identities], dtype=np.int64)

    @staticmethod
    def _where(at: _Attempt) -> Mapping[_Identity, int]:
        rows = [int(row) for row in np.flatnonzero(at.carried) if int(row) not in at.touched]
        return dict(zip(_identities(at.tree.root, rows), rows, strict=True))


def live_entries(reader: TreeReader, leaf: LeafRef, carried: CarriedDeletes | None) -> EntryBatch:
    """What a new leaf inherits from an old one."""
    batch = tracking.carry(reader.live(leaf)).without(POSITION)
    kind = batch.numpy("content_type")
    if (kind == ContentType.POSITION_DELETES).any():
        if carried is None or leaf.location not in carried.leaves:
            raise Unsupported(
                f"{leaf.location} lists position deletes of v2 or v3, which a v4 leaf cannot hold; "
                "turn them into deletion vectors first",
                feature="position deletes in a v4 leaf",
            )
        batch = batch.filter(kind != ContentType.POSITION_DELETES)
    return _taking_over(batch, carried)


def _taking_over(batch: EntryBatch, carried: CarriedDeletes | None) -> EntryBatch:
    """Entries with the vectors that were in delete manifests before.

    One that has a vector of its own keeps it: it took the deletes over when it got it.
    """
    if carried is None or not carried.vectors.num_rows:
        return batch
    listed = carried.vectors.column("location").combine_chunks()
    rows = pc.index_in(batch.column("location"), value_set=listed).combine_chunks()
    own = pc.is_valid(batch.column("deletion_vector.location")).combine_chunks()
    rows = pc.if_else(own, arrow_values.scalar(None, rows.type), rows)
    if rows.null_count == len(rows):
        return batch
    for key in (*VECTOR_KEYS, "tracking.modified_snapshot_id"):
        taken = carried.vectors.column(key).take(rows)
        batch = batch.with_column(key, pc.coalesce(batch.column(key), taken))
    return batch


def _check_there(at: _Attempt, asked: Sequence[str]) -> None:
    """Deletes move with the files they apply to: all leaves together, or none."""
    gone = set(asked) - {leaf.location for leaf in at.untouched}
    if gone:
        raise CommitConflict(
            "leaves to be rewritten were rewritten by another commit; run it again",
            [Conflict(what="leaf is no longer in the root", where=name) for name in sorted(gone)],
        )


def _dropped(reader: TreeReader, at: _Attempt, moved: _Moved | None) -> Rows:
    """Rows of the parent that leave without a trace: moved ones, and leaves spent before."""
    spent = _spent(reader, at)
    rows = None if moved is None else moved.rows_in(at)
    return spent if rows is None else np.union1d(rows, spent)


def _spent(reader: TreeReader, at: _Attempt) -> Rows:
    """Leaves whose every position was dead already in the parent: nothing left to tell."""
    if not at.leaves:
        return np.zeros(0, dtype=np.int64)
    root, untouched = at.tree.root, at.untouched
    rows = np.array([leaf.row for leaf in untouched], dtype=np.int64)
    deleted = root.pylist("manifest_info.deleted_files_count", rows)
    replaced = root.pylist("manifest_info.replaced_files_count", rows)
    spent: list[int] = []
    for index, leaf in enumerate(untouched):
        by_vector, retired = leaf.dead, (deleted[index] or 0) + (replaced[index] or 0)
        if by_vector + retired < leaf.record_count:
            continue
        # Writers differ in whether the vector repeats positions that are dead by status.
        if by_vector and retired and reader.live(leaf, keys=()).num_rows:
            continue
        spent.append(leaf.row)
    return np.array(spent, dtype=np.int64)


__all__ = ["Adapted", "Adapter", "added_entries", "bulk_target", "live_entries"]

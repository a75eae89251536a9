"""A change on a head gives the next snapshot: find its entries, check conflicts, adapt the tree,
write the root.

What does not depend on the head (deletion vectors, leaves of added files) is written once and
reused by every attempt; only the root is written again.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from frazil.commit import conflicts, summary
from frazil.commit.change import Change
from frazil.commit.head import Draft, Head, State
from frazil.commit.vectors import MergedVectors, VectorMerger
from frazil.errors import CommitConflict, Conflict
from frazil.expr.prune import PruneContext
from frazil.format import aggregate, paths, tracking
from frazil.format.batch import EntryBatch
from frazil.format.fields import PARTITION_PREFIX, ContentType
from frazil.format.metadata import SchemaId, Snapshot, SnapshotId, TableMetadata
from frazil.format.stats import tracked_fields as schema_fields
from frazil.storage import Storage
from frazil.tree import edit, policy
from frazil.tree.cache import ManifestCache
from frazil.tree.changes import CHANGE_KEYS, TreeChanges, changes_of
from frazil.tree.edit import LeafEdit, RootEdit, Stamp
from frazil.tree.locate import Located, locate
from frazil.tree.policy import Decision, LeafShape, RootShape, Thresholds
from frazil.tree.read import LEAF, POSITION, Tree, TreeReader
from frazil.tree.write import TreeWriter, tracked_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A draft ready to be swapped in, and what was written for it."""

    draft: Draft
    snapshot: Snapshot | None
    root_path: str | None = None
    used_paths: frozenset[str] = frozenset()
    metadata_bytes: int = 0
    decision: Decision = Decision()


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where a commit runs: storage, cache, clock and names come in from outside."""

    storage: Storage
    location: str
    cache: ManifestCache
    now_ms: Callable[[], int]
    new_snapshot_id: Callable[[], int]
    new_id: Callable[[], str] = lambda: str(uuid.uuid4())


class Builder:
    """Builds one change on heads, again and again until it lands."""

    def __init__(self, change: Change, around: Surroundings, head: Head) -> None:
        self._change = change
        self._around = around
        self._head = head
        self._merger = VectorMerger(
            change.vectors, storage=around.storage, location=around.location, new_id=around.new_id
        )
        self._snapshot_id = around.new_snapshot_id()
        self._added_leaves: EntryBatch | None = None
        self._moved: _Moved | None = None
        self.written: dict[str, int] = {}

    @property
    def snapshot_id(self) -> int:
        """The id of the snapshot this commit makes, the same in every attempt."""
        return self._snapshot_id

    def build(self, state: State) -> Built:
        """The draft for this head. Writes files; raises CommitConflict."""
        now_ms = max(self._around.now_ms(), state.metadata.last_updated_ms)
        metadata = state.metadata
        for update in self._change.updates:
            metadata = update.apply(metadata, now_ms=now_ms)
        if not self._change.has_content:
            return Built(draft=Draft(metadata=metadata), snapshot=None)
        return self._build_snapshot(state, metadata, now_ms)

    def _build_snapshot(self, state: State, metadata: TableMetadata, now_ms: int) -> Built:
        change, around = self._change, self._around
        reader = TreeReader(
            around.storage, metadata, location=around.location, cache=around.cache
        )
        parent = state.tip(change.branch) or (
            state.tip() if change.branch not in state.metadata.refs else None
        )
        self._check_history(reader, parent)
        tree = reader.tree(parent)
        resolved = self._resolve(reader, tree)
        stamp = Stamp(
            snapshot_id=self._snapshot_id,
            sequence_number=metadata.last_sequence_number + 1,
            first_row_id=metadata.next_row_id,
        )
        writer = TreeWriter(
            around.storage, metadata, location=around.location, new_id=around.new_id
        )
        decision = self._decide(metadata, tree, resolved)
        root_edit = self._adapt(reader, writer, tree, resolved, decision, metadata)
        edited = edit.apply(tree.root, root_edit, stamp)
        leaves_written = len(writer.written)
        snapshot = Snapshot(
            snapshot_id=SnapshotId(stamp.snapshot_id),
            parent_snapshot_id=None if parent is None else parent.snapshot_id,
            sequence_number=stamp.sequence_number,
            timestamp_ms=now_ms,
            schema_id=SchemaId(metadata.current_schema_id),
            root_manifest=writer.root_location(stamp.sequence_number),
            first_row_id=stamp.first_row_id,
            added_rows=edited.next_row_id - stamp.first_row_id,
            summary=self._summary(parent, resolved, edited.root, leaves_written),
        )
        root = edited.root.without(LEAF, POSITION)
        writer.root(root, snapshot)
        for file in writer.written:
            self.written[paths.resolve(around.location, file.location)] = file.size
        for location, size in self._merger.written:
            self.written[paths.resolve(around.location, location)] = size
        metadata_bytes = sum(file.size for file in writer.written)
        snapshot = replace(
            snapshot,
            summary={**snapshot.summary, summary.METADATA_BYTES_WRITTEN: str(metadata_bytes)},
        )
        assert snapshot.root_manifest is not None
        root_path = paths.resolve(around.location, snapshot.root_manifest)
        around.cache.put(root_path, root)
        return Built(
            draft=Draft(
                metadata=metadata.with_snapshot(snapshot, branch=change.branch),
                added_snapshots=(snapshot,),
            ),
            snapshot=snapshot,
            root_path=root_path,
            used_paths=_locations(around.location, root),
            metadata_bytes=metadata_bytes,
            decision=decision,
        )

    # Conflicts

    def _check_history(self, reader: TreeReader, parent: Snapshot | None) -> None:
        change = self._change
        if change.only_adds and change.conflict_filter is None:
            return
        if not conflicts.needs_history(change):
            return
        meanwhile = self._meanwhile(reader, parent)
        found = conflicts.check(change, meanwhile, _context(reader.metadata))
        if found:
            raise CommitConflict(
                f"{change.operation} on branch {change.branch} conflicts with commits that landed "
                "since it was planned; run it again on the current state",
                found,
            )

    def _meanwhile(self, reader: TreeReader, parent: Snapshot | None) -> list[TreeChanges]:
        """Change sets of the snapshots between the one this change was planned on and the head."""
        base = self._change.base_snapshot_id
        keys = None if self._change.conflict_filter is not None else CHANGE_KEYS
        found: list[TreeChanges] = []
        snapshot = parent
        while snapshot is not None and snapshot.snapshot_id != base:
            found.append(changes_of(reader, snapshot, keys=keys))
            before = snapshot.parent_snapshot_id
            snapshot = None if before is None else self._head.snapshot(before)
        if snapshot is None and base is not None:
            raise CommitConflict(
                f"branch {self._change.branch} no longer descends from snapshot {base}, which "
                f"this {self._change.operation} was planned on",
                [Conflict(what="history was replaced", where=self._change.branch)],
            )
        return found

    # Addresses

    def _resolve(self, reader: TreeReader, tree: Tree) -> _Resolved:
        change = self._change
        nothing = Located(locations=(), leaf=_no_rows(), position=_no_rows())
        removed = nothing if change.removed is None else locate(reader, tree, change.removed)
        replaced = nothing if change.replaced is None else locate(reader, tree, change.replaced)
        vectors = nothing
        if change.vectors:
            vectors = locate(reader, tree, _wanted(change))
        gone = [*removed.missing, *replaced.missing, *vectors.missing]
        if gone:
            raise CommitConflict(
                f"{change.operation}: files it needs are no longer in the table",
                conflicts.missing(gone),
            )
        keys = [*summary.SUMMARY_KEYS, *_partition_keys(reader.metadata)]
        before = vectors.entries(reader, tree, keys=None) if change.vectors else None
        merged: MergedVectors | None = None
        if before is not None:
            merged = self._merger.merge(before.without(LEAF, POSITION))
            if merged.conflicts:
                raise CommitConflict(
                    f"{change.operation}: rows it changes were changed meanwhile; run it again",
                    merged.conflicts,
                )
        return _Resolved(
            removed=removed,
            replaced=replaced,
            vectors=vectors,
            removed_entries=_entries(removed, reader, tree, keys),
            replaced_entries=_entries(replaced, reader, tree, keys),
            before=before,
            modified=None if merged is None else merged.entries,
        )

    # Adapting the tree

    def _decide(self, metadata: TableMetadata, tree: Tree, resolved: _Resolved) -> Decision:
        limits = Thresholds.of(metadata.properties)
        kind = tree.root.numpy("content_type")
        carried = tracking.live_mask(tree.root)
        carried[resolved.root_rows()] = False
        data = carried & (kind == ContentType.DATA)
        touched = resolved.touched_leaves()
        added = _by_content(self._change.added)
        shape = RootShape(
            carried_data=int(data.sum()),
            carried_deletes=int((carried & (kind == ContentType.EQUALITY_DELETES)).sum()),
            carried_bytes=_bytes_of(tree.root, int(data.sum())),
            new_data=added.get(int(ContentType.DATA), 0),
            new_deletes=added.get(int(ContentType.EQUALITY_DELETES), 0),
            leaves=[
                LeafShape(
                    row=leaf.row,
                    entries=leaf.record_count,
                    dead=leaf.dead,
                    holds_data=leaf.content_type is ContentType.DATA_MANIFEST,
                )
                for leaf in tree.leaves()
                if leaf.row not in touched and leaf.format_version > 0
            ],
        )
        if self._change.rewrite_leaves is not None:
            wanted = set(self._change.rewrite_leaves)
            rows = tuple(leaf.row for leaf in tree.leaves() if leaf.location in wanted)
            return Decision(flush_data=True, flush_deletes=True, compact=rows)
        return policy.decide(shape, limits)

    def _adapt(
        self,
        reader: TreeReader,
        writer: TreeWriter,
        tree: Tree,
        resolved: _Resolved,
        decision: Decision,
        metadata: TableMetadata,
    ) -> RootEdit:
        target = Thresholds.of(metadata.properties).leaf_target_entries
        added, added_leaves = self._place_added(writer, decision, target)
        moved = self._move(reader, writer, tree, resolved, decision, target)
        return RootEdit(
            deleted_rows=resolved.removed.root_rows,
            replaced_rows=np.concatenate(
                [resolved.replaced.root_rows, resolved.vectors.root_rows]
            ),
            leaf_edits=resolved.leaf_edits(),
            modified=resolved.modified,
            added=added,
            added_leaves=added_leaves,
            moved_rows=_no_rows() if moved is None else moved.rows(tree),
            moved_to=None if moved is None else moved.leaves,
        )

    def _place_added(
        self, writer: TreeWriter, decision: Decision, target: int
    ) -> tuple[EntryBatch | None, EntryBatch | None]:
        """Which added entries go to the root, and the leaves that hold the others."""
        added = self._change.added
        if added is None or not added.num_rows:
            return None, None
        if not (decision.new_data_to_leaf or decision.new_deletes_to_leaf):
            return added, None
        kind = added.numpy("content_type")
        to_leaf = ((kind == ContentType.DATA) & decision.new_data_to_leaf) | (
            (kind == ContentType.EQUALITY_DELETES) & decision.new_deletes_to_leaf
        )
        if self._added_leaves is None:
            self._added_leaves = writer.leaves(
                added.filter(to_leaf).without(LEAF, POSITION), target_entries=target
            )
        return added.filter(~to_leaf), self._added_leaves

    def _move(
        self,
        reader: TreeReader,
        writer: TreeWriter,
        tree: Tree,
        resolved: _Resolved,
        decision: Decision,
        target: int,
    ) -> _Moved | None:
        """Flush carried entries and compact untouched leaves into new EXISTING leaves."""
        kind = tree.root.numpy("content_type")
        carried = tracking.live_mask(tree.root)
        carried[resolved.root_rows()] = False
        flushed = carried & (
            ((kind == ContentType.DATA) & decision.flush_data)
            | ((kind == ContentType.EQUALITY_DELETES) & decision.flush_deletes)
        )
        if not flushed.any() and not decision.compact:
            return None
        rows = np.flatnonzero(flushed)
        moved = self._moved
        if moved is not None and moved.still_in(tree, carried):
            return moved
        batches = [tracking.carry(tree.root.take(rows))] if rows.size else []
        refs = {leaf.row: leaf for leaf in tree.leaves()}
        for row in decision.compact:
            batches.append(tracking.carry(reader.live(refs[row])).without(POSITION))
        merged = _conformed(EntryBatch.concat(batches), reader.metadata)
        if not merged.num_rows:
            leaves = merged.slice(0, 0)
        elif rows.size and decision.compact and self._change.rewrite_leaves is None:
            # A flush and a compaction that meet stay apart: their entries are of unlike ages.
            flush_leaves = writer.leaves(
                _conformed(batches[0], reader.metadata), target_entries=target
            )
            rest = _conformed(EntryBatch.concat(batches[1:]), reader.metadata)
            leaves = EntryBatch.concat([flush_leaves, writer.leaves(rest, target_entries=target)])
        else:
            leaves = writer.leaves(merged, target_entries=target)
        self._moved = _Moved(
            locations=tuple(
                tree.root.take(np.concatenate([rows, np.array(decision.compact, np.int64)]))
                .column("location")
                .to_pylist()
            ),
            vectors=tuple(
                tree.root.take(np.concatenate([rows, np.array(decision.compact, np.int64)]))
                .column("manifest_info.dv")
                .to_pylist()
            ),
            leaves=leaves,
        )
        return self._moved

    def _summary(
        self, parent: Snapshot | None, resolved: _Resolved, root: EntryBatch, leaves: int
    ) -> dict[str, str]:
        change = self._change
        extra = {
            **change.summary,
            summary.ROOT_ENTRIES: str(root.num_rows),
            summary.LEAVES_WRITTEN: str(leaves),
        }
        return summary.summarise(
            operation=change.operation,
            added=summary.Tally.of(change.added),
            removed=summary.Tally.of(resolved.removed_entries, resolved.replaced_entries),
            before=summary.Tally.of(resolved.before),
            after=summary.Tally.of(resolved.modified),
            partitions=summary.changed_partitions(
                change.added, resolved.removed_entries, resolved.replaced_entries, resolved.modified
            ),
            parent=parent,
            extra=extra,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moved:
    """Entries that flush and compaction moved to new leaves, by what they were in the root."""

    locations: tuple[str, ...]
    vectors: tuple[bytes | None, ...]
    leaves: EntryBatch

    def _where(self, tree: Tree) -> dict[tuple[str, bytes | None], int]:
        live = tracking.live_mask(tree.root)
        names = tree.root.pylist("location")
        vectors = tree.root.pylist("manifest_info.dv")
        return {(names[row], vectors[row]): int(row) for row in np.flatnonzero(live)}

    def rows(self, tree: Tree) -> Any:
        """Their rows in this root."""
        where = self._where(tree)
        keys = zip(self.locations, self.vectors, strict=True)
        return np.array([where[key] for key in keys], dtype=np.int64)

    def still_in(self, tree: Tree, carried: Any) -> bool:
        """Whether another head still has all of them, untouched by this change."""
        where = self._where(tree)
        keys = list(zip(self.locations, self.vectors, strict=True))
        return all(key in where and carried[where[key]] for key in keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Resolved:
    """A change with the addresses of everything it touches in one tree."""

    removed: Located
    replaced: Located
    vectors: Located
    removed_entries: EntryBatch | None
    replaced_entries: EntryBatch | None
    before: EntryBatch | None
    modified: EntryBatch | None

    def root_rows(self) -> Any:
        return np.concatenate(
            [self.removed.root_rows, self.replaced.root_rows, self.vectors.root_rows]
        )

    def leaf_edits(self) -> dict[int, LeafEdit]:
        deleted = self.removed.by_leaf()
        gone = self.replaced.by_leaf()
        changed = self.vectors.by_leaf()
        return {
            row: LeafEdit(
                deleted=deleted.get(row, _no_rows()),
                replaced=np.union1d(gone.get(row, _no_rows()), changed.get(row, _no_rows())),
            )
            for row in {*deleted, *gone, *changed}
        }

    def touched_leaves(self) -> set[int]:
        return {*self.removed.by_leaf(), *self.replaced.by_leaf(), *self.vectors.by_leaf()}


def _no_rows() -> Any:
    return np.zeros(0, dtype=np.int64)


def _wanted(change: Change) -> EntryBatch:
    return EntryBatch.from_rows(
        [
            {"location": edit.location, LEAF: edit.leaf, POSITION: edit.position}
            for edit in change.vectors
        ]
    )


def _entries(
    located: Located, reader: TreeReader, tree: Tree, keys: list[str]
) -> EntryBatch | None:
    return located.entries(reader, tree, keys=keys) if located.locations else None


def _partition_keys(metadata: TableMetadata) -> list[str]:
    fields = {field.field_id for spec in metadata.partition_specs for field in spec.fields}
    return [*(f"{PARTITION_PREFIX}{id}" for id in sorted(fields)), "spec_id"]


def _by_content(batch: EntryBatch | None) -> dict[int, int]:
    if batch is None:
        return {}
    kinds, counts = np.unique(batch.numpy("content_type"), return_counts=True)
    return dict(zip((int(kind) for kind in kinds), (int(count) for count in counts), strict=True))


def _bytes_of(root: EntryBatch, rows: int) -> int:
    return 0 if not root.num_rows else int(root.table.nbytes) * rows // root.num_rows


def _conformed(batch: EntryBatch, metadata: TableMetadata) -> EntryBatch:
    known = {field.id for field in schema_fields(metadata.schema())}
    derived = [field for field in tracked_fields(metadata) if field.id not in known]
    return aggregate.conform(batch, metadata.schema(), derived=derived)


def _context(metadata: TableMetadata) -> PruneContext:
    return PruneContext(
        schema=metadata.schema(), specs=metadata.specs_by_id(), derived=metadata.expressions
    )


def _locations(location: str, root: EntryBatch) -> frozenset[str]:
    kind = root.numpy("content_type")
    leaves = root.filter(kind >= ContentType.DATA_MANIFEST).pylist("location")
    vectors = {path for path in root.pylist("deletion_vector.location") if path}
    return frozenset(paths.resolve(location, path) for path in (*leaves, *vectors))


__all__ = ["Builder", "Built", "Surroundings"]

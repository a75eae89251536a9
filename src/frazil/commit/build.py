"""A change on a head gives the next snapshot: find its entries, check conflicts, adapt the tree,
write the root.

What does not depend on the head (deletion vectors, leaves of added files) is written once and
reused by every attempt; only the root is written again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa

from frazil.commit import conflicts, summary
from frazil.commit.adapt import Adapted, Adapter
from frazil.commit.change import Change
from frazil.commit.context import CommitContext
from frazil.commit.deletion_vectors import VectorMerger
from frazil.commit.head import Draft, Head, Neighbour, State
from frazil.commit.resolve import Resolved, resolve
from frazil.commit.result import METADATA, CommitResult
from frazil.commit.updates import RemoveSnapshots
from frazil.errors import CommitConflict, Conflict, InvalidInput, NotFound
from frazil.format import paths
from frazil.format.checks import own_prefixes, with_added_folders
from frazil.format.entries import tracking
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import COLUMN_FILES
from frazil.format.metadata.definition_checks import check_rows_can_be_added
from frazil.format.metadata.metadata import (
    RefKind,
    SchemaId,
    Snapshot,
    SnapshotId,
    TableMetadata,
    time_of_change,
)
from frazil.tree import edit
from frazil.tree.changes import CHANGE_KEYS, TreeChanges, changes_of
from frazil.tree.edit import Stamp, numbered
from frazil.tree.read import LEAF, POSITION, Tree, TreeReader, equality_deletes
from frazil.tree.table_shape import shape_of
from frazil.tree.write import TreeWriter
from frazil.value_classes import frozen, replace


@frozen
class Built:
    """A draft ready to be swapped in, and what it will have done once it has landed.

    `used_paths` are the files its root points at, and the root itself.
    """

    draft: Draft
    result: CommitResult
    used_paths: frozenset[str] = frozenset()


class Builder:
    """Builds one change on heads, again and again until it lands."""

    def __init__(
        self, change: Change, context: CommitContext, head: Head, *, is_staged: bool = False
    ) -> None:
        """A staged snapshot is read by its own transaction alone. The rows it adds have no ids yet:
        the commit gives them, and other commits may come before it."""
        summary.check_keys(change.summary)
        self._change = change
        self._is_staged = is_staged
        self._context = context
        self._head = head
        self._merger = VectorMerger(
            change.vectors,
            storage=context.storage,
            location=context.location,
            new_id=context.new_id,
        )
        given = change.snapshot_id
        self._snapshot_id = context.new_snapshot_id() if given is None else given
        self._adapter = Adapter(change, snapshot_id=self._snapshot_id)
        self._writers: list[TreeWriter] = []

    @property
    def snapshot_id(self) -> int:
        """The id of the snapshot this commit makes, the same in every attempt."""
        return self._snapshot_id

    @property
    def written(self) -> dict[str, int]:
        """Every file that any attempt wrote, finished or not, with its size."""
        files = [(file.location, file.size) for writer in self._writers for file in writer.written]
        location = self._context.location
        return {paths.resolve(location, name): size for name, size in files + self._merger.written}

    def build(self, state: State) -> Built:
        """The draft for this head. Writes files; raises CommitConflict."""
        change = self._change
        now_ms = time_of_change(self._context.now_ms(), state.metadata.last_updated_ms)
        metadata = state.metadata
        forgotten: list[int] = []
        for update in change.updates:
            metadata = update.apply(metadata, now_ms=now_ms)
            if isinstance(update, RemoveSnapshots):
                forgotten += update.snapshot_ids
        if change.has_content:
            built = self._build_snapshot(state, metadata, now_ms)
        else:
            built = Built(draft=Draft(metadata=metadata), result=CommitResult(operation=METADATA))
        if not forgotten:
            return built
        return replace(built, draft=replace(built.draft, removed_snapshot_ids=tuple(forgotten)))

    def _build_snapshot(self, state: State, metadata: TableMetadata, now_ms: int) -> Built:
        change, context = self._change, self._context
        if change.operation in ("append", "overwrite"):
            check_rows_can_be_added(metadata)
        metadata = self._with_owners_checked(metadata, now_ms)
        parent = None if change.starts_empty else _parent(state, change.branch)
        reader = context.reader(metadata)
        self._check_history(reader, parent)
        root, next_row_id = numbered(reader.tree(parent).root, metadata.next_row_id)
        tree = Tree(snapshot=parent, root=root)
        self._check_equality_deletes(reader, tree)
        resolved = resolve(change, reader, tree, self._merger)
        self._check_columns(resolved, parent)
        writer = TreeWriter(
            context.storage, metadata, location=context.location, new_id=context.new_id
        )
        self._writers.append(writer)
        adapted = self._adapter.adapt(reader, writer, tree, resolved)
        stamp = Stamp(
            snapshot_id=self._snapshot_id,
            sequence_number=metadata.last_sequence_number + 1,
            first_row_id=next_row_id,
        )
        edited = edit.apply(tree.root, adapted.edit, stamp)
        if self._is_staged:
            edited = replace(edited, root=_unnumbered(edited.root, adapted.edit.added, stamp))
        root_manifest = writer.root_location(stamp.sequence_number)
        leaves = adapted.leaves
        snapshot = Snapshot(
            snapshot_id=SnapshotId(stamp.snapshot_id),
            parent_snapshot_id=None if parent is None else parent.snapshot_id,
            sequence_number=stamp.sequence_number,
            timestamp_ms=now_ms,
            schema_id=SchemaId(metadata.current_schema_id),
            root_manifest=root_manifest,
            first_row_id=metadata.next_row_id,
            added_rows=edited.next_row_id - metadata.next_row_id,
            summary=self._summary(parent, resolved, edited.root, adapted),
        )
        root = writer.root(
            edited.root.without(LEAF, POSITION), snapshot, branch=self._change.branch
        )
        metadata_bytes = writer.written[-1].size
        if leaves is not None:
            metadata_bytes += int(leaves.numpy("file_size_in_bytes").sum())
        snapshot = replace(
            snapshot,
            summary={**snapshot.summary, summary.METADATA_BYTES_WRITTEN: str(metadata_bytes)},
        )
        root_path = paths.resolve(context.location, root_manifest)
        context.cache.put(root_path, root)
        used_paths = frozenset({root_path, *_pointed_at(context.location, root)})
        return Built(
            draft=Draft(
                metadata=metadata.with_snapshot(
                    snapshot, branch=None if change.is_staged else change.branch
                ),
                added_snapshots=(snapshot,),
            ),
            result=self._result(resolved, snapshot, metadata_bytes, used_paths),
            used_paths=used_paths,
        )

    def _with_owners_checked(self, metadata: TableMetadata, now_ms: int) -> TableMetadata:
        """Refuse files of other tables, note folders that are nobody's; what lies where this table
        writes is not looked up."""
        change, head = self._change, self._head
        if change.shares_files or not isinstance(head, Neighbour):
            return metadata
        own = own_prefixes(metadata.location, metadata.properties)
        outside = [name for name in change.named_files() if not name.startswith(own)]
        if outside:
            head.refuse_files_of_others(metadata, outside)
        strange = [name for name in outside if paths.is_absolute(name)]
        noted = with_added_folders(metadata.properties, strange) if strange else {}
        return metadata.with_properties(noted, now_ms=now_ms) if noted else metadata

    def _check_history(self, reader: TreeReader, parent: Snapshot | None) -> None:
        """Refuse a change that snapshots since the one it was planned on stand against."""
        change = self._change
        context = shape_of(reader.metadata).prune_context()
        if conflicts.needs_history(change):
            meanwhile = self._meanwhile(reader, parent, since=change.base_snapshot_id)
            self._refuse(conflicts.check(change, meanwhile, context))
        for searched in change.searched:
            if searched.read is not None:
                meanwhile = self._meanwhile(reader, parent, since=searched.read.snapshot_id)
                self._refuse(conflicts.check_read(searched, meanwhile, context))

    def _check_equality_deletes(self, reader: TreeReader, tree: Tree) -> None:
        """Refuse a change whose new files would escape equality deletes that landed since."""
        change, parent = self._change, tree.snapshot
        reads = [searched.read for searched in change.searched if searched.read is not None]
        bases = {change.base_snapshot_id, *(read.snapshot_id for read in reads)}
        is_newest = parent is None or bases == {parent.snapshot_id}
        if is_newest or not conflicts.heeds_equality_deletes(change):
            return
        planned_at = self._planned_at(bases)  # where it is not known, any delete may be younger
        fresh = equality_deletes(reader, tree, younger_than=planned_at)
        if fresh.num_rows:
            context = shape_of(reader.metadata).prune_context()
            self._refuse(conflicts.check_equality_deletes(change, fresh, context))

    def _check_columns(self, resolved: Resolved, parent: Snapshot | None) -> None:
        """Refuse a change of rows whose values were updated since it was planned."""
        base = self._change.base_snapshot_id
        if parent is None or base is None or base == int(parent.snapshot_id):
            return
        planned_at: int | None = None
        for entries in (resolved.before, resolved.removed_entries, resolved.replaced_entries):
            if entries is None or not entries.has(COLUMN_FILES):
                continue
            if planned_at is None:
                planned_at = self._planned_at({base})
            change = self._change
            self._refuse(conflicts.check_columns(change, entries, planned_at=planned_at))

    def _planned_at(self, bases: Collection[int | None]) -> int:
        """The sequence number of the oldest of some snapshots; 0 where one is not known."""
        try:
            return min(
                0 if base is None else self._head.snapshot(base).sequence_number for base in bases
            )
        except NotFound:
            return 0

    def _refuse(self, problems: Sequence[Conflict]) -> None:
        change = self._change
        if problems:
            raise CommitConflict(
                f"{change.operation} on branch {change.branch} conflicts with commits that landed "
                "since it was planned; run it again on the current state",
                problems,
            )

    def _meanwhile(
        self, reader: TreeReader, parent: Snapshot | None, *, since: int | None
    ) -> list[TreeChanges]:
        """Change sets of the snapshots after one that this change relies on, up to the head."""
        change = self._change
        keys = None if change.searched else CHANGE_KEYS
        landed: list[TreeChanges] = []
        snapshot = parent
        try:
            while snapshot is not None and snapshot.snapshot_id != since:
                landed.append(changes_of(reader, snapshot, keys=keys))
                before = snapshot.parent_snapshot_id
                snapshot = None if before is None else self._head.snapshot(before)
        except NotFound as error:
            raise CommitConflict(
                f"{change.operation} on branch {change.branch} cannot be checked against what "
                f"landed since it was planned, as part of the history is gone ({error}); "
                "run it again on the current state",
                [Conflict(what="history was expired", where=change.branch)],
            ) from error
        if snapshot is None and since is not None:
            raise CommitConflict(
                f"branch {change.branch} no longer descends from snapshot {since}, which "
                f"this {change.operation} was planned on",
                [Conflict(what="history was replaced", where=change.branch)],
            )
        return landed

    def _result(
        self,
        resolved: Resolved,
        snapshot: Snapshot,
        metadata_bytes: int,
        used_paths: frozenset[str],
    ) -> CommitResult:
        counted = CommitResult.of(
            self._change.operation,
            added=summary.Tally.of(self._change.added),
            removed=summary.Tally.of(resolved.removed_entries, resolved.replaced_entries),
            before=summary.Tally.of(resolved.before),
            after=summary.Tally.of(resolved.modified),
            carried=resolved.rows_carried,
            updated=self._change.rows_updated,
            in_place=self._change.rows_in_place,
        )
        own = self.written.keys() & used_paths
        return replace(
            counted,
            snapshots=(snapshot,),
            column_files=len(self._change.columns),
            column_bytes=sum(edit.file.file_size_in_bytes for edit in self._change.columns),
            metadata_files=sum(not path.endswith(".puffin") for path in own),
            metadata_bytes=metadata_bytes,
        )

    def _summary(
        self, parent: Snapshot | None, resolved: Resolved, root: EntryBatch, adapted: Adapted
    ) -> dict[str, str]:
        change = self._change
        gone = (resolved.removed_entries, resolved.replaced_entries)
        return summary.summarise(
            operation=change.operation,
            added=summary.Tally.of(change.added),
            removed=summary.Tally.of(*gone),
            before=summary.Tally.of(resolved.before),
            after=summary.Tally.of(resolved.modified),
            partitions=summary.changed_partitions(change.added, *gone, resolved.modified),
            parent=parent,
            extra={
                **change.summary,
                summary.ROOT_ENTRIES: str(root.num_rows),
                **adapted.summary(),
            },
        )


def _parent(state: State, branch: str) -> Snapshot | None:
    """What the new snapshot follows; a branch that is not there yet starts from main."""
    ref = state.metadata.refs.get(branch)
    if ref is None:
        return state.tip()
    if ref.kind is RefKind.TAG:
        raise InvalidInput(f"{branch!r} is a tag and cannot be committed to")
    return state.tip(branch)


def _unnumbered(root: EntryBatch, added: EntryBatch | None, stamp: Stamp) -> EntryBatch:
    """A root whose new files and leaves have the first row ids they came with, and no others."""
    key = "tracking.first_row_id"
    ids = root.pylist(key)
    status, by = root.numpy("tracking.status"), root.pylist("tracking.snapshot_id")
    for row in np.flatnonzero(status == tracking.Status.ADDED):
        if by[row] == stamp.snapshot_id:
            ids[row] = None
    if added is not None and added.num_rows and added.has(key):
        ids[-added.num_rows :] = added.pylist(key)
    return root.with_column(key, pa.array(ids, pa.int64()))


def _pointed_at(location: str, root: EntryBatch) -> set[str]:
    """Leaves and deletion vectors that a root names."""
    leaves = np.flatnonzero(tracking.leaf_mask(root))
    names = root.pylist("location", leaves)
    if root.has("deletion_vector.location"):
        names += [name for name in root.pylist("deletion_vector.location") if name]
    return {paths.resolve(location, name) for name in names}


__all__ = ["Builder", "Built"]

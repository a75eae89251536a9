"""Bring work from one branch to another: cherry-pick one snapshot, or fast-forward to a tip.

With a branch for work to be audited, both are ways to publish it. Row ids stay: a picked file is
the same file, with the same rows.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from frazil import arrow_compute as pc
from frazil.commit.change import Change, VectorEdit
from frazil.commit.deletion_vectors import VectorMerger
from frazil.commit.handle import TableHandle
from frazil.commit.loop import discard, undoing
from frazil.commit.resolve import edited_files
from frazil.commit.result import CommitResult
from frazil.commit.updates import RemoveRef, SetRef
from frazil.errors import InvalidInput, Unsupported
from frazil.format import paths
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType
from frazil.format.metadata.metadata import RefKind, Snapshot, SnapshotRef
from frazil.format.vectors import bitmap
from frazil.maintenance.retention import Ancestry
from frazil.scan.change_steps import FileSets, Modified, data_files, without_vector
from frazil.tree.changes import TreeChanges, changes_of
from frazil.tree.locate import FIRST_ROW_ID, locate
from frazil.tree.read import LEAF, POSITION
from frazil.tree.stored_vectors import read_vector, vectors_of
from frazil.value_classes import replace

SOURCE_SNAPSHOT = "source-snapshot-id"
PIN_PREFIX = "pick/"


def fast_forward(handle: TableHandle, branch: str, to: Snapshot) -> CommitResult:
    """Move a branch to a snapshot that it leads to; a branch that is not there is made."""
    handle.refresh()
    ref = handle.metadata.refs.get(branch)
    if ref is None:
        target = SnapshotRef(snapshot_id=to.snapshot_id)
        return _point(handle, branch, target, expected=None)
    if ref.kind is RefKind.TAG:
        raise InvalidInput(f"{branch!r} is a tag; tags do not move")
    ancestry = Ancestry.of(handle.head.snapshots())
    lineage = {int(snapshot.snapshot_id) for snapshot in ancestry.lineage(int(to.snapshot_id))}
    if int(ref.snapshot_id) not in lineage:
        raise InvalidInput(
            f"{branch} cannot be fast-forwarded to snapshot {to.snapshot_id}: it has commits "
            "that are not in that history; cherry-pick instead"
        )
    moved = replace(ref, snapshot_id=to.snapshot_id)
    return _point(handle, branch, moved, expected=int(ref.snapshot_id))


def _point(
    handle: TableHandle, branch: str, ref: SnapshotRef, *, expected: int | None
) -> CommitResult:
    return handle.commit(Change(updates=(SetRef(name=branch, ref=ref, expected=expected),)))


def cherry_pick(handle: TableHandle, branch: str, snapshot: Snapshot) -> CommitResult:
    """Do to a branch what a snapshot did to its parent.

    A branch that is at that parent is moved to the snapshot itself. Files that the snapshot
    removed, or deleted rows of, must be live on the branch; otherwise it is a conflict.
    """
    handle.refresh()
    tip = handle.tip(branch) if branch in handle.metadata.refs else handle.tip()
    if tip is not None and tip.snapshot_id == snapshot.parent_snapshot_id:
        return fast_forward(handle, branch, snapshot)
    ancestry = Ancestry.of(handle.head.snapshots())
    lineage = [] if tip is None else list(ancestry.lineage(int(tip.snapshot_id)))
    _check_new(branch, lineage, snapshot)
    changes = changes_of(handle.reader(), snapshot, keys=None)
    if changes.column_updates().num_rows:
        raise Unsupported(
            f"snapshot {snapshot.snapshot_id} updated columns in column files, which hold "
            "values of every row of a file as it was there; fast-forward, or run the update again",
            feature="cherry-picking column updates",
        )
    _check_pickable(changes)
    written: list[str] = []
    change = _change(handle, branch, changes, written, base=_common(ancestry, lineage, snapshot))
    change = _on_branch(handle, tip, change)
    with undoing(lambda: discard(handle.storage, written)):
        return _pinned(handle, change, snapshot)


def _pinned(handle: TableHandle, change: Change, snapshot: Snapshot) -> CommitResult:
    """Land a pick while a tag keeps the picked snapshot: an expiry at the same time must not delete
    files that the pick is about to bring back. The tag goes with the commit."""
    pin = f"{PIN_PREFIX}{snapshot.snapshot_id}"
    tag = SnapshotRef(snapshot_id=snapshot.snapshot_id, kind=RefKind.TAG)
    _point(handle, pin, tag, expected=None)
    unpin = (RemoveRef(name=pin),)
    with undoing(lambda: handle.commit(Change(updates=unpin))):
        return handle.commit(replace(change, updates=unpin))


def _check_new(branch: str, lineage: list[Snapshot], snapshot: Snapshot) -> None:
    snapshot_id = str(snapshot.snapshot_id)
    for ancestor in lineage:
        if ancestor.snapshot_id == snapshot.snapshot_id:
            raise InvalidInput(f"snapshot {snapshot_id} is in the history of {branch} already")
        if ancestor.summary.get(SOURCE_SNAPSHOT) == snapshot_id:
            raise InvalidInput(
                f"snapshot {snapshot_id} was picked onto {branch} before, as {ancestor.snapshot_id}"
            )
    if not lineage:
        return
    oldest = lineage[-1]
    is_whole = oldest.parent_snapshot_id is None
    if not is_whole and oldest.sequence_number > snapshot.sequence_number:
        raise InvalidInput(
            f"snapshots of {branch} after snapshot {snapshot_id} have expired, so it is not known "
            "whether it was picked before; append its rows instead"
        )


def _check_pickable(changes: TreeChanges) -> None:
    for batch in (changes.added, changes.deleted, changes.replaced):
        if (batch.numpy("content_type") != ContentType.DATA).any():
            raise Unsupported(
                f"snapshot {changes.snapshot.snapshot_id} changes delete files, whose reach would "
                "differ on another branch; delete the rows there instead",
                feature="cherry-picking delete files",
            )


def _common(ancestry: Ancestry, lineage: list[Snapshot], snapshot: Snapshot) -> int | None:
    """The newest snapshot that both histories have."""
    lineage_ids = {int(snapshot.snapshot_id) for snapshot in lineage}
    for ancestor in ancestry.lineage(int(snapshot.snapshot_id)):
        if int(ancestor.snapshot_id) in lineage_ids:
            return int(ancestor.snapshot_id)
    return None


def _change(
    handle: TableHandle,
    branch: str,
    changes: TreeChanges,
    written: list[str],
    *,
    base: int | None,
) -> Change:
    snapshot = changes.snapshot
    is_rewrite = snapshot.operation == "replace"
    added = changes.added.without(LEAF, POSITION)
    if not is_rewrite:
        added = added.without("tracking.sequence_number")
    files = FileSets.of(changes)
    came = _with_own_vectors(handle, added, written) if added.num_rows else None
    replaced = _named(Modified.of(changes).others)
    removed = _named(data_files(changes.deleted))
    return Change(
        branch=branch,
        base_snapshot_id=base,
        added=came,
        removed=removed,
        replaced=replaced,
        vectors=_vectors(handle, files, exclusive=came is not None),
        is_rewrite=is_rewrite,
        shares_files=True,  # they are in the table, on another branch
        summary={SOURCE_SNAPSHOT: str(snapshot.snapshot_id)},
    )


def _on_branch(handle: TableHandle, tip: Snapshot | None, change: Change) -> Change:
    """The change with first row ids left out where the branch has others: each branch of an
    upgraded table gives ids to the rows from before the upgrade by itself."""
    reader = handle.reader()
    batches = [change.removed, change.replaced, edited_files(change)]
    present = [batch for batch in batches if batch is not None]
    if not present or not locate(reader, reader.tree(tip), EntryBatch.concat(present)).missing:
        return change
    without = [None if b is None else b.without(FIRST_ROW_ID) for b in batches]
    vectors = tuple(replace(edit, first_row_id=None) for edit in change.vectors)
    return replace(change, removed=without[0], replaced=without[1], vectors=vectors)


def _with_own_vectors(handle: TableHandle, added: EntryBatch, written: list[str]) -> EntryBatch:
    """Files that were born with deletion vectors, with vectors of this commit's own.

    A Puffin file belongs to the commit that wrote it: what is older cannot name it.
    """
    if not added.has("deletion_vector.location"):
        return added
    born = np.asarray(pc.is_valid(added.column("deletion_vector.location")))
    if not born.any():
        return added
    chosen, remaining = added.filter(born), added.filter(~born)
    rows = zip(
        chosen.pylist("location"),
        chosen.pylist("record_count"),
        vectors_of(chosen),
        strict=True,
    )
    edits = [
        VectorEdit(
            location=name,
            positions=read_vector(
                handle.storage, vector, location=handle.location, record_count=records
            ),
        )
        for name, records, vector in rows
    ]
    merger = VectorMerger(
        edits, storage=handle.storage, location=handle.location, new_id=handle.context.new_id
    )
    changed = merger.write_merged(without_vector(chosen)).entries
    written += [paths.resolve(handle.location, path) for path, _ in merger.written]
    return EntryBatch.concat([remaining, changed])


def _named(gone: EntryBatch) -> EntryBatch | None:
    """Entries that went, without their addresses, which differ by branch."""
    return gone.select(["location", FIRST_ROW_ID]) if gone.num_rows else None


def _vectors(handle: TableHandle, files: FileSets, *, exclusive: bool) -> tuple[VectorEdit, ...]:
    """The rows that the snapshot deleted, by file."""
    records = files.after.numpy("record_count", missing=0)
    before, after = vectors_of(files.before), vectors_of(files.after)
    edits: list[VectorEdit] = []
    names, ids = files.after.pylist("location"), files.after.pylist(FIRST_ROW_ID)
    for row, (name, first, old, new) in enumerate(zip(names, ids, before, after, strict=True)):
        read = partial(
            read_vector, handle.storage, location=handle.location, record_count=int(records[row])
        )
        gone = bitmap.difference(read(new), read(old))
        if gone.size:
            edit = VectorEdit(
                location=name, positions=gone, first_row_id=first, exclusive=exclusive
            )
            edits.append(edit)
    return tuple(edits)

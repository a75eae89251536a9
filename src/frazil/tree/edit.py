"""A parent root plus edits gives the next root. Pure: columns in, columns out.

Here a commit's row ids are given out, too: to the leaves of an upgraded table, and to added files.

Rows of the new root, in this order: leaves carried and touched, leaves that are new, files carried
and dead, files modified, files added. `docs/format.md` has the rules; the names of the worked
examples that test them are the names of `tests/scenarios`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.format.entries import tracking
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import FORMAT_VERSION_KEY, STATS_PREFIX, ContentType
from frazil.format.entries.tracking import ONE_SNAPSHOT_KEYS, Status
from frazil.format.vectors import bitmap
from frazil.value_classes import field, frozen

Rows = np.ndarray[Any, np.dtype[Any]]


@frozen
class Stamp:
    """What the new snapshot writes into tracking."""

    snapshot_id: int
    sequence_number: int
    first_row_id: int


@frozen
class LeafEdit:
    """Positions of one leaf that die in this snapshot; the two are disjoint."""

    deleted: Positions = field(default_factory=lambda: _NONE)
    replaced: Positions = field(default_factory=lambda: _NONE)


@frozen
class RootEdit:
    """Edits addressed by row of the parent root. Rows not named are carried.

    `dropped_rows` leave without a trace: entries that `moved_to` leaves hold now, and leaves of
    which nothing is alive.
    """

    deleted_rows: Positions = field(default_factory=lambda: _NONE)
    replaced_rows: Positions = field(default_factory=lambda: _NONE)
    leaf_edits: Mapping[int, LeafEdit] = field(default_factory=dict)
    dropped_rows: Positions = field(default_factory=lambda: _NONE)
    modified: EntryBatch | None = None
    added: EntryBatch | None = None
    added_leaves: EntryBatch | None = None
    moved_to: EntryBatch | None = None


@frozen
class Edited:
    """The new root and where the next snapshot's row ids start."""

    root: EntryBatch
    next_row_id: int


def apply(parent: EntryBatch, edit: RootEdit, stamp: Stamp) -> Edited:
    """The root of the next snapshot.

    `modified` are live entries with their new deletion vector, tracking as before the change; those
    with new columns have no sequence number, and get that of the snapshot.
    """
    next_row_id = stamp.first_row_id
    parts: list[EntryBatch] = []
    files: EntryBatch | None = None
    if parent.num_rows:
        carried = _carried(parent, edit, stamp)
        leaves, files = _split(carried) if _needs_split(carried, edit) else (carried, None)
        parts.append(leaves)
    if edit.added_leaves is not None and edit.added_leaves.num_rows:
        leaves, next_row_id = _new_leaves(edit.added_leaves, stamp, next_row_id)
        parts.append(leaves)
    if edit.moved_to is not None and edit.moved_to.num_rows:
        parts.append(_moved_leaves(edit.moved_to, stamp, next_row_id))
    if files is not None:
        parts.append(files)
    if edit.modified is not None and edit.modified.num_rows:
        changed = edit.modified.with_constant("tracking.status", Status.MODIFIED)
        numbers = changed.column("tracking.sequence_number")
        if numbers.null_count:
            numbers = pc.fill_null(numbers, arrow_values.scalar(stamp.sequence_number))
            changed = changed.with_column("tracking.sequence_number", numbers)
        parts.append(changed.with_constant("tracking.modified_snapshot_id", stamp.snapshot_id))
    if edit.added is not None and edit.added.num_rows:
        added, next_row_id = _new_files(edit.added, stamp, next_row_id)
        parts.append(added)
    return Edited(root=EntryBatch.concat(parts), next_row_id=next_row_id)


def _needs_split(carried: EntryBatch, edit: RootEdit) -> bool:
    """Whether leaves are to come first among what is carried, or new ones between."""
    if any(batch is not None and batch.num_rows for batch in (edit.added_leaves, edit.moved_to)):
        return True
    is_leaf = tracking.leaf_mask(carried)
    return not is_leaf[: int(is_leaf.sum())].all()


def _split(batch: EntryBatch) -> tuple[EntryBatch, EntryBatch]:
    """Leaves and files. In roots of ours the leaves come first, and nothing is copied."""
    is_leaf = tracking.leaf_mask(batch)
    count = int(is_leaf.sum())
    if not count:
        return batch.slice(0, 0), batch
    if is_leaf[:count].all():
        return batch.slice(0, count), batch.slice(count)
    return batch.filter(is_leaf), batch.filter(~is_leaf)


def _carried(parent: EntryBatch, edit: RootEdit, stamp: Stamp) -> EntryBatch:
    """Rows of the parent that the new root keeps, statuses and manifest vectors set."""
    status = np.full(parent.num_rows, int(Status.EXISTING), dtype=np.int32)
    status[edit.deleted_rows] = Status.DELETED
    status[edit.replaced_rows] = Status.REPLACED
    status[list(edit.leaf_edits)] = Status.MODIFIED
    keep = tracking.live_mask(parent)
    keep[edit.dropped_rows] = False
    batch = parent.without(*ONE_SNAPSHOT_KEYS).with_column(
        "tracking.status", arrow_values.array(status)
    )
    dead = ~tracking.live_mask(batch)
    if dead.any():
        ids = batch.column("tracking.snapshot_id")
        batch = batch.with_column(
            "tracking.snapshot_id",
            pc.if_else(
                arrow_values.array(dead), arrow_values.scalar(stamp.snapshot_id, pa.int64()), ids
            ),
        )
    if edit.leaf_edits:
        batch = _with_leaf_edits(batch, edit.leaf_edits, stamp)
    return batch.filter(keep)


def _with_leaf_edits(batch: EntryBatch, edits: Mapping[int, LeafEdit], stamp: Stamp) -> EntryBatch:
    vectors = batch.pylist("manifest_info.dv")
    deleted: list[bytes | None] = [None] * batch.num_rows
    replaced: list[bytes | None] = [None] * batch.num_rows
    touched = np.zeros(batch.num_rows, dtype=np.bool_)
    records = batch.numpy("record_count")
    for row, edit in edits.items():
        dead = np.union1d(edit.deleted, edit.replaced)
        if vectors[row]:
            old = bitmap.decode(
                vectors[row],
                limit=int(records[row]),
                path=batch.column("location")[row].as_py(),
                field="manifest_info.dv",
            )
            dead = np.union1d(old, dead)
        vectors[row] = bitmap.encode(dead)
        deleted[row] = bitmap.encode(edit.deleted) if edit.deleted.size else None
        replaced[row] = bitmap.encode(edit.replaced) if edit.replaced.size else None
        touched[row] = True
    mask = arrow_values.array(touched)
    batch = (
        batch.with_column("manifest_info.dv", vectors)
        .with_column("tracking.deleted_positions", deleted)
        .with_column("tracking.replaced_positions", replaced)
        .with_column(
            "tracking.modified_snapshot_id",
            pc.if_else(mask, stamp.snapshot_id, batch.column("tracking.modified_snapshot_id")),
        )
    )
    for key in batch.keys:
        if key.startswith(STATS_PREFIX) and key.endswith(".tight_bounds"):
            tight = batch.column(key)
            loose = pc.if_else(pc.and_(mask, pc.is_valid(tight)), False, tight)
            batch = batch.with_column(key, loose)
    return batch


def _stamped(batch: EntryBatch, status: Status, stamp: Stamp) -> EntryBatch:
    return batch.with_constants(
        {
            "tracking.status": int(status),
            "tracking.snapshot_id": stamp.snapshot_id,
            "tracking.sequence_number": stamp.sequence_number,
            "tracking.file_sequence_number": stamp.sequence_number,
        }
    )


def _new_leaves(batch: EntryBatch, stamp: Stamp, next_row_id: int) -> tuple[EntryBatch, int]:
    """ADDED leaves: their null entries inherit the sequence number and count row ids from here."""
    min_sequence = batch.column("manifest_info.min_sequence_number")
    data = batch.numpy("content_type") == ContentType.DATA_MANIFEST
    rows = np.where(data, batch.numpy("manifest_info.added_rows_count", missing=0), 0)
    starts, next_row_id = counted(rows, next_row_id)
    stamped = (
        _stamped(batch, Status.ADDED, stamp)
        .with_column(
            "manifest_info.min_sequence_number",
            pc.fill_null(min_sequence, arrow_values.scalar(stamp.sequence_number)),
        )
        .with_column("tracking.first_row_id", arrow_values.array(starts, pa.int64(), mask=~data))
    )
    return stamped, next_row_id


def _moved_leaves(batch: EntryBatch, stamp: Stamp, next_row_id: int) -> EntryBatch:
    """EXISTING leaves: what their entries say of themselves is explicit.

    Their own first row id numbers nothing, but Iceberg Java takes the ids of a leaf without one as
    unknown.
    """
    min_sequence = batch.column("manifest_info.min_sequence_number")
    data = batch.numpy("content_type") == ContentType.DATA_MANIFEST
    starts = np.full(batch.num_rows, next_row_id, dtype=np.int64)
    return (
        _stamped(batch, Status.EXISTING, stamp)
        .with_column(
            "manifest_info.min_sequence_number", pc.fill_null(min_sequence, arrow_values.scalar(0))
        )
        .with_column("tracking.first_row_id", arrow_values.array(starts, pa.int64(), mask=~data))
    )


def _new_files(batch: EntryBatch, stamp: Stamp, next_row_id: int) -> tuple[EntryBatch, int]:
    """ADDED files. A sequence number given by the caller stays: a rewrite keeps the data's age."""
    sequence = batch.column("tracking.sequence_number")
    stamped = _stamped(batch, Status.ADDED, stamp)
    if sequence.null_count < batch.num_rows:
        stamped = stamped.with_column(
            "tracking.sequence_number",
            pc.fill_null(sequence, arrow_values.scalar(stamp.sequence_number)),
        )
    rows = tracking.unnumbered_rows(stamped)
    return tracking.assign_row_ids(stamped, first_row_id=next_row_id), next_row_id + rows


__all__ = ["Edited", "LeafEdit", "RootEdit", "Stamp", "apply"]


def numbered(root: EntryBatch, next_row_id: int) -> tuple[EntryBatch, int]:
    """A parent root before it is edited: leaves carried over from v1-v3 get what their manifest
    list did not say, as a root has no nulls to inherit. Data files from before row lineage get row
    ids now; the second value is where the next ids start.
    """
    if not root.num_rows:
        return root, next_row_id
    carried = tracking.leaf_mask(root) & (root.numpy(FORMAT_VERSION_KEY) == 0)
    if not carried.any():
        return root, next_row_id
    ages = root.column("tracking.file_sequence_number")
    if ages.null_count:
        order = pc.coalesce(ages, root.column("tracking.sequence_number"))
        root = root.with_column("tracking.file_sequence_number", order)
    starts = root.column("tracking.first_row_id")
    unnumbered = (
        carried
        & arrow_values.to_numpy(pc.is_null(starts))
        & (root.numpy("content_type") == ContentType.DATA_MANIFEST)
    )
    if not unnumbered.any():
        return root, next_row_id
    rows = sum(
        root.numpy(f"manifest_info.{kind}_rows_count", missing=0)
        for kind in ("added", "existing", "modified")
    )
    numbers, next_row_id = counted(np.where(unnumbered, rows, 0), next_row_id)
    row_ids = arrow_values.array(numbers, pa.int64(), mask=~unnumbered)
    return root.with_column("tracking.first_row_id", pc.coalesce(starts, row_ids)), next_row_id


def counted(rows: Rows, start: int) -> tuple[Rows, int]:
    """Where each count starts when they follow one another, and where the last one ends."""
    ends = start + np.cumsum(rows)
    return ends - rows, int(ends[-1])


Positions = np.ndarray[Any, np.dtype[Any]]
_NONE: Positions = np.zeros(0, dtype=np.int64)

"""Statuses of an entry and the transitions that are legal between them.

`Tracking` is one entry's tracking as a value, used for the few entries a commit touches; whole
manifests are handled as columns by the functions at the end (`carry`, `inherit`, `live_mask`).
"""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.errors import FormatError, InvalidInput
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType
from frazil.value_classes import frozen, replace


class Status(IntEnum):
    """What a snapshot did to an entry."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2
    REPLACED = 3
    MODIFIED = 4

    @property
    def is_live(self) -> bool:
        """Whether the entry is part of the snapshot."""
        return self in _LIVE


_LIVE: Final = frozenset({Status.EXISTING, Status.ADDED, Status.MODIFIED})
# Plain numbers: numpy takes five times as long to compare a column with a member of an enum.
_ADDED, _DELETED, _REPLACED = int(Status.ADDED), int(Status.DELETED), int(Status.REPLACED)
_DATA, _DATA_MANIFEST = int(ContentType.DATA), int(ContentType.DATA_MANIFEST)
ONE_SNAPSHOT_KEYS: Final = ("tracking.deleted_positions", "tracking.replaced_positions")
"""Columns that speak of one snapshot only and are dropped by the next."""


@frozen
class Tracking:
    """How one entry came to be where it is."""

    status: Status
    snapshot_id: int | None = None
    sequence_number: int | None = None
    file_sequence_number: int | None = None
    modified_snapshot_id: int | None = None
    first_row_id: int | None = None

    def carried(self) -> Tracking:
        """The entry as the next snapshot has it when nothing happens to it."""
        return replace(self._live("carried"), status=Status.EXISTING)

    def deleted(self, *, by: int) -> Tracking:
        """The entry as a tombstone of snapshot `by`."""
        return replace(self._live("deleted"), status=Status.DELETED, snapshot_id=by)

    def replaced(self, *, by: int) -> Tracking:
        """The dead predecessor of an entry that snapshot `by` modified or rewrote."""
        return replace(self._live("replaced"), status=Status.REPLACED, snapshot_id=by)

    def modified(self, *, by: int) -> Tracking:
        """The entry with a deletion vector that snapshot `by` changed."""
        return replace(self._live("modified"), status=Status.MODIFIED, modified_snapshot_id=by)

    def inherited(self, *, snapshot_id: int, sequence_number: int) -> Tracking:
        """The entry with what it leaves null taken from its manifest's entry in the root."""
        added = self.status is Status.ADDED
        return replace(
            self,
            snapshot_id=_default(self.snapshot_id, snapshot_id),
            sequence_number=_default(self.sequence_number, sequence_number if added else None),
            file_sequence_number=_default(
                self.file_sequence_number, sequence_number if added else None
            ),
        )

    def _live(self, verb: str) -> Tracking:
        if not self.status.is_live:
            raise InvalidInput(
                f"an entry with status {self.status.name} cannot be {verb}: "
                "a removed entry cannot be revived"
            )
        return self


def _default(value: int | None, otherwise: int | None) -> int | None:
    return otherwise if value is None else value


def live_mask(batch: EntryBatch) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which entries are part of the snapshot."""
    status = batch.numpy("tracking.status")
    return np.asarray((status != _DELETED) & (status != _REPLACED))


def leaf_mask(batch: EntryBatch) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which entries of a root are leaves; the others are files."""
    return np.asarray(batch.numpy("content_type") >= _DATA_MANIFEST)


def carry(batch: EntryBatch) -> EntryBatch:
    """The entries the next root starts from: live ones as EXISTING, one-snapshot columns gone."""
    live = batch.filter(live_mask(batch))
    return live.without(*ONE_SNAPSHOT_KEYS).with_constant("tracking.status", Status.EXISTING)


def inherit(
    batch: EntryBatch,
    *,
    snapshot_id: int,
    sequence_number: int,
    first_row_id: int | None,
    keys: Collection[str] | None = None,
) -> EntryBatch:
    """A leaf's entries with explicit tracking, given its entry in the root; `keys` are the columns
    that are asked for.

    Null snapshot ids inherit; null sequence numbers inherit for ADDED entries, and for all when the
    manifest's is 0, as those of v1 are; null first row ids of live data files count on from
    `first_row_id`, in entry order.
    """
    added = batch.numpy("tracking.status") == _ADDED
    all_added = bool(added.all())
    for key, value in (
        ("tracking.snapshot_id", snapshot_id),
        ("tracking.sequence_number", sequence_number),
        ("tracking.file_sequence_number", sequence_number),
    ):
        if keys is not None and key not in keys:
            continue
        for_all = all_added or key == "tracking.snapshot_id" or sequence_number == 0
        if for_all and not batch.has(key):
            batch = batch.with_column(key, _constant(value, batch.num_rows))
            continue
        column = batch.column(key)
        if column.null_count:
            inherited = pc.fill_null(column, arrow_values.scalar(value, pa.int64()))
            if not for_all:
                inherited = pc.if_else(arrow_values.array(added), inherited, column)
            batch = batch.with_column(key, inherited)
    if keys is not None and "tracking.first_row_id" not in keys:
        return batch
    return assign_row_ids(batch, first_row_id=first_row_id)


@lru_cache(maxsize=8)
def _constant(value: int, rows: int) -> pa.Array:
    """Leaves of one commit inherit the same, so they share it."""
    return arrow_values.repeat(arrow_values.scalar(value, pa.int64()), rows)


def assign_row_ids(batch: EntryBatch, *, first_row_id: int | None) -> EntryBatch:
    """Live data entries without a first row id count on from `first_row_id`, in entry order."""
    if first_row_id is None:
        return batch
    first_row_ids = (
        batch.column("tracking.first_row_id") if batch.has("tracking.first_row_id") else None
    )
    if first_row_ids is not None and not first_row_ids.null_count:
        return batch
    unnumbered = (batch.numpy("content_type") == _DATA) & live_mask(batch)
    if first_row_ids is not None:
        unnumbered &= arrow_values.to_numpy(pc.is_null(first_row_ids))
    if not unnumbered.any():
        return batch
    rows = batch.numpy("record_count", missing=0)
    if not unnumbered.all():
        rows = np.where(unnumbered, rows, 0)
    starts = np.cumsum(rows)
    starts += first_row_id - rows
    mask = None if unnumbered.all() else ~unnumbered
    assigned = arrow_values.array(starts, pa.int64(), mask=mask)
    if first_row_ids is not None:
        assigned = pc.coalesce(first_row_ids, assigned)
    return batch.with_column("tracking.first_row_id", assigned)


def unnumbered_rows(batch: EntryBatch) -> int:
    """How many row ids the data entries without a first row id will take."""
    unnumbered = batch.numpy("content_type") == _DATA
    if batch.has("tracking.first_row_id"):
        unnumbered &= arrow_values.to_numpy(pc.is_null(batch.column("tracking.first_row_id")))
    return int(batch.numpy("record_count", missing=0)[unnumbered].sum())


def check(batch: EntryBatch, *, root: bool, path: str | None = None) -> None:
    """Refuse statuses and content types that are unknown or do not belong at this level."""
    if not batch.num_rows:
        return
    status = batch.numpy("tracking.status")
    if status.min() < 0 or status.max() > max(Status):
        bad = status[(status < 0) | (status > max(Status))]
        raise FormatError(
            f"status is {int(bad[0])}; expected 0 to {int(max(Status))}. "
            "The file may come from a newer writer.",
            path=path,
            field="tracking.status",
        )
    content = batch.numpy("content_type")
    content_types = {int(kind) for kind in ContentType} - {ContentType.POSITION_DELETES}
    alike = content.min() == content.max()
    for kind in content[:1] if alike else sorted(set(content.tolist())):
        if int(kind) not in content_types:
            raise FormatError(
                f"content type is {int(kind)}; expected one of {sorted(content_types)}. "
                "The file may come from a newer writer.",
                path=path,
                field="content_type",
            )
        if not root and kind >= ContentType.DATA_MANIFEST:
            raise FormatError(
                f"a leaf holds a manifest entry (content type {int(kind)}); "
                "the tree has two levels, never more",
                path=path,
                field="content_type",
            )

"""Rules of one root: statuses, explicit tracking, positions, counts, deletion vectors. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.errors import FormatError
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import COLUMN_FILES, LEAVES, REQUIRED_KEYS, ContentType
from frazil.format.entries.tracking import Status
from frazil.format.metadata.metadata import Snapshot
from frazil.format.vectors import bitmap
from frazil.maintenance.check.problems import Mask, Problems

_EXPLICIT = ("snapshot_id", "sequence_number", "file_sequence_number")
_INFO = tuple(
    key for key, field in LEAVES.items() if key.startswith("manifest_info.") and field.required
)
_COUNTS = ("added", "existing", "deleted", "replaced", "modified")
_VECTOR = ("location", "offset", "size_in_bytes", "cardinality")


class RootCheck:
    """Checks the entries of one v4 root."""

    def __init__(
        self, batch: EntryBatch, snapshot: Snapshot, *, path: str, problems: Problems
    ) -> None:
        self._batch = batch
        self._snapshot = snapshot
        self._place = problems.at(path, snapshot_id=int(snapshot.snapshot_id))
        self._status = batch.numpy("tracking.status")
        self._kind = batch.numpy("content_type")
        self._names = batch.pylist("location")
        self._is_leaf = self._kind >= ContentType.DATA_MANIFEST

    def run(self) -> None:
        """Note every broken rule."""
        if not self._batch.num_rows:
            return
        for rule in (
            self._required,
            self._statuses,
            self._tracking,
            self._leaves,
            self._vectors,
            self._deletes,
        ):
            with self._place.guarded():
                rule()

    def _need(self, bad: Mask, field: str, what: str) -> None:
        self._place.need_none(bad, self._names, field, what)

    def _null(self, key: str) -> Mask:
        return self._batch.nulls(key)

    def _required(self) -> None:
        check_required(self._batch, self._need)

    def _statuses(self) -> None:
        statuses = {int(status) for status in Status}
        self._need(~np.isin(self._status, list(statuses)), "tracking.status", "is not 0 to 4")
        dead = (self._status == Status.DELETED) | (self._status == Status.REPLACED)
        self._need(dead & self._is_leaf, "tracking.status", "a manifest entry cannot be dead")
        allowed = [int(kind) for kind in ContentType if kind is not ContentType.POSITION_DELETES]
        self._need(~np.isin(self._kind, allowed), "content_type", "does not belong in a root")

    def _tracking(self) -> None:
        """Entries of a root leave nothing to inherit, and say which snapshot did what."""
        batch, snapshot = self._batch, self._snapshot
        for name in _EXPLICIT:
            self._need(self._null(f"tracking.{name}"), f"tracking.{name}", "is null in a root")
        live = (self._status != Status.DELETED) & (self._status != Status.REPLACED)
        counted = (self._kind == ContentType.DATA) | (self._kind == ContentType.DATA_MANIFEST)
        no_rows = self._null("tracking.first_row_id") & counted & live
        self._need(no_rows, "tracking.first_row_id", "is null in a root")
        by = batch.numpy("tracking.snapshot_id", missing=0)
        mine = by == int(snapshot.snapshot_id)
        fresh = self._status == Status.ADDED
        self._need(
            fresh & ~mine, "tracking.snapshot_id", "is ADDED by another snapshot than the root's"
        )
        self._need(
            ~live & ~mine, "tracking.snapshot_id", "is dead by another snapshot than the root's"
        )
        data = batch.numpy("tracking.sequence_number", missing=0)
        file = batch.numpy("tracking.file_sequence_number", missing=0)
        number = snapshot.sequence_number
        self._need(data > number, "tracking.sequence_number", f"is above the snapshot's {number}")
        self._need(
            file > number, "tracking.file_sequence_number", f"is above the snapshot's {number}"
        )
        self._need(
            fresh & (file != number), "tracking.file_sequence_number", f"is ADDED and not {number}"
        )
        raised = ~self._null(COLUMN_FILES)  # column files are younger than their data file
        self._need((data > file) & ~raised, "tracking.sequence_number", "is above the file's own")
        changed = (self._status == Status.MODIFIED) & (
            batch.numpy("tracking.modified_snapshot_id", missing=0) != int(snapshot.snapshot_id)
        )
        self._need(changed, "tracking.modified_snapshot_id", "is MODIFIED by another snapshot")

    def _leaves(self) -> None:
        batch = self._batch
        for key in _INFO:
            self._need(self._is_leaf & self._null(key), key, "is missing")
            if batch.has(key):
                self._need(~self._is_leaf & ~self._null(key), key, "a file entry must not have it")
        total = sum(
            batch.numpy(f"manifest_info.{name}_files_count", missing=0).astype(np.int64)
            for name in _COUNTS
        )
        records = batch.numpy("record_count", missing=0)
        self._need(
            self._is_leaf & (total != records), "record_count", "is not the sum of the counts"
        )
        for row in np.flatnonzero(self._is_leaf):
            self._positions(int(row))

    def _positions(self, row: int) -> None:
        """Manifest vectors: within the leaf, holding what died, the two ways of dying apart."""
        dead = self._bitmap(row, "manifest_info.dv")
        deleted = self._bitmap(row, "tracking.deleted_positions")
        replaced = self._bitmap(row, "tracking.replaced_positions")
        both = np.intersect1d(deleted, replaced)
        if both.size:
            self._add(
                row, "tracking.deleted_positions", f"shares {both[0]} with replaced_positions"
            )
        for key, positions in (("deleted_positions", deleted), ("replaced_positions", replaced)):
            loose = bitmap.difference(positions, dead)
            if loose.size:
                self._add(row, f"tracking.{key}", f"{loose[0]} is not in manifest_info.dv")
        changed = deleted.size or replaced.size
        is_modified = self._status[row] == Status.MODIFIED
        if changed and not is_modified and self._status[row] != Status.ADDED:
            self._add(row, "tracking.status", "positions died and the leaf is not MODIFIED")
        if is_modified and not changed:
            self._add(row, "tracking.status", "is MODIFIED and no position died")

    def _bitmap(self, row: int, key: str) -> np.ndarray[Any, np.dtype[np.int64]]:
        data = self._batch.column(key)[row].as_py()
        if not data:
            return np.zeros(0, dtype=np.int64)
        limit = int(self._batch.numpy("record_count", missing=0)[row])
        try:
            return bitmap.decode(data, limit=limit, path=self._names[row], field=key)
        except FormatError as error:
            self._add(row, key, error.problem)
            return np.zeros(0, dtype=np.int64)

    def _add(self, row: int, field: str, what: str) -> None:
        self._place.add(field, f"{self._names[row]}: {what}")

    def _vectors(self) -> None:
        check_vectors(self._batch, self._need)
        data = self._kind == ContentType.DATA
        modified = data & (self._status == Status.MODIFIED)
        self._need(
            modified & self._null("deletion_vector.location") & self._null(COLUMN_FILES),
            "deletion_vector",
            "is MODIFIED and has neither a deletion vector nor column files",
        )

    def _deletes(self) -> None:
        equality = self._kind == ContentType.EQUALITY_DELETES
        if equality.any():
            ids = self._batch.column("equality_ids")
            lacking = np.asarray(pc.fill_null(pc.equal(pc.list_value_length(ids), 0), True))
            self._need(equality & lacking, "equality_ids", "is missing")
        live = (self._status != Status.DELETED) & (self._status != Status.REPLACED)
        alive = [name for name, is_live in zip(self._names, live.tolist(), strict=True) if is_live]
        if len(set(alive)) < len(alive):
            counts = Counter(alive)
            twice = np.array([counts[name] > 1 for name in self._names], dtype=np.bool_)
            self._need(twice & live, "location", "is live more than once")


def check_required(batch: EntryBatch, need: Any) -> None:
    """What every entry has; counts are not below zero."""
    for key in REQUIRED_KEYS:
        need(batch.nulls(key), key, "is missing")
    for key in ("record_count", "file_size_in_bytes"):
        need(batch.numpy(key, missing=0) < 0, key, "is negative")


def check_vectors(batch: EntryBatch, need: Any) -> None:
    """Deletion vectors: on data files only, whole, and with no more rows than the file has."""
    has = ~batch.nulls("deletion_vector.location")
    if not has.any():
        return
    kind = batch.numpy("content_type")
    need(has & (kind > ContentType.POSITION_DELETES), "deletion_vector", "belongs to data files")
    for name in _VECTOR[1:]:
        key = f"deletion_vector.{name}"
        need(has & batch.nulls(key), key, "is missing")
    rows = batch.numpy("deletion_vector.cardinality", missing=0)
    records = batch.numpy("record_count", missing=0)
    data = kind == ContentType.DATA
    bad = has & data & ((rows < 1) | (rows > records))
    need(bad, "deletion_vector.cardinality", "is not between 1 and the file's rows")


def summary_totals(
    merged: EntryBatch, snapshot: Snapshot, *, everything: bool
) -> dict[str, tuple[int, str]]:
    """Totals that live entries give and the summary contradicts: key to the two of them."""
    kind = merged.numpy("content_type")
    data = kind == ContentType.DATA
    equality = kind == ContentType.EQUALITY_DELETES
    records = merged.numpy("record_count", missing=0)
    sizes = merged.numpy("file_size_in_bytes", missing=0)
    vectors = merged.numpy("deletion_vector.cardinality", missing=0)
    totals = {"total-data-files": int(data.sum()), "total-records": int(records[data].sum())}
    if everything:
        totals |= {
            "total-files-size": int(sizes.sum()),
            "total-position-deletes": int(vectors.sum()),
            "total-equality-deletes": int(records[equality].sum()),
            "total-delete-files": int(equality.sum()) + int((vectors > 0).sum()),
        }
    wrong: dict[str, tuple[int, str]] = {}
    for key, value in totals.items():
        stated = snapshot.summary.get(key)
        if stated is not None and stated != str(value):
            wrong[key] = (value, stated)
    return wrong


def overlapping_rows(merged: EntryBatch) -> list[tuple[str, str]]:
    """Pairs of live data files whose row ids overlap."""
    mask = (merged.numpy("content_type") == ContentType.DATA) & np.asarray(
        pc.is_valid(merged.column("tracking.first_row_id"))
    )
    files = merged.select(("location", "tracking.first_row_id", "record_count")).filter(mask)
    if files.num_rows < 2:
        return []
    starts = files.numpy("tracking.first_row_id")
    ends = starts + files.numpy("record_count", missing=0)
    order = np.argsort(starts, kind="stable")
    reach = np.maximum.accumulate(ends[order])
    clash = np.flatnonzero(starts[order][1:] < reach[:-1])
    names: pa.ChunkedArray = files.column("location")
    return [(names[int(order[at])].as_py(), names[int(order[at + 1])].as_py()) for at in clash[:5]]

"""What a client's snapshot changes, from the manifests that are new in its list and those it
dropped. Pure: manifests come in decoded, positions of deletes are asked for.

A manifest that both lists name changes nothing, whatever it says. Of the others only live entries
count: a file that is live in a new manifest and not in a dropped one was added, one that is live in
a dropped manifest alone was removed. Statuses of clients are not needed, so that merged and
rewritten manifests translate like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.commit.change import Change, Positions, VectorEdit
from frazil.errors import InvalidInput
from frazil.format.checks import repeated
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType
from frazil.format.entries.tracking import Status
from frazil.format.vectors import bitmap
from frazil.format.vectors.puffin import StoredVector
from frazil.value_classes import field, frozen

OPERATIONS = frozenset({"append", "overwrite", "delete", "replace"})
_COUNTED = ("added-", "removed-", "deleted-", "total-", "manifests-", "entries-processed")
_NOT_KEPT = frozenset({"operation", "changed-partition-count"})
_NOTHING: Positions = np.zeros(0, dtype=np.int64)
_OFFSET = "deletion_vector.offset"
_VECTOR = (
    "deletion_vector.location",
    _OFFSET,
    "deletion_vector.size_in_bytes",
    "deletion_vector.cardinality",
)
_TRACKING = ("tracking.snapshot_id", "tracking.file_sequence_number", "tracking.status")

PositionsOf = Callable[[EntryBatch, int], Mapping[str, Positions]]
"""Rows that one entry of a position delete file or vector deletes, by the data file's location."""


@frozen
class Manifests:
    """Live entries of some manifests, apart by what they hold."""

    data: EntryBatch = field(default_factory=EntryBatch.empty)
    deletes: EntryBatch = field(default_factory=EntryBatch.empty)


@frozen
class Net:
    """The difference between two lists. `removed` are locations of data and equality delete files,
    `vectors` edits of data files that stay, `equality` delete files that are new."""

    added: EntryBatch | None = None
    equality: EntryBatch | None = None
    removed: tuple[str, ...] = ()
    vectors: tuple[VectorEdit, ...] = ()


def net(fresh: Manifests, dropped: Manifests, positions_of: PositionsOf) -> Net:
    """What new manifests and dropped ones change together. Refuses what would bring rows back."""
    data = _distinct(fresh.data)
    now, was = _locations(data), _locations(dropped.data)
    added_files, removed_files = now - was, was - now
    added = _only(data, added_files)
    new = _Deletes.of(fresh.deletes, besides=_keys(dropped.deletes))
    old = _Deletes.of(dropped.deletes, besides=_keys(fresh.deletes))
    after = new.by_file(positions_of)
    before = old.by_file(positions_of)
    edits: list[VectorEdit] = []
    born: dict[str, _Rows] = {}
    for name, rows in before.items():
        positions = after[name].positions if name in after else _NOTHING
        if name not in removed_files and bitmap.difference(rows.positions, positions).size:
            raise InvalidInput(
                f"{name}: rows that are deleted would come back; commit them as new rows instead"
            )
    for name, rows in after.items():
        if name in removed_files:
            continue
        if name in added_files:
            born[name] = rows
            continue
        earlier = before[name].positions if name in before else _NOTHING
        if bitmap.difference(rows.positions, earlier).size:
            edits.append(VectorEdit(location=name, positions=rows.positions, adopted=rows.stored))
    return Net(
        added=_with_vectors(_as_added(added), born) if added.num_rows else None,
        equality=new.equality if new.equality.num_rows else None,
        removed=tuple(sorted(removed_files | _locations(old.equality))),
        vectors=tuple(edits),
    )


def change_of(
    difference: Net,
    *,
    snapshot_id: int,
    operation: str,
    summary: Mapping[str, str],
    branch: str,
    base_snapshot_id: int | None,
    is_staged: bool = False,
    starts_empty: bool = False,
) -> Change:
    """The difference as a change that makes the client's snapshot. Its equality deletes have become
    vectors before."""
    assert difference.equality is None
    if operation not in OPERATIONS:
        raise InvalidInput(f"snapshot {snapshot_id} has operation {operation!r}")
    removed = None
    if difference.removed:
        removed = EntryBatch.from_rows([{"location": name} for name in difference.removed])
    takes = removed is not None or bool(difference.vectors)
    is_rewrite = operation == "replace"
    if operation == "append" and takes:  # a table that is replaced by a query's rows
        operation = "overwrite"
    return Change(
        added=difference.added,
        removed=None if is_rewrite else removed,
        replaced=removed if is_rewrite else None,
        vectors=difference.vectors,
        branch=branch,
        base_snapshot_id=base_snapshot_id,
        is_rewrite=is_rewrite and removed is not None,
        snapshot_id=snapshot_id,
        recorded_operation=operation,
        is_staged=is_staged,
        starts_empty=starts_empty,
        summary={key: text for key, text in summary.items() if _is_kept(key)},
    )


def _is_kept(key: str) -> bool:
    """Whether a summary property is the client's own: counts are counted again."""
    return not key.startswith(_COUNTED) and key not in _NOT_KEPT


# --- deletes -----------------------------------------------------------------------------------


@frozen(eq=False)
class _Rows:
    """Deleted rows of one file, and where they are stored if that is one vector."""

    positions: Positions
    stored: StoredVector | None = None


@frozen
class _Deletes:
    """Deletes that one of two lists has alone."""

    positional: EntryBatch
    equality: EntryBatch

    @staticmethod
    def of(batch: EntryBatch, *, besides: Collection[tuple[str, int | None]]) -> _Deletes:
        if not batch.num_rows:
            return _Deletes(positional=batch, equality=batch)
        alone = np.array([key not in besides for key in _keys(batch)], dtype=np.bool_)
        kind = batch.numpy("content_type")
        is_equality = kind == ContentType.EQUALITY_DELETES
        return _Deletes(
            positional=batch.filter(alone & ~is_equality),
            equality=batch.filter(alone & is_equality),
        )

    def by_file(self, positions_of: PositionsOf) -> dict[str, _Rows]:
        """Deleted rows by data file; a file has one vector at most, and may have many files."""
        rows: dict[str, _Rows] = {}
        with_vector: set[str] = set()
        for index in range(self.positional.num_rows):
            stored = _stored(self.positional, index)
            for name, positions in positions_of(self.positional, index).items():
                if stored is not None and name in with_vector:
                    raise InvalidInput(f"{name}: has two deletion vectors")
                if stored is not None:
                    with_vector.add(name)
                earlier = rows.get(name)
                if earlier is None:
                    rows[name] = _Rows(positions=positions, stored=stored)
                else:
                    rows[name] = _Rows(positions=bitmap.union(earlier.positions, positions))
        return rows


def _keys(batch: EntryBatch) -> list[tuple[str, int | None]]:
    """The identity of a delete: many vectors share a file."""
    if not batch.num_rows:
        return []
    offsets = batch.pylist(_OFFSET) if batch.has(_OFFSET) else [None] * batch.num_rows
    return list(zip(batch.pylist("location"), offsets, strict=True))


def _stored(batch: EntryBatch, index: int) -> StoredVector | None:
    row = batch.row(index)
    if row.get(_OFFSET) is None:
        return None
    return StoredVector(
        location=row["location"],
        offset=row[_OFFSET],
        size_in_bytes=row["deletion_vector.size_in_bytes"],
        cardinality=row["record_count"],
    )


# --- files -------------------------------------------------------------------------------------


def _locations(batch: EntryBatch) -> set[str]:
    return set(batch.pylist("location")) if batch.num_rows else set()


def _distinct(batch: EntryBatch) -> EntryBatch:
    """The entries, each file once. Copies of one entry in two manifests are not two files."""
    if not batch.num_rows:
        return batch
    names = batch.pylist("location")
    twice = repeated(names)
    if not twice:
        return batch
    raise InvalidInput(f"{twice[0]}: is listed {names.count(twice[0])} times")


def _only(batch: EntryBatch, names: Collection[str]) -> EntryBatch:
    if not batch.num_rows:
        return batch
    value_set = pa.array(sorted(names), pa.string())
    return batch.filter(np.asarray(pc.is_in(batch.column("location"), value_set=value_set)))


def _as_added(batch: EntryBatch) -> EntryBatch:
    """Entries as a change adds them: new files get new ids; a rewrite keeps the age
    it states."""
    tracked = [key for key in _TRACKING if batch.has(key)]
    if batch.has("tracking.sequence_number"):  # 0 is what a manifest of v1 says of any file
        ages = batch.column("tracking.sequence_number")
        ages = pc.if_else(pc.equal(ages, 0), pa.scalar(None, pa.int64()), ages)
        batch = batch.with_column("tracking.sequence_number", ages)
    if _is_null(batch, "tracking.sequence_number"):
        tracked.append("tracking.sequence_number")
    status = batch.numpy("tracking.status")
    if _is_null(batch, "tracking.first_row_id"):
        tracked.append("tracking.first_row_id")
    elif (status == Status.ADDED).any():
        ids = pc.if_else(
            pa.array(status == Status.ADDED),
            pa.scalar(None, pa.int64()),
            batch.column("tracking.first_row_id"),
        )
        batch = batch.with_column("tracking.first_row_id", ids)
    tracked += [key for key in batch.keys if key.startswith("deletion_vector.")]
    entries = batch.without(*(key for key in tracked if batch.has(key)))
    return entries.with_constant("tracking.status", int(Status.ADDED))


def _is_null(batch: EntryBatch, key: str) -> bool:
    return not batch.has(key) or batch.column(key).null_count == batch.num_rows


def _with_vectors(added: EntryBatch, born: Mapping[str, _Rows]) -> EntryBatch:
    """New files with the vectors they are born with."""
    if not born:
        return added
    vectors: list[StoredVector | None] = []
    for name in added.pylist("location"):
        rows = born.get(name)
        if rows is not None and rows.stored is None:
            raise InvalidInput(
                f"{name}: is added together with position deletes of its rows; write the file "
                "without them"
            )
        vectors.append(None if rows is None else rows.stored)
    columns: dict[str, Any] = {
        "deletion_vector.location": [None if v is None else v.location for v in vectors],
        _OFFSET: [None if v is None else v.offset for v in vectors],
        "deletion_vector.size_in_bytes": [None if v is None else v.size_in_bytes for v in vectors],
        "deletion_vector.cardinality": [None if v is None else v.cardinality for v in vectors],
    }
    for key in _VECTOR:
        kind = pa.string() if key == "deletion_vector.location" else pa.int64()
        added = added.with_column(key, pa.array(columns[key], kind))
    return added


__all__ = ["Manifests", "Net", "change_of", "net"]

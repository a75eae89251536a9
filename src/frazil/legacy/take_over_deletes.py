"""Old deletes as v4 has them, for when old leaves are rewritten: position deletes and vectors of
delete manifests move into the entries of the data files they apply to.

A vector of v3 is kept unchanged; position delete files are read and written as vectors into
one Puffin file. Equality deletes stay entries, of v4 delete leaves. Commits nothing: the rewrite of
manifests does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from frazil.commit.change import CarriedDeletes
from frazil.commit.deletion_vectors import CREATED_BY
from frazil.commit.handle import TableHandle
from frazil.data.read_files import Reading
from frazil.format import paths, puffin
from frazil.format.batch import EntryBatch
from frazil.format.fields import ContentType
from frazil.format.metadata import Snapshot
from frazil.scan.plan import Plan, plan
from frazil.scan.tasks import Task, TaskReader, tasks_of
from frazil.tree.read import LeafRef, TreeReader, delete_leaves

Positions = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOver:
    """Deletes of old manifests as vectors, the leaves to rewrite for them, and files written."""

    deletes: CarriedDeletes
    leaves: tuple[str, ...]
    written: tuple[str, ...]


def old_leaves(reader: TreeReader, snapshot: Snapshot | None) -> tuple[LeafRef, ...]:
    """The leaves of a snapshot that v1 to v3 wrote."""
    return tuple(leaf for leaf in reader.tree(snapshot).leaves() if leaf.format_version == 0)


def take_over(handle: TableHandle, snapshot: Snapshot | None) -> TakenOver | None:
    """What rewriting the old leaves of a snapshot needs; None when it has none. Writes vectors."""
    reader = handle.reader()
    old = old_leaves(reader, snapshot)
    if not old:
        return None
    deletes = frozenset(leaf.location for leaf in delete_leaves(old))
    rewritten = {leaf.location for leaf in old}
    vectors = EntryBatch.empty()
    written: tuple[str, ...] = ()
    if deletes:
        found = _found(handle, plan(reader, snapshot))
        rewritten |= {each.task.leaf for each in found if each.task.leaf is not None}
        vectors, written = _as_vectors(handle, found)
    return TakenOver(
        deletes=CarriedDeletes(vectors=vectors, leaves=deletes),
        leaves=tuple(sorted(rewritten)),
        written=written,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Deleted:
    """A data file with the position deletes that apply to it, and the last snapshot of them."""

    task: Task
    snapshot_id: int
    positions: Positions | None
    """None: the one vector among them is kept unchanged."""


def _found(handle: TableHandle, planned: Plan) -> list[_Deleted]:
    """Data files that old position deletes apply to. One with a vector of its own has taken them
    over before."""
    if planned.deletes is None:
        return []
    schema = handle.metadata.schema()
    reading = Reading(storage=handle.storage, schema=schema, table_schema=schema)
    reader = TaskReader(reading)
    by = planned.deletes.pylist("tracking.snapshot_id")
    kinds = planned.deletes.numpy("content_type")
    found: list[_Deleted] = []
    for index, task in enumerate(tasks_of(planned, location=handle.location)):
        rows = [
            row
            for row in planned.matches.get(index, ())
            if kinds[row] == ContentType.POSITION_DELETES
        ]
        if not rows or task.vector is not None:
            continue
        as_it_lies = len(rows) == 1 and _position_deletes(task)[0].vector is not None
        positions = None if as_it_lies else reader.resolved(task)
        if positions is not None and not positions.size:
            continue
        snapshot_id = max(int(by[row] or 0) for row in rows)
        found.append(_Deleted(task=task, snapshot_id=snapshot_id, positions=positions))
    return found


def _position_deletes(task: Task) -> list[Any]:
    return [file for file in task.deletes if file.content_type is ContentType.POSITION_DELETES]


def _as_vectors(
    handle: TableHandle, found: Sequence[_Deleted]
) -> tuple[EntryBatch, tuple[str, ...]]:
    """Vectors as entries' columns, and the Puffin file written for those that were none."""
    rows: list[dict[str, Any]] = []
    fresh = [each for each in found if each.positions is not None]
    for each in found:
        if each.positions is None:
            vector = _position_deletes(each.task)[0].vector
            location = paths.relativise(handle.location, vector.path)
            rows.append(_row(each, location, vector))
    if not fresh:
        return EntryBatch.from_rows(rows), ()
    data, blobs = puffin.write_vectors(
        [(each.task.source.path, each.positions) for each in fresh if each.positions is not None],
        created_by=CREATED_BY,
    )
    name = f"data/{handle.around.new_id()}.puffin"
    path = paths.resolve(handle.location, name)
    handle.storage.write_new(path, data)
    rows += [_row(each, name, blob) for each, blob in zip(fresh, blobs, strict=True)]
    return EntryBatch.from_rows(rows), (path,)


def _row(each: _Deleted, location: str, blob: Any) -> dict[str, Any]:
    return {
        "location": each.task.location,
        "deletion_vector.location": location,
        "deletion_vector.offset": blob.offset,
        "deletion_vector.size_in_bytes": blob.size_in_bytes,
        "deletion_vector.cardinality": blob.cardinality,
        "tracking.modified_snapshot_id": each.snapshot_id,
    }


__all__ = ["TakenOver", "old_leaves", "take_over"]

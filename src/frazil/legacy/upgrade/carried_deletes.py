"""Deletes of carried v2 and v3 manifests, as v4 has them: positions by data file, then vectors.

A file's new vector includes what older delete files say about it. The planner of an edit knows
those files; an edit by path and position alone does not, so they are looked up here.

When old leaves are rewritten, position deletes and vectors of delete manifests move into the
entries of the data files they apply to. A vector of v3 is kept unchanged; position delete files are
read and written as vectors into one Puffin file. v4 has no place for equality deletes: manifests
with some stay as they are. Commits nothing: the rewrite of manifests does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from frazil.commit.change import CarriedDeletes
from frazil.commit.deletion_vectors import CREATED_BY
from frazil.commit.handle import TableHandle
from frazil.data.read.delete_files import read_position_deletes
from frazil.data.read.read_files import Reading
from frazil.data.slices import DataFileSlice
from frazil.format import paths
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import FILE_PATH, VECTOR_KEYS, ContentType, stats_key
from frazil.format.metadata.metadata import Snapshot
from frazil.format.vectors import bitmap, puffin
from frazil.format.vectors.puffin import StoredVector
from frazil.scan.plan import Plan, plan
from frazil.scan.tasks import Task, TaskReader, tasks_of
from frazil.storage import Storage
from frazil.tree.read import LeafRef, Positions, Tree, TreeReader, delete_leaves
from frazil.tree.stored_vectors import read_vector
from frazil.value_classes import frozen, replace

_KEYS = (
    "location",
    "content_type",
    "file_format",
    "record_count",
    "file_size_in_bytes",
    "referenced_file",
    *VECTOR_KEYS,
    stats_key(FILE_PATH, "lower_bound"),
    stats_key(FILE_PATH, "upper_bound"),
)


def deleted_rows(
    reader: TreeReader, tree: Tree, locations: Collection[str]
) -> dict[str, Positions]:
    """By location, the rows of the wanted files that old delete files retire."""
    old = [leaf for leaf in delete_leaves(tree.leaves()) if leaf.format_version == 0]
    by_file: dict[str, Positions] = {}
    for batch in reader.map(old, lambda leaf: reader.live(leaf, keys=_KEYS)):
        by_position = batch.numpy("content_type") == ContentType.POSITION_DELETES
        for row in _relevant_to(batch.filter(by_position), locations, reader.location):
            path = paths.resolve(reader.location, row["location"])
            for data_file, positions in stored_positions(reader.storage, path, row).items():
                name = paths.relativise(reader.location, data_file)
                if name not in locations:
                    continue
                before = by_file.get(name)
                by_file[name] = positions if before is None else bitmap.union(before, positions)
    return by_file


def _relevant_to(
    batch: EntryBatch, locations: Collection[str], location: str
) -> list[dict[str, Any]]:
    """Delete files that name one of the files, or may."""
    rows = [batch.row(index) for index in range(batch.num_rows)]
    kept: list[dict[str, Any]] = []
    for row in rows:
        lower = row.get(stats_key(FILE_PATH, "lower_bound"))
        same = lower == row.get(stats_key(FILE_PATH, "upper_bound"))
        target = row.get("referenced_file") or (lower if same else None)
        if target is None or paths.relativise(location, target) in locations:
            kept.append(row)
    return kept


def stored_positions(
    storage: Storage, path: str, row: Mapping[str, Any]
) -> Mapping[str, Positions]:
    """What the entry of a position delete file, or of a vector of v3, retires: by data file, whose
    names are as they stand there."""
    target = row.get("referenced_file")
    if row.get("deletion_vector.offset") is not None and target is not None:
        vector = StoredVector(
            location=path,
            offset=row["deletion_vector.offset"],
            size_in_bytes=row["deletion_vector.size_in_bytes"],
            cardinality=row["deletion_vector.cardinality"],
        )
        return {target: read_vector(storage, vector)}
    source = DataFileSlice(
        path=path,
        file_format=row["file_format"],
        record_count=row["record_count"],
        file_size_in_bytes=row["file_size_in_bytes"],
    )
    return read_position_deletes(source, storage=storage)


@frozen
class TakenOver:
    """Deletes of old manifests as vectors, the leaves to rewrite for them, and files written."""

    deletes: CarriedDeletes
    leaves: tuple[str, ...]
    written: tuple[str, ...]


def old_leaves(reader: TreeReader, snapshot: Snapshot | None) -> tuple[LeafRef, ...]:
    """The leaves of a snapshot that v1 to v3 wrote."""
    return tuple(leaf for leaf in reader.tree(snapshot).leaves() if leaf.format_version == 0)


def with_equality_deletes(reader: TreeReader, leaves: Sequence[LeafRef]) -> tuple[LeafRef, ...]:
    """Those of the leaves that v2 and v3 wrote which have equality deletes in force."""
    old = [leaf for leaf in delete_leaves(leaves) if leaf.format_version == 0]
    kinds = reader.map(old, lambda leaf: reader.live(leaf, keys=["content_type"]))
    return tuple(
        leaf
        for leaf, batch in zip(old, kinds, strict=True)
        if (batch.numpy("content_type") == ContentType.EQUALITY_DELETES).any()
    )


def take_over(handle: TableHandle, snapshot: Snapshot | None) -> TakenOver | None:
    """What rewriting the old leaves of a snapshot needs; None when it has none. Writes vectors."""
    reader = handle.reader()
    old = old_leaves(reader, snapshot)
    if not old:
        return None
    with_equality = {leaf.location for leaf in with_equality_deletes(reader, old)}
    deletes = frozenset(leaf.location for leaf in delete_leaves(old)) - with_equality
    rewritten = {leaf.location for leaf in old} - with_equality
    vectors = EntryBatch.empty()
    written: tuple[str, ...] = ()
    if deletes:
        deleted = _deleted_files(handle, plan(reader, snapshot))
        rewritten |= {file.task.leaf for file in deleted if file.task.leaf is not None}
        vectors, written = _as_vectors(handle, deleted)
    return TakenOver(
        deletes=CarriedDeletes(vectors=vectors, leaves=deletes),
        leaves=tuple(sorted(rewritten)),
        written=written,
    )


@frozen(eq=False)
class _Deleted:
    """A data file with the position deletes that apply to it, and the last snapshot of them."""

    task: Task
    snapshot_id: int
    positions: Positions | None
    """None: the one vector among them is kept unchanged."""


def _deleted_files(handle: TableHandle, planned: Plan) -> list[_Deleted]:
    """Data files that old position deletes apply to. One with a vector of its own has taken them
    over before."""
    if planned.deletes is None:
        return []
    schema = handle.metadata.schema()
    reading = Reading(storage=handle.storage, schema=schema, table_schema=schema)
    reader = TaskReader(reading)
    by = planned.deletes.pylist("tracking.snapshot_id")
    kinds = planned.deletes.numpy("content_type")
    files: list[_Deleted] = []
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
        files.append(_Deleted(task=task, snapshot_id=snapshot_id, positions=positions))
    return files


def _position_deletes(task: Task) -> list[Any]:
    return [file for file in task.deletes if file.content_type is ContentType.POSITION_DELETES]


def _as_vectors(
    handle: TableHandle, files: Sequence[_Deleted]
) -> tuple[EntryBatch, tuple[str, ...]]:
    """Vectors as entries' columns, and the Puffin file written for those that were none."""
    rows: list[dict[str, Any]] = []
    fresh = [file for file in files if file.positions is not None]
    for file in files:
        if file.positions is None:
            vector = _position_deletes(file.task)[0].vector
            location = paths.relativise(handle.location, vector.location)
            rows.append(_row(file, replace(vector, location=location)))
    if not fresh:
        return EntryBatch.from_rows(rows), ()
    name = f"data/{handle.context.new_id()}.puffin"
    data, vectors = puffin.write_vectors(
        [(file.task.source.path, file.positions) for file in fresh if file.positions is not None],
        location=name,
        created_by=CREATED_BY,
    )
    path = paths.resolve(handle.location, name)
    handle.storage.write_new(path, data)
    rows += list(map(_row, fresh, vectors))
    return EntryBatch.from_rows(rows), (path,)


def _row(deleted: _Deleted, vector: StoredVector) -> dict[str, Any]:
    return {
        "location": deleted.task.location,
        "deletion_vector.location": vector.location,
        "deletion_vector.offset": vector.offset,
        "deletion_vector.size_in_bytes": vector.size_in_bytes,
        "deletion_vector.cardinality": vector.cardinality,
        "tracking.modified_snapshot_id": deleted.snapshot_id,
    }


__all__ = ["TakenOver", "deleted_rows", "old_leaves", "stored_positions", "take_over"]

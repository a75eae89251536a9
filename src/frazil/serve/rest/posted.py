"""What clients wrote for a commit: manifest lists and manifests, read for translation, and equality
deletes, which become deletion vectors.

A client may name any path, so every file is checked to lie where the table's files may lie, and to
be of a size that can be read, before it is opened. Version 4 has no equality deletes, so none
enters a tree. Their rows are looked for in the snapshot that the client built on: nothing can land
between it and the client's own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.commit.change import VectorEdit
from frazil.commit.fold import united
from frazil.commit.handle import TableHandle
from frazil.errors import FormatError, FrazilError, InvalidInput, Unsupported
from frazil.format import paths
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType
from frazil.format.entries.tracking import Status
from frazil.format.metadata.metadata import Snapshot, TableMetadata
from frazil.format.vectors import bitmap
from frazil.iceberg.expressions import AlwaysTrue
from frazil.legacy.read import manifest_entries, manifest_list
from frazil.legacy.upgrade.carried_deletes import stored_positions
from frazil.rows.scan import Scan
from frazil.scan.deletes_in_force import reach_of
from frazil.scan.match_deletes import DeleteFiles
from frazil.scan.plan import plan
from frazil.scan.tasks import Positions, Task, TaskReader, file_tasks, tasks_of
from frazil.serve.access.allowed_paths import Fence, Storage
from frazil.serve.rest.translate import Manifests, Net, net
from frazil.tree.partition_tuples import PartitionColumns
from frazil.tree.read import LeafRef, leaf_refs
from frazil.value_classes import frozen, replace

MAX_FILE_BYTES = 1 << 30
_SEQUENCE = "tracking.sequence_number"


@frozen
class PostedFiles:
    """Reads files of one table for one commit, none outside its fence."""

    storage: Storage
    location: str
    metadata: TableMetadata
    fence: Fence
    manifests_of: Callable[[str], Collection[str] | None] = lambda _: None
    """The manifests of a list, where they are known without reading it."""

    def difference(self, base: str | None, posted: str, *, snapshot_id: int) -> Net:
        """What a posted list changes of the one it is based on."""
        after = self._listed(posted, snapshot_id)
        base_names = None if base is None else self._listed_paths(base)
        if base_names is not None and base_names <= after.keys():  # then only the names are needed
            fresh = self._manifests(ref for name, ref in after.items() if name not in base_names)
            return net(fresh, self._manifests(()), self._positions)
        before = {} if base is None else self._listed(base, -1)
        fresh = self._manifests(ref for name, ref in after.items() if name not in before)
        dropped = self._manifests(ref for name, ref in before.items() if name not in after)
        return net(fresh, dropped, self._positions)

    def check_added(self, change: Net) -> None:
        """Refuse files outside the table's places: later scans and maintenance would open them.

        And files of partitions that are made from several columns: clients see those as `void`, and
        do not say in which one a file lies.
        """
        joint = {spec.spec_id for spec in self.metadata.partition_specs if spec.is_joint}
        for batch in (change.added, change.equality):
            if batch is None:
                continue
            if not joint.isdisjoint(batch.pylist("spec_id")):
                raise Unsupported(
                    f"{self.location}: the table is partitioned by several columns together, which "
                    "clients of older versions of the format cannot do; write with Frazil, or "
                    "change the partitioning",
                    feature="multi-argument transforms",
                )
            for path in paths.spelled(self.location, batch.column("location")).to_pylist():
                self.fence.allowed(path)

    def _listed_paths(self, path: str) -> set[str] | None:
        manifests = self.manifests_of(path)
        if manifests is None:
            return None
        stored = manifest_entries.stored_paths(self.location, pa.array(manifests, pa.string()))
        return set(stored.to_pylist())

    def _listed(self, path: str, snapshot_id: int) -> Mapping[str, LeafRef]:
        where = manifest_list.address(self.location, path)
        root = manifest_list.entries_of(
            self._read(where),
            path=where,
            snapshot_id=snapshot_id,
            metadata=self.metadata,
            location=self.location,
            limits=self.storage.limits,
        )
        return {ref.location: ref for ref in leaf_refs(root)}

    def _manifests(self, refs: Iterable[LeafRef]) -> Manifests:
        data: list[EntryBatch] = []
        deletes: list[EntryBatch] = []
        for ref in refs:
            path = paths.resolve(self.location, ref.location)
            batch = manifest_entries.entries_of(
                self._read(path),
                path=path,
                content_type=ref.content_type,
                spec_id=ref.spec_id,
                metadata=self.metadata,
                location=self.location,
                limits=self.storage.limits,
                is_exact=True,
            )
            batch = batch.filter(batch.numpy("tracking.status") != Status.DELETED)
            is_data = ref.content_type is ContentType.DATA_MANIFEST
            (data if is_data else deletes).append(batch)
        return Manifests(data=EntryBatch.concat(data), deletes=EntryBatch.concat(deletes))

    def _positions(self, batch: EntryBatch, index: int) -> Mapping[str, Positions]:
        row = batch.row(index)
        path = paths.resolve(self.location, row["location"])
        self._check(path)
        is_vector = row.get("deletion_vector.offset") is not None
        if is_vector and row.get("referenced_file") is None:
            raise InvalidInput(f"{path}: a deletion vector that names no data file")
        positions_by_file = stored_positions(self.storage, path, row)
        if is_vector:  # which names the file as its entry does
            return positions_by_file
        return {self._stored(name): positions for name, positions in positions_by_file.items()}

    def _stored(self, path: str) -> str:
        stored: str = paths.stored_exactly(self.location, pa.chunked_array([[path]]))[0].as_py()
        return stored

    def _read(self, path: str) -> bytes:
        self._check(path)
        return self.storage.read(path)

    def _check(self, path: str) -> None:
        self.fence.allowed(path)
        try:
            size = self.storage.size(path)
        except FrazilError as error:
            raise InvalidInput(f"{path}: cannot be read: {error}") from error
        if size > MAX_FILE_BYTES:
            raise FormatError(f"has {size} bytes, more than {MAX_FILE_BYTES}", path=path)


def as_vectors(change: Net, handle: TableHandle, snapshot: Snapshot, storage: Storage) -> Net:
    """A change without equality deletes: the rows of the snapshot that they take are deleted by
    position. `storage` opens what the client wrote."""
    if change.equality is None:
        return change
    if change.added is not None and change.added.has(_SEQUENCE):
        raise Unsupported(
            f"{handle.name}: equality deletes are committed together with files that keep an older "
            "sequence number, which they would apply to; commit them one after the other",
            feature="equality deletes of rewritten files",
        )
    of_vectors = _edits(change.equality, handle, snapshot, storage)
    removed = set(change.removed)
    edits = [edit for edit in of_vectors if edit.location not in removed]
    return replace(change, equality=None, vectors=united([*change.vectors, *edits]))


def _edits(
    equality: EntryBatch, handle: TableHandle, snapshot: Snapshot, storage: Storage
) -> Iterator[VectorEdit]:
    metadata = handle.metadata
    ages = pc.fill_null(
        equality.column(_SEQUENCE).cast(pa.int64()), metadata.last_sequence_number + 1
    )
    equality = equality.with_column(_SEQUENCE, ages)
    deletes = DeleteFiles(
        batch=equality, location=handle.location, partitions=PartitionColumns.of(metadata)
    )
    planned = plan(
        handle.reader(),
        snapshot,
        where=reach_of(equality, metadata.schema()),
        extra_keys=sorted(deletes.stats_keys()),
    )
    matches = deletes.match(planned.files)
    posted = list(file_tasks(planned.files, equality, matches, location=handle.location))
    reading = Scan(_handle=handle, snapshot=snapshot)._reading()
    reader = TaskReader(replace(reading, storage=storage, row_filter=AlwaysTrue()))
    for index, task in enumerate(tasks_of(planned, location=handle.location)):
        if index not in matches:
            continue
        left = _left(reader, task)
        with_posted = replace(task, deletes=(*task.deletes, *posted[index].deletes))
        deleted = bitmap.difference(left, reader.positions(with_posted))
        if deleted.size:
            yield VectorEdit(
                location=task.location,
                positions=deleted,
                leaf=task.leaf,
                position=task.position,
                first_row_id=task.source.first_row_id,
            )


def _left(reader: TaskReader, task: Task) -> Positions:
    """The rows that are left of a file; it is read only where an older equality delete applies."""
    if any(file.equality_ids for file in task.deletes):
        return reader.positions(task)
    every = np.arange(task.source.record_count, dtype=np.int64)
    dropped = reader.dropped(task)
    return every if dropped is None else bitmap.difference(every, dropped)


__all__ = ["as_vectors"]

"""A v4 tree as manifests of v2 or v3: leaf by leaf, each once.

A manifest of an older version that is still complete is referenced unchanged. Any other leaf
becomes manifests of its live files, one per partition spec: data files, and what deletes their
rows. Deletion vectors become delete entries of v3 that point at the same blobs, or position delete
files of v2. Knows nothing of metadata JSON.

Readers validate their commits and read increments by what a snapshot's own manifests say, so these
are correct: what the snapshot added is ADDED, what it removed is DELETED, all else EXISTING. A
leaf that is whole says what the snapshot that wrote it added, whichever snapshot is published.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import avro
from frazil.commit.handle import TableHandle
from frazil.errors import Unsupported
from frazil.format import paths
from frazil.format.entries import tracking
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.column_files import refuse_column_files
from frazil.format.entries.fields import PARTITION_PREFIX, ContentType
from frazil.format.metadata.metadata import Snapshot, TableMetadata
from frazil.iceberg.partitioning import PartitionSpec
from frazil.legacy.publish import write_manifests
from frazil.legacy.publish.position_files import PositionFiles
from frazil.legacy.publish.published import DeleteFileRef
from frazil.legacy.publish.write_manifests import ListRow
from frazil.scan.change_steps import without_vector
from frazil.tree.changes import changes_of
from frazil.tree.partition_tuples import PartitionColumns
from frazil.tree.read import LEAF, POSITION, LeafRef, Tree, TreeReader, data_leaves, delete_leaves
from frazil.value_classes import dataclass, field, frozen

_LIVE_KEYS = ("tracking.status", "content_type", "spec_id")
_TRACKING = (
    "tracking.snapshot_id",
    "tracking.sequence_number",
    "tracking.file_sequence_number",
)
_VECTOR_PLACE = "deletion_vector.location"


@dataclass(slots=True)
class WrittenManifests:
    """What a publication wrote and what it could use again."""

    manifests_written: int = 0
    manifests_reused: int = 0
    bytes_written: int = 0


Rows = tuple[ListRow, ...]


class NoSpecForFiles(Unsupported):
    """Files lie in no partition, and no spec of the table is without fields."""

    def __init__(self, message: str, *, free_id: int) -> None:
        self.free_id = free_id
        super().__init__(message, feature="publishing unpartitioned files of a partitioned table")


@frozen
class _By:
    """The snapshot a manifest is said to be written by, and whether it added entries of it."""

    snapshot_id: int
    sequence_number: int
    adds: bool = True


@dataclass(slots=True, kw_only=True)
class ManifestPublisher:
    """Publishes the leaves of one snapshot.

    `known` finds manifests of earlier publications by the leaf they stand for, `positions` are
    their position delete files. New manifests go to `folder`.
    """

    handle: TableHandle
    snapshot: Snapshot
    format_version: int
    known: Callable[[Collection[str]], Mapping[str, Rows]]
    known_positions: Mapping[str, DeleteFileRef] = field(default_factory=dict)
    folder: str = "metadata"
    leaves: dict[str, Rows] = field(default_factory=dict)
    own: Rows = ()
    written: WrittenManifests = field(default_factory=WrittenManifests)
    _positions: PositionFiles = field(init=False)

    def __post_init__(self) -> None:
        self._positions = PositionFiles(self.handle, known=self.known_positions)

    @property
    def own_key(self) -> str:
        """What `known` is asked for the manifests of the root itself."""
        return f"root of {self.snapshot.snapshot_id}"

    @property
    def positions(self) -> Mapping[str, DeleteFileRef]:
        """Position delete files that this publication names, by the vector they stand for."""
        return self._positions.used

    @property
    def delete_files_written(self) -> int:
        """How many position delete files were not there before."""
        return self._positions.written

    def rows(self) -> list[ListRow]:
        """The rows of the snapshot's manifest list.

        `leaves` has the rows of leaves afterwards, `own` those of the root itself.
        """
        reader = self.handle.reader()
        tree = reader.tree(self.snapshot)
        superseded = self._superseded(tree)
        refs = {_key(leaf, superseded.get(leaf.location)): leaf for leaf in tree.leaves()}
        published_rows = self.known([*refs, self.own_key])
        for key, leaf in refs.items():
            leaf_rows = published_rows.get(key)
            if leaf_rows is None:
                leaf_rows = self._leaf(leaf, superseded.get(leaf.location))
            self.leaves[key] = leaf_rows
        own_rows = published_rows.get(self.own_key)
        if own_rows is None:
            own_rows = (
                *self._manifests(tree.content(), self._by_this()),
                *self._removed(reader),
            )
        self.own = own_rows
        rows = [*(row for rows in self.leaves.values() for row in rows), *self.own]
        self.written.manifests_reused = len(rows) - self.written.manifests_written
        self._keep_position_files(tree)
        return rows

    def _by_this(self, *, adds: bool = True) -> _By:
        return _By(
            snapshot_id=int(self.snapshot.snapshot_id),
            sequence_number=self.snapshot.sequence_number,
            adds=adds,
        )

    def _leaf(self, leaf: LeafRef, gone: pa.Array | None) -> Rows:
        if self._stands_as_it_lies(leaf) and gone is None:
            return (self._as_it_lies(leaf),)
        batch = self.handle.reader().live(leaf).without(POSITION, LEAF)
        if gone is not None:
            dead = pc.is_in(batch.column("referenced_file"), value_set=gone)
            batch = batch.filter(~np.asarray(dead))
        if leaf.dv or gone is not None or leaf.format_version == 0:
            return self._manifests(batch, self._by_this(adds=False))
        by = _By(snapshot_id=leaf.snapshot_id, sequence_number=leaf.sequence_number)
        return self._manifests(batch, by)

    def _removed(self, reader: TreeReader) -> Rows:
        """What the snapshot took out, as DELETED entries; a file that stays is not among them."""
        if self.snapshot.root_manifest is None or self.snapshot.operation == "append":
            return ()
        changes = changes_of(reader, self.snapshot, keys=None)
        stays = _locations(changes.modified)
        replaced = changes.replaced
        if replaced.num_rows:
            gone = ~np.asarray(pc.is_in(replaced.column("location"), value_set=stays))
            moved, replaced = replaced.filter(~gone), replaced.filter(gone)
        else:
            moved = replaced
        files = EntryBatch.concat([changes.deleted, replaced]).without(LEAF, POSITION)
        kind = files.numpy("content_type")
        data = files.filter(kind == ContentType.DATA)
        rows = [*self._dead(without_vector(data), is_deletes=False)]
        deletes = [without_vector(files.filter(kind != ContentType.DATA))]
        if self.format_version >= 3:
            old = _with_vector(EntryBatch.concat([data, moved.without(LEAF, POSITION)]))
            deletes.append(self._of_vectors(_as_deletes(old)) if old.num_rows else old)
        rows += self._dead(EntryBatch.concat(deletes), is_deletes=True)
        return tuple(rows)

    def _dead(self, batch: EntryBatch, *, is_deletes: bool) -> Iterator[ListRow]:
        if not batch.num_rows:
            return
        one_snapshot = [key for key in tracking.ONE_SNAPSHOT_KEYS if batch.has(key)]
        dead = batch.without(*one_snapshot).with_constants(
            {
                "tracking.status": int(tracking.Status.DELETED),
                "tracking.snapshot_id": int(self.snapshot.snapshot_id),
            }
        )
        yield from self._by_spec(dead, self._by_this(), is_deletes=is_deletes)

    # Manifests of older versions

    def _stands_as_it_lies(self, leaf: LeafRef) -> bool:
        if leaf.format_version != 0 or leaf.dv or leaf.file_format != "avro":
            return False
        if leaf.sequence_number == 0 and self._entry(leaf)["manifest_info.existing_files_count"]:
            # Entries of v1 have no sequence numbers, and readers take none to inherit one only
            # for files that the manifest added.
            return False
        if self.format_version >= 3:
            return True
        path = paths.resolve(self.handle.location, leaf.location)
        header = avro.read_header(self.handle.storage.read(path), path=path)
        return int(header.metadata.get("format-version", "1")) <= self.format_version

    def _as_it_lies(self, leaf: LeafRef) -> ListRow:
        metadata = self.handle.metadata
        spec = _spec(metadata, leaf.spec_id)
        parts = [f"{PARTITION_PREFIX}{part.field_id}" for part in spec.fields]
        live = self.handle.reader().live(leaf, keys=[*_LIVE_KEYS, *parts])
        entry = self._entry(leaf)
        files, rows = (
            tuple(int(entry[f"manifest_info.{status}_{what}_count"]) for status in _STATUSES)
            for what in ("files", "rows")
        )
        is_deletes = leaf.content_type is ContentType.DELETE_MANIFEST
        return ListRow(
            path=paths.resolve(self.handle.location, leaf.location),
            length=leaf.file_size_in_bytes,
            spec_id=spec.spec_id,
            is_deletes=is_deletes,
            sequence_number=leaf.sequence_number,
            min_sequence_number=int(entry.get("manifest_info.min_sequence_number", 0)),
            added_snapshot_id=leaf.snapshot_id,
            files=(files[0], files[1], files[2]),
            rows=(rows[0], rows[1], rows[2]),
            first_row_id=None if is_deletes else leaf.first_row_id,
            summaries=write_manifests.summarise(live, spec, metadata),
        )

    def _entry(self, leaf: LeafRef) -> dict[str, Any]:
        return self.handle.reader().tree(self.snapshot).root.row(leaf.row)

    def _superseded(self, tree: Tree) -> dict[str, pa.Array]:
        """Per old delete leaf: data files it has a vector for that have a newer one in their entry.

        A table may have one vector per data file; the newer one contains the older.
        """
        reader = self.handle.reader()
        old: dict[str, pa.ChunkedArray] = {}
        for leaf in delete_leaves(tree.leaves()):
            if leaf.format_version == 0:
                batch = reader.live(leaf, keys=["referenced_file", _VECTOR_PLACE, "location"])
                has_vector = np.asarray(pc.is_valid(batch.column(_VECTOR_PLACE)))
                if has_vector.any():
                    old[leaf.location] = batch.filter(has_vector).column("referenced_file")
        if not old:
            return {}
        chunks: list[pa.Array] = []
        for batch in (tree.content(), *self._v4_entries(tree)):
            chunks += _with_vector(batch).column("location").chunks
        locations = pa.chunked_array(chunks, pa.string()).combine_chunks()
        superseded = {
            name: files.filter(pc.is_in(files, value_set=locations)) for name, files in old.items()
        }
        return {name: files.combine_chunks() for name, files in superseded.items() if len(files)}

    def _v4_entries(self, tree: Tree) -> Iterator[EntryBatch]:
        reader = self.handle.reader()
        leaves = [leaf for leaf in data_leaves(tree.leaves()) if leaf.format_version > 0]
        return reader.map(leaves, lambda leaf: reader.live(leaf, keys=["location", _VECTOR_PLACE]))

    def _keep_position_files(self, tree: Tree) -> None:
        """Position delete files of leaves that were used again go on being used."""
        if self.format_version >= 3 or not self.known_positions:
            return
        for batch in (tree.content(), *self._v4_entries(tree)):
            self._positions.keep(_with_vector(batch))
        reader = self.handle.reader()
        for leaf in delete_leaves(tree.leaves()):
            if leaf.format_version == 0:
                keys = ["location", _VECTOR_PLACE, "deletion_vector.offset"]
                self._positions.keep(_with_vector(reader.live(leaf, keys=keys)))

    # New manifests

    def _manifests(self, batch: EntryBatch, by: _By) -> Rows:
        """Live files of one leaf as manifests: data and deletes, by partition spec."""
        if not batch.num_rows:
            return ()
        refuse_column_files(batch, f"format version {self.format_version}")
        batch = tracking.carry(batch)
        kind = batch.numpy("content_type")
        data = batch.filter(kind == ContentType.DATA)
        by_equality = batch.filter(kind == ContentType.EQUALITY_DELETES)
        by_position = batch.filter(kind == ContentType.POSITION_DELETES)
        rows = [*self._by_spec(_added(without_vector(data), by), by, is_deletes=False)]
        vectors = EntryBatch.concat(
            [_aged(_as_deletes(_with_vector(data)), by), _with_vector(by_position)]
        )
        files = without_vector(by_position.filter(~_has_vector(by_position)))
        deletes = EntryBatch.concat([without_vector(by_equality), files, self._of_vectors(vectors)])
        return (*rows, *self._by_spec(_added(deletes, by), by, is_deletes=True))

    def _of_vectors(self, vectors: EntryBatch) -> EntryBatch:
        """Entries of deletion vectors: those of v3, or position delete files that say the same."""
        if not vectors.num_rows:
            return vectors
        if self.format_version < 3:
            return self._positions.entries(vectors)
        names = vectors.pylist(_VECTOR_PLACE)
        sizes = {name: self._size(name) for name in set(names)}
        return (
            vectors.with_column("location", vectors.column(_VECTOR_PLACE))
            .with_column("file_format", pa.repeat(pa.scalar("puffin"), vectors.num_rows))
            .with_column("record_count", vectors.column("deletion_vector.cardinality"))
            .with_column("file_size_in_bytes", pa.array([sizes[n] for n in names], pa.int64()))
        )

    def _size(self, name: str) -> int:
        return self.handle.storage.size(paths.resolve(self.handle.location, name))

    def _by_spec(self, batch: EntryBatch, by: _By, *, is_deletes: bool) -> Iterator[ListRow]:
        if not batch.num_rows:
            return
        ids = batch.numpy("spec_id")
        for spec_id in np.unique(ids):
            spec = _spec(self.handle.metadata, None if spec_id < 0 else int(spec_id))
            yield self._manifest(batch.filter(ids == spec_id), spec, by, is_deletes=is_deletes)

    def _manifest(
        self, batch: EntryBatch, spec: PartitionSpec, by: _By, *, is_deletes: bool
    ) -> ListRow:
        handle, metadata = self.handle, self.handle.metadata
        batch = batch.with_constant("spec_id", spec.spec_id)
        batch = PartitionColumns.of(metadata).recovered(batch, spec.spec_id)
        data = write_manifests.encode_manifest(
            batch,
            format_version=self.format_version,
            is_deletes=is_deletes,
            spec=spec,
            metadata=metadata,
            location=handle.location,
        )
        path = paths.resolve(handle.location, f"{self.folder}/{handle.context.new_id()}-m0.avro")
        handle.storage.write_new(path, data)
        self.written.manifests_written += 1
        self.written.bytes_written += len(data)
        status = batch.numpy("tracking.status")
        records = batch.numpy("record_count", missing=0)
        masks = [status == value for value in _STATUS_VALUES]
        added, existing, deleted = (int(mask.sum()) for mask in masks)
        rows = [int(records[mask].sum()) for mask in masks]
        live = batch.column("tracking.sequence_number").filter(pa.array(~masks[2]))
        first = pc.min(batch.column("tracking.first_row_id")).as_py()
        return ListRow(
            path=path,
            length=len(data),
            spec_id=spec.spec_id,
            is_deletes=is_deletes,
            sequence_number=by.sequence_number,
            min_sequence_number=by.sequence_number if not len(live) else pc.min(live).as_py() or 0,
            added_snapshot_id=by.snapshot_id,
            files=(added, existing, deleted),
            rows=(rows[0], rows[1], rows[2]),
            first_row_id=None if is_deletes else first,
            summaries=write_manifests.summarise(batch, spec, metadata),
        )


_STATUSES = ("added", "existing", "deleted")
_STATUS_VALUES = (tracking.Status.ADDED, tracking.Status.EXISTING, tracking.Status.DELETED)


def _key(leaf: LeafRef, gone: pa.Array | None) -> str:
    """A leaf as one root has it: its file, its row ids, what is dead, and vectors left out."""
    digest = hashlib.sha256(leaf.dv or b"")
    for name in sorted(gone.to_pylist()) if gone is not None else ():
        digest.update(b"\0" + name.encode("utf-8"))
    return f"{leaf.location} {leaf.first_row_id} {digest.hexdigest()[:16]}"


def _spec(metadata: TableMetadata, spec_id: int | None) -> PartitionSpec:
    if spec_id is not None:
        return metadata.spec_by_id(spec_id)
    for spec in metadata.partition_specs:
        if not spec.fields:
            return spec
    raise NoSpecForFiles(
        f"{metadata.location}: has files without partition but no spec for them",
        free_id=max(spec.spec_id for spec in metadata.partition_specs) + 1,
    )


def _has_vector(batch: EntryBatch) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return np.asarray(pc.is_valid(batch.column(_VECTOR_PLACE)))


def _with_vector(batch: EntryBatch) -> EntryBatch:
    return batch.filter(_has_vector(batch))


def _locations(batch: EntryBatch) -> pa.Array:
    if not batch.num_rows:
        return pa.array([], pa.string())
    return pa.array(batch.pylist("location"), pa.string())


def _added(batch: EntryBatch, by: _By) -> EntryBatch:
    """The entries with those the snapshot added marked so."""
    if not batch.num_rows or not by.adds:
        return batch
    is_of_snapshot = batch.numpy("tracking.snapshot_id") == by.snapshot_id
    status = np.where(is_of_snapshot, int(tracking.Status.ADDED), int(tracking.Status.EXISTING))
    return batch.with_column("tracking.status", pa.array(status, pa.int32()))


def _aged(vectors: EntryBatch, by: _By) -> EntryBatch:
    """Vectors that the snapshot added have its age: readers look for deletes newer than theirs."""
    if not vectors.num_rows or not by.adds:
        return vectors
    is_of_snapshot = vectors.numpy("tracking.snapshot_id") == by.snapshot_id
    for key in _TRACKING[1:]:
        ages = np.where(is_of_snapshot, by.sequence_number, vectors.numpy(key))
        vectors = vectors.with_column(key, pa.array(ages, pa.int64()))
    return vectors


def _as_deletes(data: EntryBatch) -> EntryBatch:
    """Data files' entries as those of their vectors: what they delete from, where, since when.

    A delete of the data's own age applies to it, whatever snapshot it came with; Iceberg Java
    takes none of age 0, which is that of v1's files.
    """
    kept = [
        *_TRACKING,
        "spec_id",
        *(key for key in data.keys if key.startswith((PARTITION_PREFIX, "deletion_vector."))),
    ]
    batch = data.select(kept).with_column("referenced_file", data.column("location"))
    added_by = data.column("tracking.snapshot_id")
    by = pc.coalesce(data.column("tracking.modified_snapshot_id"), added_by)
    for key in _TRACKING[1:]:
        batch = batch.with_column(key, pc.max_element_wise(data.column(key), pa.scalar(1)))
    return (
        batch.with_column("tracking.snapshot_id", by)
        .with_constant("tracking.status", int(tracking.Status.EXISTING))
        .with_constant("content_type", int(ContentType.POSITION_DELETES))
    )


__all__ = ["ManifestPublisher", "WrittenManifests"]

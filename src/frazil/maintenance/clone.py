"""A shallow copy: a new table with metadata of its own on the data files of another.

The clone's leaves name the source's files by absolute path. The source keeps a tag named after the
clone on the snapshot it was made from, so that expiry there leaves those files alone; the clone's
properties say where it comes from. Files outside a table's folders are never deleted by its own
care, so a clone cannot harm its source either, wherever it lies. When a clone is dropped, its tag
can be.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa

from frazil.catalog.backend import CatalogBackend, TableHead, TableName
from frazil.catalog.names import Identifier
from frazil.catalog.ownership import SOURCE_LOCATION, SOURCE_UUID
from frazil.commit.change import Change, VectorEdit
from frazil.commit.deletion_vectors import VectorMerger
from frazil.commit.handle import TableHandle
from frazil.commit.loop import undoing
from frazil.commit.updates import RemoveRef, SetRef
from frazil.data.read.read_files import Reading
from frazil.errors import AlreadyExists, InvalidInput, Unsupported
from frazil.format import paths
from frazil.format.checks import PATH_PROPERTIES, check_path_properties, check_properties
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.column_files import column_files_of, with_column_files
from frazil.format.entries.fields import COLUMN_FILES, ContentType
from frazil.format.metadata.metadata import RefKind, Snapshot, SnapshotRef, TableMetadata
from frazil.maintenance.progress import Progress, silent
from frazil.properties.registry import FOREVER_MS, SERVE_LOCATION
from frazil.scan.plan import plan
from frazil.scan.tasks import TaskReader, tasks_of
from frazil.storage import checked_location, same_store
from frazil.tree.read import LEAF, POSITION
from frazil.value_classes import replace

PIN_PREFIX = "clone/"
SOURCE_NAME = "frazil.clone.source-name"
SOURCE_SNAPSHOT = "frazil.clone.source-snapshot-id"


def clone(
    handle: TableHandle,
    catalog: CatalogBackend,
    name: TableName,
    *,
    snapshot: Snapshot | None,
    location: str | None = None,
    properties: Mapping[str, str] | None = None,
    progress: Progress = silent,
) -> TableHead:
    """Create a table with the rows of a snapshot; no data file is copied."""
    handle.check_writable()
    identifier = Identifier.parse(name)
    check_properties(properties or {})
    if catalog.table_exists(identifier):
        raise AlreadyExists(f"table {identifier} already exists")
    place = catalog.location_for(identifier) if location is None else checked_location(location)
    if not same_store(place, handle.location):
        raise Unsupported(
            f"{place}: a clone reads its source's files through one storage; "
            f"choose a place like {handle.location}",
            feature="clone across storages",
        )
    pin = f"{PIN_PREFIX}{identifier}"
    if snapshot is not None:
        tag = SnapshotRef(
            snapshot_id=snapshot.snapshot_id, kind=RefKind.TAG, max_ref_age_ms=FOREVER_MS
        )
        handle.commit(Change(updates=(SetRef(name=pin, ref=tag, expected=None),)))
    with undoing(lambda: _unpin(handle, pin, snapshot)):
        metadata = _metadata(handle, snapshot, place, properties or {})
        check_path_properties(place, metadata.properties)
        head = catalog.create_table(identifier, metadata)
        if snapshot is not None:
            copy = TableHandle.of(
                str(identifier), head, catalog.storage(place), decoder=handle.context.decoder
            )
            with undoing(lambda: catalog.drop(identifier)):
                _fill(handle, copy, snapshot, progress)
    return head


def check_not_cloned(
    name: TableName, metadata: TableMetadata, *, also: Collection[str] = ()
) -> None:
    """Refuse to delete the files of a table that clones read, by their tags or as `also` says."""
    pinned = {ref[len(PIN_PREFIX) :] for ref in metadata.refs if ref.startswith(PIN_PREFIX)}
    clones = sorted(pinned | set(also))
    if clones:
        raise InvalidInput(
            f"{name}: {', '.join(clones)} read its files; drop the clones and their tags "
            f"({PIN_PREFIX}…) first, or drop the table without deleting files"
        )


def _unpin(handle: TableHandle, pin: str, snapshot: Snapshot | None) -> None:
    if snapshot is not None:
        handle.commit(Change(updates=(RemoveRef(name=pin),)))


def _metadata(
    handle: TableHandle, snapshot: Snapshot | None, place: str, properties: Mapping[str, str]
) -> TableMetadata:
    """The source's definition under a new identity. Sequence numbers and row ids go on from it."""
    source = handle.metadata
    own_properties = {*PATH_PROPERTIES, SERVE_LOCATION.key}
    origin = {
        SOURCE_NAME: handle.name,
        SOURCE_UUID: str(source.table_uuid),
        SOURCE_LOCATION: handle.location,
    }
    if snapshot is not None:
        origin[SOURCE_SNAPSHOT] = str(snapshot.snapshot_id)
    kept = {key: value for key, value in source.properties.items() if key not in own_properties}
    return replace(
        source,
        table_uuid=uuid.uuid4(),
        location=place,
        refs={},
        properties={**kept, **properties, **origin},
        statistics=(),
        partition_statistics=(),
        last_updated_ms=handle.context.now_ms(),
    )


def _fill(source: TableHandle, copy: TableHandle, snapshot: Snapshot, progress: Progress) -> None:
    """Commit every live file of the source, by absolute path, with its age and row ids."""
    reader = source.reader()
    tree = reader.tree(snapshot)
    leaves = len(tree.leaves())
    batches: list[EntryBatch] = []
    for leaves_read, batch in enumerate(reader.all_live(tree)):
        kind = batch.numpy("content_type")
        listed = batch.filter(kind != ContentType.POSITION_DELETES)
        if listed.num_rows:
            batches.append(_absolute(listed, source.location))
        progress(leaves_read, leaves, "leaves")
    if not batches:
        return
    entries = EntryBatch.concat(batches)
    edits = _old_deletes(source, snapshot)
    if edits:
        entries = _with_vectors(entries, edits, copy)
    entries = entries.without(LEAF, POSITION)
    summary = {"frazil.cloned-from": f"{source.name} {snapshot.snapshot_id}"}
    added = entries.without("tracking.modified_snapshot_id")
    copy.commit(Change(added=added, shares_files=True, summary=summary))


def _absolute(batch: EntryBatch, location: str) -> EntryBatch:
    for key in ("location", "deletion_vector.location"):
        if batch.has(key):
            batch = batch.with_column(key, paths.resolve_all(location, batch.column(key)))
    if not batch.has(COLUMN_FILES):
        return batch
    files = [
        [replace(file, location=paths.resolve(location, file.location)) for file in column_files]
        for column_files in column_files_of(batch)
    ]
    return with_column_files(batch, files)


def _old_deletes(source: TableHandle, snapshot: Snapshot) -> list[VectorEdit]:
    """Position deletes of v2 and v3 manifests, which the clone has as vectors."""
    reader = source.reader()
    planned = plan(reader, snapshot)
    if planned.deletes is None:
        return []
    schema = source.metadata.schema()
    tasks = TaskReader(Reading(storage=source.storage, schema=schema, table_schema=schema))
    edits: list[VectorEdit] = []
    for task in tasks_of(planned, location=source.location):
        positions = tasks.resolved(task)
        if positions is not None and positions.size:
            edits.append(
                VectorEdit(
                    location=task.source.path,
                    positions=positions,
                    leaf=task.leaf,
                    position=task.position,
                )
            )
    return edits


def _with_vectors(entries: EntryBatch, edits: list[VectorEdit], copy: TableHandle) -> EntryBatch:
    leaves = entries.column(LEAF).cast(pa.string()).to_pylist()
    addresses = zip(entries.pylist("location"), leaves, entries.pylist(POSITION), strict=True)
    where = {address: row for row, address in enumerate(addresses)}
    rows = np.array(
        [where[edit.location, edit.leaf, edit.position] for edit in edits], dtype=np.int64
    )
    merger = VectorMerger(
        edits, storage=copy.storage, location=copy.location, new_id=copy.context.new_id
    )
    changed = merger.write_merged(entries.take(rows)).entries
    changed = changed.with_column(
        "deletion_vector.location",
        paths.resolve_all(copy.location, changed.column("deletion_vector.location")),
    )
    is_unmatched = np.ones(entries.num_rows, dtype=np.bool_)
    is_unmatched[rows] = False
    return EntryBatch.concat([entries.filter(is_unmatched), changed])

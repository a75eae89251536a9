"""Publish: a snapshot of a v4 table written out as ordinary Iceberg v2 or v3 metadata.

Data files are not touched, and deletion vectors are shared with v3 readers. Only what changed since
the last publication is written; files that readers may still be using are never changed or deleted
here. Publishing can follow every commit (`publish.format-version`); it cannot undo one, so its
failure is a note on the commit.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from frazil.catalog.notes import CLAIMS, Notes, claim_key
from frazil.commit.change import Change
from frazil.commit.handle import TableHandle
from frazil.commit.result import CommitResult
from frazil.commit.updates import HaveUnpartitionedSpec
from frazil.errors import AlreadyExists, FrazilError, InvalidInput, NotFound, Unsupported
from frazil.format import paths
from frazil.format.metadata import metadata_json
from frazil.format.metadata.metadata import (
    MAIN,
    History,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
    TableMetadata,
)
from frazil.format.metadata.statistics_files import absolute
from frazil.legacy.publish import published, write_manifests
from frazil.legacy.publish.publish_manifests import ManifestPublisher, NoSpecForFiles
from frazil.legacy.publish.published import STATE_PROPERTY, Publication
from frazil.properties.registry import PUBLISH_FORMAT_VERSION
from frazil.storage import Storage
from frazil.storage.base import as_conditional
from frazil.value_classes import frozen, replace

VERSIONS = (2, 3)
_ATTEMPTS = 20
MAX_CLAIM_S = 10.0
"""How long a version that another publisher has claimed is waited for."""
_POLL_S = 0.05
_REMEMBERED = "publication"

log = logging.getLogger(__name__)


@frozen
class Published:
    """What a publication is and what it took. Readers are given `metadata_location`."""

    metadata_location: str
    version: int
    format_version: int
    snapshot_id: int | None
    manifests_written: int
    manifests_reused: int
    delete_files_written: int
    bytes_written: int


def publish(
    handle: TableHandle, *, format_version: int = 3, snapshot: Snapshot | None = None
) -> Published:
    """Write a snapshot, by default the current one of main, as Iceberg v2 or v3 metadata.

    Equality deletes that early writers added to a partitioned table name no spec. Older versions
    need one: the table gets a spec without fields then.
    """
    if format_version not in VERSIONS:
        raise InvalidInput(f"format_version is {format_version}; tables are published as 2 or 3")
    handle.check_writable()
    at = snapshot if snapshot is not None else handle.tip()
    _check_types(handle, format_version)
    remembered = handle.remembered.get(_REMEMBERED)
    for _ in range(_ATTEMPTS):
        # What this handle published last is trusted once: creating the next version fails if others
        # have published since.
        if not isinstance(remembered, Publication):
            remembered = published.load(handle.metadata, handle.storage)
        before, remembered = remembered, None
        if snapshot is None and _is_newer(handle, before, at, format_version):
            return _by_others(before, format_version)
        try:
            publication = _attempt(handle, at, format_version, before)
        except NoSpecForFiles as missing:
            handle.commit(Change(updates=(HaveUnpartitionedSpec(spec_id=missing.free_id),)))
            continue
        if publication is not None:
            log.info("%s: published as %s", handle.name, publication.metadata_location)
            return publication
    raise AlreadyExists(
        f"{handle.name}: other publishers kept taking the next version ({_ATTEMPTS} attempts)"
    )


def publish_if_asked(handle: TableHandle, result: CommitResult) -> str | None:
    """Publish after a commit on main when the table's property asks for it; a note on failure."""
    is_published = PUBLISH_FORMAT_VERSION.key in handle.metadata.properties
    main = handle.tip()
    elsewhere = result.snapshot is not None and (
        main is None or main.snapshot_id != result.snapshot.snapshot_id
    )
    if not is_published or elsewhere:
        return None
    try:
        format_version = PUBLISH_FORMAT_VERSION.of(handle.metadata.properties)
        assert format_version is not None
        publish(handle, format_version=format_version)
    except Exception as error:  # the commit has landed, whatever went wrong here
        kind = error.kind if isinstance(error, FrazilError) else type(error).__name__
        note = f"the commit landed, but was not published ({kind}): {error}"
        log.warning("%s: %s", handle.name, note)
        return note
    return None


def _check_types(handle: TableHandle, format_version: int) -> None:
    try:
        handle.metadata.schema().check_format_version_compatibility(format_version)
    except ValueError as error:
        raise Unsupported(
            f"{handle.name}: its schema cannot be published as v{format_version}: {error}",
            feature=f"publishing as v{format_version}",
        ) from error


def _is_newer(
    handle: TableHandle, before: Publication, at: Snapshot | None, format_version: int
) -> bool:
    """Whether another commit was published already: its snapshot comes after this one."""
    mine = -1 if at is None else at.sequence_number
    if before.format_version != format_version or before.sequence_number <= mine:
        return False
    try:
        return before.snapshot_id is not None and bool(handle.head.snapshot(before.snapshot_id))
    except NotFound:  # published of another history, by a catalog that was lost
        return False


def _by_others(before: Publication, format_version: int) -> Published:
    assert before.metadata_location is not None
    return Published(
        metadata_location=before.metadata_location,
        version=before.version,
        format_version=format_version,
        snapshot_id=before.snapshot_id,
        manifests_written=0,
        manifests_reused=0,
        delete_files_written=0,
        bytes_written=0,
    )


def _attempt(
    handle: TableHandle, at: Snapshot | None, format_version: int, before: Publication
) -> Published | None:
    """Publish as the next version; None when another publisher took it."""
    storage, folder = handle.storage, published.folder_of(handle.metadata)
    version = before.version + 1
    state = Publication(
        version=version,
        format_version=format_version,
        sequence_number=-1 if at is None else at.sequence_number,
        snapshot_id=None if at is None else int(at.snapshot_id),
        metadata_location=f"{folder}/v{version}.metadata.json",
    )
    work: ManifestPublisher | None = None
    if at is not None:
        earlier = before.for_version(format_version)
        work = ManifestPublisher(
            handle=handle,
            snapshot=at,
            format_version=format_version,
            known=lambda keys: {k: earlier.leaves[k] for k in keys if k in earlier.leaves},
            known_positions=earlier.positions,
        )
        manifest_list = _write_list(handle, at, work, format_version)
        state = replace(
            state,
            manifest_list=manifest_list,
            leaves={**work.leaves, work.own_key: work.own},
            positions=work.positions,
        )
    where = f"{folder}/published-{handle.context.new_id()}.json"
    storage.write_new(where, published.dumps(state))
    metadata = _metadata(handle.metadata, at, format_version, where)
    data = metadata_json.dumps(metadata, _history(at, state, format_version))
    assert state.metadata_location is not None
    handle.remembered.pop(_REMEMBERED, None)
    try:
        _write_version(handle, version, state.metadata_location, data)
    except AlreadyExists:
        storage.delete(where)
        return None
    hint = published.point_at(handle.metadata, version, storage, over=before.hint)
    if as_conditional(storage) is not None:
        handle.remembered[_REMEMBERED] = replace(state, state_location=where, hint=hint)
    return Published(
        metadata_location=state.metadata_location,
        version=version,
        format_version=format_version,
        snapshot_id=state.snapshot_id,
        manifests_written=0 if work is None else work.written.manifests_written,
        manifests_reused=0 if work is None else work.written.manifests_reused,
        delete_files_written=0 if work is None else work.delete_files_written,
        bytes_written=len(data) + (0 if work is None else work.written.bytes_written),
    )


def _write_version(handle: TableHandle, version: int, path: str, data: bytes) -> None:
    """Write the metadata file of a version; AlreadyExists when another publisher has."""
    storage = handle.storage
    if as_conditional(storage) is not None:  # the store decides, in the same request
        storage.write_new(path, data)
        return
    if not _claim(handle, version) and _appears(storage, path):
        raise AlreadyExists(path)
    if storage.exists(path):
        raise AlreadyExists(path)
    storage.write_new(path, data)
    _forget_claims(handle, before=version)


def _claim(handle: TableHandle, version: int) -> bool:
    """Whether this publisher is the one to write a version. Some storages overwrite without a word,
    so the catalog decides who writes a name that two would choose."""
    notes = _notes_of(handle)
    mine = str(handle.context.new_id())
    return notes is None or notes.claim(version, mine) == mine


def _appears(storage: Storage, path: str) -> bool:
    """Whether the file of another's claim is there, or comes soon. A publisher claims just before
    it writes: one that does not write has died, and its version is free."""
    deadline = time.monotonic() + MAX_CLAIM_S
    while not storage.exists(path):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _forget_claims(handle: TableHandle, *, before: int) -> None:
    """Claims of versions that are written, or that nobody will ask for again."""
    notes = _notes_of(handle)
    if notes is not None:
        notes.remove([key for key in notes.below(CLAIMS) if key < claim_key(before)])


def _notes_of(handle: TableHandle) -> Notes | None:
    return getattr(handle.head, "notes", None)


def _write_list(
    handle: TableHandle, at: Snapshot, work: ManifestPublisher, format_version: int
) -> str:
    data = write_manifests.encode_list(
        work.rows(),
        format_version=format_version,
        snapshot_id=int(at.snapshot_id),
        parent_snapshot_id=None if at.parent_snapshot_id is None else int(at.parent_snapshot_id),
        sequence_number=at.sequence_number,
        first_row_id=at.first_row_id,
    )
    name = f"metadata/snap-{at.snapshot_id}-1-{handle.context.new_id()}.avro"
    path = paths.resolve(handle.location, name)
    handle.storage.write_new(path, data)
    work.written.bytes_written += len(data)
    return path


def _metadata(
    metadata: TableMetadata, at: Snapshot | None, format_version: int, state_location: str
) -> TableMetadata:
    """The table as readers of older versions see it: one snapshot, nothing of v4."""
    return replace(
        metadata,
        format_version=format_version,
        refs={} if at is None else {MAIN: SnapshotRef(snapshot_id=at.snapshot_id)},
        properties={**metadata.properties, STATE_PROPERTY: state_location},
        expressions=(),
        statistics=() if at is None else _statistics(metadata, at),
        partition_statistics=(),
        extra={},
    )


def _statistics(metadata: TableMetadata, at: Snapshot) -> tuple[Mapping[str, Any], ...]:
    stated = [entry for entry in metadata.statistics if entry.get("snapshot-id") == at.snapshot_id]
    return absolute(stated, metadata.location)


def _history(at: Snapshot | None, state: Publication, format_version: int) -> History:
    if at is None:
        return History()
    has_row_ids = format_version >= 3
    snapshot = replace(
        at,
        root_manifest=None,
        manifests=None,
        manifest_list=state.manifest_list,
        first_row_id=at.first_row_id if has_row_ids else None,
        added_rows=at.added_rows if has_row_ids else None,
        extra={},
    )
    logged = SnapshotLogEntry(snapshot_id=at.snapshot_id, timestamp_ms=at.timestamp_ms)
    return History(snapshots=(snapshot,), snapshot_log=(logged,))


__all__ = ["Published", "publish", "publish_if_asked"]

"""A v4 table as v2 or v3 metadata: what stock Iceberg clients are shown.

Every version of a table that somebody loads becomes one metadata JSON and, for each new snapshot,
one manifest list; manifests stand for leaves and are written once. All of it lies in
`metadata/published/` and is noted in the catalog, so that every process finds it. Knows nothing of
HTTP.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar

from frazil.catalog.backend import TableHead
from frazil.catalog.export import previous_max
from frazil.catalog.notes import Notes
from frazil.commit.handle import TableHandle
from frazil.errors import AlreadyExists, NotFound, StorageError, Unsupported
from frazil.format import paths
from frazil.format.checks import client_location
from frazil.format.metadata import metadata_json
from frazil.format.metadata.metadata import (
    FORMAT_VERSION,
    MAIN,
    History,
    MetadataLogEntry,
    Snapshot,
    TableMetadata,
)
from frazil.format.metadata.statistics_files import absolute
from frazil.format.metadata.summary_totals import has_column_files, number
from frazil.legacy.publish import published, published_notes, write_manifests
from frazil.legacy.publish.publish_manifests import ManifestPublisher
from frazil.legacy.publish.published import FOLDER
from frazil.legacy.read.manifest_list import address
from frazil.properties.registry import (
    DELETE_MODE,
    GC_ENABLED,
    MANIFEST_MERGE_ENABLED,
    MERGE_COLUMN_FILES,
    MERGE_MODE,
    SERVE_FORMAT_VERSION,
    UPDATE_MODE,
    without_empty,
)
from frazil.serve.access.allowed_paths import make_folders
from frazil.serve.limits import MAX_DOCUMENTS_BYTES
from frazil.value_classes import frozen, replace

log = logging.getLogger("frazil.serve")

OWN_PREFIX = "serve."
NO_SNAPSHOT = -1

# Clients must not collect what they cannot see all of, and need not merge manifests that are
# published leaf by leaf.
_FORCED = {MANIFEST_MERGE_ENABLED.key: "false"}
_NO_COLLECTION = {GC_ENABLED.key: "false"}
_DEFAULTS = {mode.key: mode.default for mode in (DELETE_MODE, UPDATE_MODE, MERGE_MODE)}

_Kept = TypeVar("_Kept")


@frozen
class PublishedVersion:
    """One version of a table as clients see it; `document` is the metadata JSON."""

    metadata_location: str
    document: bytes
    format_version: int
    etag: str


_RECENT = 64
"""Documents that are kept."""


class Facade:
    """Shows tables. Holds no state of its own but a few recent documents."""

    def __init__(self, *, allow_client_gc: bool = False) -> None:
        self._allow_client_gc = allow_client_gc
        self._recent: dict[str, bytes] = {}
        self._made: dict[str, bool] = {}
        """Folders of clients that are known to be there."""
        self._named: dict[str, frozenset[str]] = {}

    def show(self, handle: TableHandle, format_version: int | None = None) -> PublishedVersion:
        """The table as the handle last loaded it, published now if no client has loaded it
        before."""
        head = head_of(handle)
        metadata = handle.metadata
        if metadata.format_version < FORMAT_VERSION:
            return self._as_it_is(handle)
        version = published_version(metadata, format_version)
        if _merge_column_files(handle, version):
            return self.show(handle, format_version)
        if version < 2 and _has_deletes(head.history()):
            version = 2  # readers of v1 do not look for deletes, and would show the rows
        at = handle.state.version
        key = published_notes.document_key(version, at, lets_collect=self._allow_client_gc)
        where = published_notes.document(head.notes, metadata.location, key)
        if where is not None:
            return self._read(handle, where, version)
        place = client_location(metadata.location, metadata.properties)
        if place not in self._made:
            make_folders(handle.storage, metadata)
            _keep(self._made, place, True)
        history = self._history(handle, max(2, version))
        log = _metadata_log(head.notes, version, metadata)
        document = _document(
            metadata,
            replace(history, metadata_log=log),
            version,
            allow_client_gc=self._allow_client_gc,
        )
        place = f"{metadata.location}/{FOLDER}"
        where = f"{place}/{at:05d}-{uuid.uuid4()}.v{version}.metadata.json"
        handle.storage.write_new(where, document)
        note = json.dumps([where, metadata.last_updated_ms])
        if head.notes.add({key: note})[key] != note:
            winner = published_notes.document(head.notes, metadata.location, key)
            if winner is not None:  # another process was quicker
                handle.storage.delete(where)
                return self._read(handle, winner, version)
            # The note leads out of the table's folder: it is replaced by ours.
            head.notes.remove([key])
            head.notes.add({key: note})
        _forget_documents(handle, version, previous_max(metadata))
        self._remember(where, document)
        return _published(where, document, version)

    def copied_below(self, handle: TableHandle, version: PublishedVersion) -> PublishedVersion:
        """The same with its metadata file below the location that clients see, for those that look
        for it nowhere else. The copy is garbage to everybody: it is there again when it is asked
        for."""
        if handle.metadata.format_version < FORMAT_VERSION:
            return version
        place = client_location(handle.location, handle.metadata.properties)
        where = f"{place}/metadata/{version.metadata_location.rpartition('/')[2]}"
        if not handle.storage.exists(where):
            with suppress(AlreadyExists):  # another request was quicker
                handle.storage.write_new(where, version.document)
        return replace(version, metadata_location=where)

    def list_of(self, handle: TableHandle, snapshot: Snapshot, format_version: int) -> str:
        """The manifest list that stands for a snapshot, published now if it is not yet."""
        if _is_listed(snapshot, format_version):
            return address(handle.location, snapshot.manifest_list or "")
        notes = head_of(handle).notes
        path = published_notes.list_path(
            notes, handle.location, format_version, snapshot.snapshot_id
        )
        if path is not None:
            return path
        where, manifests = _publish(handle, snapshot, format_version)
        if manifests is not None:
            _keep(self._named, where, manifests)
        return where

    def manifests_of(self, listed: str) -> frozenset[str] | None:
        """The manifests of a list that was published lately; None when the list has to be read."""
        return self._named.get(listed)

    def _history(self, handle: TableHandle, version: int) -> History:
        """Every snapshot, published now if it is not yet."""
        head = head_of(handle)
        lists = published_notes.lists(head.notes, handle.location, version)
        for snapshot in _unpublished(handle, version, lists, all=self._allow_client_gc):
            lists[int(snapshot.snapshot_id)] = self.list_of(handle, snapshot, version)
        history = head.history()
        snapshots = []
        for snapshot in history.snapshots:
            listed = lists.get(int(snapshot.snapshot_id))
            if listed is None and _is_listed(snapshot, version):
                listed = address(handle.location, snapshot.manifest_list or "")
            if listed is not None:
                snapshots.append(_snapshot(snapshot, listed, version))
        listed_ids = {int(snapshot.snapshot_id) for snapshot in snapshots}
        hidden = {int(s.snapshot_id) for s in history.snapshots if has_column_files(s)} - listed_ids
        entries = history.snapshot_log
        # A log with a gap would be wrong, so everything before the gap is dropped, too.
        gaps = [at for at, entry in enumerate(entries, 1) if int(entry.snapshot_id) in hidden]
        entries = entries[gaps[-1] :] if gaps else entries
        log = [entry for entry in entries if int(entry.snapshot_id) in listed_ids]
        return History(snapshots=tuple(snapshots), snapshot_log=tuple(log))

    def _as_it_is(self, handle: TableHandle) -> PublishedVersion:
        """A v1 to v3 table of the same catalog: its own metadata."""
        where = handle.state.metadata_location
        if where is None:
            raise NotFound(f"{handle.name}: has no metadata file")
        return self._read(handle, where, handle.metadata.format_version)

    def _read(self, handle: TableHandle, where: str, version: int) -> PublishedVersion:
        document = self._recent.get(where)
        if document is None:
            document = handle.storage.read(where)
            self._remember(where, document)
        elif not handle.storage.exists(where):
            raise NotFound(f"Failed to open input stream for file: {where}: it was deleted")
        return _published(where, document, version)

    def _remember(self, where: str, document: bytes) -> None:
        _keep(self._recent, where, document)
        while sum(map(len, list(self._recent.values()))) > MAX_DOCUMENTS_BYTES:
            self._recent.pop(next(iter(self._recent)), None)


def _keep(kept: dict[str, _Kept], key: str, value: _Kept) -> None:
    """Remember a value, and forget the oldest when there are too many."""
    while len(kept) >= _RECENT:
        kept.pop(next(iter(kept)), None)
    kept[key] = value


def published_version(metadata: TableMetadata, asked: int | None = None) -> int:
    """The format version clients see: what is asked for, or the table's own; v3 whenever a column
    needs it."""
    wished_version = SERVE_FORMAT_VERSION.lenient(metadata.properties, otherwise=3)
    version = min(3, asked or wished_version)
    if version < 3:
        try:
            metadata.schema().check_format_version_compatibility(version)
        except ValueError:
            return 3
    return version


def published_properties(
    metadata: TableMetadata, version: int, *, allow_client_gc: bool = False
) -> dict[str, str]:
    """The properties clients see. Those of version 1 cannot delete rows beside files."""
    properties = {k: v for k, v in metadata.properties.items() if not k.startswith(OWN_PREFIX)}
    defaults = _DEFAULTS if version > 1 else {}
    return {**defaults, **properties, **_FORCED, **({} if allow_client_gc else _NO_COLLECTION)}


def client_properties(
    sent: Mapping[str, str], metadata: TableMetadata, *, allow_client_gc: bool = False
) -> dict[str, str]:
    """Properties that a client sends without those that it was shown and the table has not: what
    the server adds to an answer is not stored when it comes back."""
    sent_before = published_properties(metadata, 3, allow_client_gc=allow_client_gc)
    properties = metadata.properties
    own_ones = {k: v for k, v in sent.items() if sent_before.get(k) != v or properties.get(k) == v}
    return without_empty(own_ones)


def staged_document(
    metadata: TableMetadata, format_version: int | None = None, *, allow_client_gc: bool = False
) -> bytes:
    """The metadata of a table that does not exist yet."""
    return _document(
        metadata,
        History(),
        published_version(metadata, format_version),
        allow_client_gc=allow_client_gc,
    )


# --- snapshots ---------------------------------------------------------------------------------


def _merge_column_files(handle: TableHandle, version: int) -> bool:
    """Have a table without column files, or refuse it; whether it was changed for that."""
    metadata = handle.metadata
    tip = head_of(handle).history().snapshot(metadata.current_snapshot_id or NO_SNAPSHOT)
    if tip is None or not has_column_files(tip):
        return False
    if not MERGE_COLUMN_FILES.lenient(metadata.properties, otherwise=False):
        raise Unsupported(
            f"{handle.name}: has columns in column files, which clients of format version "
            f"{version} cannot read; merge them with table.compact(merge_columns=True), or set "
            f"{MERGE_COLUMN_FILES.key}=true to have them merged when a client loads the table",
            feature="column files",
        )
    # Loaded here: it brings the engine that rewrites files, and few tables have column files.
    from frazil.maintenance.compact import compact

    log.info("%s: merging column files for clients of version %d", handle.name, version)
    compact(handle, branch=MAIN, merge_columns=True)
    return True


def _unpublished(
    handle: TableHandle, version: int, lists: Mapping[int, str], *, all: bool
) -> list[Snapshot]:
    """Snapshots to publish, oldest first. All that the table retains: clients delete files that no
    snapshot which they see names, and check their commits against every one since they loaded.
    Those with column files cannot be shown; unless clients delete files, they are left out."""
    missing = [
        snapshot
        for snapshot in head_of(handle).history().snapshots
        if int(snapshot.snapshot_id) not in lists
        and not _is_listed(snapshot, version)
        and (all or not has_column_files(snapshot))
    ]
    return sorted(missing, key=lambda snapshot: snapshot.sequence_number)


def _is_listed(snapshot: Snapshot, version: int) -> bool:
    """Whether a snapshot from before an upgrade can be shown with its own manifest list."""
    return snapshot.manifest_list is not None and version >= 3


def _publish(
    handle: TableHandle, snapshot: Snapshot, version: int
) -> tuple[str, frozenset[str] | None]:
    """The list that stands for a snapshot, and its manifests if it is the one written here."""
    notes = head_of(handle).notes
    work = ManifestPublisher(
        handle=handle,
        snapshot=snapshot,
        format_version=version,
        known=lambda keys: published_notes.known_leaves(notes, version, keys),
        known_positions={} if version >= 3 else published_notes.positions(notes),
        folder=FOLDER,
    )
    rows = work.rows()
    data = write_manifests.encode_list(
        rows,
        format_version=version,
        snapshot_id=int(snapshot.snapshot_id),
        parent_snapshot_id=snapshot.parent_snapshot_id,
        sequence_number=snapshot.sequence_number,
        first_row_id=snapshot.first_row_id,
    )
    name = f"{FOLDER}/snap-{snapshot.snapshot_id}-{handle.context.new_id()}.avro"
    where = paths.resolve(handle.location, name)
    handle.storage.write_new(where, data)
    leaves = {
        published_notes.leaf_key(version, key): published.dump_rows(rows)
        for key, rows in work.leaves.items()
    }
    written = [row.path for row in work.own]
    vectors = sorted(work.positions)
    listed = published_notes.list_key(version, snapshot.snapshot_id)
    uses = published_notes.uses_key(version, snapshot.snapshot_id)
    fresh = {
        **leaves,
        **{f"positions:{k}": json.dumps([r.path, r.size]) for k, r in work.positions.items()},
        uses: json.dumps(
            {"list": where, "leaves": sorted(leaves), "own": written, "positions": vectors}
        ),
        listed: where,
    }
    note = notes.add(fresh)[listed]
    if note != where and published_notes.is_published(handle.location, note):
        # Another process published it meanwhile; ours is garbage.
        for path in (where, *written):
            if published_notes.is_published(handle.location, path):
                handle.storage.delete(path)
        return note, None
    if note != where:  # the note leads out of the table's folder: it is replaced by ours
        notes.remove([listed, uses])
        notes.add({listed: where, uses: fresh[uses]})
    return where, frozenset(row.path for row in rows)


def _snapshot(snapshot: Snapshot, listed: str, version: int) -> Snapshot:
    has_row_ids = version >= 3
    return replace(
        snapshot,
        root_manifest=None,
        manifests=None,
        manifest_list=listed,
        first_row_id=(snapshot.first_row_id or 0) if has_row_ids else None,
        added_rows=(snapshot.added_rows or 0) if has_row_ids else None,
        summary=snapshot.summary or {"operation": "replace"},
        extra={},
    )


# --- documents ---------------------------------------------------------------------------------


def _document(
    metadata: TableMetadata, history: History, version: int, *, allow_client_gc: bool = False
) -> bytes:
    snapshot_ids = {int(snapshot.snapshot_id) for snapshot in history.snapshots}
    orders = metadata.sort_orders
    if metadata.sort_order() not in orders:
        orders = (metadata.sort_order(), *orders)
    shown_metadata = replace(
        metadata,
        format_version=version,
        location=client_location(metadata.location, metadata.properties),
        properties=published_properties(metadata, version, allow_client_gc=allow_client_gc),
        sort_orders=orders,
        refs={
            name: ref for name, ref in metadata.refs.items() if int(ref.snapshot_id) in snapshot_ids
        },
        expressions=(),
        statistics=absolute(metadata.statistics, metadata.location),
        partition_statistics=absolute(metadata.partition_statistics, metadata.location),
        extra={},
    )
    raw = metadata_json.document(shown_metadata, history)
    raw.setdefault("current-snapshot-id", NO_SNAPSHOT)
    if raw["current-snapshot-id"] is None:
        raw["current-snapshot-id"] = NO_SNAPSHOT
    return json.dumps(raw, separators=(",", ":")).encode("ascii")


def _has_deletes(history: History) -> bool:
    """Whether a snapshot of a table has deleted rows beside its data files."""
    return any(
        number(snapshot.summary, f"total-{kind}")
        for snapshot in history.snapshots
        for kind in ("delete-files", "position-deletes", "equality-deletes", "dvs")
    )


def _metadata_log(
    notes: Notes, version: int, metadata: TableMetadata
) -> tuple[MetadataLogEntry, ...]:
    earlier = list(published_notes.documents(notes, metadata.location, version).values())
    return tuple(
        MetadataLogEntry(metadata_file=where, timestamp_ms=at)
        for where, at in earlier[-previous_max(metadata) :]
    )


def _forget_documents(handle: TableHandle, version: int, keep: int) -> None:
    """Delete documents that no log names any more."""
    notes = head_of(handle).notes
    documents = published_notes.documents(notes, handle.location, version)
    stale = list(documents)[: -(keep + 1)]
    notes.remove(stale)
    for key in stale:
        try:
            handle.storage.delete(documents[key][0])
        except StorageError:
            continue


def _published(where: str, document: bytes, version: int) -> PublishedVersion:
    name = where.rpartition("/")[2]
    return PublishedVersion(
        metadata_location=where, document=document, format_version=version, etag=f'"{name}"'
    )


def head_of(handle: TableHandle) -> TableHead:
    """The head of a table of a catalog."""
    head: Any = handle.head
    if not hasattr(head, "notes"):
        raise Unsupported(f"{handle.name}: is not a table of a catalog", feature="serving it")
    table_head: TableHead = head
    return table_head


__all__ = [
    "Facade",
    "PublishedVersion",
    "client_properties",
    "head_of",
    "published_properties",
    "published_version",
]

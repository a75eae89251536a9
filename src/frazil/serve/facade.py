"""A v4 table as v2 or v3 metadata: what stock Iceberg clients are shown.

Every version of a table that somebody loads becomes one metadata JSON and, for each new snapshot,
one manifest list; manifests stand for leaves and are written once. All of it lies in
`metadata/published/` and is noted in the catalog, so that every process finds it. Knows nothing of
HTTP.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from frazil.catalog.export import previous_max
from frazil.catalog.notes import Notes
from frazil.catalog.pointers import TableHead
from frazil.commit.handle import TableHandle
from frazil.errors import NotFound, StorageError, Unsupported
from frazil.format import metadata_json, paths
from frazil.format.metadata import (
    FORMAT_VERSION,
    History,
    MetadataLogEntry,
    RefKind,
    Snapshot,
    TableMetadata,
)
from frazil.legacy import published, published_notes, write_manifests
from frazil.legacy.manifest_list import address
from frazil.legacy.publish_manifests import ManifestPublisher
from frazil.legacy.published import FOLDER

SHOWN_VERSION = "serve.format-version"
"""Table property: the format version that clients are shown, 1, 2 or 3 (default)."""
SHOWN_LOCATION = "serve.location"
"""Table property: where clients are told to write; by default the table's own location."""
OWN_PREFIX = "serve."
FIRST_ANCESTORS = 20
"""How many ancestors of a tip are published when nothing of the table is yet."""
MOST_ANCESTORS = 1000
"""How far back from a tip a published ancestor is looked for."""
NO_SNAPSHOT = -1

# Clients must not collect what they cannot see all of, and need not merge manifests that are
# published leaf by leaf.
_FORCED = {"commit.manifest-merge.enabled": "false"}
_NO_COLLECTION = {"gc.enabled": "false"}
_DEFAULTS = {
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
}

_Kept = TypeVar("_Kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownVersion:
    """One version of a table as clients see it; `document` is the metadata JSON."""

    metadata_location: str
    document: bytes
    format_version: int
    etag: str


_RECENT = 64
"""Documents that are kept."""


class Facade:
    """Shows tables. Holds no state of its own but a few recent documents."""

    def __init__(self, *, clients_collect: bool = False) -> None:
        self._clients_collect = clients_collect
        self._recent: dict[str, bytes] = {}
        self._named: dict[str, frozenset[str]] = {}

    def show(self, handle: TableHandle, format_version: int | None = None) -> ShownVersion:
        """The table as the handle last loaded it, published now if no client has loaded it
        before."""
        head = head_of(handle)
        metadata = handle.metadata
        if metadata.format_version < FORMAT_VERSION:
            return self._as_it_is(handle)
        version = shown_version(metadata, format_version)
        key = published_notes.document_key(version, handle.state.version)
        where = head.notes.get([key]).get(key)
        if where is not None:
            return self._read(handle, where, version)
        history = self._history(handle, max(2, version))
        log = _metadata_log(head.notes, version, metadata)
        document = _document(
            metadata,
            replace(history, metadata_log=log),
            version,
            clients_collect=self._clients_collect,
        )
        place = f"{metadata.location}/{FOLDER}"
        number = handle.state.version
        where = f"{place}/{number:05d}-{uuid.uuid4()}.v{version}.metadata.json"
        handle.storage.write_new(where, document)
        kept = head.notes.add({key: json.dumps([where, metadata.last_updated_ms])})[key]
        winner, _ = json.loads(kept)
        if winner != where:  # another process was quicker
            handle.storage.delete(where)
            return self._read(handle, kept, version)
        _forget_documents(handle, version, previous_max(metadata))
        self._remember(where, document)
        return _shown(where, document, version)

    def list_of(self, handle: TableHandle, snapshot: Snapshot, format_version: int) -> str:
        """The manifest list that stands for a snapshot, published now if it is not yet."""
        if _is_listed(snapshot, format_version):
            return address(handle.location, snapshot.manifest_list or "")
        key = published_notes.list_key(format_version, snapshot.snapshot_id)
        found = head_of(handle).notes.get([key]).get(key)
        if found is not None:
            return found
        where, named = _publish(handle, snapshot, format_version)
        if named is not None:
            _keep(self._named, where, named)
        return where

    def manifests_of(self, listed: str) -> frozenset[str] | None:
        """The manifests of a list that was published lately; None when the list has to be read."""
        return self._named.get(listed)

    def _history(self, handle: TableHandle, version: int) -> History:
        """Every published snapshot. Publishes the tips of branches and tags, and what lies between
        them and what is published already: clients check all that landed since they loaded."""
        head = head_of(handle)
        lists = published_notes.lists(head.notes, version)
        for snapshot in _unpublished(handle, version, lists):
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
        log = [entry for entry in history.snapshot_log if int(entry.snapshot_id) in listed_ids]
        return History(snapshots=tuple(snapshots), snapshot_log=tuple(log))

    def _as_it_is(self, handle: TableHandle) -> ShownVersion:
        """A v1 to v3 table of the same catalog: its own metadata."""
        where = handle.state.metadata_location
        if where is None:
            raise NotFound(f"{handle.name}: has no metadata file")
        return self._read(handle, json.dumps([where, 0]), handle.metadata.format_version)

    def _read(self, handle: TableHandle, note: str, version: int) -> ShownVersion:
        where, _ = json.loads(note)
        document = self._recent.get(where)
        if document is None:
            document = handle.storage.read(where)
            self._remember(where, document)
        elif not handle.storage.exists(where):
            raise NotFound(f"Failed to open input stream for file: {where}: it was deleted")
        return _shown(where, document, version)

    def _remember(self, where: str, document: bytes) -> None:
        _keep(self._recent, where, document)


def _keep(kept: dict[str, _Kept], key: str, value: _Kept) -> None:
    """Remember a value, and forget the oldest when there are too many."""
    while len(kept) >= _RECENT:
        kept.pop(next(iter(kept)), None)
    kept[key] = value


def shown_version(metadata: TableMetadata, asked: int | None = None) -> int:
    """The format version clients see: what is asked for, or the table's own; v3 whenever a column
    needs it."""
    wanted = min(3, asked or int(metadata.properties.get(SHOWN_VERSION, "3")))
    if wanted < 3:
        try:
            metadata.schema().check_format_version_compatibility(wanted)
        except ValueError:
            return 3
    return wanted


def shown_properties(metadata: TableMetadata, *, clients_collect: bool = False) -> dict[str, str]:
    """The properties clients see."""
    own = {k: v for k, v in metadata.properties.items() if not k.startswith(OWN_PREFIX)}
    return {**_DEFAULTS, **own, **_FORCED, **({} if clients_collect else _NO_COLLECTION)}


def staged_document(metadata: TableMetadata, format_version: int | None = None) -> bytes:
    """The metadata of a table that does not exist yet."""
    return _document(metadata, History(), shown_version(metadata, format_version))


# --- snapshots ---------------------------------------------------------------------------------


def _unpublished(handle: TableHandle, version: int, lists: Mapping[int, str]) -> Iterator[Snapshot]:
    """Snapshots to publish, oldest first."""
    seen: set[int] = set()
    for name, ref in handle.metadata.refs.items():
        chain: list[Snapshot] = []
        snapshot: Snapshot | None = handle.state.tip(name)
        reached = False
        limit = 1 if ref.kind is RefKind.TAG else MOST_ANCESTORS
        while snapshot is not None and len(chain) < limit:
            number = int(snapshot.snapshot_id)
            if number in lists or number in seen or _is_listed(snapshot, version):
                reached = True
                break
            chain.append(snapshot)
            snapshot = _parent(handle, snapshot)
        if not reached:
            chain = chain[:FIRST_ANCESTORS]
        seen.update(int(each.snapshot_id) for each in chain)
        yield from reversed(chain)


def _parent(handle: TableHandle, snapshot: Snapshot) -> Snapshot | None:
    if snapshot.parent_snapshot_id is None:
        return None
    try:
        return handle.snapshot(snapshot.parent_snapshot_id)
    except NotFound:  # expired
        return None


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
    name = f"{FOLDER}/snap-{snapshot.snapshot_id}-{handle.around.new_id()}.avro"
    where = paths.resolve(handle.location, name)
    handle.storage.write_new(where, data)
    leaves = {
        published_notes.leaf_key(version, key): published.dump_rows(found)
        for key, found in work.leaves.items()
    }
    own = [row.path for row in work.own]
    vectors = sorted(work.positions)
    listed = published_notes.list_key(version, snapshot.snapshot_id)
    kept = notes.add(
        {
            **leaves,
            **{f"positions:{k}": json.dumps([r.path, r.size]) for k, r in work.positions.items()},
            published_notes.uses_key(version, snapshot.snapshot_id): json.dumps(
                {"list": where, "leaves": sorted(leaves), "own": own, "positions": vectors}
            ),
            listed: where,
        }
    )[listed]
    if kept != where:  # another process published it meanwhile; ours is garbage
        for path in (where, *own):
            handle.storage.delete(path)
        return kept, None
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
    metadata: TableMetadata, history: History, version: int, *, clients_collect: bool = False
) -> bytes:
    named = {int(snapshot.snapshot_id) for snapshot in history.snapshots}
    orders = metadata.sort_orders
    if metadata.sort_order() not in orders:
        orders = (metadata.sort_order(), *orders)
    seen = replace(
        metadata,
        format_version=version,
        location=metadata.properties.get(SHOWN_LOCATION, metadata.location),
        properties=shown_properties(metadata, clients_collect=clients_collect),
        sort_orders=orders,
        refs={name: ref for name, ref in metadata.refs.items() if int(ref.snapshot_id) in named},
        expressions=(),
        extra={},
    )
    raw = metadata_json.document(seen, history)
    raw.setdefault("current-snapshot-id", NO_SNAPSHOT)
    if raw["current-snapshot-id"] is None:
        raw["current-snapshot-id"] = NO_SNAPSHOT
    return json.dumps(raw, separators=(",", ":")).encode("ascii")


def _metadata_log(
    notes: Notes, version: int, metadata: TableMetadata
) -> tuple[MetadataLogEntry, ...]:
    earlier = list(published_notes.documents(notes, version).values())
    return tuple(
        MetadataLogEntry(metadata_file=where, timestamp_ms=at)
        for where, at in earlier[-previous_max(metadata) :]
    )


def _forget_documents(handle: TableHandle, version: int, keep: int) -> None:
    """Delete documents that no log names any more."""
    notes = head_of(handle).notes
    known = published_notes.documents(notes, version)
    stale = list(known)[: -(keep + 1)]
    notes.remove(stale)
    for key in stale:
        try:
            handle.storage.delete(known[key][0])
        except StorageError:
            continue


def _shown(where: str, document: bytes, version: int) -> ShownVersion:
    name = where.rpartition("/")[2]
    return ShownVersion(
        metadata_location=where, document=document, format_version=version, etag=f'"{name}"'
    )


def head_of(handle: TableHandle) -> TableHead:
    """The head of a table of a catalog."""
    head: Any = handle.head
    if not hasattr(head, "notes"):
        raise Unsupported(f"{handle.name}: is not a table of a catalog", feature="serving it")
    found: TableHead = head
    return found


__all__ = [
    "SHOWN_VERSION",
    "Facade",
    "ShownVersion",
    "head_of",
    "shown_properties",
    "shown_version",
]

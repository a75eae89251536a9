"""A catalog in memory, for tests and scratch work: the same answers as a database, gone on exit.

Table files, metadata JSON among them, still live in storage.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from frazil.catalog import export
from frazil.catalog.backend import (
    NamespaceName,
    Purged,
    TableHead,
    TableName,
    TableVersion,
    check_draft,
)
from frazil.catalog.json_head import JsonHead
from frazil.catalog.names import (
    Identifier,
    Namespace,
    dotted,
    folder_name,
    namespace_of,
    table_location,
)
from frazil.catalog.notes import MemoryNotes, Notes
from frazil.catalog.ownership import OtherTables, Ownership, TablePlace
from frazil.catalog.storages import Storages
from frazil.commit.head import Draft, Landed, Lost, Outcome, State
from frazil.errors import (
    AlreadyExists,
    CommitConflict,
    FormatError,
    FrazilError,
    InvalidInput,
    NotFound,
)
from frazil.format.checks import check_properties
from frazil.format.metadata.metadata import (
    FORMAT_VERSION,
    History,
    MetadataLogEntry,
    Snapshot,
    SnapshotId,
    TableMetadata,
)
from frazil.storage import Places, Storage, check_absolute, checked_location
from tests.support.memory_views import MemoryViews


@dataclass(slots=True)
class _Table:
    """What the catalog holds of one table; replaced under the lock."""

    metadata: TableMetadata
    history: History
    metadata_location: str | None
    version: int = 0
    rendered_version: int | None = None
    is_dropped: bool = False
    notes: MemoryNotes = field(default_factory=MemoryNotes)

    def state(self) -> State:
        snapshots = {s.snapshot_id: s for s in self.history.snapshots}
        named = {ref.snapshot_id for ref in self.metadata.refs.values()}
        return State(
            version=self.version,
            metadata=self.metadata,
            snapshots={i: snapshots[i] for i in named},
            metadata_location=self.metadata_location,
        )


class MemoryHead:
    """The head of a v4 table in memory."""

    def __init__(
        self,
        identifier: Identifier,
        table: _Table,
        lock: threading.RLock,
        storages: Storages,
        neighbours: Callable[[_Table], OtherTables],
    ) -> None:
        self._neighbours = neighbours
        self.identifier = identifier
        self._table = table
        self._lock = lock
        self._storages = storages
        self._state = table.state()

    @property
    def notes(self) -> Notes:
        return self._table.notes

    @property
    def state(self) -> State:
        return self._state

    def load(self) -> State:
        with self._lock:
            if self._table.is_dropped:
                raise NotFound(f"{self.identifier}: the table was dropped")
            self._state = self._table.state()
            return self._state

    def swap(self, base: State, draft: Draft) -> Outcome:
        check_draft(base.metadata, draft)
        before, after = base.metadata, draft.metadata
        with self._lock:
            table = self._table
            if table.is_dropped or table.version != base.version:
                return Lost()
            history = table.history.advanced(
                before, after, added=draft.added_snapshots, removed=draft.removed_snapshot_ids
            )
            for name, ref in after.refs.items():
                if history.snapshot(ref.snapshot_id) is None:
                    raise NotFound(
                        f"{self.identifier}: {name} names snapshot {ref.snapshot_id}, "
                        "which the table does not have"
                    )
            table.metadata, table.history = after, history
            table.version += 1
            self._state = table.state()
            due = export.is_due(
                before,
                after,
                version=table.version,
                rendered_version=table.rendered_version,
                snapshot_count=lambda: len(history.snapshots),
            )
        if due:
            self._export_quietly()
        return Landed(states=(self._state,))

    def landed(self, snapshot_id: int) -> State | None:
        state = self.load()
        return state if self._table.history.snapshot(snapshot_id) else None

    def snapshot(self, snapshot_id: int) -> Snapshot:
        found = self._table.history.snapshot(snapshot_id)
        if found is None:
            raise NotFound(f"{self.identifier}: no snapshot {snapshot_id}; it may have expired")
        return found

    def snapshots(self) -> Iterable[Snapshot]:
        return self._table.history.snapshots

    def history(self) -> History:
        return self._table.history

    def snapshot_id_as_of(self, timestamp_ms: int) -> SnapshotId | None:
        return self._table.history.snapshot_id_as_of(timestamp_ms)

    def export(self) -> str:
        with self._lock:
            table = self._table
            if table.rendered_version == table.version and table.metadata_location is not None:
                return table.metadata_location
            storage = self._storages(table.metadata.location)
            path = export.render(
                table.metadata, table.history, version=table.version, storage=storage
            )
            written = MetadataLogEntry(
                metadata_file=path, timestamp_ms=table.metadata.last_updated_ms
            )
            log = (*table.history.metadata_log, written)
            keep = export.previous_max(table.metadata) + 1
            table.history = replace(table.history, metadata_log=log[-keep:])
            table.metadata_location, table.rendered_version = path, table.version
            if export.deletes_previous(table.metadata):
                owned = Ownership.of(self, table.metadata, table.metadata.location)
                for entry in log[:-keep]:
                    if owned.may_delete(entry.metadata_file):
                        storage.delete(entry.metadata_file)
            self._state = table.state()
            return path

    def stored_problems(self, *, repair: bool = False) -> tuple[FormatError, ...]:
        return ()  # nothing is stored but what was checked, or what others wrote

    def neighbourhood(self) -> OtherTables:
        return self._neighbours(self._table)

    def _export_quietly(self) -> None:
        """The commit has landed; a JSON file that cannot be written is not its failure."""
        try:
            self.export()
        except FrazilError:
            return


class MemoryNamespaces:
    """The namespaces of a catalog in memory."""

    def __init__(self, catalog: MemoryCatalog, lock: threading.RLock) -> None:
        self._catalog = catalog
        self._lock = lock
        self._created: dict[Namespace, dict[str, str]] = {}

    def create(self, namespace: NamespaceName, properties: Mapping[str, str] | None = None) -> None:
        parts = namespace_of(namespace)
        check_properties(properties or {})
        with self._lock:
            if self.exists(parts):
                raise AlreadyExists(f"there is a namespace {dotted(parts)}")
            self._created[parts] = dict(properties or {})

    def children(self, parent: NamespaceName = ()) -> list[Namespace]:
        above = namespace_of(parent) if parent else ()
        with self._lock:
            if above:
                self._catalog._need_namespace(above)
            depth = len(above) + 1
            every = {*self._created, *(name.namespace for name in self._catalog._tables)}
            return sorted({n[:depth] for n in every if len(n) >= depth and n[: depth - 1] == above})

    def exists(self, namespace: NamespaceName) -> bool:
        parts = namespace_of(namespace)
        return parts in self._created or self._holds(parts)

    def properties(self, namespace: NamespaceName) -> dict[str, str]:
        parts = self._catalog._need_namespace(namespace_of(namespace))
        return dict(self._created.get(parts, {}))

    def set_properties(
        self, namespace: NamespaceName, updates: Mapping[str, str], *, removals: Iterable[str] = ()
    ) -> None:
        check_properties(updates)
        with self._lock:
            parts = self._catalog._need_namespace(namespace_of(namespace))
            removed = set(removals)
            kept = {k: v for k, v in self._created.get(parts, {}).items() if k not in removed}
            self._created[parts] = {**kept, **updates}

    def drop(self, namespace: NamespaceName) -> None:
        with self._lock:
            parts = self._catalog._need_namespace(namespace_of(namespace))
            if self._holds(parts):
                raise InvalidInput(f"namespace {dotted(parts)} is not empty")
            del self._created[parts]

    def _holds(self, namespace: Namespace) -> bool:
        depth = len(namespace)
        has_below = any(n[:depth] == namespace and n != namespace for n in self._created)
        has_tables = any(name.namespace[:depth] == namespace for name in self._catalog._tables)
        return has_below or has_tables or self._catalog.views.below(namespace)


class MemoryCatalog:
    """Namespaces and tables in two dictionaries, behind one lock."""

    def __init__(
        self,
        *,
        name: str = "memory",
        warehouse: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.warehouse = None if warehouse is None else warehouse.rstrip("/")
        self.notes = MemoryNotes()
        self._storages = Storages(properties)
        self._lock = threading.RLock()
        self._tables: dict[Identifier, _Table] = {}
        self.namespaces = MemoryNamespaces(self, self._lock)
        self.views = MemoryViews(
            self._lock, namespace_exists=self.namespaces.exists, table_exists=self.table_exists
        )

    def __repr__(self) -> str:
        return f"MemoryCatalog(name={self.name!r})"

    def storage(self, location: str) -> Storage:
        return self._storages(location)

    def close(self) -> None:
        return None

    def _need_namespace(self, namespace: Namespace) -> Namespace:
        if not self.namespaces.exists(namespace):
            raise NotFound(f"namespace {dotted(namespace)} does not exist")
        return namespace

    # Tables

    def location_for(self, identifier: TableName) -> str:
        found = Identifier.parse(identifier)
        base = self.namespaces.properties(found.namespace).get("location")
        if base is not None:
            place = f"{base.rstrip('/')}/{folder_name(found.name)}"
        elif self.warehouse is not None:
            place = table_location(self.warehouse, found)
        else:
            raise InvalidInput(f"{found}: give a location; the catalog has no warehouse")
        place = checked_location(place)
        taken = self._table_at(place) is not None
        taken = taken or any(True for _ in self.storage(place).list(f"{place}/metadata"))
        return f"{place}-{uuid.uuid4().hex[:8]}" if taken else place

    def create_table(
        self, identifier: TableName, metadata: TableMetadata, history: History | None = None
    ) -> TableHead:
        found = Identifier.parse(identifier)
        every = export.json_every(metadata)
        with self._lock:
            self._enter(found, metadata, history or History(), metadata_location=None)
            head = self.load(found)
            if every:
                head.export()
        return head

    def register(
        self, identifier: TableName, metadata_location: str, *, location: str | None = None
    ) -> TableHead:
        found = Identifier.parse(identifier)
        metadata, history = export.read_moved(
            metadata_location, storage=self.storage(metadata_location), location=location
        )
        written = MetadataLogEntry(
            metadata_file=metadata_location, timestamp_ms=metadata.last_updated_ms
        )
        if metadata.format_version >= FORMAT_VERSION:
            history = replace(history, metadata_log=(*history.metadata_log, written))
        self._enter(found, metadata, history, metadata_location=metadata_location)
        return self.load(found)

    def load(self, identifier: TableName) -> TableHead:
        found = Identifier.parse(identifier)
        table = self._need_table(found)
        if table.metadata.format_version >= FORMAT_VERSION:
            return MemoryHead(found, table, self._lock, self._storages, self.neighbourhood)
        assert table.metadata_location is not None
        return JsonHead(
            found,
            table.metadata_location,
            locate=lambda: self._legacy_location(found),
            storage=self._storages,
            catalog=self,
        )

    def table_exists(self, identifier: TableName) -> bool:
        return Identifier.parse(identifier) in self._tables

    def list_tables(self, namespace: NamespaceName) -> list[Identifier]:
        found = self._need_namespace(namespace_of(namespace))
        return sorted(each for each in self._tables if each.namespace == found)

    def table_versions(self, since_ms: int | None = None) -> list[TableVersion]:
        with self._lock:
            return [
                TableVersion(
                    identifier=name,
                    version=str(table.metadata_location)
                    if table.metadata.format_version < FORMAT_VERSION
                    else f"{table.metadata.table_uuid}:{table.version}",
                    committed_ms=()
                    if since_ms is None or table.metadata.format_version < FORMAT_VERSION
                    else tuple(
                        entry.timestamp_ms
                        for entry in table.history.snapshot_log
                        if entry.timestamp_ms >= since_ms
                    ),
                )
                for name, table in sorted(self._tables.items())
            ]

    def upgrade(self, identifier: TableName, base: State, metadata: TableMetadata) -> Outcome:
        found = Identifier.parse(identifier)
        old = base.metadata_location
        if metadata.format_version < FORMAT_VERSION or old is None:
            raise InvalidInput(f"{found}: expected v4 metadata made from a v1-v3 table as loaded")
        every = export.json_every(metadata)
        _, history = export.read(old, storage=self.storage(old))
        entry = MetadataLogEntry(metadata_file=old, timestamp_ms=base.metadata.last_updated_ms)
        with self._lock:
            table = self._need_table(found)
            if table.metadata_location != old or table.metadata.format_version >= FORMAT_VERSION:
                return Lost()
            table.metadata = metadata
            table.history = replace(history, metadata_log=(*history.metadata_log, entry))
            table.rendered_version = None
            head = self.load(found)
            if every:
                head.export()
            return Landed(states=(head.load(),))

    def swap_all(self, swaps: Sequence[tuple[TableHead, State, Draft]]) -> Outcome:
        with self._lock:
            if any(head.load().version != base.version for head, base, _ in swaps):
                return Lost()
            for head, base, draft in swaps:
                assert isinstance(head.swap(base, draft), Landed)
        return Landed(states=tuple(head.load() for head, _, _ in swaps))

    def rename(self, identifier: TableName, to: TableName) -> None:
        old, new = Identifier.parse(identifier), Identifier.parse(to)
        with self._lock:
            self._need_namespace(new.namespace)
            table = self._need_table(old)
            if new in self._tables or self.views.exists(new):
                raise AlreadyExists(f"table {new} already exists")
            del self._tables[old]
            self._tables[new] = table

    def drop(self, identifier: TableName) -> None:
        self.purge(identifier)

    def purge(self, identifier: TableName) -> Purged:
        found = Identifier.parse(identifier)
        with self._lock:
            table = self._need_table(found)
            del self._tables[found]
            table.is_dropped = True
        return Purged(
            identifier=found,
            metadata=table.metadata,
            history=table.history,
            metadata_location=table.metadata_location,
        )

    def _enter(
        self,
        identifier: Identifier,
        metadata: TableMetadata,
        history: History,
        *,
        metadata_location: str | None,
    ) -> None:
        with self._lock:
            self._need_namespace(identifier.namespace)
            if identifier in self._tables or self.views.exists(identifier):
                raise AlreadyExists(f"table {identifier} already exists")
            check_absolute(metadata.location)
            other = self._table_at(metadata.location)
            if other is not None:
                raise AlreadyExists(f"{metadata.location}: is the location of table {other}")
            self._tables[identifier] = _Table(
                metadata=metadata,
                history=history,
                metadata_location=metadata_location,
                rendered_version=None if metadata_location is None else 0,
            )

    def _table_at(self, location: str) -> Identifier | None:
        places = Places()
        wanted = places.folder(location)
        found = self._tables.items()
        return next((n for n, t in found if places.folder(t.metadata.location) == wanted), None)

    def neighbourhood(self, of: _Table | None = None) -> OtherTables:
        """Every table but one, and the warehouse."""
        with self._lock:
            others = [(name, each) for name, each in self._tables.items() if each is not of]
        places = [
            TablePlace.of(
                str(name),
                each.metadata.location,
                each.metadata.properties,
                open=partial(self.load, name),
            )
            for name, each in others
        ]
        return OtherTables(tables=tuple(places), warehouse=self.warehouse)

    def _need_table(self, identifier: Identifier) -> _Table:
        table = self._tables.get(identifier)
        if table is None:
            raise NotFound(f"{identifier}: there is no table of that name")
        return table

    def _legacy_location(self, identifier: Identifier) -> str:
        table = self._need_table(identifier)
        if table.metadata.format_version >= FORMAT_VERSION:
            raise CommitConflict(f"{identifier}: was upgraded to format-version 4; load it again")
        assert table.metadata_location is not None
        return table.metadata_location

"""A catalog in a bucket: no database and no server, only objects and conditional requests.

`layout` says where the objects lie, `names` who has a name, `object_head` how a table is committed
to. Creating a table writes its head first, then its name; a crash between the two leaves a head
without a name, which does not count as a table. The head decides: a name that it does not confirm
is free.
"""

from __future__ import annotations

import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial

from frazil.catalog import export
from frazil.catalog.backend import NamespaceName, Purged, TableHead, TableName, TableVersion
from frazil.catalog.names import Identifier, Namespace, dotted, namespace_of
from frazil.catalog.notes import Notes
from frazil.catalog.objects.all_tables import AllTables
from frazil.catalog.objects.conditional_put import OutcomeUnknown, Written
from frazil.catalog.objects.head_document import HeadDocument
from frazil.catalog.objects.head_object import HeadObject, StoredHead, tombstone
from frazil.catalog.objects.history_objects import HistoryStore
from frazil.catalog.objects.layout import SUFFIX, Layout, Marker, decoded
from frazil.catalog.objects.names import MAX_CLAIM_MS, HeldName, Names, is_live
from frazil.catalog.objects.object_head import ObjectHead, first_document
from frazil.catalog.objects.object_namespaces import ObjectNamespaces
from frazil.catalog.objects.object_notes import ObjectNotes
from frazil.catalog.objects.object_views import ObjectViews
from frazil.catalog.objects.process_queue import ProcessQueue
from frazil.catalog.ownership import OtherTables
from frazil.catalog.storages import ReadOnlyStorages, Storages
from frazil.commit.head import Draft, Landed, Lost, Outcome, ReadOnly, State, Superseded, Unknown
from frazil.credentials import ConnectionProperties
from frazil.errors import (
    AlreadyExists,
    CommitUnknown,
    FrazilError,
    InvalidInput,
    NotFound,
    Unsupported,
)
from frazil.format.metadata.metadata import FORMAT_VERSION, History, MetadataLogEntry, TableMetadata
from frazil.storage import Places, Storage, check_absolute, checked_location
from frazil.storage.base import ConditionalStore, as_conditional
from frazil.value_classes import replace


class ObjectCatalog:
    """Namespaces and tables of one warehouse in a bucket."""

    def __init__(
        self,
        warehouse: str,
        *,
        name: str = "default",
        properties: Mapping[str, str] | None = None,
        storages: Callable[[str], Storage] | None = None,
        read_only: bool = False,
    ) -> None:
        self.name = name
        self.warehouse: str | None = warehouse.rstrip("/")
        self.is_read_only = read_only
        self._properties = ConnectionProperties(properties or {})
        storage_for_path = Storages(self._properties) if storages is None else storages
        self._storages = ReadOnlyStorages(storage_for_path) if read_only else storage_for_path
        self._layout = Layout(warehouse=warehouse.rstrip("/"))
        self._store = _conditional(self._storages(warehouse), warehouse)
        self.marker = Marker(self._store, self._layout)
        self._names = Names(self._store, self._layout, head_at=self._head_at)
        self.namespaces = ObjectNamespaces(self._store, self._layout, self.marker)
        self._locations: dict[Identifier, str] = {}
        self._queues: defaultdict[str, ProcessQueue] = defaultdict(ProcessQueue)
        self._tables = self._all_tables()
        self.views = ObjectViews(
            self._store,
            self._layout,
            namespace_exists=self.namespaces.exists,
            table_exists=self.table_exists,
            prepare=self._prepare,
        )

    def __repr__(self) -> str:
        return f"ObjectCatalog({self.warehouse!r})"

    @property
    def notes(self) -> Notes:
        return ObjectNotes(self._store, self._layout.notes)

    def storage(self, location: str) -> Storage:
        return self._storages(location)

    def with_storages(self, storages: Callable[[str], Storage]) -> ObjectCatalog:
        """The same catalog, whose files are reached through other storages; its own objects are
        not."""
        other = copy(self)
        other._storages = storages
        other._tables = other._all_tables()
        return other

    def _all_tables(self) -> AllTables:
        return AllTables(
            store=self._store,
            layout=self._layout,
            names=self._names,
            storage=self.storage,
            load=self.load,
            opened=self._object_head,
        )

    def close(self) -> None:
        return None

    # Tables

    def location_for(self, identifier: TableName) -> str:
        name = Identifier.parse(identifier)
        base = self.namespaces.properties(name.namespace).get("location")
        return checked_location(self._layout.new_location(name, base, uuid.uuid4().hex))

    def create_table(
        self, identifier: TableName, metadata: TableMetadata, history: History | None = None
    ) -> TableHead:
        name = Identifier.parse(identifier)
        self._need_namespace(name)
        self._need_free_name(name)
        self._need_free_place(metadata.location)
        return self._created(name, metadata, history or History(), instead_of=None)

    def enter(
        self,
        identifier: TableName,
        metadata: TableMetadata,
        history: History,
        *,
        metadata_location: str | None,
        overwrite: bool = False,
    ) -> TableHead:
        """Enter a table that was read from a metadata file, which need not be there any more; one
        that was changed since (`metadata_location` is None) gets a new file. With `overwrite` it
        takes the place of an existing table, whose files stay."""
        name = Identifier.parse(identifier)
        self._need_namespace(name)
        held = self._names.find(name) if overwrite else None
        if held is not None and not held.is_confirmed(name):
            held = None
        if metadata_location is None:
            return self._created(name, metadata, history, instead_of=held)
        self._enter(name, metadata, history, metadata_location, instead_of=held)
        return self.load(name)

    def register(
        self, identifier: TableName, metadata_location: str, *, location: str | None = None
    ) -> TableHead:
        name = Identifier.parse(identifier)
        metadata, history = export.read_moved(
            metadata_location, storage=self.storage(metadata_location), location=location
        )
        self._need_namespace(name)
        self._need_free_name(name)
        if metadata.format_version >= FORMAT_VERSION:
            self._enter(name, metadata, history, metadata_location, instead_of=None)
        else:
            self._prepare(name.namespace)
            self._claimed(name, metadata_location=metadata_location)
        return self.load(name)

    def load(self, identifier: TableName) -> TableHead:
        name = Identifier.parse(identifier)
        place = self._locations.get(name)
        if place is not None:
            # The head itself says which name it has, so a name that was looked up once needs no
            # second look.
            head = self._head_at(place)
            stored_head = head.find()
            if stored_head is not None and is_live(stored_head.document, name):
                return self._object_head(head, stored_head)
            del self._locations[name]
        held = self._held(name)
        if held.entry.metadata_location is not None:
            from frazil.catalog.json_head import JsonHead

            return JsonHead(
                name,
                held.entry.metadata_location,
                locate=partial(self._locate_legacy, name),
                storage=self._storages,
                catalog=self,
            )
        assert held.head is not None
        assert held.stored_head is not None
        self._locations[name] = held.stored_head.document.location
        return self._object_head(held.head, held.stored_head)

    def table_exists(self, identifier: TableName) -> bool:
        name = Identifier.parse(identifier)
        held = self._names.find(name)
        return held is not None and held.is_confirmed(name)

    def list_tables(self, namespace: NamespaceName) -> list[Identifier]:
        parts = namespace_of(namespace)
        files = self._store.children(self._layout.names(parts))[1]
        keys = [file.path.rpartition("/")[2].removesuffix(SUFFIX) for file in files if file.size]
        if not keys and not self.namespaces.exists(parts):
            raise NotFound(f"namespace {dotted(parts)} does not exist")
        return sorted(Identifier(namespace=parts, name=decoded(key)) for key in keys)

    def table_versions(self, since_ms: int | None = None) -> list[TableVersion]:
        return self._tables.versions(since_ms)

    def neighbourhood(self, except_uuid: str | None = None) -> OtherTables:
        """Every table of the catalog but one, and what else its tables must leave alone."""
        return OtherTables(
            tables=tuple(self._tables.places(except_uuid)),
            warehouse=self.warehouse,
            database=self._layout.folder,
        )

    def is_place(self, location: str) -> bool:
        """Whether a table or namespace of this catalog has its files at a location, or its
        metadata file there."""
        bases = (self.namespaces.properties(n).get("location") for n in self.namespaces.all())
        return self._tables.is_place(location) or any(
            Places().folder(location).startswith(Places().folder(base))
            for base in bases
            if base is not None
        )

    def is_free(self, place: str) -> bool:
        """Whether a new table can lie at a place."""
        try:
            self._need_free_place(place)
        except AlreadyExists:
            return False
        return not any(True for _ in self.storage(place).list(f"{place}/metadata"))

    def client_of(self, place: str) -> str | None:
        """The table with a folder at a place, around it or below it."""
        return self.neighbourhood().sharing(place)

    def exposed_trees(self) -> list[str]:
        """None are looked for, as this would take a request for each table; health tells them."""
        return []

    def tables_below(self, folder: str) -> list[tuple[Namespace, str]]:
        """Locations of tables inside a folder, with the namespaces that they are in."""
        return self._tables.below(folder)

    def upgrade(self, identifier: TableName, base: State, metadata: TableMetadata) -> Outcome:
        name = Identifier.parse(identifier)
        old = base.metadata_location
        if metadata.format_version < FORMAT_VERSION or old is None:
            raise InvalidInput(f"{name}: expected v4 metadata made from a v1-v3 table as loaded")
        _, history = export.read(old, storage=self.storage(old))
        replaced = MetadataLogEntry(metadata_file=old, timestamp_ms=base.metadata.last_updated_ms)
        history = replace(history, metadata_log=(*history.metadata_log, replaced))
        held = self._names.find(name)
        if held is None or held.entry.metadata_location != old:
            return Lost()
        try:
            head = self._created(name, metadata, history, instead_of=held, fallback=old)
        except AlreadyExists:
            return Lost()
        except OutcomeUnknown as doubt:
            return Unknown(cause=doubt)
        return Landed(states=(head.state,))

    def swap_all(self, swaps: Sequence[tuple[TableHead, State, Draft]]) -> Outcome:
        ours = [(_ours(head), base, draft) for head, base, draft in swaps]
        if len(ours) > 1:
            raise Unsupported(
                "a catalog in a bucket commits to one table at a time; transactions over several "
                "tables need a catalog in a SQL database (connect('postgresql://…', "
                "warehouse='s3://…')) or a server on one (frazil serve). Nothing was changed",
                feature="transactions over several tables in a bucket",
            )
        ((head, base, draft),) = ours
        return head.swap(base, draft)

    def rename(self, identifier: TableName, to: TableName) -> None:
        old, new = Identifier.parse(identifier), Identifier.parse(to)
        self._need_namespace(new)
        held = self._held(old)
        if old == new:
            return
        started = time.monotonic()
        if held.entry.metadata_location is not None:
            self._claimed(new, metadata_location=held.entry.metadata_location)
            self._names.release(old, held)
            return
        claim = self._claimed(new, table_uuid=held.entry.table_uuid, location=held.entry.location)
        try:
            self._names.confirm_rename(old, new, held, claim, started)
        except OutcomeUnknown as doubt:
            raise CommitUnknown(
                f"renaming {old} to {new}: the store did not answer whether it landed ({doubt}); "
                "check which name the table has before trying again"
            ) from doubt
        except FrazilError:  # not after an interruption: the head may have its new name
            self._names.release(new, claim)
            raise
        self._names.release(old, held)
        self._locations.pop(old, None)
        self.namespaces.ensure(new.namespace)

    def drop(self, identifier: TableName) -> None:
        self._dropped(Identifier.parse(identifier))

    def purge(self, identifier: TableName) -> Purged:
        name = Identifier.parse(identifier)
        head = self.load(name)
        history = head.history()
        dropped = self._dropped(name)
        state = head.state
        if dropped is not None:  # as it was when it was dropped, which may be later
            last = self._object_head(*dropped)
            state, history = last.state, last.history_as_read()
        return Purged(
            identifier=name,
            metadata=state.metadata,
            history=history,
            metadata_location=state.metadata_location,
        )

    # Names and heads

    def _held(self, name: Identifier) -> HeldName:
        """What has a name; NotFound when nobody does."""
        held = self._names.find(name)
        if held is not None and held.is_confirmed(name):
            return held
        if held is not None and not self.is_read_only:
            self._names.heal(name, held)
        raise NotFound(f"table {name} does not exist")

    def _head_at(self, location: str) -> HeadObject:
        return HeadObject(self._store, self._layout.head(location))

    def _object_head(self, head: HeadObject, stored_head: StoredHead) -> ObjectHead:
        return ObjectHead(
            head,
            stored_head,
            storage=self._storages,
            neighbours=self.neighbourhood,
            is_taken=self.table_exists,
            queue=self._queues[head.path],
        )

    def _claimed(
        self,
        name: Identifier,
        *,
        table_uuid: str | None = None,
        location: str | None = None,
        metadata_location: str | None = None,
        instead_of: HeldName | None = None,
    ) -> HeldName:
        """Take a name that neither a table nor a view has."""
        claim = self._names.claim(
            name,
            table_uuid=table_uuid,
            location=location,
            metadata_location=metadata_location,
            instead_of=instead_of,
        )
        if instead_of is None and self.views.exists(name):
            self._names.release(name, claim)
            raise AlreadyExists(f"{name}: a view has this name already")
        return claim

    def _created(
        self,
        name: Identifier,
        metadata: TableMetadata,
        history: History,
        *,
        instead_of: HeldName | None,
        fallback: str | None = None,
    ) -> TableHead:
        """Enter a table with a JSON file of its own; `fallback` is the file of a table that asks
        for none."""
        storage = self.storage(metadata.location)
        with export.first_version(metadata, history, storage, instead=fallback) as rendered:
            self._enter(name, metadata, history, rendered, instead_of=instead_of)
        return self.load(name)

    def _enter(
        self,
        name: Identifier,
        metadata: TableMetadata,
        history: History,
        metadata_location: str | None,
        *,
        instead_of: HeldName | None,
    ) -> None:
        """Write the head, then the name."""
        check_absolute(metadata.location)
        self._prepare(name.namespace)
        head = self._head_at(metadata.location)
        stored_head = self._write_head(head, name, metadata, history, metadata_location, instead_of)
        try:
            self._claimed(
                name,
                table_uuid=str(metadata.table_uuid),
                location=metadata.location,
                instead_of=instead_of,
            )
        except AlreadyExists:
            head.change(tombstone, stored_head)
            raise
        self._locations.pop(name, None)
        before = None if instead_of is None else instead_of.head
        if before is not None and before.path != head.path:
            before.change(tombstone)

    def _write_head(
        self,
        head: HeadObject,
        name: Identifier,
        metadata: TableMetadata,
        history: History,
        metadata_location: str | None,
        instead_of: HeldName | None,
    ) -> StoredHead:
        current: StoredHead | None = None
        while True:
            document = first_document(
                name,
                metadata,
                history,
                older=HistoryStore(self._store, head.folder),
                metadata_location=metadata_location,
                now_ms=self._names.now_ms(),
                before=None if current is None else current.document,
            )
            outcome = head.write(document, over=current)
            if isinstance(outcome, Written):
                if outcome.version is None:
                    return head.read()
                return StoredHead(document=document, version=outcome.version)
            current = None if outcome.current is None else head.parsed(outcome.current)
            replaced = None if instead_of is None or instead_of.head is None else instead_of.head
            is_same = replaced is not None and replaced.path == head.path
            if current is not None and not is_same:
                self._need_unused(current.document, metadata.location)

    def _need_unused(self, document: HeadDocument, location: str) -> None:
        """Refuse to replace a head that is a table's, or that is just becoming one."""
        if document.is_dropped or document.location != location:
            return  # a table that is gone, or a copy of a head that belongs elsewhere
        owner = self._names.find(document.identifier)
        is_named = (
            owner is not None
            and owner.entry.table_uuid == document.table_uuid
            and owner.is_confirmed(document.identifier)
        )
        is_young = self._names.now_ms() - document.created_ms < MAX_CLAIM_MS
        if is_named or is_young:
            raise AlreadyExists(f"{location}: is the location of table {document.identifier}")

    def _dropped(self, name: Identifier) -> tuple[HeadObject, StoredHead] | None:
        """Take a table out; returns its head, unless it is a table of other writers."""
        held = self._held(name)
        self._locations.pop(name, None)
        if held.head is None:
            self._names.release(name, held)
            return None

        def drop(document: HeadDocument) -> HeadDocument | None:
            if not is_live(document, name):
                raise NotFound(f"table {name} does not exist")
            return tombstone(document)

        stored_head = held.head.change(drop, held.stored_head)
        self._names.release(name, held)
        ObjectNotes(self._store, f"{held.head.folder}/_notes").clear()
        return held.head, stored_head

    def _locate_legacy(self, name: Identifier) -> str:
        held = self._held(name)
        if held.entry.metadata_location is None:
            raise Superseded(
                f"{name}: was upgraded to format-version 4; load it again",
                partial(self.load, name),
            )
        return held.entry.metadata_location

    def _need_namespace(self, name: Identifier) -> None:
        if not self.namespaces.exists(name.namespace):
            raise NotFound(f"{name}: namespace {dotted(name.namespace)} does not exist")

    def _need_free_name(self, name: Identifier) -> None:
        if self.table_exists(name):
            raise AlreadyExists(f"table {name} already exists")

    def _need_free_place(self, location: str) -> None:
        check_absolute(location)
        stored_head = self._head_at(location).find()
        if stored_head is not None:
            self._need_unused(stored_head.document, location)

    def _prepare(self, namespace: Namespace) -> None:
        self.marker.ensure()
        self.namespaces.ensure(namespace)


def _conditional(storage: Storage, warehouse: str) -> ConditionalStore:
    store = as_conditional(storage)
    if store is None:
        raise Unsupported(
            f"{warehouse}: its storage has no conditional requests, so it cannot hold a catalog; "
            "expected s3://, gs:// or abfss://. Elsewhere keep the catalog in a database: "
            "connect('sqlite:///catalog.db', warehouse='…')",
            feature="a catalog in this storage",
        )
    return store


def _ours(head: TableHead) -> ObjectHead:
    if isinstance(head, ObjectHead):
        return head
    if isinstance(head, ReadOnly):
        raise head.refusal()
    raise InvalidInput(f"{head.identifier}: is not a table of this catalog")

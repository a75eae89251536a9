"""Which files the server reads, writes and deletes, for whom: the only module of the server that
knows storage.

A path in a request, a property, a manifest or a note is only text. `request_fence` says what its
sender may name, by who it is and which namespace and table it is about; `table_fence` what the
metadata of a table may lead to, whoever wrote it. Both give storages in which every path is let
through the fence when it is opened, not before: a manifest that was not there when a table was
registered, or that is another one now, leads nowhere else either.

- Whoever may write everything uses the warehouse; others use the folder and the location of the
  namespace at hand, without the tables of other namespaces that lie in it.
- A table's metadata leads to its own folders, to those of the table that it was cloned from, and
  to the same places: the warehouse on a server without access rules, else its namespace's.
- Places that the server was started with (`--allow`) are open to all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

from frazil.catalog.backend import CatalogBackend, TableHead
from frazil.catalog.names import Identifier, Namespace, namespace_location
from frazil.catalog.ownership import SOURCES, TablePlace
from frazil.errors import NotFound
from frazil.format.checks import client_location
from frazil.format.entries.batch import EntryBatch
from frazil.format.metadata.metadata import TableMetadata
from frazil.storage import Places, Storage
from frazil.storage.fence import Fence, FencedStorage
from frazil.table import Catalog, Table
from frazil.tree.cache import ManifestCache
from frazil.value_classes import replace

if TYPE_CHECKING:
    from frazil.serve.access.principals import Access, Principal
    from frazil.serve.exchange import Request
    from frazil.serve.service import Service
    from frazil.serve.settings import Settings

LOCATION = "location"
"""Table property: where clients are told to write; by default the table's own location."""


def request_fence(
    service: Service,
    call: Request | None,
    namespace: Namespace | None,
    *,
    table: Iterable[str] = (),
) -> Fence:
    """What the sender of a request about a namespace may name. `table` are the folders that the
    table at hand has already."""
    principal = None if call is None else call.principal
    folders = [*table, "" if namespace is None else location_of(service, namespace)]
    return _CatalogPlaces(service.catalog._pointers, service.settings).fence(
        namespace, principal, folders=folders, is_limited=principal is not None
    )


def table_fence(service: Service, namespace: Namespace, metadata: TableMetadata) -> Fence:
    """What a table's own metadata may lead to."""
    return _CatalogPlaces(service.catalog._pointers, service.settings).table_fence(
        namespace, metadata, is_limited=service.access is not None
    )


def storage_for(service: Service, fence: Fence, location: str) -> FencedStorage:
    """The storage of a location, for paths that are let through a fence."""
    return FencedStorage(service.unfenced(location), fence)


def make_folders(storage: Storage, metadata: TableMetadata) -> None:
    """Some clients write into folders and do not make them. Without a fence there are none."""
    place = client_location(metadata.location, metadata.properties)
    if isinstance(storage, FencedStorage):
        for folder in ("metadata", "data"):
            storage.make_folder(f"{place}/{folder}")


def canonical(location: str) -> str:
    """A folder in the one spelling in which two of them can be compared."""
    return Places().folder(location)


def view_fence(service: Service, namespace: Namespace) -> Fence:
    """Where the metadata file of a stored view is written: what was checked when it was stored
    may be another place by now."""
    return _CatalogPlaces(service.catalog._pointers, service.settings).fence(
        namespace,
        None,
        folders=[location_of(service, namespace)],
        is_limited=service.access is not None,
    )


def folders_of(location: str, properties: Any) -> tuple[str, ...]:
    """Where a table's files may lie by its location and its properties."""
    place = TablePlace.of("table", location, properties)
    sources = (properties.get(key) for key in SOURCES)
    return (place.location, *place.folders, *(folder for folder in sources if folder))


class _CatalogPlaces:
    """The places of one catalog."""

    def __init__(self, pointers: CatalogBackend, settings: Settings) -> None:
        self._pointers: Any = pointers
        self._allowed = settings.allowed

    def fence(
        self,
        namespace: Namespace | None,
        principal: Principal | None,
        *,
        folders: Iterable[str],
        is_limited: bool,
    ) -> Fence:
        warehouse = self._pointers.warehouse
        allowed = [*folders]
        excluded: list[str] = []
        if not is_limited or (principal is not None and principal.may_write_everything()):
            allowed.append(warehouse or "")
        elif namespace is not None:
            default = [namespace_location(warehouse, namespace)] if warehouse else []
            excluded = [
                place for folder in default for place in self._others(folder, namespace, principal)
            ]
            allowed += default
        return Fence(allowed, linked=self._allowed, excluded=excluded)

    def table_fence(
        self, namespace: Namespace, metadata: TableMetadata, *, is_limited: bool
    ) -> Fence:
        folders = folders_of(metadata.location, metadata.properties)
        if is_limited:
            folders = (*folders, self.location_of(namespace))
        return self.fence(namespace, None, folders=folders, is_limited=is_limited)

    def _others(
        self, folder: str, namespace: Namespace, principal: Principal | None
    ) -> Iterable[str]:
        """Tables in a folder that are of a namespace which is not the one at hand."""
        for other, location in self._pointers.tables_below(folder):
            is_own = other[: len(namespace)] == namespace
            if not is_own and not (principal is not None and principal.may_write(other)):
                yield location

    def location_of(self, namespace: Namespace) -> str:
        try:
            return str(self._pointers.namespaces.properties(namespace).get(LOCATION, ""))
        except NotFound:
            return ""


def location_of(service: Service, namespace: Namespace) -> str:
    """Where a namespace says that its tables go; empty when it does not."""
    return _CatalogPlaces(service.catalog._pointers, service.settings).location_of(namespace)


# --- the catalog that is served ------------------------------------------------------------------


class ServedCatalog(Catalog):
    """A catalog whose tables reach no files but those that their fence lets through. All that the
    server runs works on it: publication, plans, pages, SQL, maintenance."""

    def __init__(self, inner: Catalog, settings: Settings, access: Access | None) -> None:
        raw: Any = inner._pointers
        super().__init__(raw.with_storages(_Fenced(raw, settings)))
        self._cache = inner._cache
        self._settings = settings
        self._is_limited = access is not None
        self._raw: Callable[[str], Storage] = raw.storage

    def unfenced(self, location: str) -> Storage:
        """The storage behind the fence; for `storage_for` alone."""
        return self._raw(location)

    def _table(self, identifier: Identifier, head: TableHead) -> Table:
        table = super()._table(identifier, head)
        handle = table._handle
        places = _CatalogPlaces(self._pointers, self._settings)
        fence = places.table_fence(
            identifier.namespace, head.state.metadata, is_limited=self._is_limited
        )
        storage = FencedStorage(self._raw(head.state.metadata.location), fence)
        cache = FencedCache(handle.context.cache, fence) if self._is_limited else self._cache
        handle.context = replace(handle.context, storage=storage, cache=cache)
        return table


class _Fenced:
    """Storages of a catalog's own work (metadata files, purges, imports), by location: the
    warehouse, the places that the server was started with, and a place that the catalog knows."""

    def __init__(self, pointers: Any, settings: Settings) -> None:
        self._pointers = pointers
        self._allowed = settings.allowed

    def __call__(self, location: str) -> Storage:
        folders = [self._pointers.warehouse or ""]
        fence = Fence(folders, linked=self._allowed)
        if location not in fence and self._pointers.is_place(location):
            # A metadata file of other writers lies in the folder `metadata` of its table.
            folder = location.rpartition("/")[0].removesuffix("/metadata")
            is_file = location.endswith((".json", ".json.gz"))
            fence = Fence([*folders, folder if is_file else location], linked=self._allowed)
        return FencedStorage(self._pointers.storage(location), fence)


class FencedCache(ManifestCache):
    """Manifests that others have read are not shown to whoever could not read them."""

    def __init__(self, inner: ManifestCache, fence: Fence) -> None:
        super().__init__(max_bytes=0)
        self._inner = inner
        self._fence = fence

    def fetch(
        self,
        path: str,
        keys: Collection[str] | None,
        load: Callable[[Collection[str] | None], EntryBatch],
    ) -> EntryBatch:
        self._fence.allowed(path)
        return self._inner.fetch(path, keys, load)

    def put(self, path: str, batch: EntryBatch, *, keys: frozenset[str] | None = None) -> None:
        self._inner.put(path, batch, keys=keys)


__all__ = [
    "LOCATION",
    "Fence",
    "FencedCache",
    "ServedCatalog",
    "Storage",
    "canonical",
    "folders_of",
    "location_of",
    "make_folders",
    "request_fence",
    "storage_for",
    "table_fence",
    "view_fence",
]

"""An embedded warehouse that does not exist yet. Reading finds nothing; the first definition of a
namespace, table or view creates it, and from then on every call goes to the real catalog.

So a typo in a path creates nothing. Every method says here which of the two it is: an attribute
that is not listed does not exist.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from frazil.catalog.backend import (
    CatalogBackend,
    NamespaceName,
    Purged,
    TableHead,
    TableName,
    TableVersion,
    ViewName,
    ViewState,
)
from frazil.catalog.names import Identifier, Namespace
from frazil.catalog.notes import Notes
from frazil.catalog.ownership import OtherTables
from frazil.commit.head import Draft, Outcome, State
from frazil.errors import NotFound
from frazil.format.metadata.metadata import History, TableMetadata
from frazil.storage import Storage


class LazyCatalog:
    """Namespaces and tables of a warehouse that may not exist yet."""

    def __init__(
        self,
        folder: Path,
        make: Callable[[], CatalogBackend],
        *,
        name: str,
        warehouse: str,
        storage: Callable[[str], Storage],
    ) -> None:
        self._folder = folder
        self._make = make
        self._opened: CatalogBackend | None = None
        self._lock = threading.Lock()
        self.name = name
        self.warehouse: str | None = warehouse
        self._storage = storage
        self.namespaces = LazyNamespaces(self)
        self.views = LazyViews(self)
        self.notes: Notes = LazyNotes(self)

    def __repr__(self) -> str:
        if self._opened is not None:
            return repr(self._opened)
        return f"LazyCatalog({str(self._folder)!r})"

    def create(self) -> CatalogBackend:
        """The catalog itself, created if need be."""
        with self._lock:
            if self._opened is None:
                self._opened = self._make()
            return self._opened

    def find(self) -> CatalogBackend | None:
        """The catalog itself if it exists, perhaps because someone else created it."""
        if self._opened is None and not (self._folder / "catalog.db").is_file():
            return None
        return self.create()

    def need(self, what: object = None) -> CatalogBackend:
        """The catalog itself; NotFound when it does not exist, naming what was looked for."""
        catalog = self.find()
        if catalog is None:
            place = "" if what is None else f"{Identifier.parse(what)} in "  # type: ignore[arg-type]
            raise NotFound(
                f"{place}{self._folder}: no warehouse exists here. Create it with frazil init, "
                "connect(…, create=True) or a first table"
            )
        return catalog

    def storage(self, location: str) -> Storage:
        return self._storage(location) if self._opened is None else self._opened.storage(location)

    def with_storages(self, storages: Callable[[str], Storage]) -> LazyCatalog:
        """The same warehouse, whose files are reached through other storages."""

        def make() -> CatalogBackend:
            opened: Any = self.create()
            return cast(CatalogBackend, opened.with_storages(storages))

        return LazyCatalog(
            self._folder, make, name=self.name, warehouse=self.warehouse or "", storage=storages
        )

    def is_place(self, location: str) -> bool:
        """Whether something of the warehouse has its files at a location."""
        catalog: Any = self.find()
        return catalog is not None and bool(catalog.is_place(location))

    def tables_below(self, folder: str) -> list[tuple[Namespace, str]]:
        """Locations of tables inside a folder."""
        catalog: Any = self.find()
        return [] if catalog is None else list(catalog.tables_below(folder))

    def is_free(self, place: str) -> bool:
        """Whether a new table can lie at a place."""
        catalog: Any = self.find()
        return catalog is None or bool(catalog.is_free(place))

    def exposed_trees(self) -> list[str]:
        """Tables whose clients see a location that holds the table's metadata."""
        catalog: Any = self.find()
        return [] if catalog is None else list(catalog.exposed_trees())

    def client_of(self, place: str) -> str | None:
        """The table with a folder at a place, around it or below it."""
        catalog: Any = self.find()
        return None if catalog is None else catalog.client_of(place)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    # Creates the warehouse

    def create_table(
        self, identifier: TableName, metadata: TableMetadata, history: History | None = None
    ) -> TableHead:
        return self.create().create_table(identifier, metadata, history)

    def register(self, identifier: TableName, metadata_location: str, **options: Any) -> TableHead:
        return self.create().register(identifier, metadata_location, **options)

    def enter(
        self, identifier: TableName, metadata: TableMetadata, history: History, **options: Any
    ) -> TableHead:
        """Enter a table that was read from a metadata file."""
        opened: Any = self.create()
        return cast(TableHead, opened.enter(identifier, metadata, history, **options))

    # Needs the warehouse

    def location_for(self, identifier: TableName) -> str:
        return self.need(identifier).location_for(identifier)

    def load(self, identifier: TableName) -> TableHead:
        return self.need(identifier).load(identifier)

    def name_of(self, key: str) -> Identifier:
        return cast(Identifier, cast(Any, self.need()).name_of(key))

    def load_key(self, key: str) -> TableHead:
        return cast(TableHead, cast(Any, self.need()).load_key(key))

    def list_tables(self, namespace: NamespaceName) -> list[Identifier]:
        return self.need().list_tables(namespace)

    def upgrade(self, identifier: TableName, base: State, metadata: TableMetadata) -> Outcome:
        return self.need(identifier).upgrade(identifier, base, metadata)

    def swap_all(self, swaps: Sequence[tuple[TableHead, State, Draft]]) -> Outcome:
        return self.need().swap_all(swaps)

    def rename(self, identifier: TableName, to: TableName) -> None:
        self.need(identifier).rename(identifier, to)

    def drop(self, identifier: TableName) -> None:
        self.need(identifier).drop(identifier)

    def purge(self, identifier: TableName) -> Purged:
        return self.need(identifier).purge(identifier)

    # Finds nothing without it

    def table_exists(self, identifier: TableName) -> bool:
        catalog = self.find()
        return catalog is not None and catalog.table_exists(identifier)

    def table_versions(self, since_ms: int | None = None) -> list[TableVersion]:
        catalog = self.find()
        return [] if catalog is None else catalog.table_versions(since_ms)

    def neighbourhood(self) -> OtherTables:
        catalog = self.find()
        if catalog is None:
            return OtherTables(warehouse=self.warehouse)
        return cast(OtherTables, cast(Any, catalog).neighbourhood())


class LazyNamespaces:
    """The namespaces of a warehouse that may not exist yet."""

    def __init__(self, catalog: LazyCatalog) -> None:
        self._catalog = catalog

    def create(self, namespace: NamespaceName, properties: Mapping[str, str] | None = None) -> None:
        self._catalog.create().namespaces.create(namespace, properties)

    def exists(self, namespace: NamespaceName) -> bool:
        catalog = self._catalog.find()
        return catalog is not None and catalog.namespaces.exists(namespace)

    def children(self, parent: NamespaceName = ()) -> list[Namespace]:
        return self._catalog.need().namespaces.children(parent)

    def properties(self, namespace: NamespaceName) -> dict[str, str]:
        return self._catalog.need().namespaces.properties(namespace)

    def set_properties(
        self, namespace: NamespaceName, updates: Mapping[str, str], *, removals: Iterable[str] = ()
    ) -> None:
        self._catalog.need().namespaces.set_properties(namespace, updates, removals=removals)

    def drop(self, namespace: NamespaceName) -> None:
        self._catalog.need().namespaces.drop(namespace)


class LazyViews:
    """The views of a warehouse that may not exist yet."""

    def __init__(self, catalog: LazyCatalog) -> None:
        self._catalog = catalog

    def create(self, identifier: ViewName, metadata: Mapping[str, Any]) -> ViewState:
        return self._catalog.create().views.create(identifier, metadata)

    def exists(self, identifier: ViewName) -> bool:
        catalog = self._catalog.find()
        return catalog is not None and catalog.views.exists(identifier)

    def load(self, identifier: ViewName) -> ViewState:
        return self._catalog.need().views.load(identifier)

    def list(self, namespace: str | Namespace) -> list[Identifier]:
        return self._catalog.need().views.list(namespace)

    def replace(self, base: ViewState, metadata: Mapping[str, Any]) -> ViewState:
        return self._catalog.need().views.replace(base, metadata)

    def rename(self, identifier: ViewName, to: ViewName) -> None:
        self._catalog.need().views.rename(identifier, to)

    def drop(self, identifier: ViewName) -> None:
        self._catalog.need().views.drop(identifier)


class LazyNotes:
    """The notes of a warehouse that may not exist yet; writing one creates it."""

    def __init__(self, catalog: LazyCatalog) -> None:
        self._catalog = catalog

    def is_empty(self) -> bool:
        catalog = self._catalog.find()
        return catalog is None or catalog.notes.is_empty()

    def below(self, prefix: str) -> dict[str, str]:
        catalog = self._catalog.find()
        return {} if catalog is None else catalog.notes.below(prefix)

    def get(self, keys: Collection[str]) -> dict[str, str]:
        catalog = self._catalog.find()
        return {} if catalog is None else catalog.notes.get(keys)

    def add(self, notes: Mapping[str, str]) -> dict[str, str]:
        return self._catalog.create().notes.add(notes)

    def remove(self, keys: Iterable[str]) -> None:
        catalog = self._catalog.find()
        if catalog is not None:
            catalog.notes.remove(keys)

    def claim(self, version: int, by: str) -> str:
        return self._catalog.create().notes.claim(version, by)


__all__ = ["LazyCatalog"]

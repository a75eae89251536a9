"""An embedded warehouse that does not exist yet. Reading finds nothing; the first definition of a
namespace, table or view creates it, and from then on every call goes to the real catalog.

So a typo in a path creates nothing. Every method says here which of the two it is: an attribute
that is not listed does not exist.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

from frazil.catalog.backend import (
    CatalogBackend,
    NamespaceName,
    Namespaces,
    Purged,
    TableHead,
    TableName,
    TableVersion,
    Views,
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
        self.namespaces = cast(
            Namespaces,
            _Part(self, "namespaces", Namespaces, creates=("create",), without={"exists": bool}),
        )
        self.views = cast(
            Views, _Part(self, "views", Views, creates=("create",), without={"exists": bool})
        )
        no_notes: dict[str, Callable[[], object]] = {
            "is_empty": lambda: True,
            "below": dict,
            "get": dict,
            "remove": lambda: None,
        }
        self.notes = cast(
            Notes, _Part(self, "notes", Notes, creates=("add", "claim"), without=no_notes)
        )

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


class _Part:
    """A part of a warehouse that may not exist yet, with the methods of its protocol.

    Those of `creates` make the warehouse; those of `without` have an answer as long as there is
    none; all others need it.
    """

    def __init__(
        self,
        catalog: LazyCatalog,
        name: str,
        protocol: type,
        *,
        creates: Collection[str],
        without: Mapping[str, Callable[[], object]],
    ) -> None:
        self._catalog = catalog
        self._name = name
        self._protocol = protocol
        self._creates = creates
        self._without = without

    def __getattr__(self, method: str) -> Any:
        if method.startswith("_") or not hasattr(self._protocol, method):
            raise AttributeError(method)
        return partial(self._call, method)

    def _call(self, method: str, *arguments: Any, **options: Any) -> Any:
        catalog: CatalogBackend | None
        if method in self._creates:
            catalog = self._catalog.create()
        elif method not in self._without:
            catalog = self._catalog.need()
        else:
            catalog = self._catalog.find()
            if catalog is None:
                return self._without[method]()
        return getattr(getattr(catalog, self._name), method)(*arguments, **options)

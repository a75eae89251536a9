"""An embedded warehouse that does not exist yet. Reading finds nothing; the first definition of a
namespace, table or view creates it, and from then on every call goes to the real catalog.

So a typo in a path creates nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from frazil.catalog.names import Identifier, Namespace
from frazil.catalog.pointers import NamespaceName, Pointers, Pulse, TableHead, TableName
from frazil.catalog.views import ViewName, ViewState
from frazil.errors import NotFound
from frazil.storage import Storage


class UnmadeViews:
    """The views of a warehouse that may not exist yet."""

    def __init__(self, owner: UnmadeCatalog) -> None:
        self._owner = owner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._owner.made().views, name)

    def exists(self, identifier: ViewName) -> bool:
        found = self._owner.found()
        return found is not None and found.views.exists(identifier)

    def load(self, identifier: ViewName) -> ViewState:
        return self._owner.needed().views.load(identifier)

    def list(self, namespace: str | Namespace) -> list[Identifier]:
        return self._owner.needed().views.list(namespace)


class UnmadeCatalog:
    """Namespaces and tables of a warehouse that may not exist yet."""

    def __init__(
        self,
        folder: Path,
        make: Callable[[], Pointers],
        *,
        name: str,
        warehouse: str,
        storage: Callable[[str], Storage],
    ) -> None:
        self._folder = folder
        self._make = make
        self._made: Pointers | None = None
        self._lock = threading.Lock()
        self.name = name
        self.warehouse = warehouse
        self._storage = storage
        self.views = UnmadeViews(self)

    def __repr__(self) -> str:
        return f"UnmadeCatalog({str(self._folder)!r})" if self._made is None else repr(self._made)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.made(), name)

    def made(self) -> Pointers:
        """The catalog itself, created if need be."""
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made

    def found(self) -> Pointers | None:
        """The catalog itself if it exists, perhaps because someone else created it."""
        if self._made is None and not (self._folder / "catalog.db").is_file():
            return None
        return self.made()

    def needed(self, what: object = None) -> Pointers:
        """The catalog itself; NotFound when it does not exist, naming what was looked for."""
        found = self.found()
        if found is None:
            wanted = "" if what is None else f"{Identifier.parse(what)} in "  # type: ignore[arg-type]
            raise NotFound(
                f"{wanted}{self._folder}: no warehouse exists here. Create it with frazil init, "
                "connect(…, create=True) or a first table"
            )
        return found

    def storage(self, location: str) -> Storage:
        return self._storage(location) if self._made is None else self._made.storage(location)

    def close(self) -> None:
        if self._made is not None:
            self._made.close()

    def list_namespaces(self, parent: NamespaceName = ()) -> list[Namespace]:
        return self.needed().list_namespaces(parent)

    def namespace_exists(self, namespace: NamespaceName) -> bool:
        found = self.found()
        return found is not None and found.namespace_exists(namespace)

    def namespace_properties(self, namespace: NamespaceName) -> dict[str, str]:
        return self.needed().namespace_properties(namespace)

    def drop_namespace(self, namespace: NamespaceName) -> None:
        self.needed().drop_namespace(namespace)

    def load(self, identifier: TableName) -> TableHead:
        return self.needed(identifier).load(identifier)

    def table_exists(self, identifier: TableName) -> bool:
        found = self.found()
        return found is not None and found.table_exists(identifier)

    def pulses(self, since_ms: int | None = None) -> list[Pulse]:
        found = self.found()
        return [] if found is None else found.pulses(since_ms)

    def list_tables(self, namespace: NamespaceName) -> list[Identifier]:
        return self.needed().list_tables(namespace)

    def rename(self, identifier: TableName, to: TableName) -> None:
        self.needed(identifier).rename(identifier, to)

    def drop(self, identifier: TableName) -> None:
        self.needed(identifier).drop(identifier)


__all__ = ["UnmadeCatalog"]

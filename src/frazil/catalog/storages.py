"""The storages a catalog hands out: one per scheme and bucket, with the catalog's properties, some
read only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, cast
from urllib.parse import urlsplit

from frazil.credentials import ConnectionProperties
from frazil.errors import Unsupported
from frazil.storage import Storage, storage_for

_WRITES = frozenset({"write_new", "create", "copy", "delete", "delete_all", "put_new", "put_if"})


class ReadOnlyStorage:
    """Another storage, whose every request that changes something is refused."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def __repr__(self) -> str:
        return f"ReadOnlyStorage({self._storage!r})"

    def __reduce__(self) -> tuple[type[ReadOnlyStorage], tuple[Storage]]:
        return (ReadOnlyStorage, (self._storage,))

    def __getattr__(self, name: str) -> Any:
        if name in _WRITES and hasattr(self._storage, name):
            return _refused
        return getattr(self._storage, name)


class ReadOnlyStorages:
    """Storages by location, all read-only."""

    def __init__(self, storages: Callable[[str], Storage]) -> None:
        self._storages = storages

    def __call__(self, location: str) -> Storage:
        return cast(Storage, ReadOnlyStorage(self._storages(location)))


def _refused(*_: object, **__: object) -> NoReturn:
    raise Unsupported(
        "the catalog was opened with read_only=True; open it without read_only to make changes",
        feature="writing to a catalog opened for reading",
    )


class Storages:
    """Callable from a location to its storage. Its repr shows no secret."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self.properties = ConnectionProperties(properties or {})
        self._known: dict[tuple[str, str], Storage] = {}

    def __call__(self, location: str) -> Storage:
        parts = urlsplit(location)
        key = (parts.scheme, parts.netloc)
        storage = self._known.get(key)
        if storage is None:
            storage = self._known.setdefault(key, storage_for(location, self.properties))
        return storage

    def __reduce__(self) -> tuple[type[Storages], tuple[ConnectionProperties]]:
        return (Storages, (self.properties,))

    def __repr__(self) -> str:
        return f"Storages({self.properties!r})"

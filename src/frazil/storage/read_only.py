"""A storage that is read and never written to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, cast

from frazil.errors import Unsupported
from frazil.storage.base import Storage

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
        "the catalog was opened with read_only=True; open it without to change something",
        feature="writing to a catalog opened for reading",
    )

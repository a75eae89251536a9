"""The storages a catalog hands out: one per scheme and bucket, with the catalog's properties."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from frazil.credentials import ConnectionProperties
from frazil.storage import Storage, storage_for


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

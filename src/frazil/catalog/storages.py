"""The storages a catalog hands out: one per scheme and bucket, with the catalog's properties."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from frazil.errors import redacted
from frazil.format.checks import is_credential
from frazil.storage import Storage, storage_for


class Storages:
    """Callable from a location to its storage. Its repr shows no secret."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self.properties = dict(properties or {})
        self._known: dict[tuple[str, str], Storage] = {}

    def __call__(self, location: str) -> Storage:
        parts = urlsplit(location)
        key = (parts.scheme, parts.netloc)
        found = self._known.get(key)
        if found is None:
            found = self._known.setdefault(key, storage_for(location, self.properties))
        return found

    def __reduce__(self) -> tuple[type[Storages], tuple[dict[str, str]]]:
        return (Storages, (self.properties,))

    def __repr__(self) -> str:
        return f"Storages({masked(self.properties)!r})"


class Secretive(dict[str, str]):
    """Properties whose repr hides the values of credentials."""

    def __repr__(self) -> str:
        return repr(masked(self))


def masked(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties fit to be shown: the values of credentials are hidden."""
    return {
        key: "***" if is_credential(key) else redacted(value) for key, value in properties.items()
    }

"""Views and notes of a catalog that a server holds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from frazil.catalog.names import Identifier, Namespace, namespace_of
from frazil.catalog.remote_http import Requests
from frazil.catalog.remote_wire import name_document
from frazil.catalog.views import ViewName, ViewState


class RemoteViews:
    """Views by name."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def create(self, identifier: ViewName, metadata: Mapping[str, Any]) -> ViewState:
        found = Identifier.parse(identifier)
        document = {"name": name_document(found), "metadata": dict(metadata)}
        return _state(found, self._requests.change("create-view", document))

    def load(self, identifier: ViewName) -> ViewState:
        found = Identifier.parse(identifier)
        return _state(found, self._requests.read("load-view", {"name": name_document(found)}))

    def exists(self, identifier: ViewName) -> bool:
        name = name_document(Identifier.parse(identifier))
        return bool(self._requests.read("view-exists", {"name": name})["exists"])

    def list(self, namespace: str | Namespace) -> list[Identifier]:
        parts = namespace_of(namespace)
        found = self._requests.read("list-views", {"namespace": list(parts)})["names"]
        return [Identifier(namespace=parts, name=name) for name in found]

    def replace(self, base: ViewState, metadata: Mapping[str, Any]) -> ViewState:
        document = {
            "name": name_document(base.identifier),
            "version": base.version,
            "metadata": dict(metadata),
        }
        return _state(base.identifier, self._requests.change("replace-view", document))

    def rename(self, identifier: ViewName, to: ViewName) -> None:
        names = (Identifier.parse(identifier), Identifier.parse(to))
        document = dict(zip(("name", "to"), map(name_document, names), strict=True))
        self._requests.change("rename-view", document)

    def drop(self, identifier: ViewName) -> None:
        name = name_document(Identifier.parse(identifier))
        self._requests.change("drop-view", {"name": name})


def _state(identifier: Identifier, answer: Mapping[str, Any]) -> ViewState:
    return ViewState(
        identifier=identifier, metadata=answer["metadata"], version=int(answer["version"])
    )


class RemoteNotes:
    """Notes of a table, or of the catalog when no key is given."""

    def __init__(self, requests: Requests, key: str | None = None) -> None:
        self._requests = requests
        self._key = key

    def below(self, prefix: str) -> dict[str, str]:
        return self._notes("notes-below", prefix=prefix)

    def get(self, keys: Collection[str]) -> dict[str, str]:
        return self._notes("read-notes", names=list(keys))

    def add(self, notes: Mapping[str, str]) -> dict[str, str]:
        # Adding twice is adding once: a note that is there stays.
        return self._notes("add-notes", notes=dict(notes))

    def remove(self, keys: Iterable[str]) -> None:
        self._notes("remove-notes", names=list(keys))

    def _notes(self, operation: str, **parts: Any) -> dict[str, str]:
        found: dict[str, str] = self._requests.read(operation, {"key": self._key, **parts})["notes"]
        return found

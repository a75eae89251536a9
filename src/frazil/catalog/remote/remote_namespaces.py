"""Namespaces, views and notes of a catalog that a server holds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from frazil.catalog.backend import NamespaceName, ViewName, ViewState
from frazil.catalog.names import Identifier, Namespace, namespace_of
from frazil.catalog.remote.remote_http import Requests
from frazil.catalog.remote.remote_wire import name_document
from frazil.errors import Unsupported


class RemoteNamespaces:
    """Namespaces by name."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def create(self, namespace: NamespaceName, properties: Mapping[str, str] | None = None) -> None:
        self._change("create-namespace", namespace, updates=dict(properties or {}))

    def children(self, parent: NamespaceName = ()) -> list[Namespace]:
        above = list(namespace_of(parent)) if parent else []
        answer = self._requests.read("list-namespaces", {"namespace": above})
        return [tuple(parts) for parts in answer["namespaces"]]

    def exists(self, namespace: NamespaceName) -> bool:
        return bool(self._read("namespace-exists", namespace)["exists"])

    def properties(self, namespace: NamespaceName) -> dict[str, str]:
        return dict(self._read("namespace-properties", namespace)["properties"])

    def set_properties(
        self, namespace: NamespaceName, updates: Mapping[str, str], *, removals: Iterable[str] = ()
    ) -> None:
        changes = {"updates": dict(updates), "removals": list(removals)}
        self._change("set-namespace-properties", namespace, **changes)

    def drop(self, namespace: NamespaceName) -> None:
        self._change("drop-namespace", namespace)

    def _read(self, operation: str, namespace: NamespaceName) -> Any:
        return self._requests.read(operation, {"namespace": list(namespace_of(namespace))})

    def _change(self, operation: str, namespace: NamespaceName, **changes: Any) -> None:
        self._requests.change(operation, {"namespace": list(namespace_of(namespace)), **changes})


class RemoteViews:
    """Views by name."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def create(self, identifier: ViewName, metadata: Mapping[str, Any]) -> ViewState:
        parsed = Identifier.parse(identifier)
        document = {"name": name_document(parsed), "metadata": dict(metadata)}
        return _state(parsed, self._requests.change("create-view", document))

    def load(self, identifier: ViewName) -> ViewState:
        parsed = Identifier.parse(identifier)
        return _state(parsed, self._requests.read("load-view", {"name": name_document(parsed)}))

    def exists(self, identifier: ViewName) -> bool:
        name = name_document(Identifier.parse(identifier))
        return bool(self._requests.read("view-exists", {"name": name})["exists"])

    def list(self, namespace: str | Namespace) -> list[Identifier]:
        parts = namespace_of(namespace)
        names = self._requests.read("list-views", {"namespace": list(parts)})["names"]
        return [Identifier(namespace=parts, name=name) for name in names]

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
    """Notes of a table. The server writes them; a client reads and forgets them."""

    def __init__(self, requests: Requests, key: str) -> None:
        self._requests = requests
        self._key = key

    def is_empty(self) -> bool:
        return False  # the server is asked for what is needed, not whether there is something

    def below(self, prefix: str) -> dict[str, str]:
        return self._notes("notes-below", prefix=prefix)

    def get(self, keys: Collection[str]) -> dict[str, str]:
        return self._notes("read-notes", names=list(keys))

    def add(self, notes: Mapping[str, str]) -> dict[str, str]:
        raise Unsupported(
            "notes of a table are written by the server alone", feature="notes of a client"
        )

    def remove(self, keys: Iterable[str]) -> None:
        self._notes("remove-notes", names=list(keys))

    def claim(self, version: int, by: str) -> str:
        answer = self._requests.read(
            "claim-version", {"key": self._key, "version": version, "by": by}
        )
        return str(answer["by"])

    def _notes(self, operation: str, **parts: Any) -> dict[str, str]:
        notes: dict[str, str] = self._requests.read(operation, {"key": self._key, **parts})["notes"]
        return notes

"""Views in memory, for `MemoryCatalog`."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from frazil.catalog.backend import (
    ViewName,
    ViewState,
    checked_name,
    name_taken,
    no_view,
    view_moved,
)
from frazil.catalog.names import Identifier, Namespace, namespace_of


class MemoryViews:
    """Views in a dictionary, behind the catalog's lock."""

    def __init__(
        self,
        lock: threading.RLock,
        *,
        namespace_exists: Callable[[Namespace], bool],
        table_exists: Callable[[Identifier], bool],
    ) -> None:
        self._lock = lock
        self._namespace_exists = namespace_exists
        self._table_exists = table_exists
        self._views: dict[Identifier, ViewState] = {}

    def create(self, identifier: ViewName, metadata: Mapping[str, Any]) -> ViewState:
        found = checked_name(identifier, self._namespace_exists)
        with self._lock:
            self._need_free(found)
            made = ViewState(identifier=found, metadata=_copy(metadata), version=0)
            self._views[found] = made
        return made

    def load(self, identifier: ViewName) -> ViewState:
        found = self._views.get(Identifier.parse(identifier))
        if found is None:
            raise no_view(Identifier.parse(identifier))
        return replace(found, metadata=_copy(found.metadata))

    def exists(self, identifier: ViewName) -> bool:
        return Identifier.parse(identifier) in self._views

    def list(self, namespace: str | Namespace) -> list[Identifier]:
        parts = namespace_of(namespace)
        return sorted(each for each in self._views if each.namespace == parts)

    def replace(self, base: ViewState, metadata: Mapping[str, Any]) -> ViewState:
        with self._lock:
            now = self._views.get(base.identifier)
            if now is None or now.version != base.version:
                raise view_moved(base)
            made = replace(base, metadata=_copy(metadata), version=base.version + 1)
            self._views[base.identifier] = made
        return made

    def rename(self, identifier: ViewName, to: ViewName) -> None:
        old, new = Identifier.parse(identifier), checked_name(to, self._namespace_exists)
        with self._lock:
            found = self.load(old)
            self._need_free(new)
            del self._views[old]
            self._views[new] = replace(found, identifier=new)

    def drop(self, identifier: ViewName) -> None:
        with self._lock:
            del self._views[self.load(identifier).identifier]

    def below(self, namespace: Namespace) -> bool:
        """Whether a namespace, or one below it, holds a view."""
        depth = len(namespace)
        return any(each.namespace[:depth] == namespace for each in self._views)

    def _need_free(self, identifier: Identifier) -> None:
        if identifier in self._views or self._table_exists(identifier):
            raise name_taken(identifier)


def _copy(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return dict(json.loads(json.dumps(dict(metadata))))

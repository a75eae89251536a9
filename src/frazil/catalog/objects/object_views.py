"""Views as objects: one each, with its metadata, swapped by If-Match; empty when it was dropped.

Tables and views share their names. Whoever enters one writes it first and then looks for the other
kind: of two that do so at once, at least one sees the other and gives way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from frazil.catalog.objects.conditional_put import Written, new_mark, put, read
from frazil.catalog.objects.history_objects import encode, parse
from frazil.catalog.objects.layout import SUFFIX, Layout, decoded
from frazil.storage.base import ConditionalStore, ObjectVersion
from frazil.value_classes import frozen

_MAX_TRIES = 20


@frozen
class _StoredView:
    state: ViewState
    version: ObjectVersion


class ObjectViews:
    """The views of one warehouse."""

    def __init__(
        self,
        store: ConditionalStore,
        layout: Layout,
        *,
        namespace_exists: Callable[[Namespace], bool],
        table_exists: Callable[[Identifier], bool],
        prepare: Callable[[Namespace], None],
    ) -> None:
        """`prepare` makes what a new view needs: the catalog, and the object of its namespace."""
        self._store = store
        self._layout = layout
        self._namespace_exists = namespace_exists
        self._table_exists = table_exists
        self._prepare = prepare

    def create(self, identifier: ViewName, metadata: Mapping[str, Any]) -> ViewState:
        name = checked_name(identifier, self._namespace_exists)
        state = ViewState(identifier=name, metadata=dict(metadata), version=0)
        self._enter(state)
        return state

    def load(self, identifier: ViewName) -> ViewState:
        name = Identifier.parse(identifier)
        stored = self._read(name)
        if stored is None:
            raise no_view(name)
        return stored.state

    def exists(self, identifier: ViewName) -> bool:
        return self._read(Identifier.parse(identifier)) is not None

    def list(self, namespace: str | Namespace) -> list[Identifier]:
        parts = namespace_of(namespace)
        files = self._store.children(self._layout.views(parts))[1]
        keys = (file.path.rpartition("/")[2].removesuffix(SUFFIX) for file in files if file.size)
        return sorted(Identifier(namespace=parts, name=decoded(key)) for key in keys)

    def replace(self, base: ViewState, metadata: Mapping[str, Any]) -> ViewState:
        stored = self._read(base.identifier)
        if stored is None or stored.state.version != base.version:
            raise view_moved(base)
        state = ViewState(
            identifier=base.identifier, metadata=dict(metadata), version=base.version + 1
        )
        mark = new_mark()
        path = self._layout.view(base.identifier)
        if not isinstance(
            put(self._store, path, _encoded(state, mark), over=stored.version, mark=mark), Written
        ):
            raise view_moved(base)
        return state

    def rename(self, identifier: ViewName, to: ViewName) -> None:
        old, new = Identifier.parse(identifier), checked_name(to, self._namespace_exists)
        stored = self._read(old)
        if stored is None:
            raise no_view(old)
        # The new name comes first: a crash leaves the view under both names, never under none.
        self._enter(
            ViewState(identifier=new, metadata=stored.state.metadata, version=stored.state.version)
        )
        self._clear(old, stored.version)

    def drop(self, identifier: ViewName) -> None:
        name = Identifier.parse(identifier)
        for _ in range(_MAX_TRIES):
            stored = self._read(name)
            if stored is None:
                raise no_view(name)
            if self._clear(name, stored.version):
                return

    def _enter(self, state: ViewState) -> None:
        name = state.identifier
        self._prepare(name.namespace)
        path = self._layout.view(name)
        mark = new_mark()
        data = _encoded(state, mark)
        over: ObjectVersion | None = None
        while True:
            outcome = put(self._store, path, data, over=over, mark=mark)
            if isinstance(outcome, Written):
                break
            if outcome.current is not None and outcome.current.data:
                raise name_taken(name)
            over = None if outcome.current is None else outcome.current.version
        if self._table_exists(name):
            if outcome.version is not None:
                self._clear(name, outcome.version)
            raise name_taken(name)

    def _clear(self, name: Identifier, version: ObjectVersion) -> bool:
        path = self._layout.view(name)
        outcome = put(self._store, path, b"", over=version, mark="\0")
        is_empty = not isinstance(outcome, Written) and (
            outcome.current is None or not outcome.current.data
        )
        return isinstance(outcome, Written) or is_empty

    def _read(self, name: Identifier) -> _StoredView | None:
        path = self._layout.view(name)
        stored = read(self._store, path)
        if stored is None or not stored.data:
            return None
        document = parse(stored.data, path)
        state = ViewState(
            identifier=name, metadata=document["metadata"], version=int(document["version"])
        )
        return _StoredView(state=state, version=stored.version)


def _encoded(state: ViewState, mark: str) -> bytes:
    return encode({"id": mark, "version": state.version, "metadata": dict(state.metadata)})

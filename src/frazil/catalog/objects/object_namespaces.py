"""Namespaces as objects: one for each that was created, with its properties.

A namespace also exists while another one lies below it. One that gets a table or view and has no
object gets one, so that a single LIST shows all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from frazil.catalog.backend import NamespaceName
from frazil.catalog.names import Namespace, dotted, namespace_of
from frazil.catalog.objects.conditional_put import Refused, Written, new_mark, put, read
from frazil.catalog.objects.history_objects import encode, parse
from frazil.catalog.objects.layout import SUFFIX, Layout, Marker, namespace_of_key
from frazil.errors import AlreadyExists, CatalogError, InvalidInput, NotFound
from frazil.format.checks import check_properties
from frazil.storage.base import ConditionalStore, ObjectVersion

_MAX_TRIES = 100


class ObjectNamespaces:
    """The namespaces of one warehouse."""

    def __init__(self, store: ConditionalStore, layout: Layout, marker: Marker) -> None:
        self._store = store
        self._layout = layout
        self._marker = marker

    def all(self) -> list[Namespace]:
        """Every namespace that was created: one LIST."""
        files = self._store.children(self._layout.namespaces)[1]
        keys = (file.path.rpartition("/")[2].removesuffix(SUFFIX) for file in files if file.size)
        return sorted(namespace_of_key(key) for key in keys)

    def exists(self, namespace: NamespaceName) -> bool:
        namespace = namespace_of(namespace)
        return self._read(namespace) is not None or self._has_below(namespace)

    def create(self, namespace: NamespaceName, properties: Mapping[str, str] | None = None) -> None:
        namespace, properties = namespace_of(namespace), properties or {}
        check_properties(properties)
        self._marker.ensure()
        taken = AlreadyExists(f"namespace {dotted(namespace)} already exists")
        if self._has_below(namespace) or not self._make(namespace, properties):
            raise taken

    def ensure(self, namespace: Namespace) -> None:
        """Make it unless it is there."""
        self._make(namespace, {})

    def children(self, parent: NamespaceName = ()) -> list[Namespace]:
        parent = namespace_of(parent) if parent else ()
        created = self.all()
        depth = len(parent) + 1
        if parent and not any(name[: depth - 1] == parent for name in created):
            raise _missing(parent)
        return sorted({n[:depth] for n in created if len(n) >= depth and n[: depth - 1] == parent})

    def properties(self, namespace: NamespaceName) -> dict[str, str]:
        namespace = namespace_of(namespace)
        stored = self._read(namespace)
        if stored is None:
            if not self._has_below(namespace):
                raise _missing(namespace)
            return {}
        return stored[0]

    def set_properties(
        self, namespace: NamespaceName, updates: Mapping[str, str], *, removals: Iterable[str] = ()
    ) -> None:
        namespace = namespace_of(namespace)
        check_properties(updates)
        removed = set(removals)
        for _ in range(_MAX_TRIES):
            stored = self._read(namespace)
            if stored is None:
                if not self._has_below(namespace):
                    raise _missing(namespace)
                self.ensure(namespace)
                continue
            properties = {key: value for key, value in stored[0].items() if key not in removed}
            mark = new_mark()
            data = _encoded({**properties, **updates}, mark)
            path = self._layout.namespace(namespace)
            if isinstance(put(self._store, path, data, over=stored[1], mark=mark), Written):
                return
        raise CatalogError(f"{dotted(namespace)}: others kept changing it; try again")

    def drop(self, namespace: NamespaceName) -> None:
        namespace = namespace_of(namespace)
        stored = self._read(namespace)
        has_below = self._has_below(namespace)
        if stored is None and not has_below:
            raise _missing(namespace)
        if has_below or self._holds(namespace):
            raise InvalidInput(f"namespace {dotted(namespace)} is not empty")
        assert stored is not None
        path = self._layout.namespace(namespace)
        outcome = put(self._store, path, b"", over=stored[1], mark="\0")
        if isinstance(outcome, Refused) and outcome.current is not None and outcome.current.data:
            raise CatalogError(f"{dotted(namespace)}: it was changed at the same time; try again")
        if self._holds(namespace):  # a table came in between: it needs its namespace
            self.ensure(namespace)
            raise InvalidInput(f"namespace {dotted(namespace)} is not empty")

    def _make(self, namespace: Namespace, properties: Mapping[str, str]) -> bool:
        """Create the object; False when it is there."""
        path = self._layout.namespace(namespace)
        mark = new_mark()
        data = _encoded(properties, mark)
        over: ObjectVersion | None = None
        for _ in range(_MAX_TRIES):
            outcome = put(self._store, path, data, over=over, mark=mark)
            if isinstance(outcome, Written):
                return True
            if outcome.current is not None and outcome.current.data:
                return False
            over = None if outcome.current is None else outcome.current.version
        raise CatalogError(f"{dotted(namespace)}: others kept changing it; try again")

    def _read(self, namespace: Namespace) -> tuple[dict[str, str], ObjectVersion] | None:
        path = self._layout.namespace(namespace)
        stored = read(self._store, path)
        if stored is None or not stored.data:
            return None
        return dict(parse(stored.data, path)["properties"]), stored.version

    def _has_below(self, namespace: Namespace) -> bool:
        depth = len(namespace)
        return any(name[:depth] == namespace and len(name) > depth for name in self.all())

    def _holds(self, namespace: Namespace) -> bool:
        """Whether a table or view is in it: an empty object is a name that nobody has."""
        folders = (self._layout.names(namespace), self._layout.views(namespace))
        return any(file.size for folder in folders for file in self._store.children(folder)[1])


def _encoded(properties: Mapping[str, str], mark: str) -> bytes:
    return encode({"id": mark, "properties": dict(properties)})


def _missing(namespace: Namespace) -> NotFound:
    return NotFound(f"namespace {dotted(namespace)} does not exist")

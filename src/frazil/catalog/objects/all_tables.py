"""Every table of a bucket at once: one LIST of the names, then names and heads side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, cast

from frazil.catalog import export
from frazil.catalog.backend import TableVersion
from frazil.catalog.names import Identifier, Namespace
from frazil.catalog.objects.head_object import HeadObject, StoredHead
from frazil.catalog.objects.layout import SUFFIX, Layout, decoded, namespace_of_key
from frazil.catalog.objects.names import HeldName, Names
from frazil.catalog.objects.object_head import ObjectHead
from frazil.catalog.ownership import TablePlace
from frazil.errors import FrazilError
from frazil.storage import Places, Storage
from frazil.storage.base import ConditionalStore
from frazil.threads import in_threads
from frazil.value_classes import frozen

_READERS = 16


@frozen
class AllTables:
    """The tables of one warehouse."""

    store: ConditionalStore
    layout: Layout
    names: Names
    storage: Callable[[str], Storage]
    load: Callable[[Identifier], Any]
    opened: Callable[[HeadObject, StoredHead], ObjectHead]

    def held(self) -> list[tuple[Identifier, HeldName]]:
        """Every table by name, with its head."""
        folder = f"{self.layout.folder}/names"
        names = sorted(
            Identifier(namespace=namespace_of_key(space), name=decoded(key.removesuffix(SUFFIX)))
            for space, key in (
                file.path.rsplit("/", 2)[1:] for file in self.store.list(folder) if file.size
            )
        )
        held = in_threads(names, self.names.find, threads=_READERS)
        return [
            (name, entry)
            for name, entry in zip(names, held, strict=True)
            if entry is not None and entry.is_confirmed(name)
        ]

    def versions(self, since_ms: int | None) -> list[TableVersion]:
        """Every table with its version, and the times of its commits since a time."""
        versions = []
        for name, held in self.held():
            if held.stored_head is None:
                version = str(held.entry.metadata_location)
                versions.append(TableVersion(identifier=name, version=version))
                continue
            document = held.stored_head.document
            versions.append(
                TableVersion(
                    identifier=name,
                    version=f"{document.table_uuid}:{document.version}",
                    committed_ms=() if since_ms is None else self._committed(held, since_ms),
                )
            )
        return versions

    def places(self, except_uuid: str | None) -> Iterable[TablePlace]:
        """Where every table but one keeps files."""
        for name, held in self.held():
            opened = partial(self.load, name)
            if held.stored_head is not None:
                document = held.stored_head.document
                if document.table_uuid != except_uuid:
                    properties = document.definition.document.get("properties") or {}
                    yield TablePlace.of(str(name), document.location, properties, open=opened)
                continue
            yield self._place_of_others(str(name), _json(held), opened)

    def is_place(self, location: str) -> bool:
        """Whether a table has its files at a location, or its metadata file there."""
        places = Places()
        place = places.folder(location)
        return any(
            places.folder(held.entry.location) == place
            if held.entry.location is not None
            else _json(held) == location
            for _, held in self.held()
        )

    def below(self, folder: str) -> list[tuple[Namespace, str]]:
        """Locations of tables inside a folder, with the namespaces that they are in. Those of other
        writers lie where their metadata file says."""
        places = Places()
        inside = places.folder(folder)
        locations = []
        for name, held in self.held():
            location = held.entry.location or _folder_of_json(_json(held))
            locations.append((name.namespace, places.folder(location)))
        return [
            (namespace, place.rstrip("/"))
            for namespace, place in locations
            if place.startswith(inside)
        ]

    def _place_of_others(self, name: str, json: str, opened: Callable[[], Any]) -> TablePlace:
        try:
            metadata, _ = export.read(json, storage=self.storage(json))
        except FrazilError:
            return TablePlace.of(name, _folder_of_json(json), {}, open=opened)
        return TablePlace.of(name, metadata.location, metadata.properties, open=opened)

    def _committed(self, held: HeldName, since_ms: int) -> tuple[int, ...]:
        assert held.head is not None
        assert held.stored_head is not None
        document = held.stored_head.document
        log = document.log_entries()
        if document.history and (not log or log[0].timestamp_ms >= since_ms):
            log = self.opened(held.head, held.stored_head).history_as_read().snapshot_log
        return tuple(entry.timestamp_ms for entry in log if entry.timestamp_ms >= since_ms)


def _json(held: HeldName) -> str:
    return cast(str, held.entry.metadata_location)


def _folder_of_json(path: str) -> str:
    return path.rpartition("/")[0].removesuffix("/metadata")

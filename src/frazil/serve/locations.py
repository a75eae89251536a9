"""Which files a client can make the server read or write.

They lie in the warehouse, in a namespace's own location, in places the server was told of, or where
the table has its files already. A sender who may not write everything gets the folder of the
namespace at hand in place of the warehouse, and so does not reach the tables of others.

Places are compared in one spelling, with symbolic links and `..` resolved.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Mapping
from functools import cached_property

from frazil.catalog import export
from frazil.catalog.names import Identifier, Namespace, table_location
from frazil.catalog.ownership import TablePlace
from frazil.errors import NotFound
from frazil.format import paths
from frazil.format.metadata import Snapshot, TableMetadata
from frazil.serve.exchange import Call
from frazil.serve.facade import SHOWN_LOCATION
from frazil.serve.listed_files import check_listed, reader_of
from frazil.serve.rest_errors import RestError
from frazil.serve.service import Service
from frazil.storage import Places, is_local, local_path

_LOCATION = "location"


class Fence:
    """Where the files of one request may lie."""

    def __init__(
        self,
        service: Service,
        call: Call | None = None,
        namespace: Namespace | None = None,
        *,
        more: Iterable[str] = (),
    ) -> None:
        self._service = service
        self._principal = None if call is None else call.principal
        self._namespace = namespace
        self._places = Places()
        self._more = tuple(more)

    def check(self, path: str) -> None:
        """403 unless a path is one of the folders or lies below one."""
        found = "" if "\0" in path else self._canonical(path)
        if not found.startswith(self._near) and not found.startswith(self._far):
            raise RestError(
                403,
                "ForbiddenException",
                f"{path}: lies outside the warehouse and the locations this request may use",
            )

    @cached_property
    def _near(self) -> tuple[str, ...]:
        return tuple(self._places.folder(each) for each in self._more if each)

    @cached_property
    def _far(self) -> tuple[str, ...]:
        """What is allowed besides the table's own places, which most files lie in."""
        service, namespace = self._service, self._namespace
        allowed = [*service.settings.allowed]
        warehouse = service.catalog.warehouse
        if self._principal is None or self._principal.may_write_everything():
            allowed.append(warehouse or "")
        elif namespace is not None and warehouse:
            first = Identifier(namespace=namespace, name="t")
            allowed.append(posixpath.dirname(table_location(warehouse, first)))
        if namespace is not None:
            allowed.append(_location_of(service, namespace))
        return tuple(self._places.folder(each) for each in allowed if each)

    def _canonical(self, path: str) -> str:
        if not is_local(path):
            return self._places.folder(path)
        folder, name = posixpath.split(local_path(path))
        whole = posixpath.join(self._places.folder(folder), name)
        if name in ("", ".", "..") or os.path.islink(whole):
            return self._places.folder(path)
        return f"{whole}/"


def check_namespace(
    service: Service, call: Call, namespace: Namespace, properties: Mapping[str, str]
) -> None:
    """Tables of a namespace go where its property says: refuse a place that is not allowed."""
    if _LOCATION in properties:
        above = namespace[:-1]
        more = [_location_of(service, above)] if above else []
        Fence(service, call, namespace, more=more).check(properties[_LOCATION])


def check_properties(fence: Fence, location: str, properties: Mapping[str, str]) -> None:
    """Refuse properties that send a table's files to a place that is not allowed."""
    for folder in folders_of(location, properties):
        fence.check(folder)


def folders_of(location: str, properties: Mapping[str, str]) -> tuple[str, ...]:
    """Where a table's files may lie by its location and its properties."""
    place = TablePlace.of("table", location, properties)
    shown = properties.get(SHOWN_LOCATION)
    return (place.location, *place.folders, *([shown] if shown else []))


def check_registered(
    service: Service,
    call: Call,
    namespace: Namespace,
    metadata_location: str,
    *,
    location: str | None = None,
) -> None:
    """Refuse to register metadata that leads elsewhere: by the table's location, by folders that
    its properties name, or by the manifests and files of a snapshot."""
    fence = Fence(service, call, namespace)
    fence.check(metadata_location)
    storage = service.catalog._pointers.storage(metadata_location)
    metadata, history = export.read_moved(metadata_location, storage=storage, location=location)
    check_properties(fence, metadata.location, metadata.properties)
    for snapshot in history.snapshots:
        check_files(fence, metadata, snapshot)
    check_listed(fence.check, reader_of(service, metadata), history.snapshots)


def check_files(fence: Fence, metadata: TableMetadata, snapshot: Snapshot) -> None:
    """Refuse a snapshot whose own files lie elsewhere."""
    for name in (snapshot.root_manifest, snapshot.manifest_list, *(snapshot.manifests or ())):
        if name is not None:
            fence.check(_address(metadata, name))


def _address(metadata: TableMetadata, name: str) -> str:
    return name if name.startswith("/") else paths.resolve(metadata.location, name)


def _location_of(service: Service, namespace: Namespace) -> str:
    try:
        return service.catalog._pointers.namespace_properties(namespace).get(_LOCATION, "")
    except NotFound:
        return ""

"""Places that a request names: of a namespace, of a table, of what it registers."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping

from frazil.catalog import export
from frazil.catalog.names import Identifier, Namespace, namespace_location
from frazil.errors import AlreadyExists, FormatError, InvalidInput
from frazil.format import paths
from frazil.format.checks import CLIENT_FOLDER, added_folders, client_location
from frazil.format.metadata.definition_checks import check_shape
from frazil.format.metadata.metadata import History, Snapshot, TableMetadata
from frazil.legacy.publish.published import FOLDER
from frazil.properties.registry import SERVE_LOCATION
from frazil.serve.access.allowed_paths import (
    LOCATION,
    Fence,
    canonical,
    folders_of,
    location_of,
    request_fence,
    storage_for,
)
from frazil.serve.exchange import Request
from frazil.serve.rest.listed_files import check_listed, reader_of
from frazil.serve.rest_errors import bad_request
from frazil.serve.service import Service
from frazil.value_classes import dataclass, field, replace


def check_namespace(
    service: Service, call: Request, namespace: Namespace, properties: Mapping[str, str]
) -> None:
    """Tables of a namespace go where its property says: refuse a place that is not allowed."""
    if LOCATION in properties:
        above = namespace[:-1]
        others = [location_of(service, above)] if above else []
        request_fence(service, call, namespace, table=others).allowed(properties[LOCATION])


def default_location(service: Service, namespace: Namespace) -> str | None:
    """Where tables of a namespace go that says nothing of it; None without a warehouse."""
    warehouse = service.pointers.warehouse
    return None if warehouse is None else namespace_location(warehouse, namespace)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPlace:
    """Where a new table lies, and properties that say where its clients write if not there."""

    location: str
    properties: Mapping[str, str] = field(default_factory=dict)


def place_of(
    service: Service, call: Request, identifier: Identifier, asked: str | None
) -> NewPlace:
    """Where a table goes for which a client asked for a location, or for none. What was asked for
    is what clients see; the table's own metadata lies elsewhere, as it must not lie there."""
    if asked is None:
        return NewPlace(location=service.pointers.location_for(identifier))
    asked = asked.rstrip("/")
    fence = request_fence(service, call, identifier.namespace)
    fence.allowed(asked)
    above, _, last = asked.rpartition("/")
    if last == CLIENT_FOLDER and above in fence and service.pointers.is_free(above):
        return NewPlace(location=above)  # what a staged table was shown
    if service.pointers.warehouse is None:
        return NewPlace(location=asked)
    default = service.pointers.location_for(identifier)
    if canonical(default) == canonical(asked):
        default = f"{default}-{uuid.uuid4().hex[:8]}"
    elif canonical(default).startswith(canonical(asked)):
        return NewPlace(location=asked)
    client = service.pointers.client_of(asked)
    if client is not None:
        raise AlreadyExists(f"{asked}: is the location of table {client}")
    return NewPlace(location=default, properties={SERVE_LOCATION.key: asked})


def check_properties(fence: Fence, location: str, properties: Mapping[str, str]) -> None:
    """Refuse properties that send a table's files to a place that is not allowed."""
    for folder in (*folders_of(location, properties), *added_folders(properties)):
        fence.allowed(folder)


def check_unshared(
    sharing: Callable[[str], str | None], location: str, properties: Mapping[str, str]
) -> None:
    """Refuse a property that shows clients a location in which another table has a folder: they
    remove files there that their table does not name."""
    if properties.get(SERVE_LOCATION.key):
        place = client_location(location, properties)
        if sharing(place) is not None:
            raise bad_request(f"{place}: is in use by another table; choose another location")


def read_registered(
    service: Service,
    call: Request,
    namespace: Namespace,
    metadata_location: str,
    *,
    location: str | None = None,
) -> tuple[TableMetadata, History]:
    """Metadata to register. Refuses what leads elsewhere: by the table's location, by folders that
    its properties name, or by the manifests and files of a snapshot."""
    fence = request_fence(service, call, namespace)
    storage = storage_for(service, fence, metadata_location)
    try:
        metadata, history = export.read_moved(metadata_location, storage=storage, location=location)
    except FormatError as error:
        raise InvalidInput(str(error)) from error
    check_properties(fence, metadata.location, metadata.properties)
    for snapshot in history.snapshots:
        check_files(fence, metadata, snapshot)
    check_listed(fence, reader_of(service, fence, metadata), history.snapshots)
    check_shape(metadata)
    above, _, last = metadata.location.rpartition("/")
    if last == CLIENT_FOLDER and metadata_location.startswith(f"{above}/{FOLDER}/"):
        metadata = replace(metadata, location=above)  # a document that clients were shown
    return metadata, history


def check_files(fence: Fence, metadata: TableMetadata, snapshot: Snapshot) -> None:
    """Refuse a snapshot whose own files lie elsewhere."""
    for name in (snapshot.root_manifest, snapshot.manifest_list, *(snapshot.manifests or ())):
        if name is not None:
            fence.allowed(_address(metadata, name))


def _address(metadata: TableMetadata, name: str) -> str:
    return name if name.startswith("/") else paths.resolve(metadata.location, name)

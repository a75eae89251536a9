"""Views over HTTP, kept in the catalog as Iceberg's view metadata."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from frazil.catalog.backend import ViewState
from frazil.catalog.names import Identifier, Namespace
from frazil.errors import AlreadyExists, CommitConflict, NotFound
from frazil.properties.registry import METADATA_PATH
from frazil.serve.access.allowed_paths import request_fence, storage_for, view_fence
from frazil.serve.access.rights import BODY_WRITER, PATH_READER, PATH_WRITER
from frazil.serve.exchange import NO_CONTENT, Endpoint, Request, Response
from frazil.serve.rest import namespace_endpoints, table_endpoints
from frazil.serve.rest_errors import bad_request, conflict, no_view, taken
from frazil.serve.service import Service
from frazil.serve.view import view_metadata
from frazil.serve.wire import wire

ROOT = f"{namespace_endpoints.ONE}/views"
ONE = f"{ROOT}/{{view}}"
_ATTEMPTS = 10


def list_views(service: Service, call: Request) -> Response:
    """GET: names."""
    return namespace_endpoints.names_page(service, call, service.catalog._pointers.views.list)


def create_view(service: Service, call: Request) -> Response:
    """POST."""
    request = call.decode(wire.CreateView)
    identifier = namespace_endpoints.new_name(service, call, request.name)
    _need_free(service, identifier)
    location = request.location or service.catalog._pointers.location_for(identifier)
    metadata = view_metadata.new_view(request, location=location.rstrip("/"))
    _check_places(service, call, identifier.namespace, metadata)
    return _view_response(service, _entered(service, identifier, metadata))


def register_view(service: Service, call: Request) -> Response:
    """POST register-view: enter a view from its metadata file."""
    request = call.decode(wire.RegisterTable)
    identifier = namespace_endpoints.new_name(service, call, request.name)
    _need_free(service, identifier)
    fence = request_fence(service, call, identifier.namespace)
    storage = storage_for(service, fence, request.metadata_location)
    try:
        metadata = json.loads(storage.read(request.metadata_location))
    except ValueError as error:
        raise bad_request(f"{request.metadata_location}: is not view metadata: {error}") from error
    metadata = checked_view(service, call, identifier.namespace, metadata)
    entered = _entered(service, identifier, metadata)
    return _view_response(service, entered, location=request.metadata_location)


def load_view(service: Service, call: Request) -> Response:
    """GET."""
    return _view_response(service, _loaded(service, call.identifier("view")))


def view_exists(service: Service, call: Request) -> Response:
    """HEAD."""
    if not service.catalog._pointers.views.exists(call.identifier("view")):
        raise no_view(call.identifier("view"))
    return NO_CONTENT


def replace_view(service: Service, call: Request) -> Response:
    """POST views/{view}: updates of a view."""
    posted = call.decode(wire.CommitView)
    identifier = call.identifier("view")
    if service.catalog._pointers.table_exists(identifier):
        raise taken("Table with same name", identifier)
    for _ in range(_ATTEMPTS):
        base = _loaded(service, identifier)
        for requirement in posted.requirements:
            if requirement.uuid.lower() != str(base.metadata["view-uuid"]).lower():
                raise conflict(
                    "Requirement failed: view UUID does not match: expected "
                    f"{base.metadata['view-uuid']} != {requirement.uuid}"
                )
        after = view_metadata.updated(base.metadata, posted.updates)
        if _file_of(after, 0) != _file_of(base.metadata, 0):
            _check_places(service, call, identifier.namespace, after)
        try:
            return _view_response(service, service.catalog._pointers.views.replace(base, after))
        except CommitConflict:
            continue
    raise conflict(f"Cannot commit: view {identifier} keeps changing")


def drop_view(service: Service, call: Request) -> Response:
    """DELETE."""
    identifier = call.identifier("view")
    try:
        service.catalog._pointers.views.drop(identifier)
    except NotFound as error:
        raise no_view(identifier) from error
    return NO_CONTENT


def rename_view(service: Service, call: Request) -> Response:
    """POST views/rename."""
    views = service.catalog._pointers.views
    return table_endpoints.renamed(service, call, "View", views.exists, views.rename, no_view)


def _need_free(service: Service, identifier: Identifier) -> None:
    if service.catalog._pointers.table_exists(identifier):
        raise taken("Table with same name", identifier)
    if service.catalog._pointers.views.exists(identifier):
        raise taken("View", identifier)


def _entered(service: Service, identifier: Identifier, metadata: dict[str, Any]) -> ViewState:
    try:
        return service.catalog._pointers.views.create(identifier, metadata)
    except AlreadyExists as error:
        raise taken("View", identifier) from error


def _loaded(service: Service, identifier: Identifier) -> ViewState:
    try:
        return service.catalog._pointers.views.load(identifier)
    except NotFound as error:
        raise no_view(identifier) from error


def _file_of(metadata: Mapping[str, Any], version: int) -> str:
    """Where the metadata file of a version goes."""
    folder = (
        metadata.get("properties", {}).get(METADATA_PATH.key) or f"{metadata['location']}/metadata"
    )
    return f"{folder.rstrip('/')}/{version:05d}-{metadata['view-uuid']}.metadata.json"


def _check_places(
    service: Service, call: Request, namespace: Namespace, metadata: Mapping[str, Any]
) -> None:
    try:
        uuid.UUID(str(metadata["view-uuid"]))
        where = _file_of(metadata, 0)
    except (KeyError, ValueError, AttributeError, TypeError) as error:
        raise bad_request(f"Invalid view: its uuid or location is missing: {error}") from error
    request_fence(service, call, namespace).allowed(where)


def checked_view(
    service: Service, call: Request, namespace: Namespace, document: object
) -> dict[str, Any]:
    """View metadata from elsewhere, if it can be used and lies where the sender may write."""
    metadata = view_metadata.checked(document)
    if metadata["location"] or METADATA_PATH.key in metadata["properties"]:
        _check_places(service, call, namespace, metadata)
    return metadata  # a view without a place is one of a catalog without a warehouse


def _view_response(service: Service, view: ViewState, *, location: str | None = None) -> Response:
    """A view as an answer. Its metadata file is written when somebody first sees the version."""
    metadata = dict(view.metadata)
    where = location or _file_of(metadata, view.version)
    fence = view_fence(service, view.identifier.namespace)
    storage = storage_for(service, fence, where)
    if not storage.exists(where):
        with suppress(AlreadyExists):  # another process may be quicker
            storage.write_new(where, json.dumps(metadata).encode())
    return Response(body={"metadata-location": where, "metadata": metadata, "config": {}})


ENDPOINTS = (
    Endpoint("GET", ROOT, list_views, PATH_READER),
    Endpoint("POST", ROOT, create_view, PATH_WRITER),
    Endpoint("GET", ONE, load_view, PATH_READER),
    Endpoint("HEAD", ONE, view_exists, PATH_READER),
    Endpoint("POST", ONE, replace_view, PATH_WRITER),
    Endpoint("DELETE", ONE, drop_view, PATH_WRITER),
    Endpoint("POST", "/v1/{prefix}/views/rename", rename_view, BODY_WRITER),
    Endpoint("POST", f"{namespace_endpoints.ONE}/register-view", register_view, PATH_WRITER),
)

"""Tables over HTTP: create, load, register, rename, drop. Commits are in `commits`."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from pydantic import ValidationError
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortOrder

from frazil.catalog.names import Identifier
from frazil.commit.handle import now_ms
from frazil.errors import AlreadyExists, NotFound
from frazil.format.metadata import TableMetadata, new_table
from frazil.format.plain import UNPARTITIONED, UNSORTED
from frazil.serve import facade, namespace_endpoints, wire
from frazil.serve.exchange import NO_CONTENT, Answer, Call, Endpoint
from frazil.serve.facade import SHOWN_VERSION
from frazil.serve.locations import Fence, check_properties, check_registered
from frazil.serve.rest_errors import RestError, bad_request, no_namespace, no_table, taken
from frazil.serve.service import Service
from frazil.storage import is_local
from frazil.storage.base import local_path
from frazil.table import Table

ROOT = f"{namespace_endpoints.ONE}/tables"
ONE = f"{ROOT}/{{table}}"
FORMAT_VERSION = "format-version"


def list_tables(service: Service, call: Call) -> Answer:
    """GET: names."""
    return namespace_endpoints.names_page(service, call, service.catalog._pointers.list_tables)


def create_table(service: Service, call: Call) -> Answer:
    """POST: create, or with `stage-create` only say what would be created."""
    wanted = call.decode(wire.CreateTable)
    identifier = namespace_endpoints.new_name(service, call, wanted.name)
    need_free(service, identifier)
    metadata = _new_metadata(service, call, identifier, wanted)
    if wanted.stage_create:
        _make_folders(metadata.location)
        document = facade.staged_document(metadata, call.format_version)
        return Answer(body=_body(service, None, document))
    try:
        service.catalog._pointers.create_table(identifier, metadata)
    except AlreadyExists as error:
        raise taken("Table", identifier) from error
    _make_folders(metadata.location)
    return shown(service, service.table(identifier), call)


def created_before(service: Service, call: Call) -> Answer:
    """The table that an earlier request created."""
    name = call.decode(wire.CreateTable).name
    return shown(service, service.table(Identifier.parse((*call.namespace(), name))), call)


def load_table(service: Service, call: Call) -> Answer:
    """GET: the metadata, or 304 when the client has it."""
    return shown(service, service.table(call.identifier()), call)


def table_exists(service: Service, call: Call) -> Answer:
    """HEAD."""
    if not service.catalog._pointers.table_exists(call.identifier()):
        raise no_table(call.identifier())
    return NO_CONTENT


def drop_table(service: Service, call: Call) -> Answer:
    """DELETE: with `purgeRequested` the files go too."""
    identifier = call.identifier()
    purge = call.query.get("purgeRequested", "false").lower() == "true"
    try:
        service.catalog.drop_table(identifier, purge=purge)
    except NotFound as error:
        raise no_table(identifier) from error
    return NO_CONTENT


def rename_table(service: Service, call: Call) -> Answer:
    """POST tables/rename."""
    pointers = service.catalog._pointers
    return renamed(service, call, "Table", pointers.table_exists, pointers.rename, no_table)


def renamed(
    service: Service,
    call: Call,
    what: str,
    exists: Callable[[Identifier], bool],
    rename: Callable[[Identifier, Identifier], object],
    missing: Callable[[Identifier], RestError],
) -> Answer:
    """Rename a table or view."""
    wanted = call.decode(wire.Rename)
    source, target = name_of(wanted.source), name_of(wanted.destination)
    call.check("write", source.namespace, target.namespace)
    if not exists(source):
        raise missing(source)
    if not service.catalog._pointers.namespace_exists(target.namespace):
        raise no_namespace(target.namespace)
    check_target(service, source, target)
    try:
        rename(source, target)
    except NotFound as error:
        raise missing(source) from error
    except AlreadyExists as error:
        raise taken(what, target) from error
    return NO_CONTENT


def register_table(service: Service, call: Call) -> Answer:
    """POST register: enter a table from its metadata file. One of v1 to v3 is upgraded."""
    wanted = call.decode(wire.RegisterTable)
    identifier = namespace_endpoints.new_name(service, call, wanted.name)
    check_registered(service, call, identifier.namespace, wanted.metadata_location)
    if service.catalog._pointers.table_exists(identifier):
        if not wanted.overwrite:
            raise taken("Table", identifier)
        service.catalog._pointers.drop(identifier)
    need_free(service, identifier)
    table = service.catalog.register_table(identifier, wanted.metadata_location)
    if table.metadata.format_version < 4:
        version = table.metadata.format_version
        table.upgrade()
        table = service.table(identifier)
        table.set_properties({SHOWN_VERSION: str(max(2, version))})
    return shown(service, table, call)


def report_metrics(service: Service, call: Call) -> Answer:
    """POST metrics: taken and not kept."""
    try:
        msgspec.json.decode(call.body)
    except msgspec.DecodeError as error:
        raise bad_request(f"Malformed request: {error}") from error
    return NO_CONTENT


def shown(service: Service, table: Table, call: Call) -> Answer:
    """A table as an answer."""
    found = service.facade.show(table._handle, call.format_version)
    if call.method == "GET" and call.headers.get("if-none-match") == found.etag:
        return Answer(status=304, headers={"ETag": found.etag})
    return Answer(
        body=_body(service, found.metadata_location, found.document),
        headers={"ETag": found.etag},
    )


def name_of(name: wire.TableName) -> Identifier:
    """A name as requests give it."""
    return Identifier.parse((*name.namespace, name.name))


def need_free(service: Service, identifier: Identifier) -> None:
    """409 when a table or view has the name."""
    if service.catalog._pointers.table_exists(identifier):
        raise taken("Table", identifier)
    if service.catalog._pointers.views.exists(identifier):
        raise taken("View with same name", identifier)


def check_target(service: Service, source: Identifier, target: Identifier) -> None:
    """409 when the name that a table or view is to get is in use."""
    pointers = service.catalog._pointers
    for kind, in_use in (
        ("Table", pointers.table_exists(target)),
        ("View", pointers.views.exists(target)),
    ):
        if in_use:
            raise RestError(
                409,
                "AlreadyExistsException",
                f"Cannot rename {source} to {target}. {kind} already exists",
            )


def _body(service: Service, location: str | None, document: bytes) -> dict[str, Any]:
    body: dict[str, Any] = {} if location is None else {"metadata-location": location}
    body["metadata"] = msgspec.Raw(document)
    body["config"] = dict(service.settings.properties)
    return body


def _new_metadata(
    service: Service, call: Call, identifier: Identifier, wanted: wire.CreateTable
) -> TableMetadata:
    location = wanted.location
    if location is None:
        location = service.catalog._pointers.location_for(identifier)
    fence = Fence(service, call, identifier.namespace)
    check_properties(fence, location, wanted.properties or {})
    spec, order = wanted.partition_spec, wanted.write_order
    try:
        return new_table(
            schema=Schema.model_validate(wanted.schema),
            spec=PartitionSpec.model_validate(spec) if spec else UNPARTITIONED,
            sort_order=SortOrder.model_validate(order) if order else UNSORTED,
            location=location,
            table_uuid=uuid.uuid4(),
            now_ms=now_ms(),
            properties=stored_properties(wanted.properties or {}),
        )
    except (ValidationError, ValueError) as error:
        raise bad_request(f"Invalid table: {error}") from error


def stored_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties of a create request as they are stored: the format version is what is shown."""
    stored = {key: value for key, value in properties.items() if key != FORMAT_VERSION}
    version = properties.get(FORMAT_VERSION)
    if version is not None:
        if version not in ("1", "2", "3", "4"):
            raise bad_request(f"format-version is {version!r}; expected 2 or 3")
        stored[SHOWN_VERSION] = str(min(3, int(version)))
    return stored


def _make_folders(location: str) -> None:
    """Some clients write into folders and do not make them."""
    if is_local(location):
        for folder in ("metadata", "data"):
            Path(local_path(location), folder).mkdir(parents=True, exist_ok=True)


ENDPOINTS = (
    Endpoint(method="GET", template=ROOT, handler=list_tables),
    Endpoint(
        method="POST", template=ROOT, handler=create_table, right="write", again=created_before
    ),
    Endpoint(method="GET", template=ONE, handler=load_table),
    Endpoint(method="HEAD", template=ONE, handler=table_exists),
    Endpoint(method="DELETE", template=ONE, handler=drop_table, right="write"),
    Endpoint(
        method="POST",
        template="/v1/{prefix}/tables/rename",
        handler=rename_table,
        right="write",
        names_in_body=True,
    ),
    Endpoint(
        method="POST",
        template=f"{namespace_endpoints.ONE}/register",
        handler=register_table,
        right="write",
    ),
    Endpoint(method="POST", template=f"{ONE}/metrics", handler=report_metrics),
)

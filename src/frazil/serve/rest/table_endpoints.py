"""Tables over HTTP: create, load, register, rename, drop. Commits are in `commits`.

`GET /v2/{prefix}/namespaces/{namespace}/tables/{table}`, a draft that Iceberg's community has in
review, gives the metadata of format version 4 with its roots. Where tables are shown so, v1 refuses
them with 400 and the error's own type, so that a client which knows only v1 does not take such a
table for a broken one.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

import msgspec

from frazil import cancellation
from frazil.catalog.names import Identifier
from frazil.commit.handle import now_ms
from frazil.errors import AlreadyExists, FrazilError, InvalidInput, NotFound
from frazil.format.metadata import metadata_json
from frazil.format.metadata.definition_checks import check_definition
from frazil.format.metadata.metadata import FORMAT_VERSION, TableMetadata, new_table
from frazil.iceberg.partitioning import UNPARTITIONED, load_spec
from frazil.iceberg.schema import load_schema
from frazil.iceberg.sorting import UNSORTED, load_order
from frazil.legacy.upgrade.upgrade import upgraded_unregistered
from frazil.properties.registry import SERVE_FORMAT_VERSION, without_empty
from frazil.serve.access.allowed_paths import make_folders, request_fence, storage_for
from frazil.serve.access.rights import BODY_WRITER, PATH_READER, PATH_WRITER
from frazil.serve.exchange import NO_CONTENT, Endpoint, Request, Response
from frazil.serve.rest import namespace_endpoints
from frazil.serve.rest.locations import (
    check_properties,
    check_unshared,
    place_of,
    read_registered,
    reader_of,
)
from frazil.serve.rest_errors import RestError, bad_request, no_namespace, no_table, taken
from frazil.serve.service import Service
from frazil.serve.view import published_view
from frazil.serve.view.published_view import PublishedVersion, head_of
from frazil.serve.wire import wire
from frazil.table import Table

log = logging.getLogger("frazil.serve")

ROOT = f"{namespace_endpoints.ONE}/tables"
ONE = f"{ROOT}/{{table}}"
_VERSION = "format-version"
_READS_BELOW_LOCATION = "clickhouse/"
"""Clients that look for metadata files only below a table's location, by their user agent."""
V4_TABLE = "/v2/{prefix}/namespaces/{namespace}/tables/{table}"


def list_tables(service: Service, call: Request) -> Response:
    """GET: names."""
    return namespace_endpoints.names_page(service, call, service.catalog._pointers.list_tables)


def create_table(service: Service, call: Request) -> Response:
    """POST: create, or with `stage-create` only say what would be created."""
    request = call.decode(wire.CreateTable)
    identifier = namespace_endpoints.new_name(service, call, request.name)
    need_free(service, identifier)
    metadata = _new_metadata(service, call, identifier, request)
    if request.stage_create:
        _make_folders(service, call, identifier, metadata)
        document = published_view.staged_document(
            metadata, call.format_version, allow_client_gc=service.settings.allow_client_gc
        )
        return Response(body=_body(service, None, document))
    _make_folders(service, call, identifier, metadata)
    try:
        service.catalog._pointers.create_table(identifier, metadata)
    except AlreadyExists as error:
        raise not_entered(service, identifier, error) from error
    try:
        return table_response(service, service.table(identifier), call)
    except BaseException:
        _take_back(service, identifier, metadata)
        raise


def _take_back(service: Service, identifier: Identifier, metadata: TableMetadata) -> None:
    """Take out a table that was entered and cannot be shown, unless somebody uses it already: a
    client that is refused does not expect to find one."""
    try:
        state = service.table(identifier)._handle.state
        if state.metadata == metadata:
            service.catalog._pointers.drop(identifier)
    except (FrazilError, RestError):
        log.exception("%s could not be taken back", identifier)


def created_before(service: Service, call: Request) -> Response:
    """The table that an earlier request created."""
    name = call.decode(wire.CreateTable).name
    return table_response(service, service.table(Identifier.parse((*call.namespace(), name))), call)


def load_table(service: Service, call: Request) -> Response:
    """GET: the metadata, or 304 when the client has it. What many clients load at the same time
    is published once."""
    table = service.table(call.identifier())
    need_older(service, call, table.metadata)
    return _loaded(service, call, table)


def landed_table(service: Service, call: Request) -> Response:
    """The table after a commit that landed and is repeated: it is never refused."""
    return _loaded(service, call, service.table(call.identifier()))


def _loaded(service: Service, call: Request, table: Table) -> Response:
    state = table._handle.state
    about = (state.metadata.table_uuid, state.version, call.format_version)
    publishing = service.publications.run(
        about,
        # Others wait for it too: it goes on when the client that came first leaves.
        lambda: _published(service, call.identifier(), table, call.format_version),
    )
    if publishing.done():
        return version_response(service, call, table, publishing.result())
    answer: Future[Response] = Future()
    publishing.add_done_callback(
        lambda published: _pass_on(published, answer, service, call, table)
    )
    return Response(pending=answer)


def _published(
    service: Service, identifier: Identifier, table: Table, format_version: int | None
) -> PublishedVersion:
    """The table as it is, or as it is by now: a version that others have left behind may have lost
    its files meanwhile, which does not mean that the table is gone."""
    with cancellation.under(None):
        while True:
            try:
                return service.facade.show(table._handle, format_version)
            except NotFound:
                newer = service.table(identifier)
                if newer._handle.state.version == table._handle.state.version:
                    raise
                table = newer


def _pass_on(
    publishing: Future[PublishedVersion],
    answer: Future[Response],
    service: Service,
    call: Request,
    table: Table,
) -> None:
    try:
        answer.set_result(version_response(service, call, table, publishing.result()))
    except Exception as error:
        answer.set_exception(error)


def table_exists(service: Service, call: Request) -> Response:
    """HEAD."""
    if not service.catalog._pointers.table_exists(call.identifier()):
        raise no_table(call.identifier())
    return NO_CONTENT


def drop_table(service: Service, call: Request) -> Response:
    """DELETE: with `purgeRequested` the files go too."""
    identifier = call.identifier()
    purge = call.query.get("purgeRequested", "false").lower() == "true"
    try:
        service.catalog.drop_table(identifier, purge=purge)
    except NotFound as error:
        raise no_table(identifier) from error
    return NO_CONTENT


def rename_table(service: Service, call: Request) -> Response:
    """POST tables/rename."""
    pointers = service.catalog._pointers
    return renamed(service, call, "Table", pointers.table_exists, pointers.rename, no_table)


def renamed(
    service: Service,
    call: Request,
    what: str,
    exists: Callable[[Identifier], bool],
    rename: Callable[[Identifier, Identifier], object],
    missing: Callable[[Identifier], RestError],
) -> Response:
    """Rename a table or view."""
    request = call.decode(wire.Rename)
    source, target = name_of(request.source), name_of(request.destination)
    call.check("write", source.namespace, target.namespace)
    if not exists(source):
        raise missing(source)
    if not service.catalog._pointers.namespaces.exists(target.namespace):
        raise no_namespace(target.namespace)
    check_target(service, source, target)
    try:
        rename(source, target)
    except NotFound as error:
        raise missing(source) from error
    except AlreadyExists as error:
        raise taken(what, target) from error
    return NO_CONTENT


def register_table(service: Service, call: Request) -> Response:
    """POST register: enter a table from its metadata file. One of v1 to v3 is upgraded.

    What was read and checked is what is entered, in one transaction with taking out the table that
    is overwritten: the file may be another one by then.
    """
    request = call.decode(wire.RegisterTable)
    identifier = namespace_endpoints.new_name(service, call, request.name)
    where = request.metadata_location
    metadata, history = read_registered(service, call, identifier.namespace, where)
    if not (request.overwrite and service.catalog._pointers.table_exists(identifier)):
        need_free(service, identifier)
    location: str | None = where
    if metadata.format_version < FORMAT_VERSION:
        version = metadata.format_version
        fence = request_fence(service, call, identifier.namespace)
        reader = partial(reader_of, service, fence)
        try:
            metadata, history = upgraded_unregistered(
                str(identifier), where, metadata, history, reader
            )
        except NotFound as error:
            raise bad_request(f"Cannot register {where}: {error}") from error
        metadata = metadata.with_properties(
            {SERVE_FORMAT_VERSION.key: str(max(2, version))}, now_ms=metadata.last_updated_ms
        )
        location = None
    need_older(service, call, metadata)
    try:
        service.pointers.enter(
            identifier, metadata, history, metadata_location=location, overwrite=request.overwrite
        )
    except AlreadyExists as error:
        raise not_entered(service, identifier, error) from error
    return table_response(service, service.table(identifier), call)


def not_entered(service: Service, identifier: Identifier, error: AlreadyExists) -> RestError:
    """409 when the name is in use. What else is there already is another matter: clients take a
    409 for a table that exists, so a place that is taken is a 400."""
    pointers = service.catalog._pointers
    if pointers.table_exists(identifier):
        return taken("Table", identifier)
    if pointers.views.exists(identifier):
        return taken("View with same name", identifier)
    return bad_request(f"Cannot create {identifier}: its location is in use; choose another one")


def report_metrics(service: Service, call: Request) -> Response:
    """POST metrics: taken and not kept."""
    call.decode(object)
    return NO_CONTENT


def table_response(service: Service, table: Table, call: Request) -> Response:
    """A table as an answer."""
    document = service.facade.show(table._handle, call.format_version)
    return version_response(service, call, table, document)


def version_response(
    service: Service, call: Request, table: Table, version: PublishedVersion
) -> Response:
    if call.headers.get("user-agent", "").lower().startswith(_READS_BELOW_LOCATION):
        version = service.facade.copied_below(table._handle, version)
    if call.method == "GET" and call.headers.get("if-none-match") == version.etag:
        return Response(status=304, headers={"ETag": version.etag})
    return Response(
        body=_body(service, version.metadata_location, version.document),
        headers={"ETag": version.etag},
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
    service: Service, call: Request, identifier: Identifier, request: wire.CreateTable
) -> TableMetadata:
    try:
        place = place_of(service, call, identifier, request.location)
    except AlreadyExists as error:
        raise not_entered(service, identifier, error) from error
    location = place.location
    fence = request_fence(service, call, identifier.namespace)
    check_properties(fence, location, request.properties or {})
    check_unshared(service.pointers.client_of, location, request.properties or {})
    spec, order = request.partition_spec, request.write_order
    properties = {**stored_properties(request.properties or {}), **place.properties}
    if service.settings.shows_v4:  # whoever makes a table here is to load it here
        properties.setdefault(SERVE_FORMAT_VERSION.key, str(SERVE_FORMAT_VERSION.default))
    try:
        metadata = new_table(
            schema=load_schema(request.schema),
            spec=load_spec(spec) if spec else UNPARTITIONED,
            sort_order=load_order(order) if order else UNSORTED,
            location=location,
            table_uuid=uuid.uuid4(),
            now_ms=now_ms(),
            properties=properties,
        )
        check_definition(None, metadata)
    except (ValueError, TypeError, InvalidInput) as error:
        raise bad_request(f"Invalid table: {error}") from error
    return metadata


def stored_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties of a create request as they are stored: the format version is what is shown."""
    stored = without_empty({key: value for key, value in properties.items() if key != _VERSION})
    version = properties.get(_VERSION)
    if version is not None:
        if version not in ("1", "2", "3", "4"):
            raise bad_request(f"format-version is {version!r}; expected 2 or 3")
        stored[SERVE_FORMAT_VERSION.key] = str(min(3, int(version)))
    return stored


def _make_folders(
    service: Service, call: Request, identifier: Identifier, metadata: TableMetadata
) -> None:
    fence = request_fence(service, call, identifier.namespace)
    make_folders(storage_for(service, fence, metadata.location), metadata)


ENDPOINTS = (
    Endpoint("GET", ROOT, list_tables, PATH_READER),
    Endpoint("POST", ROOT, create_table, PATH_WRITER, again=created_before, takes_much=True),
    Endpoint("GET", ONE, load_table, PATH_READER),
    Endpoint("HEAD", ONE, table_exists, PATH_READER),
    Endpoint("DELETE", ONE, drop_table, PATH_WRITER),
    Endpoint("POST", "/v1/{prefix}/tables/rename", rename_table, BODY_WRITER),
    Endpoint("POST", f"{namespace_endpoints.ONE}/register", register_table, PATH_WRITER),
    Endpoint("POST", f"{ONE}/metrics", report_metrics, PATH_READER),
)


def need_older(service: Service, call: Request, metadata: TableMetadata) -> None:
    """400 on v1 for a table that is shown as it is. Prefixes and the table's own property
    `serve.format-version` ask for an older version."""
    if (
        service.settings.shows_v4
        and metadata.format_version >= FORMAT_VERSION
        and call.format_version is None
        and SERVE_FORMAT_VERSION.key not in metadata.properties
    ):
        raise RestError(
            400,
            "UnsupportedTableFormatVersionError",
            "the table has format version 4, which this endpoint does not show: load it from "
            f"{V4_TABLE}, use the prefix v2 or v3, or set {SERVE_FORMAT_VERSION.key} on the table",
        )


def load_v4_table(service: Service, call: Request) -> Response:
    """GET: the metadata as it is stored, or 304 when the client has it."""
    handle = service.table(call.identifier())._handle
    state, metadata = handle.state, handle.metadata
    etag = f'"{metadata.table_uuid}-{state.version}"'
    if call.headers.get("if-none-match") == etag:
        return Response(status=304, headers={"ETag": etag})
    document = metadata_json.dumps(metadata, head_of(handle).history())
    body: dict[str, Any] = {
        "metadata": msgspec.Raw(document),
        "table-location": metadata.location,
        "config": dict(service.settings.properties),
    }
    if state.metadata_location is not None and metadata.format_version < FORMAT_VERSION:
        body["metadata-location"] = state.metadata_location
    return Response(body=body, headers={"ETag": etag})


V4_ENDPOINTS = (Endpoint("GET", V4_TABLE, load_v4_table, PATH_READER),)
"""Those of a server whose `shows_v4` is set."""

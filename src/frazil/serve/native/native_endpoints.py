"""Frazil's own client on the server: namespaces, names of tables, views and notes.

Every operation is a POST to `/v1/frazil/<operation>` with its parameters in the body. Rights are
checked here, on the names that the body holds. Heads of tables are in `native_tables`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

from frazil.catalog.backend import ViewState
from frazil.catalog.names import Namespace, namespace_of
from frazil.catalog.notes import Notes
from frazil.catalog.remote.remote_wire import Document
from frazil.errors import CommitConflict, FormatError, FrazilError
from frazil.serve.access.rights import ANY_READER, BODY_READER, BODY_WRITER, Rights
from frazil.serve.exchange import Endpoint, Request, Response, decoded
from frazil.serve.native import native_tables, native_wire
from frazil.serve.native.native_tables import Answered
from frazil.serve.rest.locations import check_namespace
from frazil.serve.rest.view_endpoints import checked_view
from frazil.serve.rest_errors import bad_request, rest_error
from frazil.serve.service import Service

ROOT = "/v1/frazil"
Work = Callable[[Service, Request, Any], Answered]


def _about(service: Service, call: Request, _: native_wire.Nothing) -> Document:
    pointers = service.catalog._pointers
    return {"name": pointers.name, "warehouse": pointers.warehouse}


# Namespaces


def _checked(call: Request, right: Literal["read", "write"], parts: list[str]) -> Namespace:
    namespace = namespace_of(parts)
    call.check(right, namespace)
    return namespace


def _create_namespace(service: Service, call: Request, body: native_wire.SetNamespace) -> Document:
    namespace = _checked(call, "write", body.namespace)
    check_namespace(service, call, namespace, body.updates)
    service.catalog._pointers.namespaces.create(namespace, body.updates)
    return {}


def _list_namespaces(service: Service, call: Request, body: native_wire.InNamespace) -> Document:
    above = namespace_of(body.namespace) if body.namespace else ()
    namespaces = service.namespaces(above)
    if call.principal is not None:
        namespaces = [namespace for namespace in namespaces if call.principal.may_see(namespace)]
    return {"namespaces": [list(namespace) for namespace in namespaces]}


def _namespace_exists(service: Service, call: Request, body: native_wire.InNamespace) -> Document:
    namespace = _checked(call, "read", body.namespace)
    return {"exists": service.catalog._pointers.namespaces.exists(namespace)}


def _namespace_properties(
    service: Service, call: Request, body: native_wire.InNamespace
) -> Document:
    namespace = _checked(call, "read", body.namespace)
    return {"properties": service.catalog._pointers.namespaces.properties(namespace)}


def _set_namespace(service: Service, call: Request, body: native_wire.SetNamespace) -> Document:
    namespace = _checked(call, "write", body.namespace)
    check_namespace(service, call, namespace, body.updates)
    pointers = service.catalog._pointers
    pointers.namespaces.set_properties(namespace, body.updates, removals=body.removals)
    return {}


def _drop_namespace(service: Service, call: Request, body: native_wire.InNamespace) -> Document:
    service.catalog._pointers.namespaces.drop(_checked(call, "write", body.namespace))
    return {}


# Views


def _view_document(state: ViewState) -> Document:
    return {"metadata": state.metadata, "version": state.version}


def _create_view(service: Service, call: Request, body: native_wire.CreateView) -> Document:
    identifier = call.named("write", body.name)
    metadata = checked_view(service, call, identifier.namespace, body.metadata)
    return _view_document(service.catalog._pointers.views.create(identifier, metadata))


def _load_view(service: Service, call: Request, body: native_wire.Named) -> Document:
    return _view_document(service.catalog._pointers.views.load(call.named("read", body.name)))


def _view_exists(service: Service, call: Request, body: native_wire.Named) -> Document:
    exists = service.catalog._pointers.views.exists(call.named("read", body.name))
    return {"exists": exists}


def _list_views(service: Service, call: Request, body: native_wire.InNamespace) -> Document:
    views = service.catalog._pointers.views.list(_checked(call, "read", body.namespace))
    return {"names": [view.name for view in views]}


def _replace_view(service: Service, call: Request, body: native_wire.ReplaceView) -> Document:
    identifier = call.named("write", body.name)
    base = ViewState(identifier=identifier, metadata={}, version=body.version)
    metadata = checked_view(service, call, identifier.namespace, body.metadata)
    return _view_document(service.catalog._pointers.views.replace(base, metadata))


def _rename_view(service: Service, call: Request, body: native_wire.Rename) -> Document:
    old, new = call.named("write", body.name), call.named("write", body.to)
    service.catalog._pointers.views.rename(old, new)
    return {}


def _drop_view(service: Service, call: Request, body: native_wire.Named) -> Document:
    service.catalog._pointers.views.drop(call.named("write", body.name))
    return {}


# Notes


def _notes(service: Service, call: Request, key: str, right: Literal["read", "write"]) -> Notes:
    """The notes of a table. Clients read and forget them; only the server writes any, and those
    of the catalog, which hold answers to others, are not for clients."""
    return native_tables.head_of(service, call, key, right).notes


def _notes_below(service: Service, call: Request, body: native_wire.Prefix) -> Document:
    if not body.prefix:
        raise bad_request("prefix is empty; expected the start of the names of notes")
    return {"notes": _notes(service, call, body.key, "read").below(body.prefix)}


def _read_notes(service: Service, call: Request, body: native_wire.Names) -> Document:
    return {"notes": _notes(service, call, body.key, "read").get(body.names)}


def _remove_notes(service: Service, call: Request, body: native_wire.Names) -> Document:
    _notes(service, call, body.key, "write").remove(body.names)
    return {"notes": {}}


def _claim_version(service: Service, call: Request, body: native_wire.Claim) -> Document:
    """The one note that clients write: a number and an id, which lead nowhere."""
    if body.version < 1 or _CLAIMER.fullmatch(body.by) is None:
        raise bad_request("a claim is a version from 1 on and the id of who claims it")
    return {"by": _notes(service, call, body.key, "write").claim(body.version, body.by)}


_CLAIMER = re.compile(r"[0-9a-f-]{1,36}", re.ASCII)


# Endpoints


_LARGE = (None, native_wire.CreateTable, native_wire.Upgrade, native_wire.Swap)
"""Bodies that hold definitions and histories of tables; None holds entries."""


def _endpoint(name: str, rights: Rights, shape: type[Any] | None, work: Work) -> Endpoint:
    def handler(service: Service, call: Request) -> Response:
        try:
            body = call.body if shape is None else decoded(call.body, shape)
            answer = work(service, call, body)
        except FrazilError as error:
            return refusal(error)
        if isinstance(answer, Response):
            return answer
        return Response(body=answer) if isinstance(answer, dict) else Response(pending=answer)

    return Endpoint("POST", f"{ROOT}/{name}", handler, rights, takes_much=shape in _LARGE)


def refusal(error: FrazilError) -> Response:
    """An error that Frazil's own client turns into the same error again."""
    response = rest_error(error)
    body: dict[str, Any] = response.body()
    body["error"]["kind"] = error.kind
    if isinstance(error, CommitConflict):
        body["error"]["conflicts"] = [
            {
                "what": conflict.what,
                "where": conflict.where,
                "by_snapshot_id": conflict.by_snapshot_id,
            }
            for conflict in error.conflicts
        ]
    if isinstance(error, FormatError):
        body["error"]["kind"] = "invalid-input"
    return Response(status=response.status, body=body, headers=response.headers)


ENDPOINTS: tuple[Endpoint, ...] = (
    _endpoint("about", ANY_READER, native_wire.Nothing, _about),
    _endpoint("create-namespace", BODY_WRITER, native_wire.SetNamespace, _create_namespace),
    _endpoint("list-namespaces", ANY_READER, native_wire.InNamespace, _list_namespaces),
    _endpoint("namespace-exists", BODY_READER, native_wire.InNamespace, _namespace_exists),
    _endpoint("namespace-properties", BODY_READER, native_wire.InNamespace, _namespace_properties),
    _endpoint("set-namespace-properties", BODY_WRITER, native_wire.SetNamespace, _set_namespace),
    _endpoint("drop-namespace", BODY_WRITER, native_wire.InNamespace, _drop_namespace),
    _endpoint("create-view", BODY_WRITER, native_wire.CreateView, _create_view),
    _endpoint("load-view", BODY_READER, native_wire.Named, _load_view),
    _endpoint("view-exists", BODY_READER, native_wire.Named, _view_exists),
    _endpoint("list-views", BODY_READER, native_wire.InNamespace, _list_views),
    _endpoint("replace-view", BODY_WRITER, native_wire.ReplaceView, _replace_view),
    _endpoint("rename-view", BODY_WRITER, native_wire.Rename, _rename_view),
    _endpoint("drop-view", BODY_WRITER, native_wire.Named, _drop_view),
    _endpoint("notes-below", BODY_READER, native_wire.Prefix, _notes_below),
    _endpoint("read-notes", BODY_READER, native_wire.Names, _read_notes),
    _endpoint("remove-notes", BODY_WRITER, native_wire.Names, _remove_notes),
    _endpoint("claim-version", BODY_WRITER, native_wire.Claim, _claim_version),
    *(_endpoint(*operation) for operation in native_tables.OPERATIONS),
)
"""Every operation of Frazil's own client."""

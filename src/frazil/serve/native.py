"""Frazil's own client on the server: namespaces, names of tables, views and notes.

Every operation is a POST to `/v1/frazil/<operation>` with its parameters in the body. Rights are
checked here, on the names that the body holds. Heads of tables are in `native_tables`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from frazil.catalog.names import Namespace, namespace_of
from frazil.catalog.notes import Notes
from frazil.catalog.remote_wire import Document
from frazil.catalog.views import ViewState
from frazil.errors import CommitConflict, FormatError, FrazilError
from frazil.serve import native_tables, native_wire
from frazil.serve.exchange import Answer, Call, Endpoint, Right
from frazil.serve.locations import check_namespace
from frazil.serve.native_tables import Answered
from frazil.serve.rest_errors import rest_error
from frazil.serve.service import Service

ROOT = "/v1/frazil"
Work = Callable[[Service, Call, Any], Answered]


def _about(service: Service, call: Call, _: native_wire.Nothing) -> Document:
    pointers = service.catalog._pointers
    return {"name": pointers.name, "warehouse": pointers.warehouse}


# Namespaces


def _checked(call: Call, right: Literal["read", "write"], parts: list[str]) -> Namespace:
    namespace = namespace_of(parts)
    call.check(right, namespace)
    return namespace


def _create_namespace(service: Service, call: Call, body: native_wire.SetNamespace) -> Document:
    namespace = _checked(call, "write", body.namespace)
    check_namespace(service, call, namespace, body.updates)
    service.catalog._pointers.create_namespace(namespace, body.updates)
    return {}


def _list_namespaces(service: Service, call: Call, body: native_wire.InNamespace) -> Document:
    above = namespace_of(body.namespace) if body.namespace else ()
    found = service.catalog._pointers.list_namespaces(above)
    if call.principal is not None:
        found = [each for each in found if call.principal.may_see(each)]
    return {"namespaces": [list(each) for each in found]}


def _namespace_exists(service: Service, call: Call, body: native_wire.InNamespace) -> Document:
    namespace = _checked(call, "read", body.namespace)
    return {"exists": service.catalog._pointers.namespace_exists(namespace)}


def _namespace_properties(service: Service, call: Call, body: native_wire.InNamespace) -> Document:
    namespace = _checked(call, "read", body.namespace)
    return {"properties": service.catalog._pointers.namespace_properties(namespace)}


def _set_namespace(service: Service, call: Call, body: native_wire.SetNamespace) -> Document:
    namespace = _checked(call, "write", body.namespace)
    check_namespace(service, call, namespace, body.updates)
    pointers = service.catalog._pointers
    pointers.set_namespace_properties(namespace, body.updates, removals=body.removals)
    return {}


def _drop_namespace(service: Service, call: Call, body: native_wire.InNamespace) -> Document:
    service.catalog._pointers.drop_namespace(_checked(call, "write", body.namespace))
    return {}


# Views


def _shown(state: ViewState) -> Document:
    return {"metadata": state.metadata, "version": state.version}


def _create_view(service: Service, call: Call, body: native_wire.CreateView) -> Document:
    identifier = call.named("write", body.name)
    return _shown(service.catalog._pointers.views.create(identifier, body.metadata))


def _load_view(service: Service, call: Call, body: native_wire.Named) -> Document:
    return _shown(service.catalog._pointers.views.load(call.named("read", body.name)))


def _view_exists(service: Service, call: Call, body: native_wire.Named) -> Document:
    found = service.catalog._pointers.views.exists(call.named("read", body.name))
    return {"exists": found}


def _list_views(service: Service, call: Call, body: native_wire.InNamespace) -> Document:
    found = service.catalog._pointers.views.list(_checked(call, "read", body.namespace))
    return {"names": [each.name for each in found]}


def _replace_view(service: Service, call: Call, body: native_wire.ReplaceView) -> Document:
    identifier = call.named("write", body.name)
    base = ViewState(identifier=identifier, metadata={}, version=body.version)
    return _shown(service.catalog._pointers.views.replace(base, body.metadata))


def _rename_view(service: Service, call: Call, body: native_wire.Rename) -> Document:
    old, new = call.named("write", body.name), call.named("write", body.to)
    service.catalog._pointers.views.rename(old, new)
    return {}


def _drop_view(service: Service, call: Call, body: native_wire.Named) -> Document:
    service.catalog._pointers.views.drop(call.named("write", body.name))
    return {}


# Notes


def _notes(service: Service, call: Call, key: str | None, right: Right) -> Notes:
    """The notes of a table. Those of the catalog hold answers to others: all rights are needed."""
    if key is not None:
        wanted: Literal["read", "write"] = "write" if right == "write" else "read"
        return native_tables.head_of(service, call, key, wanted).notes
    if call.principal is not None:
        call.principal.check("write", [None])
    return service.catalog._pointers.notes


def _notes_below(service: Service, call: Call, body: native_wire.Prefix) -> Document:
    return {"notes": _notes(service, call, body.key, "read").below(body.prefix)}


def _read_notes(service: Service, call: Call, body: native_wire.Names) -> Document:
    return {"notes": _notes(service, call, body.key, "read").get(body.names)}


def _add_notes(service: Service, call: Call, body: native_wire.AddNotes) -> Document:
    return {"notes": _notes(service, call, body.key, "write").add(body.notes)}


def _remove_notes(service: Service, call: Call, body: native_wire.Names) -> Document:
    _notes(service, call, body.key, "write").remove(body.names)
    return {"notes": {}}


# Endpoints


def _endpoint(name: str, right: Right, shape: type[Any] | None, work: Work) -> Endpoint:
    def handler(service: Service, call: Call) -> Answer:
        try:
            body = call.body if shape is None else native_wire.decoded(call.body, shape)
            done = work(service, call, body)
        except FrazilError as error:
            return refusal(error)
        if isinstance(done, dict):
            return Answer(body=done)
        return Answer(pending=done)

    return Endpoint(
        method="POST",
        template=f"{ROOT}/{name}",
        handler=handler,
        right=right,
        names_in_body=True,
    )


def refusal(error: FrazilError) -> Answer:
    """An error that Frazil's own client turns into the same error again."""
    told = rest_error(error)
    body: dict[str, Any] = told.body()
    body["error"]["kind"] = error.kind
    if isinstance(error, CommitConflict):
        body["error"]["conflicts"] = [
            {"what": each.what, "where": each.where, "by_snapshot_id": each.by_snapshot_id}
            for each in error.conflicts
        ]
    if isinstance(error, FormatError):
        body["error"]["kind"] = "invalid-input"
    return Answer(status=told.status, body=body)


ENDPOINTS: tuple[Endpoint, ...] = (
    _endpoint("about", "read", native_wire.Nothing, _about),
    _endpoint("create-namespace", "write", native_wire.SetNamespace, _create_namespace),
    _endpoint("list-namespaces", "read", native_wire.InNamespace, _list_namespaces),
    _endpoint("namespace-exists", "read", native_wire.InNamespace, _namespace_exists),
    _endpoint("namespace-properties", "read", native_wire.InNamespace, _namespace_properties),
    _endpoint("set-namespace-properties", "write", native_wire.SetNamespace, _set_namespace),
    _endpoint("drop-namespace", "write", native_wire.InNamespace, _drop_namespace),
    _endpoint("create-view", "write", native_wire.CreateView, _create_view),
    _endpoint("load-view", "read", native_wire.Named, _load_view),
    _endpoint("view-exists", "read", native_wire.Named, _view_exists),
    _endpoint("list-views", "read", native_wire.InNamespace, _list_views),
    _endpoint("replace-view", "write", native_wire.ReplaceView, _replace_view),
    _endpoint("rename-view", "write", native_wire.Rename, _rename_view),
    _endpoint("drop-view", "write", native_wire.Named, _drop_view),
    _endpoint("notes-below", "read", native_wire.Prefix, _notes_below),
    _endpoint("read-notes", "read", native_wire.Names, _read_notes),
    _endpoint("add-notes", "write", native_wire.AddNotes, _add_notes),
    _endpoint("remove-notes", "write", native_wire.Names, _remove_notes),
    *(_endpoint(name, right, shape, work) for name, right, shape, work in native_tables.OPERATIONS),
)
"""Every operation of Frazil's own client."""

"""Namespaces over HTTP."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from frazil.catalog.names import Identifier, Namespace
from frazil.catalog.names import namespace_of as checked
from frazil.errors import AlreadyExists, InvalidInput
from frazil.serve import exchange
from frazil.serve.access.allowed_paths import LOCATION
from frazil.serve.access.principals import may_see
from frazil.serve.access.rights import ANY_READER, BODY_WRITER, PATH_READER, PATH_WRITER
from frazil.serve.exchange import NO_CONTENT, Endpoint, Request, Response
from frazil.serve.rest.locations import check_namespace, default_location
from frazil.serve.rest_errors import RestError, bad_request, no_namespace, taken
from frazil.serve.service import Service
from frazil.serve.wire import wire

_NUMBER = re.compile("[0-9]{1,18}")
ROOT = "/v1/{prefix}/namespaces"
ONE = f"{ROOT}/{{namespace}}"


def list_namespaces(service: Service, call: Request) -> Response:
    """GET: one level below a parent."""
    parent = call.query.get("parent")
    above = exchange.namespace_of(parent) if parent else ()
    if above and not may_see(call.principal, above):
        raise no_namespace(above)
    if above:
        service.need_namespace(above)
    namespaces = service.namespaces(above)
    if call.principal is not None:
        namespaces = [namespace for namespace in namespaces if call.principal.may_see(namespace)]
    return Response(
        body=paged([list(namespace) for namespace in namespaces], "namespaces", call.query)
    )


def create_namespace(service: Service, call: Request) -> Response:
    """POST."""
    request = call.decode(wire.CreateNamespace)
    namespace = checked(request.namespace)
    call.check("write", namespace)
    check_namespace(service, call, namespace, request.properties)
    try:
        service.catalog._pointers.namespaces.create(namespace, request.properties)
    except AlreadyExists as error:
        raise taken("Namespace", ".".join(namespace)) from error
    return Response(body={"namespace": list(namespace), "properties": request.properties})


def load_namespace(service: Service, call: Request) -> Response:
    """GET: its properties."""
    namespace = call.namespace()
    service.need_namespace(namespace)
    properties = service.catalog._pointers.namespaces.properties(namespace)
    place = default_location(service, namespace)
    published_properties = properties if place is None else {LOCATION: place, **properties}
    return Response(body={"namespace": list(namespace), "properties": published_properties})


def namespace_exists(service: Service, call: Request) -> Response:
    """HEAD."""
    service.need_namespace(call.namespace())
    return NO_CONTENT


def drop_namespace(service: Service, call: Request) -> Response:
    """DELETE: refused while it holds something."""
    namespace = call.namespace()
    service.need_namespace(namespace)
    try:
        service.catalog._pointers.namespaces.drop(namespace)
    except InvalidInput as error:
        raise RestError(
            409,
            "NamespaceNotEmptyException",
            f"Namespace is not empty: {'.'.join(namespace)}",
        ) from error
    return NO_CONTENT


def update_properties(service: Service, call: Request) -> Response:
    """POST properties: set and remove."""
    namespace = call.namespace()
    request = call.decode(wire.UpdateProperties)
    updates, removals = request.updates or {}, request.removals or []
    both = sorted(set(updates) & set(removals))
    if both:
        raise RestError(
            422,
            "UnprocessableEntityException",
            f"Invalid namespace update: cannot set and remove keys: {', '.join(both)}",
        )
    if not service.catalog._pointers.namespaces.exists(namespace):
        raise no_namespace(namespace)
    check_namespace(service, call, namespace, updates)
    before = service.catalog._pointers.namespaces.properties(namespace)
    stored = dict(updates)
    if LOCATION not in before and stored.get(LOCATION) == default_location(service, namespace):
        del stored[LOCATION]  # the server's own answer, sent back
    service.catalog._pointers.namespaces.set_properties(namespace, stored, removals=removals)
    return Response(
        body={
            "updated": sorted(updates),
            "removed": [key for key in removals if key in before],
            "missing": [key for key in removals if key not in before],
        }
    )


def paged(items: Sequence[Any], name: str, query: Mapping[str, str]) -> dict[str, Any]:
    """A page of a listing. A token is the position where the next page starts; without a page
    size everything is one page."""
    token = query.get("pageToken")
    size = query.get("pageSize")
    if size is None:
        return {name: list(items), "next-page-token": None}
    start = token or "0"
    if not all(_NUMBER.fullmatch(text) for text in (size, start)) or not int(size):
        raise bad_request(f"pageSize is {size!r} and pageToken {token!r}; expected numbers")
    end = int(start) + int(size)
    more = str(end) if end < len(items) else None
    return {name: list(items[int(start) : end]), "next-page-token": more}


def names_page(
    service: Service, call: Request, list_names: Callable[[Namespace], Iterable[Identifier]]
) -> Response:
    """The tables or views of the namespace that the path names."""
    namespace = call.namespace()
    service.need_namespace(namespace)
    names = [
        {"namespace": list(identifier.namespace), "name": identifier.name}
        for identifier in list_names(namespace)
    ]
    return Response(body=paged(names, "identifiers", call.query))


def new_name(service: Service, call: Request, name: str) -> Identifier:
    """A name in the namespace that the path names, which must exist."""
    service.need_namespace(call.namespace())
    return Identifier.parse((*call.namespace(), name))


ENDPOINTS = (
    Endpoint("GET", ROOT, list_namespaces, ANY_READER),
    Endpoint("POST", ROOT, create_namespace, BODY_WRITER),
    Endpoint("GET", ONE, load_namespace, PATH_READER),
    Endpoint("HEAD", ONE, namespace_exists, PATH_READER),
    Endpoint("DELETE", ONE, drop_namespace, PATH_WRITER),
    Endpoint("POST", f"{ONE}/properties", update_properties, PATH_WRITER),
)

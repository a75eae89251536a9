"""Namespaces over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from frazil.catalog.names import Identifier, Namespace
from frazil.catalog.names import namespace_of as checked
from frazil.errors import AlreadyExists, InvalidInput
from frazil.serve import exchange, wire
from frazil.serve.exchange import NO_CONTENT, Answer, Call, Endpoint
from frazil.serve.locations import check_namespace
from frazil.serve.rest_errors import RestError, bad_request, no_namespace, taken
from frazil.serve.service import Service

ROOT = "/v1/{prefix}/namespaces"
ONE = f"{ROOT}/{{namespace}}"


def list_namespaces(service: Service, call: Call) -> Answer:
    """GET: one level below a parent."""
    parent = call.query.get("parent")
    above = exchange.namespace_of(parent) if parent else ()
    if above:
        service.need_namespace(above)
    found = service.catalog._pointers.list_namespaces(above)
    if call.principal is not None:
        found = [each for each in found if call.principal.may_see(each)]
    return Answer(body=paged([list(each) for each in found], "namespaces", call.query))


def create_namespace(service: Service, call: Call) -> Answer:
    """POST."""
    wanted = call.decode(wire.CreateNamespace)
    namespace = checked(wanted.namespace)
    call.check("write", namespace)
    check_namespace(service, call, namespace, wanted.properties)
    try:
        service.catalog._pointers.create_namespace(namespace, wanted.properties)
    except AlreadyExists as error:
        raise taken("Namespace", ".".join(namespace)) from error
    return Answer(body={"namespace": list(namespace), "properties": wanted.properties})


def load_namespace(service: Service, call: Call) -> Answer:
    """GET: its properties."""
    namespace = call.namespace()
    service.need_namespace(namespace)
    properties = service.catalog._pointers.namespace_properties(namespace)
    return Answer(body={"namespace": list(namespace), "properties": properties})


def namespace_exists(service: Service, call: Call) -> Answer:
    """HEAD."""
    service.need_namespace(call.namespace())
    return NO_CONTENT


def drop_namespace(service: Service, call: Call) -> Answer:
    """DELETE: refused while it holds something."""
    namespace = call.namespace()
    service.need_namespace(namespace)
    try:
        service.catalog._pointers.drop_namespace(namespace)
    except InvalidInput as error:
        raise RestError(
            409,
            "NamespaceNotEmptyException",
            f"Namespace is not empty: {'.'.join(namespace)}",
        ) from error
    return NO_CONTENT


def update_properties(service: Service, call: Call) -> Answer:
    """POST properties: set and remove."""
    namespace = call.namespace()
    wanted = call.decode(wire.UpdateProperties)
    updates, removals = wanted.updates or {}, wanted.removals or []
    both = sorted(set(updates) & set(removals))
    if both:
        raise RestError(
            422,
            "UnprocessableEntityException",
            f"Invalid namespace update: cannot set and remove keys: {', '.join(both)}",
        )
    if not service.catalog._pointers.namespace_exists(namespace):
        raise no_namespace(namespace)
    check_namespace(service, call, namespace, updates)
    known = service.catalog._pointers.namespace_properties(namespace)
    service.catalog._pointers.set_namespace_properties(namespace, updates, removals=removals)
    return Answer(
        body={
            "updated": sorted(updates),
            "removed": [key for key in removals if key in known],
            "missing": [key for key in removals if key not in known],
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
    if not size.isdigit() or int(size) < 1 or not start.isdigit():
        raise bad_request(f"pageSize is {size!r} and pageToken {token!r}; expected numbers")
    end = int(start) + int(size)
    more = str(end) if end < len(items) else None
    return {name: list(items[int(start) : end]), "next-page-token": more}


def names_page(
    service: Service, call: Call, found: Callable[[Namespace], Iterable[Identifier]]
) -> Answer:
    """The tables or views of the namespace that the path names."""
    namespace = call.namespace()
    service.need_namespace(namespace)
    names = [{"namespace": list(each.namespace), "name": each.name} for each in found(namespace)]
    return Answer(body=paged(names, "identifiers", call.query))


def new_name(service: Service, call: Call, name: str) -> Identifier:
    """A name in the namespace that the path names, which must exist."""
    service.need_namespace(call.namespace())
    return Identifier.parse((*call.namespace(), name))


ENDPOINTS = (
    Endpoint(method="GET", template=ROOT, handler=list_namespaces),
    Endpoint(
        method="POST", template=ROOT, handler=create_namespace, right="write", names_in_body=True
    ),
    Endpoint(method="GET", template=ONE, handler=load_namespace),
    Endpoint(method="HEAD", template=ONE, handler=namespace_exists),
    Endpoint(method="DELETE", template=ONE, handler=drop_namespace, right="write"),
    Endpoint(method="POST", template=f"{ONE}/properties", handler=update_properties, right="write"),
)

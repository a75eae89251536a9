"""Who looks at the explorer, and what they may do."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from frazil.errors import redacted
from frazil.serve.access.principals import Principal, authenticated
from frazil.serve.exchange import Request, Response
from frazil.serve.rest_errors import RestError
from frazil.serve.service import Service


def show(service: Service, call: Request) -> Response:
    """GET session: answers without a token too, and then says that one is needed."""
    settings = service.settings
    principal: Principal | None = None
    if service.access is not None:
        try:
            principal = authenticated(service.access, call.headers.get("authorization"))
        except RestError:
            principal = None
    knows = service.access is None or principal is not None
    name = None if principal is None else principal.name
    start = settings.start
    return Response(
        body={
            "version": _version(),
            "catalog": redacted(service.catalog.warehouse or service.catalog._pointers.name)
            if knows
            else None,
            "needs_token": service.access is not None,
            "signed_in": name,
            "read_only": settings.is_read_only,
            "sql_writes": settings.sql_writes and not settings.is_read_only,
            "token": service.guard.session_token(name) if knows else None,
            "start": [*start.namespace, start.name] if knows and start is not None else None,
        }
    )


def _version() -> str:
    try:
        return version("frazil")
    except PackageNotFoundError:
        return "unknown"

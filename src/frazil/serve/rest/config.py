"""GET /v1/config: what the server offers and how clients should use it."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.serve.access.principals import authenticated
from frazil.serve.access.rights import ANYBODY
from frazil.serve.exchange import Endpoint, Request, Response
from frazil.serve.rest_errors import RestError
from frazil.serve.service import Service
from frazil.serve.view import replay

PREFIXES = {"v2": 2, "v3": 3}
"""Prefixes that show all tables as one format version."""
_ONLY_V2 = "pyiceberg/"
"""Clients that read v3 and cannot write it, by the start of their user agent."""
_PLANNED_HERE = {"scan-planning-mode": "server", "rest-scan-planning-enabled": "true"}
"""What clients are told who should let the server plan: now, and in PyIceberg 0.11."""


def endpoint(endpoints: Sequence[Endpoint]) -> Endpoint:
    """The endpoint that lists the others."""

    def config(service: Service, call: Request) -> Response:
        # They may hold keys of an object store: not for everyone when access is on.
        defaults = dict(service.settings.properties) if _is_known(service, call) else {}
        if call.headers.get("user-agent", "").lower().startswith(_ONLY_V2):
            defaults["prefix"] = "v2"
        asks = service.settings.plans_scans
        if service.settings.is_read_only if asks is None else asks:
            defaults |= _PLANNED_HERE
        offered = [
            str(listed)
            for listed in endpoints
            if listed.is_advertised
            and not (service.settings.is_read_only and listed.rights.changes)
        ]
        # Some clients can be told the name of a warehouse, and no prefix.
        warehouse = call.query.get("warehouse")
        return Response(
            body={
                "defaults": defaults,
                "overrides": {"prefix": warehouse} if warehouse in PREFIXES else {},
                "endpoints": offered,
                "idempotency-key-lifetime": replay.LIFETIME,
            }
        )

    return Endpoint(
        method="GET",
        template="/v1/config",
        handler=config,
        rights=ANYBODY,
        is_advertised=False,
    )


def _is_known(service: Service, call: Request) -> bool:
    if service.access is None:
        return True
    try:
        authenticated(service.access, call.headers.get("authorization"))
    except RestError:
        return False
    return True

"""GET /v1/config: what the server offers and how clients should use it."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.serve import replay
from frazil.serve.access import authenticated
from frazil.serve.exchange import Answer, Call, Endpoint
from frazil.serve.rest_errors import RestError
from frazil.serve.service import Service

PREFIXES = {"v2": 2, "v3": 3}
"""Prefixes that show all tables as one format version."""
_ONLY_V2 = "pyiceberg/"
"""Clients that read v3 and cannot write it, by the start of their user agent."""
_PLANNED_HERE = {"scan-planning-mode": "server", "rest-scan-planning-enabled": "true"}
"""What clients are told who should let the server plan: now, and in PyIceberg 0.11."""


def endpoint(endpoints: Sequence[Endpoint]) -> Endpoint:
    """The endpoint that lists the others."""

    def config(service: Service, call: Call) -> Answer:
        # They may hold keys of an object store: not for everyone when access is on.
        defaults = dict(service.settings.properties) if _is_known(service, call) else {}
        if call.headers.get("user-agent", "").lower().startswith(_ONLY_V2):
            defaults["prefix"] = "v2"
        asks = service.settings.plans_scans
        if service.settings.is_read_only if asks is None else asks:
            defaults |= _PLANNED_HERE
        offered = [
            str(each)
            for each in endpoints
            if each.is_advertised and not (service.settings.is_read_only and each.right == "write")
        ]
        return Answer(
            body={
                "defaults": defaults,
                "overrides": {},
                "endpoints": offered,
                "idempotency-key-lifetime": replay.LIFETIME,
            }
        )

    return Endpoint(
        method="GET", template="/v1/config", handler=config, right="open", is_advertised=False
    )


def _is_known(service: Service, call: Call) -> bool:
    if service.access is None:
        return True
    try:
        authenticated(service.access, call.headers.get("authorization"))
    except RestError:
        return False
    return True

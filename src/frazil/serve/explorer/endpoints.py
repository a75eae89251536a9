"""Every endpoint of the explorer."""

from __future__ import annotations

from frazil.serve.exchange import Endpoint, Handler
from frazil.serve.explorer import commits, plan, session, tree
from frazil.serve.explorer.subject import PLACE

API = "/explorer/api"


def _get(name: str, handler: Handler) -> Endpoint:
    return Endpoint(method="GET", template=f"{PLACE}/{name}", handler=handler)


ENDPOINTS = (
    Endpoint(method="GET", template=f"{API}/session", handler=session.show, right="open"),
    _get("tree", tree.show),
    _get("plan", plan.show),
    _get("complete", plan.complete),
    _get("commits", commits.show),
    _get("commit", commits.commit),
)

"""Every endpoint of the explorer."""

from __future__ import annotations

from frazil.serve.exchange import Endpoint, Handler
from frazil.serve.explorer import (
    actions,
    care,
    catalog,
    commits,
    compare,
    file,
    leaf,
    overview,
    plan,
    rows,
    session,
    sql,
    tree,
)
from frazil.serve.explorer.subject import PLACE

API = "/explorer/api"


def _get(name: str, handler: Handler) -> Endpoint:
    return Endpoint(method="GET", template=f"{PLACE}/{name}", handler=handler)


ENDPOINTS = (
    Endpoint(method="GET", template=f"{API}/session", handler=session.show, right="open"),
    Endpoint(method="GET", template=f"{API}/catalog", handler=catalog.show),
    Endpoint(method="GET", template=f"{API}/changes", handler=catalog.changes),
    Endpoint(method="POST", template=f"{API}/sql", handler=sql.post),
    Endpoint(
        method="POST",
        template=f"{PLACE}/actions/{{action}}",
        handler=actions.post,
        right="write",
    ),
    _get("overview", overview.show),
    _get("leaf", leaf.show),
    _get("file", file.show),
    _get("compare", compare.show),
    _get("rows", rows.show),
    _get("diff", rows.diff),
    _get("health", care.health),
    _get("space", care.space),
    _get("tree", tree.show),
    _get("plan", plan.show),
    _get("complete", plan.complete),
    _get("commits", commits.show),
    _get("commit", commits.commit),
)

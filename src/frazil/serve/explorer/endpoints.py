"""Every endpoint of the explorer."""

from __future__ import annotations

from frazil.serve.exchange import Endpoint, Handler
from frazil.serve.explorer import (
    catalog_page,
    compare_page,
    file,
    health_page,
    history_page,
    leaf,
    overview_page,
    plan_page,
    previewed_actions,
    rows_page,
    session_page,
    sql_page,
    tree,
)
from frazil.serve.explorer.subject import PLACE

API = "/explorer/api"


def _get(name: str, handler: Handler) -> Endpoint:
    return Endpoint(method="GET", template=f"{PLACE}/{name}", handler=handler)


ENDPOINTS = (
    Endpoint(method="GET", template=f"{API}/session", handler=session_page.show, right="open"),
    Endpoint(method="GET", template=f"{API}/catalog", handler=catalog_page.show),
    Endpoint(method="GET", template=f"{API}/changes", handler=catalog_page.changes),
    Endpoint(method="POST", template=f"{API}/sql", handler=sql_page.post),
    Endpoint(
        method="POST",
        template=f"{PLACE}/actions/{{action}}",
        handler=previewed_actions.post,
        right="write",
    ),
    _get("overview", overview_page.show),
    _get("leaf", leaf.show),
    _get("file", file.show),
    _get("compare", compare_page.show),
    _get("rows", rows_page.show),
    _get("diff", rows_page.diff),
    _get("health", health_page.health),
    _get("space", health_page.space),
    _get("tree", tree.show),
    _get("plan", plan_page.show),
    _get("complete", plan_page.complete),
    _get("commits", history_page.show),
    _get("commit", history_page.commit),
)

"""Every endpoint of the explorer."""

from __future__ import annotations

from frazil.serve.access.rights import ANY_READER, ANYBODY, PATH_READER, PATH_WRITER
from frazil.serve.exchange import Endpoint, Handler
from frazil.serve.explorer import file, leaf, previewed_actions, tree
from frazil.serve.explorer.pages import (
    catalog_page,
    columns_page,
    compare_page,
    health_page,
    history_page,
    overview_page,
    plan_page,
    rows_page,
    session_page,
    sql_page,
    view_page,
)
from frazil.serve.explorer.subject import PLACE

API = "/explorer/api"


def _page(name: str, handler: Handler) -> Endpoint:
    return Endpoint(
        method="GET",
        template=f"{PLACE}/{name}",
        handler=handler,
        rights=PATH_READER,
        lane="queries",
    )


ENDPOINTS = (
    Endpoint(method="GET", template=f"{API}/session", handler=session_page.show, rights=ANYBODY),
    Endpoint(method="GET", template=f"{API}/catalog", handler=catalog_page.show, rights=ANY_READER),
    Endpoint(
        method="GET", template=f"{API}/changes", handler=catalog_page.changes, rights=ANY_READER
    ),
    Endpoint(
        method="POST",
        template=f"{API}/sql",
        handler=sql_page.post,
        rights=ANY_READER,
        lane="statements",
    ),
    Endpoint(method="GET", template=view_page.PLACE, handler=view_page.show, rights=PATH_READER),
    Endpoint(
        method="POST",
        template=f"{PLACE}/actions/{{action}}",
        handler=previewed_actions.post,
        rights=PATH_WRITER,
        lane="queries",
    ),
    _page("overview", overview_page.show),
    Endpoint(
        method="GET",
        template=f"{PLACE}/columns",
        handler=columns_page.show,
        rights=PATH_READER,
        lane="statements",  # its engine may take as much memory as that of a statement
    ),
    _page("leaf", leaf.show),
    _page("file", file.show),
    _page("compare", compare_page.show),
    _page("rows", rows_page.show),
    _page("diff", rows_page.diff),
    _page("health", health_page.health),
    _page("space", health_page.space),
    _page("tree", tree.show),
    _page("plan", plan_page.show),
    Endpoint(
        method="GET",
        template=f"{PLACE}/complete",
        handler=plan_page.complete,
        rights=PATH_READER,
    ),
    _page("commits", history_page.show),
    _page("commit", history_page.commit),
)

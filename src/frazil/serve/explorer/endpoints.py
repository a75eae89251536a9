"""Every endpoint of the explorer, and the files of its page, as they lie in `static`."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from frazil.serve.access.guard import PAGE_HEADERS
from frazil.serve.access.rights import ANY_READER, ANYBODY, PATH_READER, PATH_WRITER
from frazil.serve.exchange import Endpoint, Handler, Response
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
    sql_page,
)
from frazil.serve.explorer.subject import PLACE

API = "/explorer/api"


def _page(name: str, handler: Handler) -> Endpoint:
    return Endpoint("GET", f"{PLACE}/{name}", handler, PATH_READER, lane="queries")


ENDPOINTS = (
    Endpoint("GET", f"{API}/session", catalog_page.session, ANYBODY),
    Endpoint("GET", f"{API}/catalog", catalog_page.show, ANY_READER),
    Endpoint("GET", f"{API}/changes", catalog_page.changes, ANY_READER),
    Endpoint("POST", f"{API}/sql", sql_page.post, ANY_READER, lane="statements"),
    Endpoint("GET", catalog_page.VIEW, catalog_page.show_view, PATH_READER),
    Endpoint(
        "POST", f"{PLACE}/actions/{{action}}", previewed_actions.post, PATH_WRITER, lane="queries"
    ),
    _page("overview", overview_page.show),
    # Its engine may take as much memory as that of a statement.
    Endpoint("GET", f"{PLACE}/columns", columns_page.show, PATH_READER, lane="statements"),
    _page("leaf", leaf.show),
    _page("file", file.show),
    _page("compare", compare_page.show),
    _page("rows", rows_page.show),
    _page("diff", rows_page.diff),
    _page("health", health_page.health),
    _page("space", health_page.space),
    _page("tree", tree.show),
    _page("plan", plan_page.show),
    Endpoint("GET", f"{PLACE}/complete", plan_page.complete, PATH_READER),
    _page("commits", history_page.show),
    _page("commit", history_page.commit),
)


INDEX = "index.html"
_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "mjs": "text/javascript; charset=utf-8",
    "json": "application/json",
    "webmanifest": "application/manifest+json",
    "svg": "image/svg+xml",
    "png": "image/png",
    "ico": "image/x-icon",
    "woff2": "font/woff2",
    "txt": "text/plain; charset=utf-8",
}


def page(path: str, etags: str | None = None) -> Response:
    """A file of the page. Addresses of views, which have no dot, are answered with the page itself.

    `etags` is the ETag that the browser has.
    """
    parts = [part for part in path.split("/") if part]
    name = parts[-1] if parts else INDEX
    response = None
    if not any(part.startswith(".") or "\\" in part for part in parts):
        response = _find(parts or [INDEX])
    if response is None and "." not in name:
        response = _find([INDEX])
        name = INDEX
    kind = _TYPES.get(name.rpartition(".")[2].lower())
    if response is None or kind is None:
        text = b"There is no such page.\n" if name != INDEX else b"The explorer is not installed.\n"
        headers = {**PAGE_HEADERS, "Content-Type": _TYPES["txt"]}
        return Response(status=404, body=text, headers=headers)
    content = response.read_bytes()
    tag = _tag(content)
    headers = {**PAGE_HEADERS, "ETag": tag, "Content-Type": kind}
    if etags is not None and tag in (etag.strip() for etag in etags.split(",")):
        return Response(status=304, headers=headers)
    return Response(body=content, headers=headers)


def _find(parts: list[str]) -> Traversable | None:
    at: Traversable = files(__package__).joinpath("static")
    for part in parts:
        at = at.joinpath(part)
    return at if at.is_file() else None


@lru_cache(maxsize=256)
def _tag(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:24]}"'

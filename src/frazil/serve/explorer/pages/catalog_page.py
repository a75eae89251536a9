"""The catalog as a page: namespaces, tables with what their summaries say, what changed; and who
looks at it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from frazil.catalog.backend import TableVersion, all_namespaces, view_text
from frazil.catalog.names import Identifier, Namespace, dotted
from frazil.errors import FrazilError, NotFound, redacted
from frazil.format.metadata.metadata import Snapshot, TableMetadata
from frazil.format.metadata.summary_totals import live_rows, number
from frazil.maintenance.analyze import sure_problem
from frazil.serve.access.principals import Principal, authenticated, may_read
from frazil.serve.exchange import Request, Response, namespace_of
from frazil.serve.explorer.subject import whole
from frazil.serve.limits import MAX_PAGE_TABLES
from frazil.serve.rest_errors import RestError, no_view
from frazil.serve.service import Service

VIEW = "/explorer/api/views/{namespace}/{view}"
DAYS = 14
_DAY_MS = 86_400_000


def show(service: Service, call: Request) -> Response:
    """GET catalog. Only the tables of one page are loaded."""
    today = int(time.time() * 1000) // _DAY_MS
    versions = service.catalog._pointers.table_versions((today - DAYS + 1) * _DAY_MS)
    readable = _readable(call, versions)
    mark = service.watch.mark(readable)
    search = call.query.get("search", "").strip().lower()
    inside = namespace_of(call.query["namespace"]) if call.query.get("namespace") else None
    matching = [
        version
        for version in readable
        if search in ".".join((*version.identifier.namespace, version.identifier.name)).lower()
        and (inside is None or version.identifier.namespace[: len(inside)] == inside)
    ]
    start = whole(call, "offset", default=0, maximum=1 << 40)
    limit = whole(call, "limit", default=200, maximum=MAX_PAGE_TABLES)
    page = matching[start : start + limit]
    return Response(
        body={
            "namespaces": _namespaces(service, call.principal, readable),
            "total": len(matching),
            "offset": start,
            "tables": _tables(service, page, today),
            "views": _views(service, call.principal, search, inside),
            "mark": mark,
        }
    )


def changes(service: Service, call: Request) -> Response:
    """GET changes: which tables are not what they were at a mark. Costs one request."""
    versions = _readable(call, service.catalog._pointers.table_versions())
    since = call.query.get("since", "")
    difference = service.watch.since(since, versions) if since else ([], [])
    changed, dropped = ([], []) if difference is None else difference
    return Response(
        body={
            "mark": service.watch.mark(versions),
            "changed": [
                _named(identifier)
                for identifier in changed
                if may_read(call.principal, identifier.namespace)
            ],
            "gone": [
                _named(identifier)
                for identifier in dropped
                if may_read(call.principal, identifier.namespace)
            ],
            "reset": difference is None,
        }
    )


def _readable(call: Request, versions: Sequence[TableVersion]) -> list[TableVersion]:
    """Versions of tables that the sender may read: that others change is not said either."""
    return [
        version for version in versions if may_read(call.principal, version.identifier.namespace)
    ]


def _named(name: Identifier) -> dict[str, Any]:
    return {"levels": list(name.namespace), "name": name.name}


def _namespaces(
    service: Service, principal: Principal | None, seen: Sequence[TableVersion]
) -> list[dict[str, Any]]:
    counts = Counter(version.identifier.namespace for version in seen)
    names = {*all_namespaces(service.catalog._pointers), *counts}
    return [
        {"levels": list(name), "tables": counts[name]}
        for name in sorted(names)
        if principal is None or principal.may_see(name)
    ]


def _views(
    service: Service, principal: Principal | None, search: str, inside: Namespace | None
) -> dict[str, Any]:
    views = [
        view
        for namespace in all_namespaces(service.catalog._pointers)
        if may_read(principal, namespace) and (inside is None or namespace[: len(inside)] == inside)
        for view in service.catalog._pointers.views.list(namespace)
        if search in ".".join((*view.namespace, view.name)).lower()
    ]
    return {
        "levels": [list(view.namespace) for view in views],
        "name": [view.name for view in views],
    }


def _tables(service: Service, page: Sequence[TableVersion], today: int) -> dict[str, list[Any]]:
    rows = [_table(service, version, today) for version in page]
    return {name: [row[name] for row in rows] for name in _FIELDS}


_FIELDS = (
    "levels",
    "name",
    "rows",
    "files",
    "bytes",
    "format_version",
    "snapshot",
    "updated",
    "commits",
    "commits_per_day",
    "health",
    "hint",
    "error",
)


def _table(service: Service, version: TableVersion, today: int) -> dict[str, Any]:
    name = version.identifier
    days = Counter(at // _DAY_MS for at in version.committed_ms)
    row: dict[str, Any] = {
        **dict.fromkeys(_FIELDS),
        "levels": list(name.namespace),
        "name": name.name,
        "commits": len(version.committed_ms),
        "commits_per_day": [days[today - DAYS + 1 + at] for at in range(DAYS)],
        "health": "unknown",
        "hint": "",
    }
    try:
        table = service.catalog.load_table(name)
        tip = table.current_snapshot()
    except FrazilError as error:
        return {**row, "error": str(error)}
    summary = {} if tip is None else tip.summary
    health, hint = _hint(table.metadata, tip)
    return {
        **row,
        "rows": live_rows(tip),
        "files": number(summary, "total-data-files") if tip is not None else 0,
        "bytes": number(summary, "total-files-size") if tip is not None else 0,
        "format_version": table.metadata.format_version,
        "snapshot": None if tip is None else str(tip.snapshot_id),
        "updated": table.metadata.last_updated_ms,
        "health": health,
        "hint": hint,
    }


def _hint(metadata: TableMetadata, tip: Snapshot | None) -> tuple[str, str]:
    """What a summary alone tells of a table's health: a sure problem or nothing; `health` looks."""
    if tip is None:
        return "ok", ""
    problem = sure_problem(
        metadata.properties, tip.summary, is_partitioned=bool(metadata.spec().fields)
    )
    return ("unknown", "") if problem is None else ("look", problem)


def session(service: Service, call: Request) -> Response:
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


def show_view(service: Service, call: Request) -> Response:
    """GET a view."""
    identifier = call.identifier("view")
    try:
        view = service.catalog._pointers.views.load(identifier)
    except NotFound as error:
        raise no_view(identifier) from error
    metadata = view.metadata
    versions = list(metadata.get("versions", ()))
    current: dict[str, Any] = next(
        (v for v in versions if v.get("version-id") == metadata.get("current-version-id")), {}
    )
    schema: dict[str, Any] = next(
        (s for s in metadata.get("schemas", ()) if s.get("schema-id") == current.get("schema-id")),
        {},
    )
    dialects = [str(text.get("dialect", "")) for text in current.get("representations", ())]
    return Response(
        body={
            "levels": list(identifier.namespace),
            "name": identifier.name,
            "sql": view_text(metadata, str(identifier)),
            "dialect": dialects[0] if dialects else "",
            "namespace": dotted(tuple(current.get("default-namespace", ()))),
            "changed": current.get("timestamp-ms"),
            "versions": len(versions),
            "columns": [
                {
                    "name": str(field.get("name")),
                    "type": _type_text(field.get("type")),
                    "doc": field.get("doc"),
                }
                for field in schema.get("fields", ())
            ],
        }
    )


def _type_text(kind: Any) -> str:
    return kind if isinstance(kind, str) else str(kind.get("type", "")) if kind else ""

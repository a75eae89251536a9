"""The catalog as a page: namespaces, tables with what their summaries say, and what changed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from frazil.catalog.names import Identifier, Namespace
from frazil.catalog.pointers import Pulse, all_namespaces
from frazil.errors import FrazilError
from frazil.format.metadata import Snapshot, TableMetadata
from frazil.format.totals import live_rows, number
from frazil.maintenance.analyze import sure_problem
from frazil.serve.access import Principal, may_read
from frazil.serve.exchange import Answer, Call, namespace_of
from frazil.serve.explorer.subject import whole
from frazil.serve.service import Service

DAYS = 14
_DAY_MS = 86_400_000
_MOST = 500


def show(service: Service, call: Call) -> Answer:
    """GET catalog. Only the tables of one page are loaded."""
    today = int(time.time() * 1000) // _DAY_MS
    pulses = service.catalog._pointers.pulses((today - DAYS + 1) * _DAY_MS)
    mark = service.watch.mark(pulses)
    seen = [each for each in pulses if may_read(call.principal, each.identifier.namespace)]
    wanted = call.query.get("search", "").strip().lower()
    inside = namespace_of(call.query["namespace"]) if call.query.get("namespace") else None
    found = [
        each
        for each in seen
        if wanted in ".".join((*each.identifier.namespace, each.identifier.name)).lower()
        and (inside is None or each.identifier.namespace[: len(inside)] == inside)
    ]
    start = whole(call, "offset", default=0, most=1 << 40)
    limit = whole(call, "limit", default=200, most=_MOST)
    page = found[start : start + limit]
    return Answer(
        body={
            "namespaces": _namespaces(service, call.principal, seen),
            "total": len(found),
            "offset": start,
            "tables": _tables(service, page, today),
            "views": _views(service, call.principal, wanted, inside),
            "mark": mark,
        }
    )


def changes(service: Service, call: Call) -> Answer:
    """GET changes: which tables are not what they were at a mark. Costs one request."""
    pulses = service.catalog._pointers.pulses()
    since = call.query.get("since", "")
    known = service.watch.since(since, pulses) if since else ([], [])
    changed, gone = ([], []) if known is None else known
    return Answer(
        body={
            "mark": service.watch.mark(pulses),
            "changed": [
                _named(each) for each in changed if may_read(call.principal, each.namespace)
            ],
            "gone": [_named(each) for each in gone if may_read(call.principal, each.namespace)],
            "reset": known is None,
        }
    )


def _named(name: Identifier) -> dict[str, Any]:
    return {"levels": list(name.namespace), "name": name.name}


def _namespaces(
    service: Service, principal: Principal | None, seen: Sequence[Pulse]
) -> list[dict[str, Any]]:
    counts = Counter(each.identifier.namespace for each in seen)
    names = {*all_namespaces(service.catalog._pointers), *counts}
    return [
        {"levels": list(name), "tables": counts[name]}
        for name in sorted(names)
        if principal is None or principal.may_see(name)
    ]


def _views(
    service: Service, principal: Principal | None, wanted: str, inside: Namespace | None
) -> dict[str, Any]:
    found = [
        view
        for namespace in all_namespaces(service.catalog._pointers)
        if may_read(principal, namespace) and (inside is None or namespace[: len(inside)] == inside)
        for view in service.catalog._pointers.views.list(namespace)
        if wanted in ".".join((*view.namespace, view.name)).lower()
    ]
    return {
        "levels": [list(view.namespace) for view in found],
        "name": [view.name for view in found],
    }


def _tables(service: Service, page: Sequence[Pulse], today: int) -> dict[str, list[Any]]:
    rows = [_table(service, each, today) for each in page]
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


def _table(service: Service, pulse: Pulse, today: int) -> dict[str, Any]:
    name = pulse.identifier
    days = Counter(at // _DAY_MS for at in pulse.committed_ms)
    row: dict[str, Any] = {
        **dict.fromkeys(_FIELDS),
        "levels": list(name.namespace),
        "name": name.name,
        "commits": len(pulse.committed_ms),
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
        "rows": live_rows(summary) if tip is not None else 0,
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
    problem = sure_problem(metadata.properties, tip.summary)
    return ("unknown", "") if problem is None else ("look", problem)

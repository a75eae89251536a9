"""Rows of a table: a sample, and what changed between two snapshots."""

from __future__ import annotations

import time
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from frazil.errors import InvalidInput, Unsupported
from frazil.rows.scan import Scan
from frazil.scan.row_changes import CHANGE_COLUMNS, ChangeType
from frazil.serve.exchange import Request, Response
from frazil.serve.explorer import display_values, typed_filters
from frazil.serve.explorer.pages.plan_page import scan_of
from frazil.serve.explorer.subject import Subject, whole
from frazil.serve.limits import MAX_PAGE_ROWS
from frazil.serve.service import Service


def show(service: Service, call: Request) -> Response:
    """GET rows: the first that match."""
    subject = Subject.of(service, call)
    where = call.query.get("where", "").strip()
    limit = whole(call, "limit", default=50, maximum=MAX_PAGE_ROWS)
    scan = scan_of(subject, where)
    began = time.perf_counter()
    try:
        check_without_query(scan)
        rows = scan.limit(limit + 1).to_arrow()
    except (InvalidInput, Unsupported) as error:
        return Response(
            body={
                "columns": columns(scan.arrow_schema),
                "rows": [],
                "truncated": False,
                "ms": 0,
                "error": typed_filters.complaint(where, error, subject.schema),
            }
        )
    return Response(
        body={
            **cells(rows, limit),
            "ms": round((time.perf_counter() - began) * 1000, 1),
            "error": None,
        }
    )


def check_without_query(scan: Scan) -> None:
    """Refuse conditions with a query inside, which could read more than the table."""
    sql = scan.condition.sql
    if sql is not None and sql.has_query:
        raise InvalidInput("a filter here holds no query of its own; use the SQL page for that")


def columns(schema: pa.Schema) -> list[dict[str, str]]:
    """Names and types for the head of a grid."""
    return [{"name": field.name, "type": str(field.type)} for field in schema]


def cells(table: pa.Table, limit: int) -> dict[str, Any]:
    """The first rows as text, whether there are more, and how many of the texts are cut."""
    first = table.slice(0, limit)
    texts = [
        display_values.texts(column, field=field)
        for column, field in zip(first.columns, first.schema, strict=True)
    ]
    rows = [list(row) for row in zip(*texts, strict=True)] if texts else []
    return {
        "columns": columns(table.schema),
        "rows": rows,
        "truncated": table.num_rows > limit,
        "cut": sum(map(display_values.is_cut, chain.from_iterable(texts))),
    }


_FEED_ROWS = 20_000
_PARTS = ("kind", "before", "after", "changed")
SqlExpressions = list[str | None]


def diff(service: Service, call: Request) -> Response:
    """GET diff: rows that were inserted, deleted and updated, by default by the last commit."""
    subject = Subject.at(service.table(call.identifier()), call.query.get("to"))
    table, until = subject.table, subject.snapshot
    if until is None:
        nothing: dict[str, Any] = {name: [] for name in _PARTS}
        return Response(
            body={"from": None, "to": None, "columns": [], "truncated": False, **nothing}
        )
    since: Any = call.query.get("from") or until.parent_snapshot_id
    limit = whole(call, "limit", default=100, maximum=MAX_PAGE_ROWS)
    collapse = call.query.get("collapse") == "1"
    feed = table.changes(since=since, until=until, collapse=collapse)
    first_rows = list(islice(feed, _FEED_ROWS + 1))
    fields = [field for field in feed.schema if field.name not in _FEED_COLUMNS]
    changes = _paired(first_rows[:_FEED_ROWS], [field.name for field in fields])
    first = None if since is None else table.snapshot(since).snapshot_id
    return Response(
        body={
            "from": None if first is None else str(first),
            "to": str(until.snapshot_id),
            "columns": columns(pa.schema(fields)),
            "total": len(changes),
            "truncated": len(changes) > limit or len(first_rows) > _FEED_ROWS,
            **{name: [change[at] for change in changes[:limit]] for at, name in enumerate(_PARTS)},
        }
    )


_FEED_COLUMNS = frozenset({"_row_id", *CHANGE_COLUMNS.names})


def _paired(taken: list[dict[str, Any]], names: list[str]) -> list[tuple[Any, ...]]:
    """Rows of a feed; what an updated row was and is becomes one. They share a row id."""
    pairs: list[list[Any]] = []
    waiting: dict[tuple[int, int], list[Any]] = {}
    for row in taken:
        texts: SqlExpressions = [display_values.text(row[name]) for name in names]
        key = (row["_change_ordinal"], row["_row_id"])
        match row["_change_type"]:
            case ChangeType.UPDATE_PREIMAGE | ChangeType.UPDATE_POSTIMAGE as what:
                pair = waiting.get(key)
                if pair is None:
                    pair = waiting[key] = ["update", None, None, None]
                    pairs.append(pair)
                pair[1 if what == ChangeType.UPDATE_PREIMAGE else 2] = texts
                if pair[1] is not None and pair[2] is not None:
                    pair[3] = [at for at, old in enumerate(pair[1]) if old != pair[2][at]]
            case ChangeType.DELETE:
                pairs.append(["delete", texts, None, None])
            case _:
                pairs.append(["insert", None, texts, None])
    return [tuple(pair) for pair in pairs]

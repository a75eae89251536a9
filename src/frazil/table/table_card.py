"""A table as a notebook shows it: what is in it, how it fares, its columns and latest commits.

Everything is told by the catalog; no file is opened.
"""

from __future__ import annotations

import time

from frazil.commit.handle import TableHandle
from frazil.format.metadata.metadata import MAIN, Snapshot, TableMetadata
from frazil.format.metadata.summary_totals import live_rows, number, rows_changed
from frazil.maintenance.analyze import sure_problem
from frazil.text_format import card, counted, html_bars, html_grid, size

_COMMITS = 40
_COLUMNS = 30


def table_card(handle: TableHandle, branch: str) -> str:
    """The card of a table at the state of its handle."""
    metadata, tip = handle.metadata, handle.state.tip(branch)
    history = list(handle.head.snapshots())
    facts = {
        "branch": None if branch == MAIN else branch,
        "rows": None if (rows := live_rows(tip)) is None else f"{rows:,}",
        "size": _size(tip),
        "partitioned by": ", ".join(
            f"{field.transform}({names})" if str(field.transform) != "identity" else names
            for field in metadata.spec().fields
            for names in [", ".join(_name(metadata, id) for id in field.source_ids)]
        ),
        "sorted by": ", ".join(
            _name(metadata, field.source_id) for field in metadata.sort_order().fields
        ),
        "health": _health(metadata, tip),
        "changed": "never" if tip is None else _ago(tip.timestamp_ms),
        "snapshot": None if tip is None else tip.snapshot_id,
        "location": handle.location,
    }
    fields = metadata.schema().fields
    columns = html_grid(
        ("column", "type", "", "comment"),
        [
            (field.name, field.field_type, "required" if field.required else None, field.doc)
            for field in fields[:_COLUMNS]
        ],
    )
    more = len(fields) - _COLUMNS
    return card(
        handle.name,
        facts,
        columns,
        f"<div>… and {counted(more, 'more column')}</div>" if more > 0 else "",
        _commits(history),
    )


def _size(tip: Snapshot | None) -> str | None:
    if tip is None:
        return None
    files, stored = (number(tip.summary, f"total-{key}") for key in ("data-files", "files-size"))
    return None if files is None else f"{size(stored or 0)} in {counted(files, 'file')}"


def _name(metadata: TableMetadata, field_id: int) -> str:
    return metadata.schema().find_column_name(field_id) or str(field_id)


def _health(metadata: TableMetadata, tip: Snapshot | None) -> str | None:
    """What the summary of the snapshot proves; more is known to `analyze` alone."""
    if tip is None:
        return None
    is_partitioned = bool(metadata.spec().fields)
    problem = sure_problem(metadata.properties, tip.summary, is_partitioned=is_partitioned)
    return problem or "no problem in sight; analyze() looks closer"


def _ago(timestamp_ms: int) -> str:
    seconds = max(0, int(time.time() - timestamp_ms / 1000))
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            return f"{counted(seconds // length, unit)} ago"
    return "just now"


def _commits(history: list[Snapshot]) -> str:
    if not history:
        return ""
    last = history[-_COMMITS:]
    rows = [sum(rows_changed(snapshot)) for snapshot in last]
    bars = html_bars(rows, "Rows changed by each of the latest commits, oldest first")
    prefix = f"rows changed by the last {len(last)} of " if len(history) > 1 else ""
    return f"{bars}<div style='font-size:12px'>{prefix}{counted(len(history), 'commit')}</div>"

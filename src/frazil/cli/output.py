"""What commands print: tables that fit a terminal, JSON for machines, progress bars."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table as RichTable

from frazil.errors import FrazilError
from frazil.maintenance.progress import Progress, silent

_PIPE_WIDTH = 200

console = Console()
errors = Console(stderr=True)


def _width() -> int | None:
    """What a table may take: the terminal, or a fixed width when nobody looks."""
    return None if console.is_terminal else _PIPE_WIDTH


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    match value:
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(item) for item in value]
        case bytes():
            return value.hex()
        case datetime() | date():
            return value.isoformat()
        case Decimal() | UUID():
            return str(value)
        case float() if value != value or value in (float("inf"), float("-inf")):
            return str(value)
        case bool() | int() | float() | str() | None:
            return value
        case _:
            return str(value)


def emit_json(value: Any) -> None:
    """Print one JSON document."""
    sys.stdout.write(json.dumps(plain(value), indent=2, ensure_ascii=False) + "\n")


def emit_rows(
    rows: Sequence[dict[str, Any]],
    *,
    as_json: bool,
    title: str | None = None,
    columns: Sequence[str] | None = None,
    empty: str = "nothing to show",
) -> None:
    """Print rows as a table, or as a JSON array."""
    if as_json:
        emit_json(list(rows))
        return
    if not rows:
        console.print(f"[dim]{empty}[/dim]")
        return
    names = list(columns or rows[0])
    table = RichTable(title=title, title_justify="left", header_style="bold", expand=False)
    for name in names:
        first = next((row[name] for row in rows if row.get(name) is not None), None)
        numeric = isinstance(first, int | float) and not isinstance(first, bool)
        table.add_column(
            escape(name),
            justify="right" if numeric else "left",
            overflow="fold",
            no_wrap=isinstance(first, int | float | date),
        )
    for row in rows:
        table.add_row(*(_cell(row.get(name)) for name in names))
    console.print(table, width=_width())


def emit_arrow(table: pa.Table, *, as_json: bool, title: str | None = None) -> None:
    """Print an Arrow table."""
    if as_json:
        emit_json(table.to_pylist())
    else:
        emit_rows(table.to_pylist(), as_json=False, title=title, columns=table.column_names)


def _cell(value: Any) -> str:
    match value:
        case None:
            return "[dim]–[/dim]"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}" if abs(value) < 10**12 else str(value)
        case float():
            return f"{value:,.4g}"
        case bytes():
            return value.hex()[:32]
        case datetime():
            return value.strftime("%Y-%m-%d %H:%M:%S")
        case list() if all(isinstance(item, str) for item in value):
            return escape(", ".join(value))
        case _:
            return escape(str(plain(value) if isinstance(value, dict | list) else value))


def emit_text(text: str, value: Any, *, as_json: bool) -> None:
    """Print a text for people, or the value as JSON."""
    if as_json:
        emit_json(value)
    else:
        console.print(text, markup=False, highlight=False, soft_wrap=True)


def emit_error(error: FrazilError, *, as_json: bool) -> None:
    """Say what went wrong on standard error."""
    if as_json:
        body = {"error": {"kind": error.kind, "message": str(error)}}
        sys.stderr.write(json.dumps(body, ensure_ascii=False) + "\n")
    else:
        errors.print(f"[bold red]{error.kind}:[/bold red] ", end="")
        errors.print(str(error), markup=False, highlight=False, soft_wrap=True)


def when(timestamp_ms: int) -> str:
    """A time for people, in UTC."""
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


@contextmanager
def bar(what: str, *, quiet: bool) -> Iterator[Progress]:
    """A progress bar; yields the callback that library functions take."""
    if quiet or not errors.is_terminal:
        yield silent
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=errors, transient=True) as progress:
        task = progress.add_task(what, total=None)

        def step(done: int, total: int, doing: str, /) -> None:
            progress.update(task, completed=done, total=total or None, description=doing)

        yield step

"""What commands print: tables that fit a terminal, JSON for machines, progress bars."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from frazil.errors import FrazilError
from frazil.maintenance.progress import Progress, bar_columns, silent

if TYPE_CHECKING:
    from rich.console import Console

    console: Console
    errors: Console


def _console(name: str = "console") -> Console:
    existing: Console | None = globals().get(name)
    if existing is None:
        from rich.console import Console

        existing = globals()[name] = Console(stderr=name == "errors")
    return existing


def _errors() -> Console:
    return _console("errors")


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Console:
        """The consoles are made when something is printed: completion does without them."""
        if name in ("console", "errors"):
            return _console(name)
        raise AttributeError(f"module 'frazil.cli.terminal.output' has no attribute {name!r}")


def is_terminal() -> bool:
    """Whether standard output is a terminal. Where it surely is none, rich is not loaded."""
    may_be = sys.stdout.isatty() or any(map(os.environ.get, ("FORCE_COLOR", "TTY_COMPATIBLE")))
    return (may_be or "console" in globals()) and _console().is_terminal


def emit_json(value: Any) -> None:
    """Print one JSON document."""
    from frazil.sql.output.display import json_value

    sys.stdout.write(json.dumps(json_value(value), indent=2, ensure_ascii=False) + "\n")


def emit_rows(
    rows: Sequence[dict[str, Any]],
    *,
    as_json: bool,
    title: str | None = None,
    empty: str = "nothing to show",
) -> None:
    """Print facts as a table whose headings have spaces for hyphens, or as a JSON array."""
    from frazil.sql.output.text_layout import lay_out

    if as_json:
        emit_json(list(rows))
        return
    if not rows:
        _console().print(empty, style="dim", highlight=False)
        return
    names = list(rows[0])
    numeric = [
        all(_is_number(row.get(name)) for row in rows)
        and any(row.get(name) is not None for row in rows)
        for name in names
    ]
    lines = lay_out(
        [name.replace("-", " ") for name in names],
        [[_cell(row.get(name)) for name in names] for row in rows],
        numeric=numeric,
        width=_console().width if is_terminal() else None,
    )
    if title is not None:
        _console().print(f"\n{title}", style="italic", markup=False, highlight=False)
    print_table("\n".join(lines))


def print_table(text: str) -> None:
    """Print lines as they are; on a terminal the first one, with the headings, is bold."""
    if not is_terminal():
        sys.stdout.write(text + "\n")
        return
    from rich.text import Text

    head, newline, rest = text.partition("\n")
    styled = Text.assemble((head, "bold"), newline, rest)
    if text.count("\n") < _console().height - 2 or not _pager():
        _console().print(styled, soft_wrap=True, highlight=False)
        return
    with _console().capture() as printed:
        _console().print(styled, soft_wrap=True, highlight=False)
    _page(printed.get())


def _pager() -> str | None:
    """The command that shows long output page by page; an empty FRAZIL_PAGER is none."""
    for name in ("FRAZIL_PAGER", "PAGER"):
        if name in os.environ:
            return os.environ[name] or None
    return "less" if shutil.which("less") else None


def _page(text: str) -> None:
    """Show text in the pager; one that cannot be started is left out."""
    # Of less: leave at the end of a short text, keep colours, do not fold, leave the text there.
    environment = {"LESS": "-FRSX", **os.environ}
    try:
        subprocess.run(_pager() or "", input=text, text=True, shell=True, env=environment)
    except (OSError, KeyboardInterrupt):
        sys.stdout.write(text)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _cell(value: Any) -> str:
    from frazil.sql.output.display import cell

    if value is None:
        return "–"
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return cell(value)


def emit_text(text: str, value: Any, *, as_json: bool) -> None:
    """Print a text for people, or the value as JSON."""
    if as_json:
        emit_json(value)
    else:
        _console().print(text, markup=False, highlight=False, soft_wrap=True)


def emit_error(error: FrazilError, *, as_json: bool) -> None:
    """Say what went wrong on standard error."""
    if as_json:
        body = {"error": {"kind": error.kind, "message": str(error)}}
        sys.stderr.write(json.dumps(body, ensure_ascii=False) + "\n")
    else:
        _errors().print(f"[bold red]{error.kind}:[/bold red] ", end="")
        _errors().print(str(error), markup=False, highlight=False, soft_wrap=True)


def when(timestamp_ms: int) -> str:
    """A time in UTC that every command takes back, to the millisecond."""
    moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@contextmanager
def bar(what: str, *, quiet: bool) -> Iterator[Progress]:
    """A progress bar; yields the callback that library functions take."""
    from rich.progress import Progress as Bar

    if quiet or not _errors().is_terminal:
        yield silent
        return
    with Bar(*bar_columns(), console=_errors(), transient=True) as progress:
        task = progress.add_task(what, total=None)

        def step(completed: int, total: int, doing: str, /) -> None:
            progress.update(task, completed=completed, total=total or None, description=doing)

        yield step


__all__ = [
    "bar",
    "console",
    "emit_error",
    "emit_json",
    "emit_rows",
    "emit_text",
    "errors",
    "is_terminal",
    "print_table",
    "when",
]

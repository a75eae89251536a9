"""How long work says how far it is, and how independent pieces of it run side by side."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from frazil.text_format import escape
from frazil.threads import in_threads

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

_T = TypeVar("_T")
_R = TypeVar("_R")
_REDRAW_S: Final = 0.1
_UNASKED_AFTER_S: Final = 1.0
"""Work that ends sooner shows no progress bar unless one was asked for."""


class Progress(Protocol):
    """Called as work goes on; `total` is what is known of the whole so far."""

    def __call__(self, completed: int, total: int, what: str, /) -> None:
        """`done` of `total` pieces of `what` are finished."""


def silent(completed: int, total: int, what: str, /) -> None:
    """Says nothing."""


def progress_bar() -> Progress:
    """A bar for the argument `progress` of long work: below the cell of a notebook, a line on
    standard error in a terminal, and nothing elsewhere. In notebooks, work that takes longer than
    a second shows one without being asked.

    >>> orders.compact(progress=frazil.progress_bar())               # doctest: +SKIP
    """
    if _in_notebook():
        return _NotebookBars()
    return _terminal_line if sys.stderr.isatty() else silent


def or_notebook_bar(progress: Progress | None) -> Progress:
    """What the caller of long work gave. Otherwise a bar in a notebook, unless the work is over in
    a second, and nothing elsewhere."""
    if progress is not None:
        return progress
    return _NotebookBars(after_s=_UNASKED_AFTER_S) if _in_notebook() else silent


def _in_notebook() -> bool:
    """Whether this code runs in a kernel that shows HTML; asks only if IPython is there already."""
    interactive = sys.modules.get("IPython")
    shell = None if interactive is None else interactive.get_ipython()
    return getattr(shell, "kernel", None) is not None


def _terminal_line(completed: int, total: int, what: str, /) -> None:
    end = "\n" if completed == total else ""
    print(f"\r{what}: {completed:,} of {total:,}", end=end, file=sys.stderr, flush=True)


class _NotebookBars:
    """A bar for each kind of work, drawn again at most ten times a second, none in the first
    `after_s` seconds."""

    def __init__(self, *, after_s: float = 0.0) -> None:
        self._first_s = time.monotonic() + after_s
        self._displays: dict[str, Any] = {}
        self._drawn_s: dict[str, float] = {}
        self._lock = threading.Lock()

    def __call__(self, completed: int, total: int, what: str, /) -> None:
        from IPython.display import HTML, display

        now_s = time.monotonic()
        with self._lock:
            if now_s < self._first_s:
                return
            if completed < total and now_s - self._drawn_s.get(what, 0.0) < _REDRAW_S:
                return
            self._drawn_s[what] = now_s
            bar = HTML(_bar_html(completed, total, what))
            if what in self._displays:
                self._displays[what].update(bar)
            else:
                self._displays[what] = display(bar, display_id=True)


def _bar_html(completed: int, total: int, what: str) -> str:
    share = 100 * completed / total if total else 100
    return (
        f"<div style='font-size:13px'>{escape(what)}: {completed:,} of {total:,}"
        f"<div style='height:6px;max-width:520px;background:#8884'>"
        f"<div style='height:6px;width:{share:.1f}%;background:#3b82c4'></div></div></div>"
    )


def bar_columns() -> tuple[ProgressColumn, ...]:
    """What a progress bar shows: the work, a bar, pieces done of all, the time taken."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

    return (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )


def run_all(
    items: Sequence[_T],
    work: Callable[[_T], _R],
    *,
    what: str,
    progress: Progress = silent,
    threads: int | None = None,
) -> Iterator[_R]:
    """Apply `work` to items across threads, results in order, progress as they finish. Work that
    decodes says how many `threads` serve it: each keeps the memory of its largest piece."""
    if not items:
        return
    completed = 0
    lock = threading.Lock()

    def one(item: _T) -> _R:
        nonlocal completed
        result = work(item)
        with lock:
            completed += 1
            progress(completed, len(items), what)
        return result

    progress(0, len(items), what)
    yield from in_threads(items, one, threads=_threads() if threads is None else threads)


def _threads() -> int:
    return min(32, 4 * (os.cpu_count() or 2))

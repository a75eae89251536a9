"""Progress of a job as bars on the terminal, or not at all."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress as Bars
from rich.progress import TaskID

from frazil.maintenance.progress import Progress, bar_columns, silent


@contextmanager
def progress_bars(title: str, *, visible: bool | None) -> Iterator[Progress]:
    """What work calls as it goes on. `visible` None: only where standard error is a terminal."""
    if visible is None:
        visible = sys.stderr.isatty()
    if not visible:
        yield silent
        return
    console = Console(stderr=True)
    with Bars(*bar_columns(), console=console, transient=console.is_terminal) as bars:
        yield _Bars(title, bars)


class _Bars:
    """One bar for each kind of work."""

    def __init__(self, title: str, bars: Bars) -> None:
        self._title = title
        self._bars = bars
        self._ids: dict[str, TaskID] = {}
        self._lock = threading.Lock()

    def __call__(self, completed: int, total: int, what: str, /) -> None:
        with self._lock:
            if what not in self._ids:
                self._ids[what] = self._bars.add_task(f"{self._title}: {what}", total=total)
            self._bars.update(self._ids[what], completed=completed, total=total)

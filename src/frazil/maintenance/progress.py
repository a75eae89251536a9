"""How long work says how far it is, and how independent pieces of it run side by side."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

_T = TypeVar("_T")
_R = TypeVar("_R")


class Progress(Protocol):
    """Called as work goes on; `total` is what is known of the whole so far."""

    def __call__(self, done: int, total: int, what: str, /) -> None:
        """`done` of `total` pieces of `what` are finished."""


def silent(done: int, total: int, what: str, /) -> None:
    """Says nothing."""


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
) -> Iterator[_R]:
    """Apply `work` to items across threads, results in order, progress as they finish."""
    if not items:
        return
    from concurrent.futures import ThreadPoolExecutor

    done = 0
    lock = threading.Lock()

    def one(item: _T) -> _R:
        nonlocal done
        result = work(item)
        with lock:
            done += 1
            progress(done, len(items), what)
        return result

    progress(0, len(items), what)
    if len(items) == 1:
        yield one(items[0])
        return
    with ThreadPoolExecutor(max_workers=min(len(items), _threads())) as pool:
        yield from pool.map(one, items)


def _threads() -> int:
    return min(32, 4 * (os.cpu_count() or 2))

"""Independent pieces of work in threads: results in order, and few of them waiting at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

_T = TypeVar("_T")
_R = TypeVar("_R")

_WAITING_PER_THREAD: Final = 4
_MIN_PARTS_PER_THREAD: Final = 64
_MAX_PART: Final = 256


def in_threads(items: Sequence[_T], work: Callable[[_T], _R], *, threads: int) -> Iterator[_R]:
    """Apply `work` to items. Many small items are handed over together: a million files cost
    thousands of jobs, and only a few results per thread are held until they are taken."""
    if len(items) < 2 or threads < 2:
        yield from map(work, items)
        return
    size = max(1, min(_MAX_PART, len(items) // (threads * _MIN_PARTS_PER_THREAD)))
    parts = (items[start : start + size] for start in range(0, len(items), size))
    threads = min(threads, len(items))
    for results in as_they_come(parts, lambda part: list(map(work, part)), threads=threads):
        yield from results


def as_they_come(items: Iterable[_T], work: Callable[[_T], _R], *, threads: int) -> Iterator[_R]:
    """Apply `work` to items that take time to come, while the next ones do. When threads fall
    behind, the next item is not asked for. They work in the caller's context: cancelled work
    ends in them too."""
    from concurrent.futures import ThreadPoolExecutor

    waiting: deque[Future[_R]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(copy_context().run, work, item))
                if len(waiting) >= threads * _WAITING_PER_THREAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:  # after an error, or when the caller stops early: what has not begun is not done
            for job in waiting:
                job.cancel()

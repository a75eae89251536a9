"""Independent pieces of work in threads: results in order, and few of them waiting at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
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
    from concurrent.futures import ThreadPoolExecutor

    size = max(1, min(_MAX_PART, len(items) // (threads * _MIN_PARTS_PER_THREAD)))

    def part(start: int) -> list[_R]:
        return [work(item) for item in items[start : start + size]]

    waiting: deque[Future[list[_R]]] = deque()
    with ThreadPoolExecutor(min(threads, len(items))) as pool:
        try:
            for start in range(0, len(items), size):
                waiting.append(pool.submit(part, start))
                if len(waiting) >= threads * _WAITING_PER_THREAD:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:  # after an error, or when the caller stops early: what has not begun is not done
            for job in waiting:
                job.cancel()

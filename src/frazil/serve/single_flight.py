"""Work that several requests want at the same time is done once.

The first request does it on its thread; the others get its result, and wait for it without one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

Result = TypeVar("Result")


class SingleFlight(Generic[Result]):
    """Work under way, by what it is about."""

    def __init__(self) -> None:
        self._under_way: dict[Hashable, Future[Result]] = {}
        self._lock = Lock()

    def run(self, about: Hashable, work: Callable[[], Result]) -> Future[Result]:
        """The result of the work: done now, on this thread, unless another thread is at it."""
        with self._lock:
            other = self._under_way.get(about)
            if other is not None:
                return other
            mine = self._under_way[about] = Future[Result]()
        try:
            result = work()
        except BaseException as error:
            self._leave(about)
            mine.set_exception(error)
        else:
            self._leave(about)
            mine.set_result(result)
        return mine

    def _leave(self, about: Hashable) -> None:
        with self._lock:
            del self._under_way[about]

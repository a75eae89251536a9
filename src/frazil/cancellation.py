"""Work whose caller no longer waits for it.

Whoever starts work can put it under a `Cancellation` and cancel it from another thread. The work
notices at its next call of a storage, or when it calls `check` itself; an engine that is busy
outside Python is stopped by a callback. Commits are not cancelled: they end as they must.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

from frazil.errors import Cancelled


class Cancellation:
    """Whether some work was cancelled, and what stops it."""

    def __init__(self) -> None:
        self._is_cancelled = False
        self._callbacks: list[Callable[[], object]] = []
        self._lock = Lock()

    @property
    def is_cancelled(self) -> bool:
        """Whether the caller has stopped waiting for the work."""
        return self._is_cancelled

    def cancel(self) -> None:
        """Stop the work; nothing happens the second time."""
        with self._lock:
            self._is_cancelled = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def check(self) -> None:
        """Raise Cancelled when the work was cancelled."""
        if self._is_cancelled:
            raise Cancelled("cancelled: the caller no longer waits for the answer")

    def on_cancel(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Have something called when the work is cancelled, or now if it was. Returns what takes
        it back."""
        with self._lock:
            if not self._is_cancelled:
                self._callbacks.append(callback)
                return lambda: self._take_back(callback)
        callback()
        return lambda: None

    @contextmanager
    def calling(self, callback: Callable[[], object]) -> Iterator[None]:
        """Have something called when the work is cancelled inside the block."""
        take_back = self.on_cancel(callback)
        try:
            yield
        finally:
            take_back()

    def _take_back(self, callback: Callable[[], object]) -> None:
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)


_current: ContextVar[Cancellation | None] = ContextVar("frazil_cancellation", default=None)


@contextmanager
def under(cancellation: Cancellation | None) -> Iterator[None]:
    """Put the work of the block, on this thread, under a cancellation; None puts it under none."""
    before = _current.set(cancellation)
    try:
        yield
    finally:
        _current.reset(before)


def check() -> None:
    """Raise Cancelled when the work of this thread was cancelled."""
    cancellation = _current.get()
    if cancellation is not None:
        cancellation.check()


__all__ = ["Cancellation", "Cancelled", "check", "under"]

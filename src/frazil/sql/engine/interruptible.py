"""Calls of DuckDB that Ctrl-C, another thread or a time limit can end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from frazil.errors import Cancelled
from frazil.sql.engine.sql_engine import SqlEngine

T = TypeVar("T")


class Interruptible:
    """A query that runs until it ends, is cancelled, or has taken too long."""

    def __init__(self, engine: SqlEngine) -> None:
        self._engine = engine
        self._is_late = False
        self._timer: threading.Timer | None = None
        self._worker: ThreadPoolExecutor | None = None
        if engine.time_limit is not None:
            self._timer = threading.Timer(engine.time_limit, self._stop)
            self._timer.daemon = True
            self._timer.start()

    def _stop(self) -> None:
        self._is_late = True
        self._engine.interrupt()

    def call(self, read: Callable[[], T]) -> T:
        """Call DuckDB. In the main thread it runs in another one: while DuckDB computes, Python
        would not see Ctrl-C."""
        with self._engine.computing():
            self._check()
            try:
                if threading.current_thread() is not threading.main_thread():
                    return read()
                return self._watched(read)
            except Exception as error:
                self._check(error)
                raise

    def _check(self, cause: Exception | None = None) -> None:
        if self._is_late:
            raise Cancelled(f"the query took longer than {self._engine.time_limit:g} s") from cause
        if self._engine.is_cancelled:
            raise Cancelled("the query was cancelled") from cause

    def _watched(self, read: Callable[[], T]) -> T:
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="frazil-query")
        reading = self._worker.submit(read)
        try:
            return reading.result()
        except KeyboardInterrupt:
            self._engine.interrupt()
            wait([reading])
            raise

    def end(self) -> None:
        """The query has ended."""
        if self._timer is not None:
            self._timer.cancel()
        if self._worker is not None:
            self._worker.shutdown(wait=False)
            self._worker = None


def called(engine: SqlEngine, read: Callable[[], T]) -> T:
    """What one call of DuckDB gives that may take long."""
    run = Interruptible(engine)
    try:
        return run.call(read)
    finally:
        run.end()

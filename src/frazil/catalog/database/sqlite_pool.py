"""Connections to one SQLite file, on the standard library alone.

A few are kept open between uses. Knows nothing of what is sent over them.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

from frazil.errors import CatalogError, InvalidInput

BUSY_TIMEOUT_S = 60
_MAX_IDLE = 5
_PAGE_BYTES = 512
"""Pages of a new database. A small commit changes six or seven, whatever is on them, and writes
each whole into the log: pages of half a kilobyte make that 3.8 kB, SQLite's default 20."""


class _Held:
    """A connection in use; goes back to its pool, or is dropped."""

    __slots__ = ("_pool", "driver_connection")

    def __init__(self, pool: SqlitePool, connection: sqlite3.Connection) -> None:
        self._pool = pool
        self.driver_connection = connection

    def close(self) -> None:
        """Give it back."""
        self._pool.take_back(self.driver_connection)

    def invalidate(self, _error: BaseException | None = None) -> None:
        """Close it for good."""
        self.driver_connection.close()


class SqlitePool:
    """Connections to a file. Safe to share between threads."""

    kind = "sqlite"
    driver = sqlite3
    errors = (sqlite3.Error,)
    secrets: tuple[str, ...] = ()

    def __init__(self, path: str) -> None:
        if not path or path == ":memory:":
            raise InvalidInput("sqlite: expected a file; a memory catalog needs no SQLite")
        self.path = path
        self.uri = f"sqlite:///{path}"
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CatalogError(f"{self.uri}: {error.strerror}") from error
        self.is_read_only = not _can_write(path)
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._inherited: list[sqlite3.Connection] = []

    @staticmethod
    def at_uri(uri: str) -> SqlitePool:
        """From `sqlite:///relative` or `sqlite:////absolute`."""
        rest, _, query = uri.removeprefix("sqlite:").partition("?")
        if not rest.startswith("///") or parse_qs(query).get("mode") == ["memory"]:
            raise InvalidInput("a SQLite URI must name a file: sqlite:///folder/catalog.db")
        return SqlitePool(rest.removeprefix("///"))

    def raw_connection(self) -> _Held:
        """A connection for exclusive use."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        return _Held(self, connection if connection is not None else self._open())

    def take_back(self, connection: sqlite3.Connection) -> None:
        """Keep a connection for the next use, unless there are enough."""
        with self._lock:
            if not self.is_read_only and len(self._idle) < _MAX_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def dispose(self) -> None:
        """Close the connections that are not in use."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def leave(self) -> None:
        """Leave the connections to the process that made them: held, never closed, never used."""
        self._lock = threading.Lock()
        self._inherited += self._idle
        self._idle = []

    def is_disconnect(self, _error: Exception, _connection: Any) -> bool:
        """Whether a connection had gone before; one to a file does not go."""
        return False

    def _open(self) -> sqlite3.Connection:
        if self.is_read_only:
            return _open_read_only(self.path)
        connection = sqlite3.connect(
            self.path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection


def _can_write(path: str) -> bool:
    """Whether SQLite can work in a file: it writes the file, and others beside it."""
    folder = os.path.dirname(os.path.abspath(path))
    return os.access(folder, os.W_OK) and (not os.path.exists(path) or os.access(path, os.W_OK))


def _open_read_only(path: str) -> sqlite3.Connection:
    """A connection that changes nothing, not even a file beside the database. Created anew for each
    use, because a writer elsewhere may start its journal at any time."""
    journal = f"{path}-wal"
    is_still = not os.path.exists(journal) or os.path.getsize(journal) == 0
    uri = f"file:{quote(os.path.abspath(path))}?mode=ro{'&immutable=1' if is_still else ''}"
    return sqlite3.connect(
        uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(f"PRAGMA page_size={_PAGE_BYTES}")  # a database that exists keeps its own
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError:
            # Another process is at the same switch, and SQLite does not wait for this one itself.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)

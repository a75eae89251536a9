"""A SQL database as the catalog uses it: held connections, short transactions, counted statements.

Statements are plain text with `:name` parameters and go straight to the driver, because a commit is
a handful of them and every microsecond between is overhead. Connections are kept by `sqlite_pool`,
on the standard library alone, or by `postgres_pool`, on SQLAlchemy, which is loaded for it. Knows
nothing of tables and namespaces. Passwords never reach a message.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from frazil.catalog.database.sqlite_pool import SqlitePool
from frazil.credentials import ConnectionProperties
from frazil.errors import CatalogError, CommitUnknown

Row = tuple[Any, ...]
Parameters = Mapping[str, Any]

_NAME = re.compile(r"(?<!:):([a-z_0-9]+)")
_NOTHING: dict[str, Any] = {}
_CHECKPOINT = "PRAGMA wal_checkpoint(FULL)"


class UncertainCommit(Exception):
    """COMMIT was sent and no answer came: the transaction may or may not have happened."""

    def __init__(self, cause: Exception) -> None:
        self.cause = cause
        super().__init__("the connection was lost while committing")


class DuplicateKey(Exception):
    """A row of that key is there already; the transaction was rolled back."""


class DatabaseTransaction:
    """Statements that happen together or not at all."""

    __slots__ = ("_connection", "_database")

    def __init__(self, database: Database, connection: Any) -> None:
        self._database = database
        self._connection = connection

    def rows(self, statement: str, parameters: Parameters = _NOTHING) -> list[Row]:
        """Run a statement and fetch what it returns."""
        return self._database.send(self._connection, statement, parameters)

    def run(self, statement: str, parameters: Parameters = _NOTHING) -> int:
        """Run a statement; returns how many rows it changed."""
        return self._database.send_counted(self._connection, statement, parameters)

    def run_each(self, statement: str, parameters: Sequence[Parameters]) -> None:
        """Run a statement once for every set of parameters."""
        if parameters:
            self._database.send_many(self._connection, statement, parameters)


class Database:
    """SQLite or PostgreSQL. Safe to share between threads, and to inherit by fork."""

    def __init__(self, uri: str, *, path: str | None = None) -> None:
        self._uri = uri
        self._path = path
        self._pool: Any = _pool(uri, path)
        self.uri: str = self._pool.uri
        self.kind: Literal["sqlite", "postgresql"] = self._pool.kind
        self.is_read_only: bool = self._pool.is_read_only
        """Whether this process may only read: a SQLite file or its folder cannot be written."""
        self.statements = 0
        self.rows_read = 0
        self._lock = threading.Lock()
        self._texts: dict[str, str] = {}
        self._process = os.getpid()
        self._is_in_doubt = False
        self._driver: Any = self._pool.driver

    @classmethod
    def at_path(cls, path: str) -> Database:
        """The SQLite database in a file, whatever characters its path holds."""
        return cls("", path=path)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return (_opened, (type(self), ConnectionProperties({"uri": self._uri}), self._path))

    @property
    def file(self) -> str | None:
        """The file of a SQLite database."""
        path = self._pool.path
        return os.path.abspath(path) if path else None

    def __repr__(self) -> str:
        return f"Database({self.uri!r})"

    def rows(self, statement: str, parameters: Parameters = _NOTHING) -> list[Row]:
        """Run one reading statement on its own."""
        self._settle()
        connection, rows = self._asked(statement, parameters)
        connection.close()
        return rows

    @contextmanager
    def transaction(self, *, write: bool = True) -> Iterator[DatabaseTransaction]:
        """Run statements together. Raises `UncertainCommit` when the answer to COMMIT is lost.

        A reading transaction sees one state of the database throughout.
        """
        connection = self._begin(write=write)
        with self._undone_on_failure(connection):
            yield DatabaseTransaction(self, connection)
        try:
            self.send(connection, "COMMIT", _NOTHING)
        except self._driver.Error as error:
            if write and not _is_refusal(error):
                self._is_in_doubt = True
                self._give_up(connection, error)
                raise UncertainCommit(error) from error
            self._roll_back(connection)
            raise self._failed(error) from error
        connection.close()

    @contextmanager
    def changing(self, what: str) -> Iterator[DatabaseTransaction]:
        """A writing transaction; CommitUnknown, which says what it did, when its answer is lost."""
        try:
            with self.transaction() as transaction:
                yield transaction
        except UncertainCommit as lost:
            raise CommitUnknown(
                f"the connection was lost while {what}; check before retrying"
            ) from lost

    def begin(self, statement: str) -> Any:
        """Send a statement that opens a transaction; returns its connection, for `end`."""
        connection = self._checkout()
        with self._undone_on_failure(connection):
            self.send(connection, statement, _NOTHING)
        return connection

    def ask(self, connection: Any, statement: str) -> list[Row]:
        """Send a statement on a connection of `begin`; CatalogError when it fails."""
        try:
            return self.send(connection, statement, _NOTHING)
        except self._driver.Error as error:
            raise self._failed(error) from error

    def end(self, connection: Any) -> None:
        """Roll back what `begin` opened; a connection that has gone is dropped."""
        self._roll_back(connection)

    def close(self) -> None:
        """Close every connection of this process."""
        self._leave_pool_of_parent()
        self._pool.dispose()

    # What goes over the wire; a test of lost replies overrides these.

    def send(self, connection: Any, statement: str, parameters: Parameters) -> list[Row]:
        """Send one statement and fetch its rows."""
        self.statements += 1
        cursor = connection.driver_connection.execute(self._text(statement), parameters)
        if cursor.description is None:
            return []
        rows: list[Row] = cursor.fetchall()
        self.rows_read += len(rows)
        return rows

    def send_counted(self, connection: Any, statement: str, parameters: Parameters) -> int:
        """Send one statement; returns how many rows it changed."""
        self.statements += 1
        changed: int = connection.driver_connection.execute(
            self._text(statement), parameters
        ).rowcount
        return changed

    def send_many(self, connection: Any, statement: str, parameters: Sequence[Parameters]) -> None:
        """Send one statement with many sets of parameters."""
        self.statements += 1
        cursor = connection.driver_connection.cursor()
        cursor.executemany(self._text(statement), parameters)
        cursor.close()

    # Connections

    def _leave_pool_of_parent(self) -> None:
        """After a fork, leave the parent's connections alone: closing one would end it for both."""
        if self._process != os.getpid():
            with self._lock:
                if self._process != os.getpid():
                    self._pool.leave()
                    self._process = os.getpid()

    def _checkout(self) -> Any:
        self._leave_pool_of_parent()
        try:
            return self._pool.raw_connection()
        except self._pool.errors as error:
            raise self._failed(error) from error

    def _begin(self, *, write: bool) -> Any:
        if write and self.is_read_only:
            raise CatalogError(
                f"{self.uri}: the catalog is read-only here; changing it needs permission to "
                "write the file and its folder"
            )
        self._settle()
        if self.kind == "sqlite":
            begin = "BEGIN IMMEDIATE" if write else "BEGIN"
        else:
            begin = "BEGIN" if write else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        return self._asked(begin, _NOTHING)[0]

    def _settle(self) -> None:
        """Before anything is believed: make durable what a COMMIT without an answer wrote.

        SQLite shows a commit whose sync failed as soon as its journal is read again, although a
        crash may still take it. So the journal is written to the database file and that is synced;
        CatalogError when it cannot be. A server shows only what it has made durable.
        """
        if not self._is_in_doubt:
            return
        if self.kind == "sqlite":
            connection, ((is_busy, frames, written),) = self._asked(_CHECKPOINT, _NOTHING)
            connection.close()
            if is_busy or written < frames:
                raise CatalogError(
                    f"{self.uri}: a sync failed, and what it was to save could not be synced "
                    "since, as others use the database; try again"
                )
        self._is_in_doubt = False

    def _asked(self, statement: str, parameters: Parameters) -> tuple[Any, list[Row]]:
        """A connection and its first answer; asked again if the held connection had gone."""
        for attempt in (1, 2):
            connection = self._checkout()
            try:
                rows = self.send(connection, statement, parameters)
            except self._driver.Error as error:
                is_lost = self._give_up(connection, error)
                if is_lost and attempt == 1:
                    continue
                raise self._failed(error) from error
            return connection, rows
        raise AssertionError("unreachable")

    @contextmanager
    def _undone_on_failure(self, connection: Any) -> Iterator[None]:
        """Roll back when something fails, and say what in this package's terms."""
        try:
            yield
        except BaseException as error:
            self._roll_back(connection)
            if isinstance(error, self._driver.IntegrityError):
                raise DuplicateKey from error
            if isinstance(error, self._driver.Error):
                raise self._failed(error) from error
            raise

    def _roll_back(self, connection: Any) -> None:
        try:
            self.send(connection, "ROLLBACK", _NOTHING)
        except self._driver.Error as error:
            connection.invalidate(error)
        else:
            connection.close()

    def _give_up(self, connection: Any, error: Exception) -> bool:
        """Drop a connection that failed; returns whether it had gone before."""
        is_lost: bool = self._pool.is_disconnect(error, connection.driver_connection)
        connection.invalidate(error)
        return is_lost

    def _failed(self, error: Exception) -> CatalogError:
        text = str(getattr(error, "orig", None) or error).strip()
        for secret in self._pool.secrets:
            text = text.replace(secret, "***")
        if _is_refusal(error):
            text = f"{text}. Nothing was committed; make room or make the database writable"
        return CatalogError(f"{self.uri}: {text}")

    def _text(self, statement: str) -> str:
        if self.kind == "sqlite":
            return statement
        text = self._texts.get(statement)
        if text is None:
            text = self._texts[statement] = _NAME.sub(r"%(\1)s", statement)
        return text


_SQLITE_REFUSALS = frozenset(
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
)
_SQLITE_MAY_HAVE_WRITTEN = frozenset({sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC})
_POSTGRES_REFUSALS = ("53", "25", "58030")  # no resources, read-only, input or output failed


def _is_refusal(error: Exception) -> bool:
    """Whether a database that ran out of space, or must not write, said that nothing was committed.

    A sync that failed says less: what was written before it may be found after a crash.
    """
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None:
        return code & 0xFF in _SQLITE_REFUSALS and code not in _SQLITE_MAY_HAVE_WRITTEN
    state = getattr(error, "sqlstate", None)
    return isinstance(state, str) and state.startswith(_POSTGRES_REFUSALS)


def _opened(kind: type[Database], address: ConnectionProperties, path: str | None) -> Database:
    return kind(address["uri"], path=path)


def _pool(uri: str, path: str | None) -> Any:
    if path is not None:
        return SqlitePool(path)
    if uri.startswith("sqlite:"):
        return SqlitePool.at_uri(uri)
    from frazil.catalog.database.postgres_pool import PostgresPool

    return PostgresPool(uri)

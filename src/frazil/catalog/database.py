"""A SQL database as the catalog uses it: held connections, short transactions, counted statements.

SQLAlchemy keeps the pool and knows the dialects; statements are plain text with `:name` parameters
and go straight to the driver, because a commit is a handful of them and every microsecond between
is overhead. Knows nothing of tables and namespaces. Passwords never reach a message.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from frazil.errors import CatalogError, InvalidInput
from frazil.format.checks import is_credential

Row = tuple[Any, ...]
Parameters = Mapping[str, Any]

_BUSY_TIMEOUT_S = 60
_NAME = re.compile(r"(?<!:):([a-z_0-9]+)")
_NOTHING: dict[str, Any] = {}


class UncertainCommit(Exception):
    """COMMIT was sent and no answer came: the transaction may or may not have happened."""

    def __init__(self, cause: Exception) -> None:
        self.cause = cause
        super().__init__("the connection was lost while committing")


class DuplicateKey(Exception):
    """A row of that key is there already; the transaction was rolled back."""


class Transaction:
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

    def __init__(self, uri: str | URL) -> None:
        self._url = _url(uri)
        self.uri = _shown(self._url)
        self.kind: Literal["sqlite", "postgresql"] = (
            "sqlite" if self._url.get_backend_name() == "sqlite" else "postgresql"
        )
        self.is_read_only = False
        """Whether this process may only read: a SQLite file or its folder cannot be written."""
        self.statements = 0
        self.rows_read = 0
        self._lock = threading.Lock()
        self._texts: dict[str, str] = {}
        self._inherited: list[Any] = []
        self._process = os.getpid()
        self._engine = self._new_engine()
        self._driver: Any = self._engine.dialect.dbapi

    @classmethod
    def at_path(cls, path: str) -> Database:
        """The SQLite database in a file, whatever characters its path holds."""
        return cls(URL.create("sqlite", database=path))

    def __reduce__(self) -> tuple[type[Database], tuple[URL]]:
        return (type(self), (self._url,))

    @property
    def file(self) -> str | None:
        """The file of a SQLite database."""
        path = self._url.database
        return os.path.abspath(path) if self.kind == "sqlite" and path else None

    @property
    def dialect(self) -> sa.Dialect:
        """How this database spells its definitions."""
        return self._engine.dialect

    def __repr__(self) -> str:
        return f"Database({self.uri!r})"

    def rows(self, statement: str, parameters: Parameters = _NOTHING) -> list[Row]:
        """Run one reading statement on its own; asked again if the held connection had gone."""
        for attempt in (1, 2):
            connection = self._checkout()
            try:
                found = self.send(connection, statement, parameters)
            except self._driver.Error as error:
                gone = self._give_up(connection, error)
                if gone and attempt == 1:
                    continue
                raise self._failed(error) from error
            connection.close()
            return found
        raise AssertionError("unreachable")

    @contextmanager
    def transaction(self, *, write: bool = True) -> Iterator[Transaction]:
        """Run statements together. Raises `UncertainCommit` when the answer to COMMIT is lost.

        A reading transaction sees one state of the database throughout.
        """
        connection = self._begin(write=write)
        try:
            yield Transaction(self, connection)
        except self._driver.IntegrityError as error:
            self._roll_back(connection)
            raise DuplicateKey from error
        except self._driver.Error as error:
            self._roll_back(connection)
            raise self._failed(error) from error
        except BaseException:
            self._roll_back(connection)
            raise
        try:
            self.send(connection, "COMMIT", _NOTHING)
        except self._driver.Error as error:
            if write and not _is_refusal(error):
                self._give_up(connection, error)
                raise UncertainCommit(error) from error
            self._roll_back(connection)
            raise self._failed(error) from error
        connection.close()

    def begin(self, statement: str) -> Any:
        """Send a statement that opens a transaction; returns its connection, for `end`."""
        connection = self._checkout()
        try:
            self.send(connection, statement, _NOTHING)
        except self._driver.Error as error:
            self._roll_back(connection)
            raise self._failed(error) from error
        except BaseException:
            self._roll_back(connection)
            raise
        return connection

    def end(self, connection: Any) -> None:
        """Roll back what `begin` opened; a connection that has gone is dropped."""
        self._roll_back(connection)

    def close(self) -> None:
        """Close every connection of this process."""
        self._own_pool()
        self._engine.dispose()

    # What goes over the wire; a test of lost replies overrides these.

    def send(self, connection: Any, statement: str, parameters: Parameters) -> list[Row]:
        """Send one statement and fetch its rows."""
        self.statements += 1
        cursor = connection.driver_connection.execute(self._text(statement), parameters)
        if cursor.description is None:
            return []
        found: list[Row] = cursor.fetchall()
        self.rows_read += len(found)
        return found

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

    def _new_engine(self) -> sa.Engine:
        arguments: dict[str, Any] = {}
        more: dict[str, Any] = {}
        if self.kind == "sqlite":
            path = self._url.database
            if not path or path == ":memory:" or self._url.query.get("mode") == "memory":
                raise InvalidInput(f"{self.uri}: expected a file; a memory catalog needs no SQLite")
            try:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise CatalogError(f"{self.uri}: {error.strerror}") from error
            arguments = {"timeout": _BUSY_TIMEOUT_S}
            self.is_read_only = not _can_write(path)
            if self.is_read_only:
                more = {"creator": partial(_open_read_only, path), "poolclass": NullPool}
        if not more:
            more = {"max_overflow": -1}
        try:
            engine = sa.create_engine(
                self._url,
                connect_args=arguments,
                isolation_level="AUTOCOMMIT",
                hide_parameters=True,
                pool_reset_on_return=None,
                **more,
            )
        except (SQLAlchemyError, ImportError) as error:
            raise CatalogError(f"{self.uri}: cannot use this database: {error}") from error
        if not self.is_read_only:
            event.listen(
                engine, "connect", _prepare_sqlite if self.kind == "sqlite" else _prepare_postgres
            )
        return engine

    def _own_pool(self) -> None:
        """After a fork, leave the parent's connections alone: closing one would end it for both."""
        if self._process != os.getpid():
            with self._lock:
                if self._process != os.getpid():
                    self._inherited.append(self._engine.pool)
                    self._engine.dispose(close=False)
                    self._process = os.getpid()

    def _checkout(self) -> Any:
        self._own_pool()
        try:
            return self._engine.raw_connection()
        except (SQLAlchemyError, self._driver.Error) as error:
            raise self._failed(error) from error

    def _begin(self, *, write: bool) -> Any:
        if write and self.is_read_only:
            raise CatalogError(
                f"{self.uri}: can only be read here; to change the catalog you need permission to "
                "write the file and its folder"
            )
        if self.kind == "sqlite":
            begin = "BEGIN IMMEDIATE" if write else "BEGIN"
        else:
            begin = "BEGIN" if write else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        for attempt in (1, 2):
            connection = self._checkout()
            try:
                self.send(connection, begin, _NOTHING)
            except self._driver.Error as error:
                gone = self._give_up(connection, error)
                if gone and attempt == 1:
                    continue
                raise self._failed(error) from error
            return connection
        raise AssertionError("unreachable")

    def _roll_back(self, connection: Any) -> None:
        try:
            self.send(connection, "ROLLBACK", _NOTHING)
        except self._driver.Error as error:
            connection.invalidate(error)
        else:
            connection.close()

    def _give_up(self, connection: Any, error: Exception) -> bool:
        """Drop a connection that failed; returns whether it had gone before."""
        gone = self._engine.dialect.is_disconnect(
            error,  # type: ignore[arg-type]
            connection.driver_connection,
            None,
        )
        connection.invalidate(error)
        return gone

    def _failed(self, error: Exception) -> CatalogError:
        text = str(getattr(error, "orig", None) or error).strip()
        for secret in _secrets(self._url):
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


def _url(uri: str | URL) -> URL:
    try:
        url = sa.make_url(uri)
        backend = url.get_backend_name()
    except (ArgumentError, ValueError) as error:
        raise InvalidInput("the catalog's address is not a database URI") from error
    if backend in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    elif backend != "sqlite":
        raise InvalidInput(f"{_shown(url)}: expected a sqlite or postgresql database")
    try:
        url.get_dialect()
    except (NoSuchModuleError, ImportError) as error:
        raise InvalidInput(f"{_shown(url)}: there is no such database driver") from error
    return url


def _secrets(url: URL) -> list[str]:
    hidden = [str(url.password)] if url.password else []
    for key, value in url.query.items():
        if is_credential(key) or "password" in key:
            hidden += [value] if isinstance(value, str) else list(value)
    return [secret for secret in hidden if secret]


def _shown(url: URL) -> str:
    """The address fit to be shown."""
    shown = {k: "***" if is_credential(k) or "password" in k else v for k, v in url.query.items()}
    return url.set(query=shown).render_as_string(hide_password=True)


def _can_write(path: str) -> bool:
    """Whether SQLite can work in a file: it writes the file, and others beside it."""
    folder = os.path.dirname(os.path.abspath(path))
    return os.access(folder, os.W_OK) and (not os.path.exists(path) or os.access(path, os.W_OK))


def _open_read_only(path: str) -> sqlite3.Connection:
    """A connection that changes nothing, not even a file beside the database. Made anew for each
    use, because a writer elsewhere may start its journal at any time."""
    journal = f"{path}-wal"
    is_still = not os.path.exists(journal) or os.path.getsize(journal) == 0
    uri = f"file:{quote(os.path.abspath(path))}?mode=ro{'&immutable=1' if is_still else ''}"
    return sqlite3.connect(uri, uri=True, timeout=_BUSY_TIMEOUT_S, check_same_thread=False)


def _prepare_postgres(connection: Any, _record: object) -> None:
    """A client that hangs in the middle of a commit must not stop the others for long."""
    connection.autocommit = True
    connection.execute(
        f"SET idle_in_transaction_session_timeout = '{_BUSY_TIMEOUT_S}s'; "
        f"SET lock_timeout = '{_BUSY_TIMEOUT_S}s'"
    )


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute("PRAGMA synchronous=FULL")
    deadline = time.monotonic() + _BUSY_TIMEOUT_S
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError:
            # Another process is at the same switch, and SQLite does not wait for this one itself.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)

"""DuckDB's database behind the sessions of a catalog: how it is set, and a new one after a crash.

No query can change its settings, load an extension or see Python's variables. An INTERNAL error of
DuckDB ends a database for good, even for `SELECT 1`; then the next statement gets another one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from frazil.errors import InvalidInput
from frazil.filter.text.sql_values import string_text
from frazil.parser.duckdb_parser import error_details
from frazil.rows.duckdb.duckdb_connection import compiled_connection, fence, open_folders
from frazil.sql.engine.query_cache import QueryCache
from frazil.storage import is_local, local_path

if TYPE_CHECKING:
    import duckdb

OWN_SETTINGS: Final = (
    "arrow_large_buffer_size",
    "disabled_optimizers",
    "parquet_metadata_cache",
    "read_ahead_depth",
)
"""What Frazil sets for single scans and queries, on their connections. None of them lets a query
read more than it may."""

MAX_FOLDERS: Final = 100
"""Folders whose files DuckDB opens by itself; other files it reads through their storage."""


class Database:
    """A database that is opened when it is first needed. Safe to share between threads."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection | None = None,
        *,
        settings: Mapping[str, str] | None = None,
        warehouse: str | None = None,
    ) -> None:
        """`connection` is one that `new_database` made; `settings` are of DuckDB. Files may be
        opened below `warehouse` and where tables turn out to be."""
        self._connection = connection
        self._unfenced: duckdb.DuckDBPyConnection | None = None
        self._open_folders: tuple[str, ...] | None = None
        """Those that cursors of the connection may open files in, once it is there."""
        self._settings = dict(settings or {})
        self._folders: set[str] = set()
        self._lock = threading.Lock()
        self.ready = QueryCache()
        self._is_given = connection is not None
        if warehouse is not None:
            self.include(warehouse)

    def cursor(self, *, allow_files: bool = False) -> duckdb.DuckDBPyConnection:
        """A new connection; with `allow_files`, one that opens files anywhere."""
        return self.fenced_cursor(allow_files=allow_files)[0]

    def fenced_cursor(
        self, *, allow_files: bool = False
    ) -> tuple[duckdb.DuckDBPyConnection, tuple[str, ...] | None]:
        """A new connection, and the folders that it may open files in; None if everywhere. They are
        asked for once: to ask costs as much as to parse a query."""
        with self._lock:
            if allow_files and not self._is_given:
                if self._unfenced is None:
                    self._unfenced = new_database(**self._settings)
                return self._unfenced.cursor(), None
            if self._connection is None:
                self._connection = new_database(folders=self._folders, **self._settings)
                self._open_folders = None
            cursor = self._connection.cursor()
            if self._open_folders is None:
                self._open_folders = open_folders(cursor)
            return cursor, self._open_folders

    def include(self, location: str) -> None:
        """Let later connections open the files of a table by themselves. DuckDB's list of folders
        cannot grow, so that they are connections to another database."""
        if self._is_given or not is_local(location):
            return
        folder = os.path.realpath(local_path(location)) + "/"
        with self._lock:
            if folder.startswith(tuple(self._folders)) or len(self._folders) >= MAX_FOLDERS:
                return
            self._folders.add(folder)
            self._connection = None  # its cursors go on

    def renew(self) -> None:
        """Leave a database that can run nothing any more; the next cursor opens another one."""
        with self._lock:
            old = [self._connection, self._unfenced]
            self._connection = self._unfenced = None
        self.ready.clear()
        self._close(old)

    def close(self) -> None:
        """Close its connections."""
        self.ready.close()
        with self._lock:
            old = [self._connection, self._unfenced]
            self._connection = self._unfenced = None
        self._close(old)

    def _close(self, connections: list[duckdb.DuckDBPyConnection | None]) -> None:
        from _duckdb import Error

        for connection in connections:
            with suppress(Error):
                if connection is not None:
                    connection.close()


def new_database(
    *, folders: Iterable[str] | None = None, **settings: str
) -> duckdb.DuckDBPyConnection:
    """A database in memory, with more settings, none of which can be changed afterwards. It keeps
    the footers of the files it has read, as far as memory allows, and says where in a text an error
    is.

    What it may read is decided before it gets a statement (`parser.judge`). This is the second
    fence: whatever a statement is, it changes no setting, makes DuckDB load nothing by itself, and
    sees no variable of Python. Unless `folders` is None, it opens files below these folders alone,
    and those of scans through their storage.
    """
    from _duckdb import Error

    connection = compiled_connection(
        python_enable_replacements="false",
        autoinstall_known_extensions="false",
        autoload_known_extensions="false",
        allow_community_extensions="false",
        allow_extension_repositories="forbidden",
        allow_persistent_secrets="false",
        errors_as_json="true",
    )
    connection.execute("SET GLOBAL parquet_metadata_cache = true")
    for name, value in settings.items():
        try:
            connection.execute(f"SET GLOBAL {name} = {string_text(value)}")
        except Error as error:
            connection.close()
            raise InvalidInput(f"{name} is {value!r}: {error_details(error).message}") from error
    if folders is not None:
        fence(connection, folders)
    allowed = ", ".join(map(string_text, OWN_SETTINGS))
    connection.execute(f"SET GLOBAL allowed_configs = [{allowed}]")
    connection.execute("SET GLOBAL lock_configuration = true")
    return connection

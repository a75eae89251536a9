"""DuckDB connections as Frazil sets them: the one place where its database is opened."""

from __future__ import annotations

import atexit
import os
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from frazil.filter.text.sql_values import string_text
from frazil.rows.duckdb import duckdb_shapes

if TYPE_CHECKING:
    import duckdb


STORAGE_FILES: Final = "frazil://files"
"""What the addresses of files that are read through a storage begin with."""
_FENCE: Final = (
    "SELECT current_setting('enable_external_access'), current_setting('allowed_directories')"
)
_UNUSED_OPTIMIZERS: Final = ("partial_aggregate_pushdown",)
"""Adding rows up before a join pays if the join keeps most of them, which DuckDB cannot tell for
files without numbers of distinct values; the rows then miss the filter that the join would give
their scan."""
_LONG: Final = 2_000
"""Characters of a query; a sum of 200 columns is planned in 0.2 s."""


def connect(**config: Any) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection in memory, set as Frazil needs it, as are all cursors of it."""
    import duckdb  # noqa: F401  (it adds relations and Arrow data to connections)

    return compiled_connection(**config)


def compiled_connection(**config: Any) -> duckdb.DuckDBPyConnection:
    """The same as DuckDB's compiled module makes it: it parses texts and runs them. What DuckDB's
    package adds in Python, relations and Arrow data among it, is there once `duckdb` is imported,
    which takes as long as the compiled module does."""
    import _duckdb

    settings = {
        "temp_directory": _spill_folder(os.getpid()),
        "arrow_lossless_conversion": "true",
        "disabled_optimizers": ",".join(_UNUSED_OPTIMIZERS),
        **config,
    }
    connection = _duckdb.connect(config=settings)
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    return connection


@lru_cache(maxsize=1)
def _spill_folder(process: int) -> str:
    """Where a process spills rows that do not fit in memory. Nobody else can look into it, and its
    name cannot be known beforehand."""
    folder = tempfile.mkdtemp(prefix="frazil-")
    atexit.register(_remove_spilled, folder, process)
    return folder


def _remove_spilled(folder: str, process: int) -> None:
    if os.getpid() == process:  # not what a fork was started from
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


def fence(connection: duckdb.DuckDBPyConnection, folders: Iterable[str]) -> None:
    """Let a database open nothing but files below these folders and those of scans that it was
    told about, for good. DuckDB resolves links first."""
    listed = ", ".join(string_text(folder) for folder in (*folders, STORAGE_FILES))
    connection.execute(f"SET GLOBAL allowed_directories = [{listed}]")
    connection.execute("SET GLOBAL enable_external_access = false")


def open_folders(connection: duckdb.DuckDBPyConnection) -> tuple[str, ...] | None:
    """The folders that a connection may open files in; None if it may do so everywhere."""
    is_open, folders = connection.execute(_FENCE).fetchall()[0]
    return None if is_open else tuple(folders)


def forget(connection: duckdb.DuckDBPyConnection, names: Iterable[str]) -> None:
    """Make a connection forget relations, also after a query that failed or was not read."""
    connection.abort()
    for name in names:
        connection.unregister(name)


@contextmanager
def streaming(
    connection: duckdb.DuckDBPyConnection, query: str, *, disabled: tuple[str, ...] = ()
) -> Iterator[None]:
    """Settings for a query whose rows become Arrow batches; they are as before afterwards.

    A batch may hold more than 2 GiB of text. A long query is planned without looking for common
    subexpressions: that takes time with the cube of an expression's length, 11 s for a sum of 800
    columns. `disabled` names more optimizers to leave out. Read all rows inside: DuckDB ends a
    stream when the next statement runs.
    """
    from _duckdb import Error

    duckdb_shapes.provide(connection, query)
    settings = {"arrow_large_buffer_size": "true"}
    disabled += ("common_subexpressions",) if len(query) > _LONG else ()
    if disabled:
        settings["disabled_optimizers"] = ",".join((*_UNUSED_OPTIMIZERS, *disabled))
    before = {name: _setting(connection, name) for name in settings}
    before = {name: value for name, value in before.items() if value != settings[name]}
    try:
        for name in before:
            connection.execute(f"SET {name} = {string_text(settings[name])}")
    except Error:  # the settings of a connection that was given may be locked
        yield
        return
    try:
        yield
    finally:
        connection.abort()
        with suppress(Error):  # a transaction of the connection's owner may be aborted
            for name, value in before.items():
                connection.execute(f"SET {name} = {string_text(value)}")


def _setting(connection: duckdb.DuckDBPyConnection, name: str) -> str:
    ((value,),) = connection.execute(f"SELECT current_setting('{name}')::VARCHAR").fetchall()
    return str(value)


class _Shared:
    """One database for each process; a forked one opens its own."""

    def __init__(self) -> None:
        self._database: duckdb.DuckDBPyConnection | None = None
        self._process = 0
        self._lock = threading.Lock()

    def connection(self) -> duckdb.DuckDBPyConnection:
        import duckdb

        with self._lock:
            if self._database is not None and self._process == os.getpid():
                try:
                    return self._database.cursor()
                except duckdb.Error:  # a database is invalid for good after some failures
                    pass
            self._database = connect(
                preserve_insertion_order=False,
                # Files are read once; what was read is not kept until the process ends.
                enable_external_file_cache=False,
                arrow_large_buffer_size=True,
            )
            self._process = os.getpid()
            return self._database.cursor()


_shared = _Shared()


def connection() -> duckdb.DuckDBPyConnection:
    """A new connection to the process's database."""
    return _shared.connection()

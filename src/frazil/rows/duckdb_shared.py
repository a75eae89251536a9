"""The process's own DuckDB database, opened once: opening one takes longer than a small change.

Each caller gets a connection of its own, with temporary tables and variables that others do not
see. Settings hold for all of them, so only callers that want none of their own share it.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from frazil.rows import duckdb_scan

if TYPE_CHECKING:
    import duckdb


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
            self._database = duckdb_scan.connect(
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


__all__ = ["connection"]

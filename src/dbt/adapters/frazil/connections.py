"""Connections of dbt: a SQL session of a catalog that the process opens once."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from dbt.adapters.contracts.connection import (
    AdapterResponse,
    Connection,
    ConnectionState,
    Credentials,
)
from dbt.adapters.sql import SQLConnectionManager
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

import frazil
from frazil.data.schema import iceberg_schema
from frazil.filter.text.sql_values import type_text
from frazil.table import Catalog

DATABASE = "frazil"
"""What dbt is told: it leaves out of its documentation whatever has no database."""

_COUNTS = ("inserted", "updated", "deleted")


@dataclass
class FrazilCredentials(Credentials):
    """What a profile says: the catalog as `frazil.connect` takes it, and the namespace."""

    database: str = DATABASE
    schema: str = "main"
    catalog: str = "warehouse"
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.database != DATABASE:
            raise DbtRuntimeError(
                f"database is {self.database!r}; a Frazil catalog has no databases. "
                "Name the catalog in `catalog` and the namespace in `schema`."
            )

    @property
    def type(self) -> str:
        return "frazil"

    @property
    def unique_field(self) -> str:
        return self.catalog

    def _connection_keys(self) -> tuple[str, ...]:
        return ("catalog", "database", "schema")


class Cursor:
    """The part of Python's database interface that dbt uses."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self.rows: pa.Table | None = None
        self._next = 0

    def execute(self, sql: str, bindings: Sequence[Any] | None = None) -> None:
        """Run statements and keep the rows of the last one."""
        self.rows, self._next = None, 0
        result = self._handle.session.sql(sql, list(bindings) if bindings else None)
        self.rows = result.to_arrow()

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        """Names and types of the columns."""
        if self.rows is None:
            return None
        return [(f.name, f.type, None, None, None, None, None) for f in self.rows.schema]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows that were not fetched yet."""
        return self.fetchmany(-1)

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row."""
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        """The next rows; all of them for a negative size."""
        if self.rows is None:
            return []
        left = self.rows.slice(self._next)
        part = left if size < 0 else left.slice(0, size)
        self._next += part.num_rows
        columns = [column.to_pylist() for column in part.columns]
        return list(zip(*columns, strict=True))

    @property
    def changed(self) -> int | None:
        """The number of rows that a statement says it changed."""
        if self.rows is None or self.rows.num_rows != 1:
            return None
        counts = [name for name in self.rows.column_names if name in _COUNTS]
        if len(counts) != self.rows.num_columns:
            return None
        return sum(self.rows[name][0].as_py() or 0 for name in counts)

    def close(self) -> None:
        """Let the rows go."""
        self.rows = None


class Handle:
    """One thread's session."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.session = catalog.session()
        self.closed = False

    def cursor(self) -> Cursor:
        """A cursor on the session."""
        return Cursor(self)

    def commit(self) -> None:
        """Statements commit themselves."""

    def rollback(self) -> None:
        """Take back a transaction that a statement left open."""
        self.session.close()

    def close(self) -> None:
        """End the session; the catalog stays open for other threads."""
        self.session.close()
        self.closed = True


class FrazilConnectionManager(SQLConnectionManager):
    """Opens sessions. Every statement is a commit of its own, so dbt's transactions are none."""

    TYPE = "frazil"
    _catalogs: dict[str, Catalog] = {}
    _opening = threading.Lock()

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        if connection.state is ConnectionState.OPEN:
            return connection
        credentials = connection.credentials
        key = repr((credentials.catalog, sorted(credentials.options.items())))
        try:
            with cls._opening:
                if key not in cls._catalogs:
                    cls._catalogs[key] = frazil.connect(
                        credentials.catalog, create=True, **credentials.options
                    )
        except frazil.FrazilError as error:
            connection.handle, connection.state = None, ConnectionState.FAIL
            raise DbtDatabaseError(f"catalog {credentials.catalog}: {error}") from error
        connection.handle = Handle(cls._catalogs[key])
        connection.state = ConnectionState.OPEN
        return connection

    def cancel(self, connection: Connection) -> None:
        """Nothing runs outside this process."""

    @classmethod
    def get_response(cls, cursor: Cursor) -> AdapterResponse:
        changed = cursor.changed
        if changed is None:
            return AdapterResponse(_message="OK")
        return AdapterResponse(_message=f"OK {changed}", rows_affected=changed)

    @contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        try:
            yield
        except frazil.FrazilError as error:
            self.get_thread_connection().handle.rollback()
            raise DbtDatabaseError(str(error)) from error

    def begin(self) -> Connection:
        return self.get_thread_connection()

    def commit(self) -> Connection:
        return self.get_thread_connection()

    def rollback_if_open(self) -> None:
        """No transaction outlives its statement."""

    @classmethod
    def data_type_code_to_name(cls, type_code: pa.DataType) -> str:
        return sql_type(type_code)


def sql_type(arrow: pa.DataType) -> str:
    """An Arrow type as SQL writes it."""
    if pa.types.is_null(arrow):
        return "INTEGER"
    columns = iceberg_schema(pa.schema([("column", arrow)]))
    return type_text(columns.fields[0].field_type)


def options_of(config: Any) -> Mapping[str, Any]:
    """Settings of a node that dbt itself does not know, and those of its `meta`."""
    extra = getattr(config, "extra", None) or getattr(config, "_extra", None) or {}
    meta = getattr(config, "meta", None) or {}
    return {**meta, **extra}

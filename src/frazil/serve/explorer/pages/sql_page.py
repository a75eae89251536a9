"""The SQL box: queries on the tables that the sender may read, in an engine that reads no file
but theirs.

DuckDB can read any file that the server can. Here it runs without the machine's file system: what
it reads of a table comes through the table's storage.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import msgspec

from frazil import cancellation
from frazil.cancellation import Cancellation
from frazil.catalog.backend import (
    CatalogBackend,
    NamespaceName,
    Namespaces,
    TableHead,
    TableName,
    TableVersion,
)
from frazil.catalog.names import Identifier, Namespace, dotted, namespace_of
from frazil.errors import Cancelled, FrazilError, InvalidInput, NotFound
from frazil.serve.access.principals import Principal, may_read, may_see
from frazil.serve.exchange import Request, Response
from frazil.serve.explorer.pages.rows_page import cells
from frazil.serve.limits import MAX_QUERIES, MAX_SQL_ROWS
from frazil.serve.rest_errors import RestError
from frazil.serve.service import Service
from frazil.serve.settings import Settings
from frazil.table import Catalog, Table

if TYPE_CHECKING:
    import duckdb

    from frazil.sql.session import Session


class SqlRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request. `table` is the table that is looked at: its namespace is in use.
    Without `run` the text is only explained."""

    sql: str
    limit: int = 500
    table: list[str] | None = None
    explain: bool = False
    run: bool = True


class _Views:
    """Views that the sender may read."""

    def __init__(self, inner: Any, principal: Principal | None) -> None:
        self._inner = inner
        self._principal = principal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def load(self, name: Any) -> Any:
        """A view; NotFound where the sender may not look."""
        identifier = Identifier.parse(name)
        if not may_read(self._principal, identifier.namespace):
            raise NotFound(f"view {identifier} does not exist")
        return self._inner.load(name)

    def exists(self, name: Any) -> bool:
        """Whether there is a view that the sender may read."""
        identifier = Identifier.parse(name)
        return may_read(self._principal, identifier.namespace) and bool(self._inner.exists(name))

    def list(self, namespace: Any) -> Any:
        """The views of a namespace; none where the sender may not look."""
        if not may_read(self._principal, namespace_of(namespace)):
            return []
        return self._inner.list(namespace)


class _Namespaces:
    """The namespaces that the sender may see: all but the properties of those that hold another
    which they may read."""

    def __init__(self, inner: Namespaces, principal: Principal | None) -> None:
        self._inner = inner
        self._principal = principal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def children(self, parent: NamespaceName = ()) -> list[Namespace]:
        namespaces = self._inner.children(parent)
        return [namespace for namespace in namespaces if may_see(self._principal, namespace)]

    def exists(self, namespace: NamespaceName) -> bool:
        is_seen = may_see(self._principal, namespace_of(namespace))
        return is_seen and self._inner.exists(namespace)

    def properties(self, namespace: NamespaceName) -> dict[str, str]:
        _need_readable(self._principal, namespace_of(namespace))
        return self._inner.properties(namespace)


def _need_readable(principal: Principal | None, namespace: Namespace) -> None:
    if not may_read(principal, namespace):
        raise NotFound(f"namespace {dotted(namespace)} does not exist")


class _Readable:
    """Pointers to what the sender may read; of anything else nothing is said, not even whether it
    is there."""

    def __init__(self, inner: CatalogBackend, principal: Principal | None) -> None:
        self._inner = inner
        self._principal = principal
        self.namespaces = _Namespaces(inner.namespaces, principal)
        self.views = _Views(inner.views, principal)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def load(self, name: TableName) -> TableHead:
        _need_readable(self._principal, Identifier.parse(name).namespace)
        return self._inner.load(name)

    def table_exists(self, name: TableName) -> bool:
        identifier = Identifier.parse(name)
        if not may_read(self._principal, identifier.namespace):
            return False
        return self._inner.table_exists(identifier)

    def list_tables(self, namespace: NamespaceName) -> list[Identifier]:
        _need_readable(self._principal, namespace_of(namespace))
        return self._inner.list_tables(namespace)

    def table_versions(self, since_ms: int | None = None) -> list[TableVersion]:
        versions = self._inner.table_versions(since_ms)
        return [
            version
            for version in versions
            if may_read(self._principal, version.identifier.namespace)
        ]


class _SeenCatalog(Catalog):
    """A catalog that shows what the sender may read."""

    def __init__(self, inner: Catalog, principal: Principal | None) -> None:
        super().__init__(_Readable(inner._pointers, principal))
        self._cache = inner._cache
        self._inner = inner
        self._principal = principal

    def _table(self, identifier: Identifier, head: TableHead) -> Table:
        return self._inner._table(identifier, head)

    def find_table(self, name: TableName) -> Table | None:
        identifier = Identifier.parse(name)
        if not may_read(self._principal, identifier.namespace):
            return None
        return super().find_table(identifier)

    def load_table(self, name: TableName) -> Table:
        table = self.find_table(name)
        if table is None:
            raise NotFound(f"table {Identifier.parse(name)} does not exist")
        return table

    def list_tables(self, namespace: Any = None) -> list[str]:
        return [
            name
            for name in super().list_tables(namespace)
            if may_read(self._principal, Identifier.parse(name).namespace)
        ]


def post(service: Service, call: Request) -> Response:
    """POST sql."""
    request = call.decode(SqlRequest)
    limit = max(1, min(request.limit, MAX_SQL_ROWS))
    began = time.perf_counter()
    try:
        kind = _kind(request.sql)
        if kind == "write":
            _check_writes(service, call)
            with (
                cancellation.under(None),  # whether it lands must be known
                sandboxed(service.settings, service.catalog) as session,
            ):
                result = _ran(request, limit, session=session)
        elif kind == "list" and not _sees_all(call.principal):
            raise InvalidInput("SHOW lists the whole catalog, which you may not read")
        else:
            readable = _SeenCatalog(service.catalog, call.principal)
            with sandboxed(service.settings, readable, stopped_by=call.cancellation) as session:
                result = _ran(request, limit, session=session)
    except Cancelled:
        raise
    except FrazilError as error:
        return Response(
            body={"ok": False, "error": {"message": str(error), "hint": None, "at": None}}
        )
    result["ms"] = round((time.perf_counter() - began) * 1000, 1)
    return Response(body={"ok": True, **result})


def _kind(text: str) -> str:
    """What the strongest statement of a text does: read, list or write."""
    from frazil.sql.parse import statements as st
    from frazil.sql.parse.parse_statement import parse_script

    statements = [statement for _, _, statement in parse_script(text)]
    if not statements:
        raise InvalidInput("the text contains no statement")
    reading = st.Query | st.Explain | st.Describe | st.Use
    if all(isinstance(statement, reading) for statement in statements):
        return "read"
    return (
        "list"
        if all(isinstance(statement, reading | st.Show) for statement in statements)
        else "write"
    )


def _check_writes(service: Service, call: Request) -> None:
    if service.settings.is_read_only:
        raise InvalidInput("this server is read-only; only queries are run")
    if not service.settings.sql_writes:
        raise InvalidInput(
            "this server runs queries only; start it with --sql-writes to change tables by SQL"
        )
    if call.principal is not None:
        try:
            call.principal.check("write", [None])
        except RestError as error:
            raise InvalidInput(error.message) from error


def _sees_all(principal: Principal | None) -> bool:
    return principal is None or any(rule.namespace is None for rule in principal.rules)


@contextmanager
def sandboxed(
    settings: Settings, catalog: Catalog, *, stopped_by: Cancellation | None = None
) -> Iterator[Session]:
    """A session in an engine that opens no file by itself. A query stops when nobody waits for the
    answer any more; whether a change lands must be known."""
    import duckdb

    from frazil.sql.engine.database import Database
    from frazil.sql.session import Session

    engine = sandbox(settings.max_query_memory)
    time_limit = None if stopped_by is None else settings.query_timeout_s
    session = Session(catalog, database=Database(engine), time_limit=time_limit)
    try:
        if stopped_by is not None:
            stopped_by.check()
        with nullcontext() if stopped_by is None else stopped_by.calling(session.cancel):
            yield session
    except (FrazilError, duckdb.Error) as error:
        if stopped_by is not None:
            stopped_by.check()
        if isinstance(error, FrazilError):
            raise
        raise InvalidInput(str(error).partition("\n")[0]) from error
    finally:
        session.close()
        engine.close()


def sandbox(max_memory: int) -> duckdb.DuckDBPyConnection:
    """An engine without the machine's files, in bounded memory: it reads the files of a scan
    through the storage of the table, which lets through what the table may lead to. This cannot be
    undone."""
    from frazil.sql.engine.database import new_database

    return new_database(
        threads=str(max(1, (os.cpu_count() or 1) // MAX_QUERIES)),
        memory_limit=f"{max_memory // 1000}kB",
        temp_directory="",
        disabled_filesystems="LocalFileSystem",
    )


def _ran(asked: SqlRequest, limit: int, *, session: Session) -> dict[str, Any]:
    if asked.table:
        session.names.namespace = tuple(asked.table[:-1])
    page: dict[str, Any] = {}
    if asked.run:
        result = session.sql(asked.sql)
        page = cells(result.head(limit + 1), limit)
        if session.in_transaction:
            raise InvalidInput("BEGIN without COMMIT; nothing was changed")
    return {**page, "explain": _explained(session, asked.sql) if asked.explain else None}


def _explained(session: Any, text: str) -> list[dict[str, str]] | None:
    """What each table's tree pruned, then the engine's plan; None for what is not one query."""
    from frazil.sql.parse import statements as st
    from frazil.sql.parse.parse_statement import parse_script

    parsed = [statement for _, _, statement in parse_script(text)]
    if len(parsed) != 1 or not isinstance(parsed[0], st.Query):
        return None
    rows: list[dict[str, str]] = session.sql(f"EXPLAIN {text}").to_pylist()
    return rows

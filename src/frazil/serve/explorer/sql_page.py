"""The SQL box: queries on the tables that the sender may read, in an engine that reads no file
but theirs.

DuckDB can read any file that the server can. Here a statement is first run in an engine that may
read nothing, which tells the tables it names; then in one that may read their folders.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from frazil.catalog.names import Identifier
from frazil.catalog.pointers import Pointers, TableName
from frazil.errors import FrazilError, InvalidInput, NotFound
from frazil.serve.access import Principal, may_read
from frazil.serve.exchange import Answer, Call
from frazil.serve.explorer.rows_page import cells
from frazil.serve.rest_errors import RestError
from frazil.serve.service import Service
from frazil.table import Catalog, Table

if TYPE_CHECKING:
    import duckdb

_MOST = 5_000


class SqlRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request. `table` is the table that is looked at: its namespace is in use."""

    sql: str
    limit: int = 500
    table: list[str] | None = None
    explain: bool = False


class _Views:
    """Views that the sender may read."""

    def __init__(self, inner: Any, principal: Principal | None) -> None:
        self._inner = inner
        self._principal = principal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def load(self, name: Any) -> Any:
        """A view; NotFound where the sender may not look."""
        found = Identifier.parse(name)
        if not may_read(self._principal, found.namespace):
            raise NotFound(f"view {found} does not exist")
        return self._inner.load(name)


class _Readable:
    """Pointers whose views are those that the sender may read."""

    def __init__(self, inner: Pointers, principal: Principal | None) -> None:
        self._inner = inner
        self.views = _Views(inner.views, principal)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _SeenCatalog(Catalog):
    """A catalog that shows what the sender may read, and remembers the tables asked for."""

    def __init__(self, inner: Catalog, principal: Principal | None) -> None:
        super().__init__(_Readable(inner._pointers, principal))
        self._cache = inner._cache
        self._principal = principal
        self.opened: dict[str, Table] = {}

    def find_table(self, name: TableName) -> Table | None:
        found = Identifier.parse(name)
        if not may_read(self._principal, found.namespace):
            return None
        table = super().find_table(found)
        if table is not None:
            self.opened[table.name] = table
        return table

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


def post(service: Service, call: Call) -> Answer:
    """POST sql."""
    asked = call.decode(SqlRequest)
    limit = max(1, min(asked.limit, _MOST))
    began = time.perf_counter()
    try:
        kind = _kind(asked.sql)
        if kind == "write":
            _check_writes(service, call)
            found = _ran(service.catalog, asked, None, limit)
        elif kind == "list" and not _sees_all(call.principal):
            raise InvalidInput("SHOW lists the whole catalog, which you may not read")
        else:
            found = _sandboxed(service.catalog, asked, call.principal, limit)
    except FrazilError as error:
        return Answer(
            body={"ok": False, "error": {"message": str(error), "hint": None, "at": None}}
        )
    found["ms"] = round((time.perf_counter() - began) * 1000, 1)
    return Answer(body={"ok": True, **found})


def _kind(text: str) -> str:
    """What the strongest statement of a text does: read, list or write."""
    from frazil.sql import statements as st
    from frazil.sql.parse_statement import parse_script

    found = [statement for _, _, statement in parse_script(text)]
    if not found:
        raise InvalidInput("the text contains no statement")
    reading = st.Query | st.Explain | st.Describe | st.Use
    if all(isinstance(each, reading) for each in found):
        return "read"
    return "list" if all(isinstance(each, reading | st.Show) for each in found) else "write"


def _check_writes(service: Service, call: Call) -> None:
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


def _sandboxed(
    catalog: Catalog, asked: SqlRequest, principal: Principal | None, limit: int
) -> dict[str, Any]:
    """Run in an engine that knows more folders each time, as views name further tables."""
    import duckdb

    known: dict[str, Table] = {}
    while True:
        seen = _SeenCatalog(catalog, principal)
        engine = _engine(known.values())
        try:
            return _ran(seen, asked, engine, limit)
        except (FrazilError, duckdb.Error) as error:
            if known.keys() >= seen.opened.keys():
                if isinstance(error, FrazilError):
                    raise
                raise InvalidInput(str(error).partition("\n")[0]) from error
            known |= seen.opened
        finally:
            engine.close()


def _engine(tables: Any) -> duckdb.DuckDBPyConnection:
    """An engine that reads files of these tables and no others."""
    from frazil.sql.session import new_database

    engine = new_database()
    folders = sorted({folder for table in tables for folder in _folders(table)})
    engine.execute("SET allowed_directories = ?", [folders])
    engine.execute("SET enable_external_access = false")
    return engine


def _folders(table: Table) -> Iterator[str]:
    places = [table.location, *(table.properties.get(name) for name in _PLACES)]
    for place in places:
        if place:
            folder = f"{place.rstrip('/')}/"
            yield folder
            yield folder.removeprefix("file://")


_PLACES = ("write.data.path", "write.object-storage.path", "write.folder-storage.path")


def _ran(
    catalog: Catalog, asked: SqlRequest, engine: duckdb.DuckDBPyConnection | None, limit: int
) -> dict[str, Any]:
    from frazil.sql.session import Session

    session = catalog.session() if engine is None else Session(catalog, database=engine)
    try:
        if asked.table:
            session.names.namespace = tuple(asked.table[:-1])
        result = session.sql(asked.sql)
        found = cells(result.head(limit + 1), limit)
        if session.in_transaction:
            raise InvalidInput("BEGIN without COMMIT; nothing was changed")
        explained = _explained(session, asked.sql) if asked.explain else None
    finally:
        session.close()
    return {**found, "explain": explained}


def _explained(session: Any, text: str) -> list[dict[str, str]] | None:
    """What each table's tree pruned, then the engine's plan; None for what is not one query."""
    from frazil.sql import statements as st
    from frazil.sql.parse_statement import parse_script

    parsed = [statement for _, _, statement in parse_script(text)]
    if len(parsed) != 1 or not isinstance(parsed[0], st.Query):
        return None
    rows: list[dict[str, str]] = session.sql(f"EXPLAIN {text}").to_pylist()
    return rows

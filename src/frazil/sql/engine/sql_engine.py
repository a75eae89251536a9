"""The connection one statement runs on, and what was made known to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from frazil.data.read import verified
from frazil.errors import FrazilError, InvalidInput
from frazil.filter.text.quotes import quoted
from frazil.iceberg.expressions import BooleanExpression
from frazil.iceberg.types import UUIDType
from frazil.parser.duckdb_parser import character_offset, error_details
from frazil.parser.edits import EngineText
from frazil.parser.tokens import Source
from frazil.rows.duckdb.duckdb_failures import duckdb_kind, duckdb_problem
from frazil.rows.duckdb.duckdb_scan import ScanSql
from frazil.rows.scan import Scan
from frazil.scan.report import ScanReport
from frazil.sql.engine.scan_cache import Key, PlannedScan, ScanCache
from frazil.sql.name_resolution import AsOf, Names, given_rows
from frazil.table.table import Table
from frazil.value_classes import dataclass, field, frozen

if TYPE_CHECKING:
    import duckdb

MAX_FOOTERS: Final = 4_096
"""Footers of a scan of more files are not kept; each takes about 70 KB."""
_INTERRUPT_S: Final = 0.05
_numbers = count()


def _as_uuid(name: str) -> str:
    column = quoted(name)
    return f"CAST(hex({column}) AS UUID) AS {column}"


@frozen
class Pruned:
    """What planning one table of a query did."""

    name: str
    filter: str
    report: ScanReport


@dataclass(slots=True)
class SqlEngine:
    """The connection of a statement."""

    compiled: duckdb.DuckDBPyConnection
    """Its connection, as DuckDB's compiled module has it: texts are parsed and run. A first query
    needs no more."""
    folders: tuple[str, ...] | None
    """Those that the connection may open files in, if not everywhere."""
    names: Names
    registered: Mapping[str, Any]
    scan: Callable[[Table, BooleanExpression, AsOf | None, Sequence[str] | None], Scan]
    is_shared: bool = False
    is_written: bool = False
    """Whether what queries give is written into tables."""
    scans: ScanCache | None = None
    """Scans of other statements, where tables are as they are for everybody."""
    statement_scans: dict[Key, PlannedScan] = field(default_factory=dict)
    """Scans of this statement."""
    bound: list[ScanSql] = field(default_factory=list)
    user_names: dict[str, str] = field(default_factory=dict)
    pruned: list[Pruned] = field(default_factory=list)
    open_views: list[str] = field(default_factory=list)
    """The views that are being bound, the outermost first."""
    sees_variables: bool = False
    """Whether frames of the caller are tables by the names of their variables."""
    allow_files: bool = False
    """Whether the user's text may read files."""
    prefix: str = field(default_factory=lambda: f"frazil_{next(_numbers)}_")
    """What the names of views begin with. No text that is run has them: they are new."""
    shared_schemas: dict[tuple[str, ...], str] = field(default_factory=dict)
    """Schemas that hold one table each for all queries, by its namespace and name."""
    include: Callable[[str], None] = lambda location: None
    """Told where the tables are that it reads, for later connections."""
    renew: Callable[[], None] = lambda: None
    """Told that the database can run nothing any more."""
    is_idle: bool = True
    """Whether no rows are being read, and none failed to be."""
    is_cancelled: bool = False
    time_limit: float | None = None
    """How many seconds a query may take."""
    _computing: int = 0
    _views: int = 0
    _created_schemas: set[str] = field(default_factory=set)

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """Its connection with what DuckDB's package adds in Python: relations, and Arrow data and
        files of ours that a text may name."""
        import duckdb  # noqa: F401  (it adds them to all connections)

        return self.compiled

    def view(self, name: str) -> str:
        """A new name for a view, which stands for this one in messages."""
        self._views += 1
        view = f"{self.prefix}{self._views}"
        self.user_names[view] = name
        return view

    def shared_schema(self, table: tuple[str, ...]) -> str:
        """What the schema that all queries call a table by is called."""
        if table not in self.shared_schemas:
            self.shared_schemas[table] = self.view(".".join(table[:-1]))
        return self.shared_schemas[table]

    def view_in_schema(self, schema: str, name: str, view: str) -> None:
        """Make a view known by a name in a schema."""
        if schema not in self._created_schemas:
            self.run_own(f"CREATE SCHEMA {schema}")
            self._created_schemas.add(schema)
        text = f"CREATE OR REPLACE VIEW {schema}.{quoted(name)} AS SELECT * FROM {view}"
        self.run_own(text)

    def register_changes(self, view: str, rows: Any, table: Table) -> None:
        """Make the rows of a change feed known. They hold UUIDs as bytes."""
        uuids = [
            field.name
            for field in table.metadata.schema().fields
            if isinstance(field.field_type, UUIDType)
        ]
        if not uuids:
            self.connection.register(view, given_rows(rows))
            return
        inner = self.view(self.user_names[view])
        self.connection.register(inner, given_rows(rows))
        typed = ", ".join(_as_uuid(name) for name in uuids)
        self.run_own(f"CREATE TEMP VIEW {view} AS SELECT * REPLACE ({typed}) FROM {inner}")

    def run_own(self, text: str) -> None:
        """Run a text of ours, which has judged parts in it: one statement, or nothing."""
        statements = self.compiled.extract_statements(text)
        if len(statements) != 1:
            raise InvalidInput(f"expected one statement, found {len(statements)}")
        self.compiled.execute(statements[0])

    def columns_of(self, text: str) -> list[str]:
        """The columns of a query that was bound, as a query around it calls them: no two alike."""
        (statement,) = self.connection.extract_statements(f"SELECT * FROM (\n{text}\n)")
        return list(self.connection.sql(statement).columns)

    def values(self, text: str) -> list[Any]:
        """The values of a query of one column that was bound."""
        (statement,) = self.compiled.extract_statements(text)
        return [value for (value,) in self.compiled.execute(statement).fetchall()]

    def bind(self, scan: ScanSql) -> None:
        """Make the connection know a scan, of which a statement may have several uses."""
        if not any(scan is known for known in self.bound):
            scan.bind(self.compiled)
            self.bound.append(scan)
            # Files of a storage have another name for every scan, so that no other would find their
            # footers; those of many files would take the memory of everything else.
            if scan.files is not None or scan.num_files > MAX_FOOTERS:
                self.compiled.execute("SET SESSION parquet_metadata_cache = false")

    def cancel(self) -> None:
        """Interrupt the query that runs, or the next one."""
        self.is_cancelled = True
        self.interrupt()

    @contextmanager
    def computing(self) -> Iterator[None]:
        """The block calls DuckDB, and may be interrupted."""
        self._computing += 1
        try:
            yield
        finally:
            self._computing -= 1

    def interrupt(self) -> None:
        """Interrupt what DuckDB computes. It forgets an interrupt that comes just before it
        begins, so that it gets more until it has ended."""
        self.compiled.interrupt()
        if self._computing:
            threading.Thread(target=self._keep_interrupting, daemon=True).start()

    def _keep_interrupting(self) -> None:
        while self._computing:
            self.compiled.interrupt()
            time.sleep(_INTERRUPT_S)

    def verify(self) -> None:
        """Refuse damaged files of the tables that are about to be read."""
        for scan in self.bound:
            scan.verify(max_bytes=verified.QUERY_BYTES)

    def hand_over(self) -> None:
        """Hand the connection over to the owner of a relation on it."""
        self.is_shared = True
        self.bound.clear()

    def failure(
        self,
        error: Exception,
        source: Source,
        ran: EngineText | None = None,
        *,
        shift: int = 0,
    ) -> FrazilError:
        """An error of DuckDB in the user's words and places; after a crash, other statements get
        another database. `shift` is how much stood before the text that ran."""
        if isinstance(error, FrazilError):
            return error
        details = error_details(error)
        if details.is_fatal:
            self.renew()
        cause = OSError(f"{details.kind} Error: {details.message}") if details.kind else error
        kind = duckdb_kind(cause)
        if kind is None:
            raise error
        message = duckdb_problem(cause)
        if message == str(cause):
            message = details.message
        for own_name, name in sorted(self.user_names.items(), key=lambda item: -len(item[0])):
            message = message.replace(own_name, name)
        problem = kind(message[:1].lower() + message[1:] if message[1:2].islower() else message)
        if ran is not None and ran.has_origin and details.offset is not None:
            offset = character_offset(ran.text, details.offset - shift)
            source.with_position(ran.origin(offset), problem)
        return problem

    def release(self) -> None:
        """Let go of files and relations."""
        from _duckdb import Error

        with suppress(Error):  # the catalog, and the database with it, may be closed
            for scan in self.bound:
                if self.is_shared:
                    scan.release(self.compiled)
                else:  # all else ends with the connection
                    scan.release_files(self.compiled)
            for schema in self._created_schemas:
                self.compiled.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
            self._created_schemas.clear()
            if not self.is_shared:
                self.compiled.close()
        self.bound.clear()

"""A session: statements one after the other, with a current namespace and transactions.

`catalog.sql(text)` is a session of one call. `Session(catalog)` keeps USE and BEGIN between calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from frazil.errors import FrazilError, InvalidInput
from frazil.expr.sql_text import TOO_DEEP
from frazil.rows import duckdb_scan
from frazil.sql import procedures, run_rows, run_tables, run_views, show
from frazil.sql import statements as st
from frazil.sql.execution import Statement
from frazil.sql.name_resolution import Names
from frazil.sql.parse_statement import parse_script
from frazil.sql.query_result import Result, done
from frazil.sql.ready_queries import ReadyQueries
from frazil.sql.rewriting import Parameters
from frazil.sql.text import Source
from frazil.sql.transactions import Transactions
from frazil.table.catalog import Catalog

if TYPE_CHECKING:
    import duckdb

Values = Sequence[Any] | Mapping[str, Any] | None


class Session:
    """Runs SQL on the tables of a catalog. Do not share a session between threads."""

    def __init__(
        self,
        catalog: Catalog,
        *,
        database: duckdb.DuckDBPyConnection | None = None,
        ready: ReadyQueries | None = None,
    ) -> None:
        """`database` is one that `new_database` made; `ready` has queries that were bound on it
        before."""
        self.catalog = catalog
        self.names = Names(catalog)
        self.transactions = Transactions()
        self._database = database
        self._ready = ready

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self.transactions.is_open

    def sql(
        self, text: str, params: Values = None, *, tables: Mapping[str, Any] | None = None
    ) -> Result:
        """Run statements, separated by semicolons, and return the result of the last one.

        `params` holds the values for `?` and `$1`, or for `$name` if it is a mapping. `tables`
        makes
        Arrow data and data frames available to the text by name.
        """
        last: Result | None = None
        for result in self.results(text, params, tables=tables):
            last = result
        if last is None:
            raise InvalidInput("the text contains no statement")
        return last

    def results(
        self, text: str, params: Values = None, *, tables: Mapping[str, Any] | None = None
    ) -> Iterator[Result]:
        """Run statements one by one, yielding the result of each before running the next."""
        values = Parameters(params)
        for source, cursor, statement in parse_script(text):
            at = Statement(
                self.catalog,
                self.names,
                self.transactions,
                self.database,
                source,
                cursor,
                values,
                tables or {},
                is_written=not isinstance(statement, st.Query | st.Explain),
                ready=self._ready,
            )
            try:
                result = self._run(statement, at)
            except RecursionError:
                raise source.problem(cursor.tokens[0].start, TOO_DEEP) from None
            yield result
        values.check_used()

    def close(self) -> None:
        """Roll back an open transaction."""
        self.transactions.roll_back()

    def database(self) -> duckdb.DuckDBPyConnection:
        """The engine's database, made when first needed."""
        if self._database is None:
            self._database = new_database()
        return self._database

    def _run(self, statement: st.Statement, at: Statement) -> Result:
        match statement:
            case st.Query(part=part):
                return at.result(part)
            case st.Explain():
                return show.explain(statement, at)
            case st.Insert() | st.Delete() | st.Update() | st.Merge():
                return run_rows.run(statement, at)
            case st.Show() | st.Describe():
                return show.run(statement, at)
            case st.Call():
                return procedures.run(statement, at)
            case st.Use(namespace=namespace):
                return self._use(namespace.parts, at, namespace.start)
            case st.TransactionStatement(bracket=bracket, start=start):
                return self._bracket(bracket, at.source, start)
            case st.CreateView() | st.DropView() | st.AlterView():
                return run_views.run(statement, at)
        return run_tables.run(statement, at)

    def _use(self, parts: tuple[str, ...], at: Statement, start: int) -> Result:
        if not self.catalog._pointers.namespace_exists(parts):
            raise at.source.problem(start, f"namespace {'.'.join(parts)} does not exist")
        self.names.namespace = parts
        return done(namespace=".".join(parts))

    def _bracket(self, bracket: st.Bracket, source: Source, start: int) -> Result:
        try:
            match bracket:
                case st.Bracket.BEGIN:
                    self.transactions.begin(self.database().cursor())
                    self.names = self.names.fresh()
                case st.Bracket.COMMIT:
                    self.transactions.commit(self.catalog._pointers)
                case st.Bracket.ROLLBACK:
                    self.transactions.roll_back(must_be_open=True)
        except FrazilError as error:
            raise source.located(start, error) from None
        if bracket is not st.Bracket.BEGIN:
            self.names = self.names.fresh()
        return done(status=bracket.value)


class QueryDatabase:
    """The engine of a catalog, which all its sessions share, and the queries it knows."""

    def __init__(self) -> None:
        self._connection = new_database()
        self._ready = ReadyQueries()

    def session(self, catalog: Catalog) -> Session:
        """A new session."""
        return Session(catalog, database=self._connection, ready=self._ready)

    def close(self) -> None:
        """Close its connections."""
        self._ready.close()
        self._connection.close()


def new_database() -> duckdb.DuckDBPyConnection:
    """A database in memory; Python variables are not tables of it, and no query makes it download
    an extension. It keeps the footers of the files it has read, as far as memory allows."""
    made = duckdb_scan.connect(
        python_enable_replacements="false", autoinstall_known_extensions="false"
    )
    made.execute("SET GLOBAL parquet_metadata_cache = true")
    return made

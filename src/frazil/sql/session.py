"""A session: statements one after the other, with a current namespace and transactions.

`catalog.sql(text)` is a session of one call. `Session(catalog)` keeps USE and BEGIN between calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from frazil.errors import InvalidInput
from frazil.parser.duckdb_parser import TOO_DEEP
from frazil.sql import caller
from frazil.sql.bind.rewriting import Parameters
from frazil.sql.engine.database import Database
from frazil.sql.name_resolution import Names
from frazil.sql.output.query_result import Result, one_row
from frazil.sql.parse import statements as st
from frazil.sql.parse.parse_statement import parse_script
from frazil.sql.run.execution import Execution
from frazil.sql.run.transactions import Transactions
from frazil.table.catalog import Catalog

Values = Sequence[Any] | Mapping[str, Any] | None


class Session:
    """Runs SQL on the tables of a catalog. Do not share a session between threads."""

    def __init__(
        self,
        catalog: Catalog,
        *,
        database: Database | None = None,
        owns_database: bool = False,
        time_limit: float | None = None,
    ) -> None:
        """`database` is one that other sessions share, unless this one owns it.
        `time_limit` is how many seconds a query may run until it is interrupted."""
        self.catalog = catalog
        self.names = Names(catalog)
        self.transactions = Transactions()
        self._database = database or Database(warehouse=catalog.warehouse)
        self._owns_database = owns_database
        self._time_limit = time_limit
        self._at: Execution | None = None
        self._is_cancelled = False

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self.transactions.is_open

    def sql(
        self,
        text: str,
        params: Values = None,
        *,
        tables: Mapping[str, Any] | None = None,
        allow_files: bool = False,
    ) -> Result:
        """Run statements, separated by semicolons, and return the result of the last one.

        `params` holds the values for `?` and `$1`, or for `$name` if it is a mapping. `tables`
        makes Arrow data and data frames available to the text by name; a name that no table has
        may also be a variable of the caller (`FROM df`). `allow_files` permits functions that read
        files, such as `read_parquet`, and COPY … TO.
        """
        last: Result | None = None
        outside = caller.is_outside()
        for result in self._results(text, params, tables, allow_files, sees_variables=outside):
            last = result
        if last is None:
            raise InvalidInput("the text contains no statement")
        return last

    def results(
        self,
        text: str,
        params: Values = None,
        *,
        tables: Mapping[str, Any] | None = None,
        allow_files: bool = False,
    ) -> Iterator[Result]:
        """Run statements one by one, yielding the result of each before running the next."""
        return self._results(text, params, tables, allow_files, sees_variables=False)

    def _results(
        self,
        text: str,
        params: Values,
        tables: Mapping[str, Any] | None,
        allow_files: bool,
        *,
        sees_variables: bool,
    ) -> Iterator[Result]:
        values = Parameters(params)
        for source, cursor, statement in parse_script(text):
            at = Execution(
                self.catalog,
                self.names,
                self.transactions,
                self._database,
                source,
                cursor,
                values,
                tables or {},
                is_written=not isinstance(statement, st.Query | st.Explain),
                allow_files=allow_files,
                sees_variables=sees_variables,
                time_limit=self._time_limit,
            )
            self._at = at
            if self._is_cancelled:
                at.cancel()
            try:
                result = self._run(statement, at)
            except RecursionError:
                raise source.problem(cursor.tokens[0].start, TOO_DEEP) from None
            yield result
        values.check_used()

    def cancel(self) -> None:
        """Stop the statement that runs, and every later query, from any thread. A commit ends as it
        must."""
        self._is_cancelled = True
        if self._at is not None:
            self._at.cancel()

    def close(self) -> None:
        """Roll back an open transaction."""
        self.transactions.roll_back()
        if self._owns_database:
            self._database.close()

    def _run(self, statement: st.Statement, at: Execution) -> Result:
        # What carries out other statements is loaded with the first of its kind.
        match statement:
            case st.Query(part=part):
                return at.result(part)
            case st.Use(namespace=namespace):
                return self._use(namespace.parts, at, namespace.start)
            case st.TransactionStatement():
                return self._transaction(statement, at)
            case st.Insert() | st.Delete() | st.Update() | st.Merge():
                from frazil.sql.run import run_rows

                return run_rows.run(statement, at)
            case st.Copy():
                from frazil.sql.run import copy_rows

                return copy_rows.run(statement, at)
            case st.Explain() | st.Show() | st.Describe():
                from frazil.sql.run import show

                return show.run(statement, at)
            case st.Call():
                from frazil.sql.run import procedures

                return procedures.run(statement, at)
            case st.CreateView() | st.AlterView():
                from frazil.sql.run import run_views

                return run_views.run(statement, at)
        from frazil.sql.run import run_tables

        return run_tables.run(statement, at)

    def _use(self, parts: tuple[str, ...], at: Execution, start: int) -> Result:
        if not self.catalog._pointers.namespaces.exists(parts):
            raise at.source.problem(start, f"namespace {'.'.join(parts)} does not exist")
        self.names.namespace = parts
        return one_row(namespace=".".join(parts))

    def _transaction(self, statement: st.TransactionStatement, at: Execution) -> Result:
        with at.place(statement.start):
            match statement.verb:
                case "BEGIN":
                    self.transactions.begin(self._database.cursor(allow_files=at.allows_files))
                case "COMMIT":
                    self.transactions.commit(self.catalog._pointers)
                case "ROLLBACK":
                    self.transactions.roll_back(must_be_open=True)
        self.names = self.names.fresh()
        return one_row(status=statement.verb)

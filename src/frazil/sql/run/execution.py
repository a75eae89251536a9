"""One statement being executed: its text and values, and the engine once it is needed.

What the engine gets is exactly one statement, a SELECT, as the object that its parser made of a
text whose tree was judged. Nothing is run to find out more.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from frazil.data.write.row_input import with_plain_booleans
from frazil.errors import FrazilError, InvalidInput
from frazil.filter.text.quotes import quoted
from frazil.iceberg.expressions import AlwaysTrue, BooleanExpression
from frazil.iceberg.types import IcebergType
from frazil.parser.cursor import Cursor, Name
from frazil.parser.duckdb_parser import error_details
from frazil.parser.edits import EngineText, Slices
from frazil.parser.tokens import Kind, Part, Source, tokens
from frazil.rows.duckdb.duckdb_connection import open_folders
from frazil.rows.scan import Scan
from frazil.sql.bind.binding import Binder, Unread
from frazil.sql.bind.rewriting import Parameters
from frazil.sql.engine.database import Database
from frazil.sql.engine.interruptible import Interruptible, called
from frazil.sql.engine.prepared_query import PreparedQuery
from frazil.sql.engine.query_cache import BoundQuery, key_of
from frazil.sql.engine.scan_cache import state_of
from frazil.sql.engine.sql_engine import SqlEngine
from frazil.sql.name_resolution import AsOf, Names
from frazil.sql.output.query_result import Result
from frazil.sql.run.transactions import Transactions
from frazil.table.catalog import Catalog
from frazil.table.table import Table

if TYPE_CHECKING:
    import duckdb

    from frazil.table.transaction import Transaction

T = TypeVar("T")
_BATCH_ROWS = 1 << 14
_ENDS_EARLY = ("limit", "fetch", "sample", "tablesample")
_READS_ALL = ("order", "group")


class Execution:
    """What carrying out one statement needs."""

    def __init__(
        self,
        catalog: Catalog,
        names: Names,
        transactions: Transactions,
        database: Database,
        source: Source,
        cursor: Cursor,
        values: Parameters,
        registered: Mapping[str, Any],
        *,
        is_written: bool = False,
        allow_files: bool = False,
        sees_variables: bool = False,
        time_limit: float | None = None,
    ) -> None:
        """`is_written` says that what its queries give is written into tables; `allow_files` that
        its text may read files; `sees_variables` that it may name frames of the caller.
        `time_limit` is in seconds."""
        self.catalog = catalog
        self.transactions = transactions
        self.source = source
        self.names = names if transactions.is_open else names.fresh()
        self._database = database
        self.tokens = cursor.tokens
        self._parameters = values.edits(source, cursor.tokens)
        self._given = dict(registered)
        self._is_written = is_written
        self._allow_files = allow_files
        self._sees_variables = sees_variables
        is_alone = not (is_written or registered or allow_files or transactions.is_open)
        self._ready = database.ready if is_alone else None
        self._time_limit = time_limit
        self._is_cancelled = False
        self._binder: Binder | None = None
        self._row_engine: SqlEngine | None = None
        self._at_end: weakref.finalize[..., Binder] | None = None

    @contextmanager
    def place(self, offset: int) -> Iterator[None]:
        """Errors inside are reported with this position, unless they have one."""
        try:
            yield
        except FrazilError as error:
            self.source.with_position(offset, error)
            raise

    @property
    def binder(self) -> Binder:
        """What brings the tables of queries to the engine, on a connection of its own: a stream
        of rows ends when its connection is used for something else."""
        if self._binder is None:
            self._binder = self._new_binder()
            self._at_end = weakref.finalize(self._binder, self._binder.engine.release)
            self._stop_if_cancelled()
        return self._binder

    @property
    def row_engine(self) -> SqlEngine:
        """The engine for expressions over the rows of a change; all statements of a transaction
        share its connection."""
        if self._row_engine is None:
            self._row_engine = self._new_engine(self.transactions.connection)
            weakref.finalize(self, self._row_engine.release)
            self._stop_if_cancelled()
        return self._row_engine

    def cancel(self) -> None:
        """Stop the statement, from any thread."""
        self._is_cancelled = True
        self._stop_if_cancelled()

    def _stop_if_cancelled(self) -> None:
        """Called also after an engine was made, since that may have happened meanwhile."""
        engines = [self._row_engine, None if self._binder is None else self._binder.engine]
        for engine in engines:
            if self._is_cancelled and engine is not None:
                engine.cancel()

    def slices(self) -> Slices:
        """A new text of slices of this statement."""
        return Slices(self.source, self._parameters)

    def binder_of(self, ran: EngineText) -> Binder:
        """What binds a text that was made from this one, on the connection of queries."""
        source = Source(ran.text)
        return Binder(self.engine, source, tokens(source), [])

    def row_binder_of(self, source: Source, unread: Mapping[int, Unread]) -> Binder:
        """What binds a query of slices, of which some tables are not read now."""
        return Binder(self.row_engine, source, tokens(source), [], unread)

    def check_bound(self, ran: EngineText, source: Source) -> None:
        """Let DuckDB's binder judge the names and types of a query of slices; nothing is run."""
        connection = self.row_engine.compiled
        try:
            statements = connection.extract_statements(f"EXPLAIN {ran.text}")
            if [statement.type.name for statement in statements] != ["EXPLAIN"]:
                raise InvalidInput("expected one query")
            connection.execute(statements[0]).fetchall()
        except Exception as error:
            shift = len("EXPLAIN ")
            raise self.row_engine.failure(error, source, ran, shift=shift) from error

    def _new_binder(self) -> Binder:
        return Binder(self._new_engine(None), self.source, self.tokens, self._parameters)

    def _new_engine(self, shared: duckdb.DuckDBPyConnection | None) -> SqlEngine:
        if shared is None:
            connection, folders = self._database.fenced_cursor(allow_files=self._allow_files)
        else:
            connection, folders = shared, open_folders(shared)
        scan = partial(_scan, self.transactions)  # not a method: the engine must not hold on to us
        return SqlEngine(
            connection,
            folders,
            self.names,
            self._given,
            scan,
            is_shared=shared is not None,
            is_written=self._is_written,
            allow_files=self._allow_files,
            sees_variables=self._sees_variables,
            scans=None if self._ready is None else self._ready.scans,
            include=self._database.include,
            renew=self._database.renew,
            time_limit=self._time_limit,
        )

    @contextmanager
    def writing(self, table: Table) -> Iterator[Transaction]:
        """A transaction to change a table in, whose engine knows the tables of this statement."""
        from frazil.rows.duckdb.duckdb_engine import DuckDbEngine

        self._database.include(table.location)
        connection = self.row_engine.connection
        with self.transactions.writing(table, DuckDbEngine(connection)) as tx:
            yield tx

    @property
    def engine(self) -> SqlEngine:
        """The engine of this statement."""
        return self.binder.engine

    def constant(self, part: Part, kind: IcebergType | None = None) -> Any:
        """The value of an expression without columns, as one of a type if that is given."""
        return self.binder.constant(part, kind)

    def result(self, *parts: Part) -> Result:
        """A query's result, lazily."""
        bound_before = self._known(parts)
        if bound_before is not None:
            ran, prepared = bound_before.ran, bound_before.prepared
        else:
            ran = self.binder.query(*parts)
            prepared = self.prepared(ran)
            self._keep(parts, ran, prepared)
        engine = self.engine
        reads_few = self._reads_few()

        def run() -> pa.RecordBatchReader:
            if not reads_few:
                engine.verify()
            return _streamed(prepared, self, ran)

        def handed_over() -> duckdb.DuckDBPyRelation:
            engine.verify()
            engine.hand_over()
            return prepared.relation()

        return Result(
            prepared.schema, run, relation=handed_over, cancel=engine.cancel, keep=self.binder
        )

    def _known(self, parts: Sequence[Part]) -> BoundQuery | None:
        """This query as it was bound before, with the engine it was bound on."""
        if self._ready is None or self._binder is not None:
            return None
        key = key_of(self.source, parts, self._parameters, self.names)
        query = self._ready.take(key, self.names)
        if query is not None:
            query.engine.time_limit = self._time_limit
            self._binder = Binder(query.engine, self.source, self.tokens, self._parameters)
            weakref.finalize(self._binder, self._ready.give_back, key, query)
            self._stop_if_cancelled()
        return query

    def _keep(self, parts: Sequence[Part], ran: EngineText, prepared: PreparedQuery) -> None:
        """Keep what was bound for the next query that is the same."""
        bound = self.binder.tables
        if self._ready is None or bound is None:
            return
        states = [(name, state_of(meant)) for name, meant in bound]
        query = BoundQuery(engine=self.engine, ran=ran, tables=tuple(states), prepared=prepared)
        if query.is_small() and all(state is not None for _, state in states):
            key = key_of(self.source, parts, self._parameters, self.names)
            self.engine.statement_scans.clear()
            assert self._at_end is not None
            self._at_end.detach()
            self._at_end = weakref.finalize(self.binder, self._ready.give_back, key, query)

    def _reads_few(self) -> bool:
        """Whether the engine stops at the first rows it finds, so that to verify files as a whole
        would read far more than the query does."""
        words = {token.value.lower() for token in self.tokens if token.kind is Kind.WORD}
        return bool(words.intersection(_ENDS_EARLY)) and not words.intersection(_READS_ALL)

    def stream(self, ran: EngineText) -> pa.RecordBatchReader:
        """The rows of a text that was made from the user's."""
        return _streamed(self.prepared(ran), self, ran)

    def everything(self, name: Name) -> duckdb.DuckDBPyRelation:
        """All columns of a view or metadata table, as a relation."""
        source = Source("SELECT * FROM " + ".".join(map(quoted, name.parts)))
        binder = Binder(self.engine, source, tokens(source), [])
        return self.relation(binder.query(Part(0, len(source.text))))

    def run_ctes(self, ctes: Part | None) -> None:
        """Run the queries of WITH, once, and make their rows known to the rest of a change."""
        if ctes is None:
            return
        inside = [token for token in self.tokens if ctes.start <= token.start < ctes.end]
        edits = [edit for edit in self._parameters if edit[1] <= ctes.end]
        for name in _cte_names(Cursor(self.source, inside)):
            text = f"{self.source.text[: ctes.end]}\nSELECT * FROM {quoted(name)}"
            source = Source(text)
            added = [token for token in tokens(source) if token.start >= ctes.start]
            ran = Binder(self.engine, source, added, edits).query(Part(ctes.start, len(text)))
            self._given[name.lower()] = self.stream(ran).read_all()

    def relation(self, ran: EngineText) -> duckdb.DuckDBPyRelation:
        """A text as a relation, as DuckDB has it."""
        return self._bound(ran, self.engine.connection.sql)

    def prepared(self, ran: EngineText) -> PreparedQuery:
        """A text as a query whose rows are read as Arrow."""
        return self._bound(ran, partial(PreparedQuery, self.engine))

    def _bound(self, ran: EngineText, bind: Callable[[duckdb.Statement], T]) -> T:
        """A text as DuckDB binds it; problems are reported at positions of the user's text."""
        statement = self.judged(ran)
        try:
            return bind(statement)
        except Exception as error:
            if error_details(error).offset is None and not error_details(error).is_fatal:
                self._raise_with_place(ran)
            raise self.failed(error, ran) from error

    def _raise_with_place(self, ran: EngineText) -> None:
        """Bound, a text does not say where it is wrong; explained, which binds it as well
        and runs nothing, it does."""
        try:
            self.explained(ran, "EXPLAIN")
        except FrazilError:
            raise
        except Exception as error:
            problem = self.engine.failure(error, self.source, ran, shift=len("EXPLAIN "))
            raise self.source.with_position(self._suspect(problem.message), problem) from error

    def judged(self, ran: EngineText) -> duckdb.Statement:
        """The one query that a bound text is."""
        try:
            statements = self.engine.compiled.extract_statements(ran.text)
        except Exception as error:
            raise self.failed(error, ran) from error
        if [statement.type.name for statement in statements] != ["SELECT"]:
            raise self.source.problem(self.tokens[0].start, "only one query is run at a time")
        return statements[0]

    def explained(self, ran: EngineText, word: str) -> list[tuple[str, str]]:
        """The engine's plan of a bound query. `word` is EXPLAIN with its options."""
        return self._run_around(ran, "EXPLAIN", f"{word} {ran.text}")

    def copied(self, ran: EngineText, target: str) -> int:
        """Write the rows of a bound query into files; how many there are. The caller allows it."""
        assert self._allow_files
        self.engine.verify()
        text = f"COPY (\n{ran.text}\n) TO {target}"
        try:
            rows = self._run_around(ran, "COPY", text)
        except FrazilError:
            raise
        except Exception as error:
            raise self.failed(error) from error
        return int(rows[0][0])

    @property
    def allows_files(self) -> bool:
        """Whether its text may read and write files."""
        return self._allow_files

    def _run_around(self, ran: EngineText, kind: str, text: str) -> list[tuple[Any, ...]]:
        """Run a statement of ours around a query that was bound."""
        self.judged(ran)
        connection = self.engine.compiled
        statements = connection.extract_statements(text)
        if [statement.type.name for statement in statements] != [kind]:
            raise self.source.problem(self.tokens[0].start, f"{kind} takes one query at a time")
        return called(self.engine, lambda: connection.execute(statements[0]).fetchall())

    def failed(self, error: Exception, ran: EngineText | None = None) -> FrazilError:
        """An error of the engine as one of ours."""
        if isinstance(error, KeyboardInterrupt):
            raise error
        problem = self.engine.failure(error, self.source, ran)
        return self.source.with_position(self._suspect(problem.message), problem)

    def _suspect(self, message: str) -> int:
        """Where an error that names no place may come from: a literal it quotes, or the start."""
        for token in self.tokens:
            if token.kind is Kind.STRING and repr(token.value) in message:
                return token.start
        return self.tokens[0].start


def _cte_names(cursor: Cursor) -> list[str]:
    """The names that a WITH clause defines."""
    cursor.expect("with")
    cursor.take("recursive")

    def cte_name() -> str:
        name = cursor.name("the name of a query")
        if not cursor.ahead("as"):
            cursor.until("as", what="columns")
        cursor.expect("as")
        cursor.until(what="a query in brackets")
        return name

    return cursor.listed(cte_name)


def _scan(
    transactions: Transactions,
    table: Table,
    where: BooleanExpression,
    as_of: AsOf | None,
    columns: Sequence[str] | None,
) -> Scan:
    """A scan of a table, with what an open transaction has done to it."""
    staged = None if as_of is not None else transactions.staged(table)
    chosen = None if isinstance(where, AlwaysTrue) else where
    if staged is not None:
        return staged.scan(chosen, columns=columns)
    return table.scan(chosen, columns, as_of=as_of)


def _streamed(query: PreparedQuery, execution: Execution, ran: EngineText) -> pa.RecordBatchReader:
    """The rows as they come; an error while reading is reported like an earlier one."""
    engine = execution.engine
    engine.is_idle = False
    run = Interruptible(engine)
    try:
        reader = with_plain_booleans(run.call(partial(query.to_arrow_reader, _BATCH_ROWS)))
    except Exception as error:
        run.end()
        raise execution.failed(error, ran) from error

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            while (batch := run.call(partial(next, reader, None))) is not None:
                yield batch
        except Exception as error:
            raise execution.failed(error, ran) from error
        finally:
            reader.close()
            run.end()
        engine.is_idle = True

    return pa.RecordBatchReader.from_batches(reader.schema, batches())

"""One statement being executed: its text and values, and the engine once it is needed."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue, BooleanExpression

from frazil.data.row_input import with_plain_booleans
from frazil.errors import FrazilError
from frazil.expr.quotes import quoted
from frazil.rows.duckdb_engine import DuckDbEngine
from frazil.rows.duckdb_streams import cause
from frazil.rows.scan import Scan
from frazil.sql.binding import Binder
from frazil.sql.duckdb_calls import failure, value_of
from frazil.sql.name_resolution import AsOf, Names
from frazil.sql.query_result import Result
from frazil.sql.ready_queries import Ready, ReadyQueries, key_of
from frazil.sql.ready_scans import state_of
from frazil.sql.rewriting import EngineText, Parameters
from frazil.sql.sql_engine import SqlEngine
from frazil.sql.text import Cursor, Kind, Name, Part, Source, tokens
from frazil.sql.transactions import Transactions
from frazil.table.catalog import Catalog
from frazil.table.table import Table
from frazil.table.transaction import Transaction

if TYPE_CHECKING:
    import duckdb

_BATCH_ROWS = 1 << 14
_ENDS_EARLY = ("limit", "fetch", "sample", "tablesample")
_READS_ALL = ("order", "group")
_HUGE = re.compile(r"\bHUGEINT\b")
_TEXT = re.compile(r"\b(UHUGEINT|BIT|TIME WITH TIME ZONE|BIGNUM|VARINT)\b")


class Statement:
    """What carrying out a statement needs."""

    def __init__(
        self,
        catalog: Catalog,
        names: Names,
        transactions: Transactions,
        database: Callable[[], duckdb.DuckDBPyConnection],
        source: Source,
        cursor: Cursor,
        values: Parameters,
        given: Mapping[str, Any],
        *,
        is_written: bool = False,
        ready: ReadyQueries | None = None,
    ) -> None:
        """`is_written` says that what its queries give is written into tables; `ready` has queries
        of earlier statements."""
        self.catalog = catalog
        self.transactions = transactions
        self.source = source
        self.names = names if transactions.is_open else names.fresh()
        self._database = database
        self.tokens = cursor.tokens
        self._parameters = values.edits(source, cursor.tokens)
        self._given = dict(given)
        self._is_written = is_written
        is_alone = not is_written and not given and not transactions.is_open
        self._ready = ready if is_alone else None
        self._binder: Binder | None = None
        self._row_binder: Binder | None = None
        self._at_end: weakref.finalize[..., Binder] | None = None

    @contextmanager
    def place(self, offset: int) -> Iterator[None]:
        """Errors inside are reported with this position, unless they have one."""
        try:
            yield
        except FrazilError as error:
            if str(error).startswith("line "):
                raise
            raise self.source.located(offset, error) from error.__cause__

    @property
    def binder(self) -> Binder:
        """What brings the tables of queries to the engine, on a connection of its own: a stream
        of rows ends when its connection is used for something else."""
        if self._binder is None:
            self._binder = self._new_binder(None)
            self._at_end = weakref.finalize(self._binder, self._binder.engine.release)
        return self._binder

    @property
    def row_binder(self) -> Binder:
        """The same for expressions over the rows of a change; all statements of a transaction
        share its connection."""
        if self._row_binder is None:
            self._row_binder = self._new_binder(self.transactions.connection)
            weakref.finalize(self._row_binder, self._row_binder.engine.release)
        return self._row_binder

    def _new_binder(self, shared: duckdb.DuckDBPyConnection | None) -> Binder:
        connection = shared or self._database().cursor()
        scan = partial(_scan, self.transactions)  # not a method: the engine must not hold on to us
        engine = SqlEngine(
            connection,
            self.names,
            self._given,
            scan,
            is_shared=shared is not None,
            is_written=self._is_written,
            scans=None if self._ready is None else self._ready.scans,
        )
        return Binder(engine, self.source, self.tokens, self._parameters)

    @contextmanager
    def writing(self, table: Table) -> Iterator[Transaction]:
        """A transaction to change a table in, whose engine knows the tables of this statement."""
        connection = self.row_binder.engine.connection
        with self.transactions.writing(table, DuckDbEngine(connection)) as tx:
            yield tx

    @property
    def engine(self) -> SqlEngine:
        """The engine of this statement."""
        return self.binder.engine

    def constant(self, part: Part) -> Any:
        """The value of an expression without columns."""
        try:
            return value_of(self.engine.connection, self.binder.plain(part))
        except FrazilError as error:
            raise self.source.located(part.start, error) from None

    def result(self, *parts: Part) -> Result:
        """A query's result, lazily."""
        known = self._known(parts)
        if known is not None:
            ran, found = known.ran, None
            if not known.has_arrow_types:
                found = _in_arrow_types(self.relation(ran))
        else:
            ran = self.binder.query(*parts)
            plain = self.relation(ran)
            found = _in_arrow_types(plain)
            self._keep(parts, ran, has_arrow_types=found is plain)
        engine = self.engine
        reads_few = self._reads_few()

        def relation() -> duckdb.DuckDBPyRelation:
            return self.relation(ran) if found is None else found

        def run() -> pa.RecordBatchReader:
            if not reads_few:
                engine.verify()
            if found is not None:
                return _streamed(found.to_arrow_reader, self, ran)
            # As text: made a relation first, it would be bound twice.
            return _streamed(partial(_read, engine.connection, ran.text), self, ran)

        def handed_over() -> duckdb.DuckDBPyRelation:
            engine.verify()
            engine.hand_over()
            return relation()

        def schema() -> pa.Schema:
            return _arrow_schema(relation())

        return Result(schema, run, relation=handed_over, keep=self.binder)

    def _known(self, parts: Sequence[Part]) -> Ready | None:
        """This query as it was bound before, with the engine it was bound on."""
        if self._ready is None or self._binder is not None:
            return None
        key = key_of(self.source, parts, self._parameters, self.names)
        found = self._ready.take(key, self.names)
        if found is not None:
            self._binder = Binder(found.engine, self.source, self.tokens, self._parameters)
            weakref.finalize(self._binder, self._ready.give_back, key, found)
        return found

    def _keep(self, parts: Sequence[Part], ran: EngineText, *, has_arrow_types: bool) -> None:
        """Keep what was bound for the next query that is the same."""
        bound = self.binder.tables
        if self._ready is None or bound is None:
            return
        states = [(name, state_of(meant)) for name, meant in bound]
        made = Ready(
            engine=self.engine, ran=ran, tables=tuple(states), has_arrow_types=has_arrow_types
        )
        if made.is_small() and all(state is not None for _, state in states):
            key = key_of(self.source, parts, self._parameters, self.names)
            self.engine.own.clear()
            assert self._at_end is not None
            self._at_end.detach()
            self._at_end = weakref.finalize(self.binder, self._ready.give_back, key, made)

    def _reads_few(self) -> bool:
        """Whether the engine stops at the first rows it finds, so that to verify files as a whole
        would read far more than the query does."""
        words = {token.value.lower() for token in self.tokens if token.kind is Kind.WORD}
        return bool(words.intersection(_ENDS_EARLY)) and not words.intersection(_READS_ALL)

    def stream(self, ran: EngineText) -> pa.RecordBatchReader:
        """The rows of a text that was made from the user's."""
        return _streamed(_in_arrow_types(self.relation(ran)).to_arrow_reader, self, ran)

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
        """A text as a relation; problems are reported at positions of the user's text."""
        connection = self.engine.connection
        try:
            found = connection.extract_statements(ran.text)
            self._check_reads(found)
            return connection.sql(found[0] if len(found) == 1 else ran.text)
        except Exception as first:
            error: Exception = first
            try:  # executed, not made a relation, it says where
                connection.execute(ran.text)
            except Exception as second:
                error = second
            raise self.failed(error, ran) from error

    def _check_reads(self, found: Sequence[duckdb.Statement]) -> None:
        """Refuse what the engine's own parser takes for anything but one query. PIVOT makes a type
        for the values it finds."""
        kinds = [each.type.name for each in found]
        if any(token.is_word("pivot") for token in self.tokens):
            kinds = [kind for kind in kinds if kind != "CREATE"]
        if kinds != ["SELECT"]:
            raise self.source.problem(self.tokens[0].start, "only one query is run at a time")

    def failed(self, error: Exception, ran: EngineText | None = None) -> FrazilError:
        """An error of the engine as one of ours."""
        told = failure(error, self.source, self.engine.shown, ran)
        if str(told).startswith("line "):
            return told
        return self.source.located(self._suspect(str(told)), told)

    def _suspect(self, message: str) -> int:
        """Where an error that names no place may come from: a literal it quotes, or the start."""
        if message.startswith("syntax error at end"):
            return self.tokens[-1].end
        for token in self.tokens:
            if token.kind is Kind.STRING and repr(token.value) in message:
                return token.start
        return self.tokens[0].start


def _cte_names(cursor: Cursor) -> list[str]:
    """The names that a WITH clause defines."""
    cursor.expect("with")
    cursor.take("recursive")
    found: list[str] = []
    while True:
        found.append(cursor.name("the name of a query"))
        if not cursor.ahead("as"):
            cursor.until("as", what="columns")
        cursor.expect("as")
        cursor.until(what="a query in brackets")
        if not cursor.take_symbol(","):
            return found


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


def _in_arrow_types(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """A relation whose values Arrow can hold: sums of integers, which have 128 bits, become
    decimals; bits and times with a zone become text."""
    kinds = [str(kind) for kind in relation.types]
    wanted = [_TEXT.sub("VARCHAR", _HUGE.sub("DECIMAL(38,0)", kind)) for kind in kinds]
    if kinds == wanted:
        return relation
    outputs = [
        f"#{at} AS {quoted(name)}" if old == new else f"CAST(#{at} AS {new}) AS {quoted(name)}"
        for at, (name, old, new) in enumerate(
            zip(relation.columns, kinds, wanted, strict=True), start=1
        )
    ]
    return relation.project(", ".join(outputs))


def _arrow_schema(relation: duckdb.DuckDBPyRelation) -> pa.Schema:
    return with_plain_booleans(relation.limit(0).to_arrow_table().to_reader()).schema


def _read(
    connection: duckdb.DuckDBPyConnection, text: str, batch_rows: int
) -> pa.RecordBatchReader:
    return connection.execute(text).to_arrow_reader(batch_rows)


def _streamed(
    read: Callable[[int], pa.RecordBatchReader], statement: Statement, ran: EngineText
) -> pa.RecordBatchReader:
    """The rows as they come; an error while reading is reported like an earlier one."""
    engine = statement.engine
    engine.is_idle = False
    try:
        reader = with_plain_booleans(read(_BATCH_ROWS))
    except Exception as error:
        raise statement.failed(error, ran) from error

    def batches() -> Any:
        try:
            yield from reader
        except Exception as error:
            found = cause(error, engine.connection, ran.text)
            raise statement.failed(found, ran) from error
        engine.is_idle = True

    return pa.RecordBatchReader.from_batches(reader.schema, batches())

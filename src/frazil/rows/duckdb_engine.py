"""The embedded engine: row-level changes as DuckDB queries over the files of a plan.

Every operation is a query or two, whose rows stream into a sink. DuckDB uses all cores, keeps to
its memory limit and spills to disk.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyiceberg.schema import Schema

from frazil.data.metadata_columns import LAST_UPDATED, LINEAGE, ROW_ID
from frazil.expr.quotes import quoted
from frazil.expr.sql_text import TARGET
from frazil.rows import duckdb_scan, duckdb_shared
from frazil.rows.actions import ACTION, KEY, SOURCE_ROW, Action, RowSink, SinkResult
from frazil.rows.duckdb_merge import MergeSql
from frazil.rows.duckdb_scan import FILE_INDEX, RawRows, ScanSql, explained, streaming
from frazil.rows.duckdb_sort import sort_keys
from frazil.rows.duckdb_source import DuckDbSource, drop_table, stored
from frazil.rows.duckdb_streams import streamed
from frazil.rows.duckdb_types import check_columns
from frazil.rows.duckdb_values import Values
from frazil.rows.engine import Assignments, MergePlan
from frazil.rows.merge_clauses import Side, has, updates
from frazil.rows.met_rows import MetRows
from frazil.rows.planned import Longs, Planned
from frazil.rows.replaced_rows import ReplacedRows
from frazil.rows.z_order import ZOrder

if TYPE_CHECKING:
    import duckdb
    from pyiceberg.table.sorting import SortOrder

BATCH_ROWS: Final = 1 << 17


class DuckDbEngine:
    """Carries out row-level changes on this machine. `settings` go to DuckDB, such as
    `memory_limit="2GB"` and `threads=4`; a connection that is given is used as it is set."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection | None = None, **settings: Any
    ) -> None:
        self._given = connection
        self._settings = settings
        self._own: duckdb.DuckDBPyConnection | None = None

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The connection, opened when first needed."""
        if self._given is not None:
            return self._given
        if self._own is None:
            self._own = self._opened()
        return self._own

    def _opened(self) -> duckdb.DuckDBPyConnection:
        if not self._settings:
            return duckdb_shared.connection()
        return duckdb_scan.connect(preserve_insertion_order=False, **self._settings)

    def matching(self, planned: Planned) -> Longs:
        """Keys of the rows that the scan's condition holds for."""
        chosen = Planned(replace(planned.scan, columns=(), max_rows=None), planned.plan)
        found = planned.scan.condition.sql
        what = "filter" if found is None else f"filter {found.text!r}"
        with explained(what), self._rows(chosen, filtered=True) as rows:
            with streaming(self.connection, rows):
                found = self.connection.sql(f"SELECT {KEY} FROM ({rows})").fetchnumpy()[KEY]
            return np.asarray(found, dtype=np.int64)

    def update(self, planned: Planned, values: Assignments, sink: RowSink) -> list[SinkResult]:
        """Rows that match, with new values, into a sink."""
        schema = planned.scan.table_schema
        check_columns(schema.fields)
        with (
            explained("update"),
            self._rows(_all(planned), filtered=True) as rows,
            Values(self.connection) as new,
        ):
            columns = [
                f"{new.assigned(column, f'{TARGET}.{name}', values)} AS {name}"
                for column in schema.fields
                if (name := quoted(column.name))
            ]
            query = (
                f"SELECT {', '.join(columns)}, {TARGET}.{quoted(ROW_ID.name)}, "
                f"NULL::BIGINT AS {LAST_UPDATED.name}, {KEY}, "
                f"{int(Action.UPDATE)}::TINYINT AS {ACTION} FROM ({rows}) {TARGET}"
            )
            # Filling a table with every row would take longer than streaming them.
            return [self._into(sink, query, keep=not planned.scan.condition.is_everything)]

    def source(self, rows: Any, schema: Schema) -> DuckDbSource:
        """Rows to merge, in a temporary table that may spill."""
        return stored(self.connection, rows, schema)

    def merge(
        self, planned: Planned, source: Any, plan: MergePlan, sink: RowSink
    ) -> list[SinkResult]:
        """Rows of the table joined with a source, into a sink."""
        assert isinstance(source, DuckDbSource)
        check_columns(plan.schema.fields)
        needed = _needed(planned, plan)
        # Rows without a match have to be given where a clause is for them.
        by_key = bool(plan.pairs) and not has(plan.clauses, Side.TARGET_ONLY)
        made = duckdb_scan.scan_sql(needed, filtered=False, key=True, raw=by_key)
        with explained("merge"), self._bound(made) as rows, Values(self.connection) as new:
            queries = MergeSql(plan, source, new)
            if made.raw is not None and queries.is_replacement:
                return [self._replaced(sink, queries, made.raw, source, needed)]
            with source.in_table() as copied:
                queries = MergeSql(plan, copied, new)
                if made.raw is None:
                    return [self._into(sink, queries.whole(rows), keep=True)]
                return [self._by_key(sink, queries, made.raw, copied, needed)]

    def sorted(
        self, planned: Planned, order: SortOrder | ZOrder, sink: RowSink
    ) -> list[SinkResult]:
        """All rows of the plan's files with their lineage, in an order, into a sink."""
        schema, connection = planned.scan.table_schema, self.connection
        names = [column.name for column in (*schema.fields, *LINEAGE)]
        every = _all(planned, lineage=True)
        with (
            explained("compact"),
            self._rows(every, filtered=False, key=False) as rows,
            sort_keys(connection, rows, order, schema) as by,
        ):
            query = (
                f"SELECT {', '.join(map(quoted, names))}, NULL::BIGINT AS {KEY}, "
                f"{int(Action.INSERT)}::TINYINT AS {ACTION} FROM ({rows}) {TARGET} ORDER BY {by}"
            )
            return [self._into(sink, query)]

    @contextmanager
    def _rows(self, planned: Planned, *, filtered: bool, key: bool = True) -> Iterator[str]:
        with self._bound(duckdb_scan.scan_sql(planned, filtered=filtered, key=key)) as text_of_rows:
            yield text_of_rows

    @contextmanager
    def _bound(self, made: ScanSql) -> Iterator[str]:
        made.verify()
        try:
            made.bind(self.connection)
            yield made.text
        finally:
            made.release(self.connection)

    def _into(self, sink: RowSink, query: str, *, keep: bool = False) -> SinkResult:
        kept = self._kept(query) if keep else nullcontext(query)
        with streaming(self.connection, query), kept as rows:
            return sink.run(self._stream(rows))

    def _stream(self, query: str) -> pa.RecordBatchReader:
        rows = self.connection.sql(query).to_arrow_reader(BATCH_ROWS)
        return streamed(rows, self.connection, query)

    def _replaced(
        self, sink: RowSink, queries: MergeSql, raw: RawRows, source: DuckDbSource, rows: Planned
    ) -> SinkResult:
        """Rows of the source, each in place of the row of the table that it matches."""
        found = MetRows(rows, raw.deleted)
        replaced = ReplacedRows(
            source.num_rows, inserts=queries.has_unmet, updates=queries.has_updates
        )
        query = queries.addresses(raw)
        with streaming(self.connection, query):
            with self._kept(query) as met:
                for batch in self._stream(met):
                    replaced.note(found.located(batch, FILE_INDEX))
            return sink.run(replaced.stream(source.batches(BATCH_ROWS)))

    def _by_key(
        self, sink: RowSink, queries: MergeSql, raw: RawRows, source: DuckDbSource, rows: Planned
    ) -> SinkResult:
        """Rows that meet, and then the rows of the source that did not."""
        is_guarded = bool(raw.deleted) and queries.is_guarded
        found = MetRows(rows, {} if is_guarded else raw.deleted)
        with self._named(raw.deleted_rows()) if is_guarded else nullcontext() as deleted:
            query = queries.met(raw, deleted=deleted)
            with streaming(self.connection, query), self._kept(query) as met:
                return sink.run(self._met_first(met, queries, found, source.num_rows))

    def _met_first(
        self, query: str, queries: MergeSql, found: MetRows, num_rows: int
    ) -> pa.RecordBatchReader:
        met = self._stream(query)
        has_met = np.zeros(num_rows, dtype=np.bool_)
        extra = [] if queries.counts_sources else [SOURCE_ROW]

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in met:
                living = found.located(batch, FILE_INDEX)
                has_met[np.asarray(living.column(SOURCE_ROW))] = True
                yield living.drop_columns(extra)
            if queries.has_unmet:
                with self._named(pa.table({SOURCE_ROW: np.flatnonzero(has_met)})) as name:
                    for batch in self._stream(queries.unmet(name)):
                        yield batch.drop_columns(extra)

        columns = [each for each in met.schema if each.name not in (FILE_INDEX, *extra)]
        return pa.RecordBatchReader.from_batches(pa.schema(columns), batches())

    @contextmanager
    def _kept(self, query: str) -> Iterator[str]:
        """The result of a query as a temporary table, which all threads fill and which can spill to
        disk. DuckDB buffers only 1 MB of a streamed result, so its threads would have to wait."""
        name = f"__frazil_kept_{uuid.uuid4().hex[:12]}"
        self.connection.execute(f"CREATE TEMP TABLE {name} AS {query}")
        try:
            yield f"SELECT * FROM {name}"
        finally:
            drop_table(self.connection, name)

    @contextmanager
    def _named(self, rows: pa.Table) -> Iterator[str]:
        name = f"__frazil_rows_{uuid.uuid4().hex[:12]}"
        self.connection.register(name, rows)
        try:
            yield name
        finally:
            self.connection.unregister(name)


def _all(planned: Planned, *, lineage: bool = False) -> Planned:
    names = tuple(column.name for column in planned.scan.table_schema.fields)
    extra = (ROW_ID.name, LAST_UPDATED.name) if lineage else (ROW_ID.name,)
    return Planned(replace(planned.scan, columns=(*names, *extra), max_rows=None), planned.plan)


def _needed(planned: Planned, plan: MergePlan) -> Planned:
    """The columns of the table that a merge reads: all where it rewrites rows."""
    if updates(plan.clauses):
        return _all(planned)
    texts = [plan.on, *(clause.condition for clause in plan.clauses)]
    names = {pair.target for pair in plan.pairs}
    for found in texts:
        names |= set() if found is None else found.columns.get(TARGET, frozenset())
    ordered = tuple(column.name for column in plan.schema.fields if column.name in names)
    return Planned(replace(planned.scan, columns=ordered, max_rows=None), planned.plan)

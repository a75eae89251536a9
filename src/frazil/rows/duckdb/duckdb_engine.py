"""The embedded engine: row-level changes as DuckDB queries over the files of a plan.

Every operation is a query or two, whose rows stream into a sink. DuckDB uses all cores, keeps to
its memory limit and spills to disk.
"""

from __future__ import annotations

import uuid
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from frazil import arrow_values
from frazil.data.metadata_columns import LAST_UPDATED, LINEAGE, METADATA_COLUMNS, ROW_ID
from frazil.data.write.row_input import schema_of, with_plain_booleans
from frazil.errors import InvalidInput
from frazil.filter.condition import Condition
from frazil.filter.text.quotes import quoted
from frazil.filter.text.sql_text import ROWS, RowsName, SqlText
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import NestedField
from frazil.rows.actions import ACTION, KEY, SOURCE_ROW, Action, RowSink, SinkResult
from frazil.rows.duckdb import duckdb_connection, duckdb_filter, duckdb_scan
from frazil.rows.duckdb.duckdb_connection import connect, forget, open_folders, streaming
from frazil.rows.duckdb.duckdb_failures import explained
from frazil.rows.duckdb.duckdb_merge import MergeSql
from frazil.rows.duckdb.duckdb_scan import FILE_INDEX, RawRows, ScanSql
from frazil.rows.duckdb.duckdb_sort import sort_keys
from frazil.rows.duckdb.duckdb_source import DuckDbSource, drop_table, stored
from frazil.rows.duckdb.duckdb_streams import in_arrow_types, streamed
from frazil.rows.duckdb.duckdb_types import check_columns
from frazil.rows.duckdb.duckdb_values import Values
from frazil.rows.engine import Assignments, MergePlan, look_at_other_rows
from frazil.rows.matched_rows import MatchedRows, ReplacedRows
from frazil.rows.merge_clauses import Side, has, updates
from frazil.rows.planned import Longs, Planned
from frazil.rows.z_order import ZOrder
from frazil.value_classes import replace

if TYPE_CHECKING:
    import duckdb

    from frazil.iceberg.sorting import SortOrder
    from frazil.rows.columns.column_functions import Called
    from frazil.rows.columns.column_sink import ColumnSink, UpdatedFile

BATCH_ROWS: Final = 1 << 17


class DuckDbEngine:
    """Carries out row-level changes on this machine. `settings` go to DuckDB, such as
    `memory_limit="2GB"` and `threads=4`; a connection that is given is used as it is set."""

    is_duckdb = True

    def __init__(
        self, connection: duckdb.DuckDBPyConnection | None = None, **settings: Any
    ) -> None:
        self._shared = connection
        self._settings = settings
        self._own: duckdb.DuckDBPyConnection | None = None

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The connection, opened when first needed."""
        if self._shared is not None:
            return self._shared
        if self._own is None:
            self._own = self._opened()
        return self._own

    def _opened(self) -> duckdb.DuckDBPyConnection:
        if not self._settings:
            return duckdb_connection.connection()
        return connect(preserve_insertion_order=False, **self._settings)

    def matching(self, planned: Planned) -> Longs:
        """Keys of the rows that the scan's condition holds for."""
        sql = planned.scan.condition.sql
        what = "filter" if sql is None else f"filter {sql.text!r}"
        columns = tuple(column.name for column in planned.read_schema.fields)
        chosen = planned.seen_by(replace(planned.scan, columns=columns, max_rows=None))
        with (
            explained(what),
            self._rows(chosen, filtered=False, is_joined=_is_joined([sql])) as rows,
            Values(self.connection) as names,
        ):
            once = "DISTINCT " if sql is not None and sql.tables else ""  # it may meet many rows
            name = _rows_name(planned.scan.condition, {})
            query = f"SELECT {once}{KEY} FROM {_matching(planned, rows, name, names)}"
            with streaming(self.connection, query):
                keys = self.connection.sql(query).fetchnumpy()[KEY]
            return np.asarray(keys, dtype=np.int64)

    def update(self, planned: Planned, values: Assignments, sink: RowSink) -> list[SinkResult]:
        """Rows that match, with new values, into a sink."""
        schema = planned.scan.table_schema
        check_columns(schema.fields)
        said = planned.scan.condition
        rows_name = _rows_name(said, values)
        is_joined = _is_joined([said.sql, *values.values()])
        with (
            explained("update"),
            self._rows(_all(planned, values), filtered=False, is_joined=is_joined) as rows,
            Values(self.connection) as new,
        ):
            columns = _new_columns(new, rows_name, schema.fields, values)
            # Values and condition see the same tables, so they are part of one SELECT.
            query = (
                f"SELECT {', '.join(columns)}, {rows_name}.{quoted(ROW_ID.name)}, "
                f"NULL::BIGINT AS {LAST_UPDATED.name}, {KEY}, "
                f"{int(Action.UPDATE)}::TINYINT AS {ACTION} "
                f"FROM {_matching(planned, rows, rows_name, new)}"
            )
            # Filling a table with every row would take longer than streaming them.
            return [self._into(sink, query, keep=not said.is_everything)]

    def computed(
        self, planned: Planned, values: Assignments, sink: ColumnSink
    ) -> list[UpdatedFile]:
        """New values of columns for the rows that match."""
        # Loaded with the first update of columns: most updates write rows.
        from frazil.rows.columns.column_update import written_here

        return written_here(
            planned,
            sink,
            lambda part: self._computed(part, values, sink.fields),
            together=look_at_other_rows(values),
        )

    def _computed(
        self, planned: Planned, values: Assignments, fields: Sequence[NestedField]
    ) -> Generator[pa.RecordBatch]:
        check_columns(fields)
        rows_name = _rows_name(planned.scan.condition, values)
        is_joined = _is_joined([planned.scan.condition.sql, *values.values()])
        with (
            explained("update"),
            self._rows(
                _looked_at(planned, values), filtered=False, is_joined=is_joined, whole=True
            ) as rows,
            Values(self.connection) as new,
        ):
            columns = _new_columns(new, rows_name, fields, values)
            query = (
                f"SELECT {', '.join([*columns, KEY])} "
                f"FROM {_matching(planned, rows, rows_name, new)}"
            )
            with streaming(self.connection, query), self._stream(query) as batches:
                yield from batches

    def joined(
        self, planned: Planned, source: Any, on: Sequence[str], sink: ColumnSink
    ) -> list[UpdatedFile]:
        """Values of columns from a source, by keys."""
        from frazil.rows.columns.column_update import written_here

        return written_here(planned, sink, lambda part: self._joined(part, source, on, sink.fields))

    def _joined(
        self, planned: Planned, source: Any, on: Sequence[str], fields: Sequence[NestedField]
    ) -> Generator[pa.RecordBatch]:
        assert isinstance(source, DuckDbSource)
        scan = replace(planned.scan, columns=tuple(on), max_rows=None)
        keys = planned.seen_by(scan)
        with (
            explained("merge_columns"),
            source.in_table() as copied,
            self._rows(keys, filtered=False, is_joined=True, whole=True) as rows,
        ):
            columns = [f"s.{quoted(column.name)}" for column in fields]
            same = " AND ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in on)
            query = (
                f"SELECT {', '.join([*columns, KEY])} FROM ({rows}) t "
                f"JOIN {copied.name} s ON {same}"
            )
            with streaming(self.connection, query), self._stream(query) as batches:
                yield from batches

    def called(self, planned: Planned, functions: Called, sink: ColumnSink) -> list[UpdatedFile]:
        """What functions of batches give."""
        from frazil.rows.columns.column_update import written_here

        return written_here(planned, sink, lambda part: functions.rows(sink.files(part), sink))

    def types(self, planned: Planned, values: Mapping[str, SqlText]) -> Schema:
        """The columns that expressions over the rows of a plan give."""
        nothing = planned.part(np.zeros(0, dtype=np.intp))
        nothing = _looked_at(nothing, {(name,): text for name, text in values.items()})
        with explained("add_columns"), self._rows(nothing, filtered=False, is_joined=False) as rows:
            columns = [f"({text.text}\n) AS {quoted(name)}" for name, text in values.items()]
            query = f"SELECT {', '.join(columns)} FROM ({rows}) {ROWS}"
            rows_of_none = in_arrow_types(self.connection.sql(query))
            reader = with_plain_booleans(rows_of_none.to_arrow_reader())
            if reader.read_all().num_rows:
                raise InvalidInput(
                    f"{' and '.join(values)}: an aggregate has one value for all rows; as a window "
                    "function, such as sum(price) OVER (), it has one for each"
                )
            return schema_of(reader)

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
        scan = duckdb_scan.scan_sql(
            needed,
            filtered=False,
            key=True,
            raw=by_key,
            is_joined=False,
            folders=open_folders(self.connection),
        )
        with explained("merge"), self._bound(scan) as rows, Values(self.connection) as new:
            target_rows = int(needed.records.sum())
            queries = MergeSql(plan, source, new, target_rows=target_rows)
            if scan.raw is not None and queries.is_replacement:
                return [self._replaced(sink, queries, scan.raw, source, needed)]
            with source.in_table() as copied:
                queries = MergeSql(plan, copied, new, target_rows=target_rows)
                if scan.raw is None:
                    disabled = queries.disabled_optimizers
                    return [self._into(sink, queries.whole(rows), keep=True, disabled=disabled)]
                return [self._by_key(sink, queries, scan.raw, copied, needed)]

    def sorted(
        self, planned: Planned, order: SortOrder | ZOrder, sink: RowSink
    ) -> list[SinkResult]:
        """All rows of the plan's files with their lineage, in an order, into a sink."""
        schema, connection = planned.scan.table_schema, self.connection
        names = [column.name for column in (*schema.fields, *LINEAGE)]
        every = _all(planned, lineage=True)
        with (
            explained("compact"),
            self._rows(every, filtered=False, key=False, is_joined=False) as rows,
            sort_keys(connection, rows, order, schema) as by,
        ):
            query = (
                f"SELECT {', '.join(map(quoted, names))}, NULL::BIGINT AS {KEY}, "
                f"{int(Action.INSERT)}::TINYINT AS {ACTION} FROM ({rows}) {ROWS} ORDER BY {by}"
            )
            return [self._into(sink, query)]

    @contextmanager
    def _rows(
        self,
        planned: Planned,
        *,
        filtered: bool,
        is_joined: bool,
        key: bool = True,
        whole: bool = False,
    ) -> Iterator[str]:
        scan = duckdb_scan.scan_sql(
            planned,
            filtered=filtered,
            key=key,
            is_joined=is_joined,
            whole=whole,
            folders=open_folders(self.connection),
        )
        with self._bound(scan) as text_of_rows:
            yield text_of_rows

    @contextmanager
    def _bound(self, scan: ScanSql) -> Iterator[str]:
        scan.verify()
        try:
            scan.bind(self.connection)
            yield scan.text
        finally:
            scan.release(self.connection)

    def _into(
        self, sink: RowSink, query: str, *, keep: bool = False, disabled: tuple[str, ...] = ()
    ) -> SinkResult:
        kept = self._kept(query) if keep else nullcontext(query)
        settings = streaming(self.connection, query, disabled=disabled)
        with settings, kept as rows, self._stream(rows) as stream:
            return sink.run(stream)

    def _stream(self, query: str) -> AbstractContextManager[pa.RecordBatchReader]:
        rows = self.connection.sql(query).to_arrow_reader(BATCH_ROWS)
        return streamed(rows, self.connection, query)

    def _replaced(
        self, sink: RowSink, queries: MergeSql, raw: RawRows, source: DuckDbSource, rows: Planned
    ) -> SinkResult:
        """Rows of the source, each in place of the row of the table that it matches."""
        matched = MatchedRows(rows, raw.deleted)
        replaced = ReplacedRows(
            source.num_rows, inserts=queries.has_unmet, updates=queries.has_updates
        )
        query = queries.addresses(raw)
        with streaming(self.connection, query, disabled=queries.disabled_optimizers):
            with self._kept(query) as met, self._stream(met) as rows_met:
                for batch in rows_met:
                    replaced.note(matched.located(batch, FILE_INDEX))
            return sink.run(replaced.stream(source.batches(BATCH_ROWS)))

    def _by_key(
        self, sink: RowSink, queries: MergeSql, raw: RawRows, source: DuckDbSource, rows: Planned
    ) -> SinkResult:
        """Rows that meet, and then the rows of the source that did not."""
        is_guarded = bool(raw.deleted) and queries.is_guarded
        matched = MatchedRows(rows, {} if is_guarded else raw.deleted)
        with self._named(raw.deleted_rows()) if is_guarded else nullcontext() as deleted:
            query = queries.met(raw, deleted=deleted)
            settings = streaming(self.connection, query, disabled=queries.disabled_optimizers)
            with settings, self._kept(query) as rows_met, self._stream(rows_met) as met:
                return sink.run(self._met_first(met, queries, matched, source.num_rows))

    def _met_first(
        self, met: pa.RecordBatchReader, queries: MergeSql, matched: MatchedRows, num_rows: int
    ) -> pa.RecordBatchReader:
        has_met = np.zeros(num_rows, dtype=np.bool_)
        extra = [] if queries.counts_sources else [SOURCE_ROW]

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in met:
                living = matched.located(batch, FILE_INDEX)
                has_met[arrow_values.to_numpy(living.column(SOURCE_ROW))] = True
                yield living.drop_columns(extra)
            if queries.has_unmet:
                numbers = pa.table({SOURCE_ROW: arrow_values.array(np.flatnonzero(has_met))})
                with (
                    self._named(numbers) as name,
                    self._stream(queries.unmet(name)) as unmet,
                ):
                    for batch in unmet:
                        yield batch.drop_columns(extra)

        columns = [field for field in met.schema if field.name not in (FILE_INDEX, *extra)]
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
            forget(self.connection, [name])


def _all(planned: Planned, values: Assignments | None = None, *, lineage: bool = False) -> Planned:
    """All columns of the table, its row ids, and those of metadata that expressions look at."""
    names = [column.name for column in planned.scan.table_schema.fields]
    names += [ROW_ID.name, LAST_UPDATED.name] if lineage else [ROW_ID.name]
    if values is not None:
        texts = [planned.scan.condition.sql, *values.values()]
        asked = [text for text in texts if isinstance(text, SqlText)]
        special = [name for name in METADATA_COLUMNS if name not in names]
        names += [name for name in special if any(_names(text, name) for text in asked)]
    return planned.seen_by(replace(planned.scan, columns=tuple(names), max_rows=None))


def _looked_at(planned: Planned, values: Assignments) -> Planned:
    """The columns that expressions and the condition look at, whatever else the table has."""
    known = [*(column.name for column in planned.scan.table_schema.fields), *METADATA_COLUMNS]
    names = {path[0] for path in values if len(path) > 1}
    for value in values.values():
        if isinstance(value, SqlText):
            names.update(value.columns(known))
    scan = replace(
        planned.scan, columns=tuple(name for name in known if name in names), max_rows=None
    )
    chosen = planned.seen_by(scan)
    every = tuple(column.name for column in chosen.read_schema.fields)
    return planned.seen_by(replace(scan, columns=every))


def _new_columns(
    new: Values, rows_name: RowsName, columns: Iterable[NestedField], values: Assignments
) -> list[str]:
    """The columns of rows with their new values, under their names."""
    return [
        f"{new.assigned(column, f'{rows_name}.{name}', values)} AS {name}"
        for column in columns
        if (name := quoted(column.name))
    ]


def _is_joined(texts: Iterable[object]) -> bool:
    """Whether one of some expressions looks at other tables."""
    return any(isinstance(value, SqlText) and (value.has_query or value.tables) for value in texts)


def _names(text: SqlText, name: str) -> bool:
    return text.names is not None and name in text.names


def _rows_name(said: Condition, values: Assignments) -> RowsName:
    """What the expressions of a change call the rows of the table."""
    texts = (text for text in (said.sql, *values.values()) if isinstance(text, SqlText))
    return next((text.rows for text in texts), ROWS)


def _matching(planned: Planned, rows: str, name: RowsName, names: Values) -> str:
    """The rows that match, as FROM and WHERE have them; beside them, the tables that the condition
    looks at."""
    said = planned.scan.condition
    named = names.named(rows, name)
    others = f", {said.sql.tables}" if said.sql is not None and said.sql.tables else ""
    where = "" if said.is_everything else f" WHERE {duckdb_filter.matching(said)}"
    return f"{named}{others}{where}"


def _needed(planned: Planned, plan: MergePlan) -> Planned:
    """The columns of the table that a merge reads: all where it rewrites rows."""
    if updates(plan.clauses):
        return _all(planned)
    known = [column.name for column in plan.schema.fields]
    names = {pair.target for pair in plan.pairs}
    names.update(*(text.columns(known) for text in plan.expressions))
    ordered = tuple(name for name in known if name in names)
    return planned.seen_by(replace(planned.scan, columns=ordered, max_rows=None))

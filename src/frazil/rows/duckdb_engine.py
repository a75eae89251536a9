"""The embedded engine: row-level changes as DuckDB queries over the files of a plan.

Every operation is one query, whose rows stream into a sink. DuckDB uses all cores, keeps to its
memory limit and spills to disk.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, NestedField, StructType

from frazil.data.metadata_columns import LAST_UPDATED, LINEAGE, ROW_ID
from frazil.data.row_input import NO_ARROW_FORM
from frazil.data.schema import nested_arrow_type
from frazil.errors import InvalidInput
from frazil.expr.quotes import quoted
from frazil.expr.sql_text import SOURCE, TARGET, SqlText
from frazil.rows import duckdb_scan, duckdb_shared
from frazil.rows.actions import ACTION, KEY, SOURCE_ROW, Action, RowSink, SinkResult
from frazil.rows.duckdb_scan import MET, KeyJoin, ScanSql, explained, streaming
from frazil.rows.duckdb_sort import sort_keys
from frazil.rows.duckdb_source import DuckDbSource, stored
from frazil.rows.duckdb_types import check_columns, literal, text, type_text
from frazil.rows.engine import Assignments, Constant, MergeClause, MergePlan, Value
from frazil.rows.merge_clauses import Side, has, updates
from frazil.rows.planned import Longs, Planned
from frazil.rows.z_order import ZOrder

if TYPE_CHECKING:
    import duckdb
    from pyiceberg.table.sorting import SortOrder

BATCH_ROWS: Final = 1 << 17
_FEW: Final = 2
"""A source has few rows when the table's files have this many times as many."""
_MARK: Final = "__frazil_mark"
_CHOICE: Final = "__frazil_choice"


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
        with explained("update"), self._rows(_all(planned), filtered=True) as rows:
            new = _Values(self.connection)
            columns = [
                f"{new.assigned(column, _of(TARGET, column.name), values)} AS {quoted(column.name)}"
                for column in schema.fields
            ]
            query = (
                f"SELECT {', '.join(columns)}, {_of(TARGET, ROW_ID.name)}, "
                f"NULL::BIGINT AS {LAST_UPDATED.name}, {KEY}, "
                f"{int(Action.UPDATE)}::TINYINT AS {ACTION} FROM ({rows}) {TARGET}"
            )
            return [self._into(sink, query, new)]

    def source(self, rows: Any, schema: Schema) -> DuckDbSource:
        """Rows to merge, in a temporary table that may spill."""
        return stored(self.connection, rows, schema)

    def merge(
        self, planned: Planned, source: Any, plan: MergePlan, sink: RowSink
    ) -> list[SinkResult]:
        """Rows of the table joined with a source, into a sink."""
        assert isinstance(source, DuckDbSource)
        check_columns(plan.schema.fields)
        met = _keys_first(planned, source, plan)
        needed = _needed(planned, plan)
        made = duckdb_scan.scan_sql(needed, filtered=False, key=True, met=met)
        with explained("merge"), self._bound(made) as rows:
            new = _Values(self.connection)
            query = _Merge(plan, source, rows, new, is_met=made.is_met).text()
            return [self._into(sink, query, new)]

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
            return [self._into(sink, query, _Values(connection))]

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

    def _into(self, sink: RowSink, query: str, values: _Values) -> SinkResult:
        try:
            with streaming(self.connection, query):
                return sink.run(self.connection.sql(query).to_arrow_reader(BATCH_ROWS))
        finally:
            values.release()


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


def _keys_first(planned: Planned, source: DuckDbSource, plan: MergePlan) -> KeyJoin | None:
    """The source's keys, where they leave far fewer rows than the files have.

    The rows that meet are held between two joins, which does not pay for a source that meets most
    of the table; rows without a match have to be given where a clause is for them.
    """
    if not plan.pairs or has(plan.clauses, Side.TARGET_ONLY):
        return None
    if source.num_rows > planned.records.sum() // _FEW:
        return None
    pairs = tuple((pair.target, pair.source) for pair in plan.pairs)
    return KeyJoin(table=source.name, pairs=pairs)


def _of(alias: str, name: str) -> str:
    return f"{alias}.{quoted(name)}"


class _Values:
    """New values of columns as SQL. Nested constants come from a table of one row."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._tables: list[str] = []

    def assigned(self, column: NestedField, old: str, values: Assignments) -> str:
        """The new value of a column: replaced, changed inside, or as it was."""
        made = self._changed(column.field_type, old, (column.name,), values)
        return old if made is None else f"CAST({made} AS {type_text(column.field_type)})"

    def _changed(
        self, kind: IcebergType, old: str, path: tuple[str, ...], values: Assignments
    ) -> str | None:
        if path in values:
            return self.value(values[path], kind, ".".join(path))
        if not isinstance(kind, StructType):
            return None
        parts, is_changed = [], False
        for part in kind.fields:
            before = f"struct_extract({old}, {text(part.name)})"
            after = self._changed(part.field_type, before, (*path, part.name), values)
            is_changed |= after is not None
            parts.append(f"{quoted(part.name)} := {after or before}")
        if not is_changed:
            return None
        return f"CASE WHEN {old} IS NULL THEN NULL ELSE struct_pack({', '.join(parts)}) END"

    def value(self, value: Value, kind: IcebergType, name: str) -> str:
        """A value of a type."""
        if isinstance(value, SqlText):
            return f"({value.text}\n)"
        if kind.is_primitive or value.value is None:
            try:
                return literal(value.value, kind)
            except InvalidInput as problem:
                raise InvalidInput(f"column {name}: {problem}") from None
        try:
            array = pa.array([value.value], nested_arrow_type(kind))
        except NO_ARROW_FORM as error:
            raise InvalidInput(f"column {name}: {value.value!r} is not a {kind}") from error
        table = f"__frazil_value_{uuid.uuid4().hex[:12]}"
        self._connection.register(table, pa.table({"v": array}))
        self._tables.append(table)
        return f"(SELECT v FROM {table})"

    def release(self) -> None:
        """Forget the constants."""
        for table in self._tables:
            self._connection.unregister(table)


class _Merge:
    """The query of a merge: rows that meet, the clause for each, and what becomes of it."""

    def __init__(
        self, plan: MergePlan, source: DuckDbSource, target: str, values: _Values, *, is_met: bool
    ) -> None:
        self._is_met = is_met
        self._plan = plan
        self._source = source
        self._target = target
        self._values = values
        self._fields = plan.schema.fields

    def text(self) -> str:
        joined = (
            f"(SELECT *, true AS {_MARK}, rowid AS {SOURCE_ROW} FROM {self._source.name}) {SOURCE} "
            f"{self._join()} ({self._target}) {TARGET} ON {self._on()}"
        )
        if any(clause.condition is not None for clause in self._plan.clauses):
            # The clause is chosen once per row; values look at both rows as structs.
            joined = f"(SELECT {SOURCE}, {TARGET}, {self._choice()} AS {_CHOICE} FROM {joined})"
            choice = _CHOICE
        else:
            choice = self._choice()
        columns = [
            f"{self._value(field, choice)} AS {quoted(field.name)}" for field in self._fields
        ]
        with_lineage = updates(self._plan.clauses)
        lineage = [
            f"{self._if_update(choice, ROW_ID.name)}",
            f"NULL::BIGINT AS {LAST_UPDATED.name}",
        ]
        job = [f"{TARGET}.{KEY} AS {KEY}", f"{self._action(choice)}::TINYINT AS {ACTION}"]
        if self._plan.only_changes:
            job.append(f"{SOURCE}.{SOURCE_ROW} AS {SOURCE_ROW}")
        chosen = ", ".join([*columns, *(lineage if with_lineage else []), *job])
        # Rows that matched are kept even where no clause applies: they must not match twice.
        kept = f"({choice}) >= 0 OR ({_matched()})"
        return f"SELECT {chosen} FROM {joined} WHERE {kept}"

    def _join(self) -> str:
        if has(self._plan.clauses, Side.TARGET_ONLY):
            return "FULL JOIN"
        return "LEFT JOIN" if has(self._plan.clauses, Side.SOURCE_ONLY) else "JOIN"

    def _on(self) -> str:
        if self._is_met:
            parts = [f"{TARGET}.{MET} = {SOURCE}.{SOURCE_ROW}"]
        else:
            parts = [
                f"{_of(TARGET, pair.target)} = {_of(SOURCE, pair.source)}"
                for pair in self._plan.pairs
            ]
        if self._plan.on is not None:
            parts.append(f"({self._plan.on.text}\n)")
        return " AND ".join(parts)

    def _choice(self) -> str:
        sides = {
            Side.MATCHED: _matched(),
            Side.SOURCE_ONLY: f"{TARGET}.{KEY} IS NULL",
            Side.TARGET_ONLY: f"{SOURCE}.{_MARK} IS NULL",
        }
        cases = ""
        for at, clause in enumerate(self._plan.clauses):
            applies = sides[clause.side]
            if clause.condition is not None:
                applies = f"{applies} AND ({clause.condition.text}\n)"
            if self._plan.only_changes and clause.action is Action.UPDATE:
                applies = f"{applies} AND ({self._differs()})"
            cases += f" WHEN {applies} THEN {at}"
        return f"CASE{cases} ELSE -1 END"

    def _differs(self) -> str:
        found = [
            f"{_of(SOURCE, name)} IS DISTINCT FROM {_of(TARGET, field.name)}"
            for field in self._fields
            if (name := self._source.named(field.name)) is not None
        ]
        return " OR ".join(found) or "false"

    def _action(self, choice: str) -> str:
        cases = "".join(
            f" WHEN {at} THEN {int(clause.action)}" for at, clause in enumerate(self._plan.clauses)
        )
        return f"CASE {choice}{cases} ELSE {int(Action.KEEP)} END"

    def _if_update(self, choice: str, name: str) -> str:
        updates = [
            str(at)
            for at, clause in enumerate(self._plan.clauses)
            if clause.action is Action.UPDATE
        ]
        return (
            f"CASE WHEN {choice} IN ({', '.join(updates)}) THEN {_of(TARGET, name)} END "
            f"AS {quoted(name)}"
        )

    def _value(self, field: NestedField, choice: str) -> str:
        kind = type_text(field.field_type)
        values = {
            at: self._update(field, clause)
            if clause.action is Action.UPDATE
            else self._insert(field, clause)
            for at, clause in enumerate(self._plan.clauses)
            if clause.action is not Action.DELETE
        }
        if self._plan.only_changes and len(set(values.values())) == 1:
            # Rows that no clause is for are not written, whatever stands in their columns; those
            # of an upsert have the table's types, so that nothing can fail.
            return f"CAST({next(iter(values.values()))} AS {kind})"
        cases = "".join(f" WHEN {at} THEN CAST({new} AS {kind})" for at, new in values.items())
        return f"CASE {choice}{cases} END" if cases else f"CAST(NULL AS {kind})"

    def _update(self, field: NestedField, clause: MergeClause) -> str:
        old = _of(TARGET, field.name)
        if clause.values is not None:
            return self._values.assigned(field, old, clause.values)
        found = self._source.named(field.name)
        return old if found is None else _of(SOURCE, found)

    def _insert(self, field: NestedField, clause: MergeClause) -> str:
        values: Mapping[tuple[str, ...], Value] = clause.values or {}
        if (field.name,) in values:
            return self._values.value(values[(field.name,)], field.field_type, field.name)
        found = self._source.named(field.name) if clause.values is None else None
        if found is not None:
            return _of(SOURCE, found)
        default = Constant(value=field.write_default)
        return self._values.value(default, field.field_type, field.name)


def _matched() -> str:
    return f"{TARGET}.{KEY} IS NOT NULL AND {SOURCE}.{_MARK} IS NOT NULL"

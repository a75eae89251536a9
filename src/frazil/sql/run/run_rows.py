"""INSERT, DELETE, UPDATE and MERGE: a statement becomes a plan for an engine, then a commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from frazil.commit.change import Change
from frazil.commit.summary import Tally
from frazil.data.metadata_columns import METADATA_COLUMNS
from frazil.filter.bind.bind import conjunction, predicate
from frazil.filter.bind.filter_columns import ColumnIndex
from frazil.filter.condition import Condition
from frazil.filter.prune.tree_filter import key_filter
from frazil.filter.text.quotes import quoted
from frazil.filter.text.sql_text import RESERVED, RowsName, SqlText
from frazil.iceberg.expressions import Op
from frazil.iceberg.schema import Schema
from frazil.parser.cursor import Cursor, Name, chain
from frazil.parser.edits import Slices
from frazil.parser.tokens import Part
from frazil.rows.actions import Action
from frazil.rows.editor import RowEditor
from frazil.rows.engine import Assignments, Constant, KeyPair, MergePlan
from frazil.rows.engine import MergeClause as PlannedClause
from frazil.rows.merge import key_pairs
from frazil.rows.merge_clauses import Clause, Side, check_insert
from frazil.sql.bind.change_text import (
    BoundSlices,
    Rows,
    TargetRows,
    bind,
    condition_of,
    known_columns,
)
from frazil.sql.output.query_result import Result, one_row
from frazil.sql.parse import statements as st
from frazil.sql.run.insert_rows import inserted_rows
from frazil.sql.run.run_tables import CountedRows
from frazil.table.table import Table
from frazil.table.transaction import Transaction
from frazil.text_format import counted
from frazil.value_classes import dataclass, field

if TYPE_CHECKING:
    from frazil.sql.run.execution import Execution


def run(statement: st.Insert | st.Delete | st.Update | st.Merge, at: Execution) -> Result:
    """Carry out a statement."""
    with at.place(statement.table.start):
        table = at.names.table(statement.table.parts)
    if not isinstance(statement, st.Insert):
        at.run_ctes(statement.ctes)
    match statement:
        case st.Insert():
            return _insert(statement, table, at)
        case st.Delete():
            return _delete(statement, table, at)
        case st.Merge():
            return _merge(statement, table, at)
    return _update(statement, table, at)


def _edited(tx: Transaction, edit: Callable[[RowEditor], Change]) -> Change:
    """A change of rows, made and added to a transaction."""
    change = edit(tx._editor())
    tx._apply(change)
    return change


def _done(at: Execution, tx: Transaction, change: Change, *names: str) -> Result:
    """What landed; inside a transaction, what the statement changes of what it saw."""
    if at.transactions.is_open:
        added = Tally.of(change.added).records - change.rows_updated
        updated, removed = change.rows_updated + change.rows_in_place, change.rows_removed
    else:
        added, updated, removed = (
            tx.result.rows_added,
            tx.result.rows_updated,
            tx.result.rows_removed,
        )
    counts = {"inserted": added, "updated": updated, "deleted": removed}
    return one_row(**{name: counts[name] for name in names})


# DELETE and UPDATE


def _delete(statement: st.Delete, table: Table, at: Execution) -> Result:
    with at.place(statement.table.start), at.writing(table) as tx:
        query = _Query(at, tx.metadata.schema(), statement.table, statement.alias)
        condition = query.condition(statement.using, statement.where)
        change = _edited(tx, lambda editor: editor.delete(condition))
    return _done(at, tx, change, "deleted")


def _update(statement: st.Update, table: Table, at: Execution) -> Result:
    with at.place(statement.assignments[0][0].start), at.writing(table) as tx:
        query = _Query(at, tx.metadata.schema(), statement.table, statement.alias)
        assigned: dict[tuple[str, ...], Part | Constant] = {}
        for name, part in statement.assignments:
            path = query.target.path(name, assigned, at)
            default = query.target.default(path, part, at)
            assigned[path] = query.output(part) if default is None else default
        condition = query.condition(statement.source, statement.where)
        values = query.values(assigned)
        change = _edited(tx, lambda editor: editor.assign(values, condition))
    return _done(at, tx, change, "updated")


class _Query:
    """The query of a DELETE or UPDATE: what is new, the rows of the table beside other tables, and
    the condition."""

    def __init__(self, at: Execution, schema: Schema, table: Name, alias: str | None) -> None:
        named = {token.value.lower() for token in at.tokens if token.is_name}
        special = [
            column
            for column in METADATA_COLUMNS.values()
            if column.name in named and column.name not in schema.column_names
        ]
        self._at = at
        self._schema = schema
        self._bound: BoundSlices | None = None
        self.target = TargetRows.of(schema, table, alias, special)
        self.slices = at.slices()
        self.slices.add("SELECT 1")

    def output(self, part: Part) -> Part:
        """Add an expression; returns where it is."""
        self.slices.add(", ")
        return self.slices.expression(part)

    def condition(self, others: Part | None, where: Part | None) -> Condition:
        """Which rows are changed; binds the query."""
        slices, target = self.slices, self.target
        assert target.name is not None
        slices.add(" FROM ")
        start = slices.slice(Part(target.name.start, target.name.end)).start
        slices.add(f" AS {quoted(target.alias)}" if target.alias is not None else "")
        tables = None
        if others is not None:
            slices.add(", ")
            tables = slices.slice(others)
        slices.add("\nWHERE ")
        chosen = slices.add("(true)") if where is None else slices.expression(where)
        self._bound = bind(self._at, slices, {start: target})
        tables_text = "" if tables is None else self._bound.text(tables)
        return condition_of(self._bound, target, chosen, tables_text, self._schema)

    def values(self, assigned: Mapping[tuple[str, ...], Part | Constant]) -> Assignments:
        """New values by path, once the query is bound."""
        assert self._bound is not None
        return {
            path: value if isinstance(value, Constant) else self._bound.sql(value, self.target)
            for path, value in assigned.items()
        }


# MERGE and INSERT


def _merge(statement: st.Merge, table: Table, at: Execution) -> Result:
    with at.place(statement.table.start), at.writing(table) as tx:
        schema = tx.metadata.schema()
        rows = at.stream(at.binder.rows_of(statement.source))
        target = TargetRows.of(schema, statement.table, statement.alias)
        plan = merge_plan(statement, target, rows.schema, at)

        def merged(editor: RowEditor) -> Change:
            with closing(editor.engine.source(rows, schema)) as source:
                return editor.merge(source, plan)

        change = _edited(tx, merged)
    return _done(at, tx, change, "inserted", "updated", "deleted")


def _insert(statement: st.Insert, table: Table, at: Execution) -> Result:
    with at.place(statement.table.start), at.writing(table) as tx:
        schema = tx.metadata.schema()
        rows = CountedRows(inserted_rows(statement, schema, at))
        condition = _replaced(statement, schema, at)
        if statement.mode is st.InsertMode.APPEND and condition is None:
            tx.append(rows.reader())
        elif statement.mode is st.InsertMode.OVERWRITE_PARTITIONS:
            tx.overwrite_partitions(rows.reader())
        else:
            tx._overwrite(rows.reader(), condition)
    return one_row(inserted=rows.rows)


def _replaced(statement: st.Insert, schema: Schema, at: Execution) -> Condition | None:
    """The condition of the rows that new ones take the place of."""
    if statement.where is not None:
        query = _Query(at, schema, statement.table, None)
        return query.condition(None, statement.where)
    if not statement.fixed:
        return None
    columns = ColumnIndex.of(schema)
    parts = []
    for name, part in statement.fixed:
        (column,) = known_columns([name], schema, at)
        value = at.constant(part)
        if value is None:
            parts.append(predicate(Op.IS_NULL, columns.by_name[column]))
            continue
        chosen = key_filter(column, [value], schema)
        if chosen is None:
            raise at.source.problem(part.start, f"{value!r} is not a value of column {column}")
        parts.append(chosen)
    return Condition(filter=conjunction(parts))


_SOURCE: Final = f"{RESERVED}source"
_Output = tuple[Side, int]
"""An expression of a merge: which rows it sees, and its number among those that see the same."""


def merge_plan(
    statement: st.Merge, target: TargetRows, source: pa.Schema, at: Execution
) -> MergePlan:
    """The plan of a statement whose source has these columns."""
    return _Planner(at, statement, target, _source(statement, source, at)).plan()


def _source(statement: st.Merge, schema: pa.Schema, at: Execution) -> Rows:
    """The rows of the source, as expressions call them."""
    empty = at.row_engine.view(_SOURCE)
    at.row_engine.connection.register(empty, schema.empty_table())
    inside = [t for t in at.tokens if statement.source.start <= t.start < statement.source.end]
    name: Name | None = None
    alias = statement.source_alias
    if alias is None and inside[0].is_name:
        cursor = Cursor(at.source, inside)
        name = chain(cursor)
        if cursor.is_at("("):
            alias, name = name.parts[-1], None
    return Rows(
        name=name,
        alias=_SOURCE if name is None and alias is None else alias,
        columns=schema.names,
        empty=f"SELECT * FROM {quoted(empty)}",
    )


@dataclass(slots=True)
class _Scope:
    """The expressions that see the same rows, as outputs of one query."""

    rows: Sequence[Rows]
    slices: Slices
    outputs: list[Part] = field(default_factory=list)
    bound: BoundSlices | None = None

    def add(self, part: Part) -> int:
        """Add an expression."""
        self.slices.add(", " if self.outputs else "SELECT ")
        self.outputs.append(self.slices.expression(part))
        return len(self.outputs) - 1

    def bind(self, at: Execution, using: Sequence[str]) -> None:
        """Bind them over their rows, which are joined by columns or by a condition among them."""
        if not self.outputs:
            return
        named: dict[int, Rows] = {}
        between = " JOIN " if using else ", "
        for rows in self.rows:
            self.slices.add(between if named else "\nFROM ")
            if rows.name is not None:
                part = self.slices.slice(Part(rows.name.start, rows.name.end))
            else:
                part = self.slices.add(_SOURCE)
            self.slices.add("" if rows.alias is None else f" AS {quoted(rows.alias)}")
            named[part.start] = rows
        if using and len(named) > 1:
            self.slices.add(f" USING ({', '.join(map(quoted, using))})")
        self.bound = bind(at, self.slices, named)


class _Planner:
    def __init__(
        self, at: Execution, statement: st.Merge, target: TargetRows, source: Rows
    ) -> None:
        self._at = at
        self._statement = statement
        self._target = target
        self._source = source
        self._scopes = {
            Side.MATCHED: _Scope([target, source], at.slices()),
            Side.SOURCE_ONLY: _Scope([source], at.slices()),
            Side.TARGET_ONLY: _Scope([target], at.slices()),
        }

    def plan(self) -> MergePlan:
        """Bind every expression, and put them together."""
        on = self._add(Side.MATCHED, self._statement.on)
        clauses = [self._read(clause) for clause in self._statement.clauses]
        using = [] if on is not None else [pair.target for pair in self._pairs()]
        for scope in self._scopes.values():
            scope.bind(self._at, using)
        return MergePlan(
            schema=self._target.schema,
            pairs=self._pairs(),
            on=self._sql(on),
            clauses=[self._planned(*clause) for clause in clauses],
            is_using=on is None,
            target=self._name(self._target),
            source=self._name(self._source),
        )

    def _add(self, side: Side, part: object) -> _Output | None:
        return (side, self._scopes[side].add(part)) if isinstance(part, Part) else None

    def _name(self, rows: Rows) -> RowsName:
        """What rows are called in all queries of the merge: by a schema if one of them needs it."""
        names = [
            name
            for scope in self._scopes.values()
            if scope.bound is not None and (name := scope.bound.called(rows)) is not None
        ]
        return max(names, key=lambda name: bool(name.schema), default=RowsName(rows.label))

    def _sql(self, output: _Output | None) -> SqlText | None:
        if output is None:
            return None
        side, number = output
        scope = self._scopes[side]
        assert scope.bound is not None
        if side is Side.MATCHED:
            return scope.bound.sql(scope.outputs[number], self._target)
        (rows,) = scope.rows
        return scope.bound.alone(number, scope.outputs[number], rows, self._name(rows))

    def _pairs(self) -> list[KeyPair]:
        """The columns that must be equal."""
        on = self._statement.on
        source = {name.lower(): name for name in self._source.columns}
        if not isinstance(on, Part):
            columns = known_columns(on, self._target.schema, self._at)
            for name in on:
                if name.parts[0].lower() not in source:
                    listed = ", ".join(self._source.columns)
                    raise self._at.source.problem(
                        name.start, f"unknown column {name}; the source has {listed}"
                    )
            return [KeyPair(target=name, source=source[name.lower()]) for name in columns]
        bound = self._scopes[Side.MATCHED].bound
        assert bound is not None
        return key_pairs(
            bound.query.outputs[0],
            (self._target.qualifiers, self._target.columns),
            (self._source.qualifiers, self._source.columns),
        )

    # Clauses

    def _read(
        self, clause: st.MergeClause
    ) -> tuple[st.MergeClause, _Output | None, dict[tuple[str, ...], _Output | Constant] | None]:
        """A clause, with the places of its expressions."""
        condition = self._add(clause.side, clause.condition)
        assert clause.values is not None
        written = clause.values
        if clause.action not in (Action.UPDATE, Action.INSERT):
            return clause, condition, None
        if written.values is None:
            return clause, condition, self._taken(clause.action, written)
        scope = self._scopes[clause.side]
        values: dict[tuple[str, ...], _Output | Constant] = {}
        for name, part in self._written(written):
            path = self._target.path(name, values, self._at)
            default = self._target.default(path, part, self._at)
            values[path] = (clause.side, scope.add(part)) if default is None else default
        check_insert(clause.action, values)
        return clause, condition, values

    def _written(self, written: st.Written) -> list[tuple[Name, Part]]:
        """Columns and values of a clause; an insert without columns fills all of them."""
        assert written.values is not None
        columns = written.columns
        if columns is None:
            columns = tuple(
                Name((field.name,), written.start, written.start)
                for field in self._target.schema.fields
            )
        if len(columns) != len(written.values):
            raise self._at.source.problem(
                written.values[0].start,
                f"{counted(len(written.values), 'value')} for {counted(len(columns), 'column')}",
            )
        return list(zip(columns, written.values, strict=True))

    def _taken(
        self, action: Action, written: st.Written
    ) -> dict[tuple[str, ...], _Output | Constant] | None:
        """What a clause without values takes from the source; None for columns by their names.

        Engines disagree about `*`: DuckDB goes by position, others by name. It is taken where
        both mean the same."""
        table = [field.name.lower() for field in self._target.schema.fields]
        source = [name.lower() for name in self._source.columns]
        match written.takes:
            case st.Takes.DEFAULTS:
                return {}
            case st.Takes.BY_NAME:
                unknown = [name for name in source if name not in table]
                if unknown:
                    raise self._at.source.problem(
                        written.start,
                        f"the source has the column {unknown[0]}, which is not in the table",
                    )
            case _ if source != table:
                form = "UPDATE SET *" if action is Action.UPDATE else "INSERT *"
                raise self._at.source.problem(
                    written.start,
                    f"{form} needs a source with the table's columns in their order, which are "
                    f"{', '.join(table)}; it has {', '.join(source)}. Write {form.split()[0]} BY "
                    "NAME to take the columns that it has, or name them",
                )
        return None

    def _planned(
        self,
        clause: st.MergeClause,
        condition: _Output | None,
        values: dict[tuple[str, ...], _Output | Constant] | None,
    ) -> PlannedClause:
        assignments: Assignments | None = None
        if values is not None:
            assignments = {
                path: value if isinstance(value, Constant) else self._sql(value)  # type: ignore[misc]
                for path, value in values.items()
            }
        return Clause(
            side=clause.side,
            action=clause.action,
            condition=self._sql(condition),
            values=assignments,
        )

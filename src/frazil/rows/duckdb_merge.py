"""A merge as DuckDB queries: rows that meet, the clause for each, and what becomes of them.

Where rows meet by equal keys, the rows that meet come from one query and the rows of the source
that met none from another: the first has to look at each row of the files only once, and what
metadata says and which rows are deleted matters only for those that meet. Other merges are one
query with an outer join.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa
from pyiceberg.types import NestedField

from frazil.data.metadata_columns import LAST_UPDATED, ROW_ID
from frazil.expr.quotes import quoted
from frazil.expr.sql_text import SOURCE, TARGET, SqlText
from frazil.rows.actions import ACTION, KEY, SOURCE_ROW, Action
from frazil.rows.duckdb_scan import FILE_INDEX, ROW_NUMBER, RawRows
from frazil.rows.duckdb_source import DuckDbSource
from frazil.rows.duckdb_types import literal, type_text
from frazil.rows.duckdb_values import Values
from frazil.rows.engine import Constant, MergeClause, MergePlan, Value
from frazil.rows.merge_clauses import Side, has, updates

_MARK: Final = "__frazil_mark"
_CHOICE: Final = "__frazil_choice"
_NO_CLAUSE: Final = -1
_NULL: Final = "NULL::BIGINT"
_Clauses: TypeAlias = Mapping[int, MergeClause]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """Where rows come from, and what tells them apart."""

    tables: str
    sides: Mapping[Side, str]
    """Conditions for rows of each side that the tables have."""
    kept: str
    """A condition for rows that are given even where no clause applies to them."""
    key: str = _NULL
    row_id: str = _NULL
    where: str = "true"


class MergeSql:
    """The queries of one merge."""

    def __init__(self, plan: MergePlan, source: DuckDbSource, values: Values) -> None:
        self._plan = plan
        self._source = source
        self._values = values
        self._fields = plan.schema.fields

    @property
    def is_guarded(self) -> bool:
        """Whether deleted rows must not be seen: expressions may fail on their values."""
        texts: list[object] = [self._plan.on]
        for clause in self._plan.clauses:
            texts += [clause.condition, *(clause.values or {}).values()]
        return any(isinstance(each, SqlText) for each in texts)

    @property
    def counts_sources(self) -> bool:
        """Whether each row of the source may meet one row of the table only."""
        return self._plan.only_changes

    @property
    def is_replacement(self) -> bool:
        """Whether rows are written as the source has them."""
        names = (field.name for field in self._fields)
        return self._plan.only_changes and all(map(self._source.named, names))

    @property
    def has_updates(self) -> bool:
        """Whether rows live on with their row ids."""
        return updates(self._plan.clauses)

    @property
    def has_unmet(self) -> bool:
        """Whether a clause is for rows of the source that met none."""
        return has(self._plan.clauses, Side.SOURCE_ONLY)

    def whole(self, target: str) -> str:
        """All rows, where `target` selects those of the table."""
        key, mark = f"{TARGET}.{KEY}", f"{SOURCE}.{_MARK}"
        matched = f"{key} IS NOT NULL AND {mark} IS NOT NULL"
        on = " AND ".join([*self._pairs(), *self._on()])
        shape = _Shape(
            tables=f"{self._rows()} {self._join()} ({target}) {TARGET} ON {on}",
            sides={
                Side.MATCHED: matched,
                Side.SOURCE_ONLY: f"{key} IS NULL",
                Side.TARGET_ONLY: f"{mark} IS NULL",
            },
            kept=matched,  # they must not match twice
            key=key,
            row_id=_of(TARGET, ROW_ID.name),
        )
        job = {SOURCE_ROW: _of(SOURCE, SOURCE_ROW)} if self.counts_sources else {}
        return self._text(shape, job, self._fields)

    def addresses(self, target: RawRows) -> str:
        """The matches alone, without the values to write, as `MetRows` takes them."""
        return self._met(target, fields=())

    def met(self, target: RawRows, *, deleted: str | None = None) -> str:
        """Rows of the table and of the source that meet, as `MetRows` takes them. `deleted` names a
        table of rows that must not be seen."""
        return self._met(target, fields=self._fields, deleted=deleted)

    def _met(
        self, target: RawRows, *, fields: Sequence[NestedField], deleted: str | None = None
    ) -> str:
        on, where, later = [*self._pairs(), *self._on()], "true", ""
        if deleted is not None:
            # DuckDB puts other joins in an order of its own, and would do this one for all rows.
            later = (
                f" LEFT JOIN {deleted} d ON d.f = {_of(TARGET, FILE_INDEX)} AND "
                f"d.p = {_of(TARGET, ROW_NUMBER)}"
            )
            on, left = self._pairs(), " AND ".join(self._on()) or "true"
            where = f"CASE WHEN d.f IS NULL THEN {left} ELSE false END"
        source = self._rows(self._within(target.bounds))
        shape = _Shape(
            tables=f"{source} JOIN ({target.rows}) {TARGET} ON {' AND '.join(on)}{later}",
            sides={Side.MATCHED: "true"},
            kept="true",
            key=_of(TARGET, ROW_NUMBER),
            row_id=_of(TARGET, ROW_ID.name),
            where=where,
        )
        source_row, file = _of(SOURCE, SOURCE_ROW), _of(TARGET, FILE_INDEX)
        return self._text(shape, {SOURCE_ROW: source_row, FILE_INDEX: file}, fields)

    def unmet(self, met: str) -> str:
        """Rows of the source without a match; `met` names a table of the others' numbers."""
        rows = f"SELECT * FROM {self._rows()} ANTI JOIN {met} USING ({SOURCE_ROW})"
        shape = _Shape(tables=f"({rows}) {SOURCE}", sides={Side.SOURCE_ONLY: "true"}, kept="false")
        return self._text(shape, {SOURCE_ROW: _of(SOURCE, SOURCE_ROW)}, self._fields)

    def _text(self, shape: _Shape, job: Mapping[str, str], fields: Sequence[NestedField]) -> str:
        clauses = {
            at: clause for at, clause in enumerate(self._plan.clauses) if clause.side in shape.sides
        }
        tables, key, row_id, where = shape.tables, shape.key, shape.row_id, shape.where
        choice = self._choice(clauses, shape.sides)
        if any(clause.condition is not None for clause in clauses.values()):
            # The clause is chosen once per row; values look at both rows as structs.
            rows = _struct(SOURCE) if key == _NULL else f"{_struct(SOURCE)}, {_struct(TARGET)}"
            tables = (
                f"(SELECT {rows}, {key} AS {KEY}, {row_id if updates(clauses.values()) else _NULL} "
                f"AS {quoted(ROW_ID.name)}, {choice} AS {_CHOICE} FROM {tables} WHERE {where})"
            )
            choice, key, row_id, where = _CHOICE, KEY, quoted(ROW_ID.name), "true"
        chosen = [
            f"{self._value(field, choice, clauses)} AS {quoted(field.name)}" for field in fields
        ]
        if self.has_updates:
            moved = _cases(choice, clauses, {Action.UPDATE: row_id})
            chosen += [f"{moved} AS {quoted(ROW_ID.name)}", f"{_NULL} AS {LAST_UPDATED.name}"]
        actions = {action: str(int(action)) for action in Action}
        action = _cases(choice, clauses, actions, otherwise=str(int(Action.KEEP)))
        chosen += [f"{key} AS {KEY}", f"{action}::TINYINT AS {ACTION}"]
        chosen += [f"{value} AS {name}" for name, value in job.items()]
        return (
            f"SELECT {', '.join(chosen)} FROM {tables} "
            f"WHERE {where} AND (({choice}) <> {_NO_CLAUSE} OR {shape.kept})"
        )

    def _rows(self, where: str = "true") -> str:
        return f"(SELECT *, true AS {_MARK} FROM {self._source.name} WHERE {where}) {SOURCE}"

    def _within(self, bounds: Mapping[str, tuple[pa.Scalar, pa.Scalar]]) -> str:
        """A condition for rows of the source whose keys are in the range of the table's keys."""
        found = ["true"]
        for pair in self._plan.pairs:
            kind = self._plan.schema.find_field(pair.target).field_type
            if pair.target in bounds and self._source.is_alike(pair.source, kind):
                low, high = (literal(end, kind) for end in bounds[pair.target])
                found.append(f"{quoted(pair.source)} BETWEEN {low} AND {high}")
        return " AND ".join(found)

    def _join(self) -> str:
        if has(self._plan.clauses, Side.TARGET_ONLY):
            return "FULL JOIN"
        return "LEFT JOIN" if has(self._plan.clauses, Side.SOURCE_ONLY) else "JOIN"

    def _pairs(self) -> list[str]:
        return [
            f"{_of(TARGET, pair.target)} = {_of(SOURCE, pair.source)}" for pair in self._plan.pairs
        ]

    def _on(self) -> list[str]:
        return [] if self._plan.on is None else [f"({self._plan.on.text}\n)"]

    def _choice(self, clauses: _Clauses, sides: Mapping[Side, str]) -> str:
        cases = ""
        for at, clause in clauses.items():
            applies = sides[clause.side]
            if clause.condition is not None:
                applies = f"{applies} AND ({clause.condition.text}\n)"
            if self._plan.only_changes and clause.action is Action.UPDATE:
                applies = f"{applies} AND ({self._differs()})"
            cases += f" WHEN {applies} THEN {at}"
        return f"CASE{cases} ELSE {_NO_CLAUSE} END" if cases else str(_NO_CLAUSE)

    def _differs(self) -> str:
        found = [
            f"{_of(SOURCE, name)} IS DISTINCT FROM {_of(TARGET, field.name)}"
            for field in self._fields
            if (name := self._source.named(field.name)) is not None
        ]
        return " OR ".join(found) or "false"

    def _value(self, field: NestedField, choice: str, clauses: _Clauses) -> str:
        kind = type_text(field.field_type)
        values = {
            at: self._update(field, clause)
            if clause.action is Action.UPDATE
            else self._insert(field, clause)
            for at, clause in clauses.items()
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


def _cases(
    choice: str, clauses: _Clauses, values: Mapping[Action, str], otherwise: str = _NULL
) -> str:
    """What a row gets by the action of the clause that was chosen for it."""
    cases = "".join(
        f" WHEN {at} THEN {values[clause.action]}"
        for at, clause in clauses.items()
        if clause.action in values
    )
    return f"CASE {choice}{cases} ELSE {otherwise} END" if cases else otherwise


def _struct(alias: str) -> str:
    """A row as a struct. The bare alias would select a column with the same name instead."""
    return f"struct_pack(*COLUMNS({alias}.*)) AS {alias}"


def _of(alias: str, name: str) -> str:
    return f"{alias}.{quoted(name)}"

"""A merge as DuckDB queries: rows that meet, the clause for each, and what becomes of them.

Where rows meet by equal keys, the rows that meet come from one query and the rows of the source
that met none from another: the first has to look at each row of the files only once, and what
metadata says and which rows are deleted matters only for those that meet. Other merges are one
query with an outer join.

Rows are called in FROM as the expressions call them, so that DuckDB finds the columns that a name
means by its own rules; columns of ours have names that no text of a user may have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import pyarrow as pa

from frazil.data.metadata_columns import LAST_UPDATED, ROW_ID
from frazil.filter.text.quotes import quoted
from frazil.filter.text.sql_values import type_text
from frazil.iceberg.types import NestedField
from frazil.rows.actions import ACTION, KEY, SOURCE_ROW, Action
from frazil.rows.duckdb.duckdb_deleted import FILE as DELETED_FILE
from frazil.rows.duckdb.duckdb_deleted import ROW as DELETED_ROW
from frazil.rows.duckdb.duckdb_scan import FILE_INDEX, ROW_NUMBER, RawRows
from frazil.rows.duckdb.duckdb_source import DuckDbSource
from frazil.rows.duckdb.duckdb_types import literal
from frazil.rows.duckdb.duckdb_values import Values
from frazil.rows.engine import Constant, MergeClause, MergePlan, Value
from frazil.rows.merge_clauses import WRITES, Side, has, updates
from frazil.value_classes import dataclass

_MARK: Final = "__frazil_mark"
_CHOICE: Final = "__frazil_choice"
_MADE: Final = "__frazil_made"
_KEPT: Final = "__frazil_kept"
_DELETED: Final = "__frazil_deleted"
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

    def __init__(
        self, plan: MergePlan, source: DuckDbSource, values: Values, *, target_rows: int
    ) -> None:
        """`target_rows` says how many rows the files of the table have."""
        self._plan = plan
        self._source = source
        self._values = values
        self._fields = plan.schema.fields
        self._has_small_source = source.num_rows <= target_rows

    @property
    def is_guarded(self) -> bool:
        """Whether deleted rows must not be seen: expressions may fail on their values."""
        return bool(self._plan.expressions)

    @property
    def disabled_optimizers(self) -> tuple[str, ...]:
        """Optimizers that would change which side of the join is hashed. Both sides' rows are known
        here, DuckDB only guesses them; but the joins of subqueries need its order."""
        if any(text.has_query for text in self._plan.expressions):
            return ()
        return "join_order", "build_side_probe_side"

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
        key, mark = self._target(KEY), self._from_source(_MARK)
        matched = f"{key} IS NOT NULL AND {mark} IS NOT NULL"
        on = [*self._pairs(), *self._on()]
        shape = _Shape(
            tables=self._joined(self._rows(), self._table(target), on),
            sides={
                Side.MATCHED: matched,
                Side.SOURCE_ONLY: f"{key} IS NULL",
                Side.TARGET_ONLY: f"{mark} IS NULL",
            },
            kept=matched,  # they must not match twice
            key=key,
            row_id=self._target(ROW_ID.name),
        )
        job = {SOURCE_ROW: self._from_source(SOURCE_ROW)} if self.counts_sources else {}
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
                f" LEFT JOIN {deleted} {_DELETED} ON {DELETED_FILE} = {self._target(FILE_INDEX)} "
                f"AND {DELETED_ROW} = {self._target(ROW_NUMBER)}"
            )
            on, left = self._pairs(), " AND ".join(self._on()) or "true"
            where = f"CASE WHEN {DELETED_FILE} IS NULL THEN {left} ELSE false END"
        source = self._rows(self._within(target.bounds))
        met = self._joined(source, self._table(target.rows), on, is_inner=True)
        shape = _Shape(
            tables=f"{met}{later}",
            sides={Side.MATCHED: "true"},
            kept="true",
            key=self._target(ROW_NUMBER),
            row_id=self._target(ROW_ID.name),
            where=where,
        )
        job = {SOURCE_ROW: self._from_source(SOURCE_ROW), FILE_INDEX: self._target(FILE_INDEX)}
        return self._text(shape, job, fields)

    def unmet(self, met: str) -> str:
        """Rows of the source without a match; `met` names a table of the others' numbers."""
        rows = f"SELECT * FROM {self._source.name} ANTI JOIN {met} USING ({SOURCE_ROW})"
        shape = _Shape(
            tables=self._values.named(rows, self._plan.source),
            sides={Side.SOURCE_ONLY: "true"},
            kept="false",
        )
        return self._text(shape, {SOURCE_ROW: self._from_source(SOURCE_ROW)}, self._fields)

    def _text(self, shape: _Shape, job: Mapping[str, str], fields: Sequence[NestedField]) -> str:
        clauses = {
            at: clause for at, clause in enumerate(self._plan.clauses) if clause.side in shape.sides
        }
        if any(clause.condition is not None for clause in clauses.values()):
            return self._chosen_once(shape, clauses, job, fields)
        choice = self._choice(clauses, shape.sides)
        values = [self._value(field, choice, clauses) for field in fields]
        outputs = self._outputs(clauses, choice, shape.key, shape.row_id, values, fields)
        outputs += [f"{value} AS {name}" for name, value in job.items()]
        return (
            f"SELECT {', '.join(outputs)} FROM {shape.tables} "
            f"WHERE {shape.where} AND (({choice}) <> {_NO_CLAUSE} OR {shape.kept})"
        )

    def _chosen_once(
        self,
        shape: _Shape,
        clauses: _Clauses,
        job: Mapping[str, str],
        fields: Sequence[NestedField],
    ) -> str:
        """Where clauses have conditions, one expression both chooses the clause and makes its
        values: each condition is evaluated once for a row, `random() < 0.5` too, and values only
        where their clause applies."""
        row_id = shape.row_id if updates(clauses.values()) else _NULL
        noted = {KEY: shape.key, quoted(ROW_ID.name): row_id, _KEPT: shape.kept, **job}
        inner = [f"{value} AS {name}" for name, value in noted.items()]
        inner.append(f"{self._new_values(clauses, shape.sides, fields)} AS {_MADE}")
        choice = f"coalesce({_part(_CHOICE)}, {_NO_CLAUSE})"
        values = [_part(f"c{at}") for at in range(len(fields))]
        if not _writes(clauses):
            values = [f"CAST(NULL AS {type_text(field.field_type)})" for field in fields]
        outputs = self._outputs(clauses, choice, KEY, quoted(ROW_ID.name), values, fields)
        return (
            f"SELECT {', '.join([*outputs, *job])} FROM (SELECT {', '.join(inner)} "
            f"FROM {shape.tables} WHERE {shape.where}) "
            f"WHERE {choice} <> {_NO_CLAUSE} OR {_KEPT}"
        )

    def _new_values(
        self, clauses: _Clauses, sides: Mapping[Side, str], fields: Sequence[NestedField]
    ) -> str:
        """The number of the clause for a row, with the values that the clause gives it."""
        cases = ""
        for at, clause in clauses.items():
            parts = [f"{_CHOICE} := {at if clause.action is not Action.KEEP else _NO_CLAUSE}"]
            for number, field in enumerate(fields) if _writes(clauses) else ():
                value = self._new(field, clause) if clause.action in WRITES else "NULL"
                parts.append(f"c{number} := CAST({value} AS {type_text(field.field_type)})")
            cases += f" WHEN {self._applies(clause, sides)} THEN struct_pack({', '.join(parts)})"
        return f"CASE{cases} END"

    def _outputs(
        self,
        clauses: _Clauses,
        choice: str,
        key: str,
        row_id: str,
        values: Sequence[str],
        fields: Sequence[NestedField],
    ) -> list[str]:
        outputs = [
            f"{value} AS {quoted(field.name)}" for value, field in zip(values, fields, strict=True)
        ]
        if self.has_updates:
            moved = _cases(choice, clauses, {Action.UPDATE: row_id})
            outputs += [f"{moved} AS {quoted(ROW_ID.name)}", f"{_NULL} AS {LAST_UPDATED.name}"]
        actions = {action: str(int(action)) for action in Action}
        action = _cases(choice, clauses, actions, otherwise=str(int(Action.KEEP)))
        return [*outputs, f"{key} AS {KEY}", f"{action}::TINYINT AS {ACTION}"]

    def _rows(self, where: str = "true") -> str:
        rows = f"SELECT *, true AS {_MARK} FROM {self._source.name} WHERE {where}"
        return self._values.named(rows, self._plan.source)

    def _table(self, rows: str) -> str:
        return self._values.named(rows, self._plan.target)

    def _within(self, bounds: Mapping[str, tuple[pa.Scalar, pa.Scalar]]) -> str:
        """A condition for rows of the source whose keys are in the range of the table's keys."""
        conditions = ["true"]
        for pair in self._plan.pairs:
            kind = self._plan.schema.find_field(pair.target).field_type
            if pair.target in bounds and self._source.is_alike(pair.source, kind):
                low, high = (literal(end, kind) for end in bounds[pair.target])
                conditions.append(f"{quoted(pair.source)} BETWEEN {low} AND {high}")
        return " AND ".join(conditions)

    def _joined(
        self, source: str, target: str, on: Sequence[str], *, is_inner: bool = False
    ) -> str:
        """The rows of both sides, the side with fewer of them on the right, where it is hashed."""
        has_source_only = has(self._plan.clauses, Side.SOURCE_ONLY)
        if has(self._plan.clauses, Side.TARGET_ONLY):
            join = "FULL"
        elif is_inner or not has_source_only:
            join = "INNER"
        else:
            join = "RIGHT" if self._has_small_source else "LEFT"
        left, right = (target, source) if self._has_small_source else (source, target)
        return f"{left} {join} JOIN {right} {self._where_met(on)}"

    def _pairs(self) -> list[str]:
        return [
            f"{self._target(pair.target)} = {self._from_source(pair.source)}"
            for pair in self._plan.pairs
        ]

    def _where_met(self, on: Sequence[str]) -> str:
        """The condition of a join."""
        if not self._plan.is_using:
            return f"ON {' AND '.join(on)}"
        return f"USING ({', '.join(quoted(pair.target) for pair in self._plan.pairs)})"

    def _on(self) -> list[str]:
        return [] if self._plan.on is None else [f"({self._plan.on.text}\n)"]

    def _choice(self, clauses: _Clauses, sides: Mapping[Side, str]) -> str:
        """The number of the clause for a row."""
        cases = "".join(
            f" WHEN {self._applies(clause, sides)} THEN "
            f"{at if clause.action is not Action.KEEP else _NO_CLAUSE}"
            for at, clause in clauses.items()
        )
        return f"CASE{cases} ELSE {_NO_CLAUSE} END" if cases else str(_NO_CLAUSE)

    def _applies(self, clause: MergeClause, sides: Mapping[Side, str]) -> str:
        applies = sides[clause.side]
        if clause.condition is not None:
            applies = f"{applies} AND ({clause.condition.text}\n)"
        if self._plan.only_changes and clause.action is Action.UPDATE:
            applies = f"{applies} AND ({self._differs()})"
        return applies

    def _differs(self) -> str:
        conditions = [
            f"{self._from_source(name)} IS DISTINCT FROM {self._target(field.name)}"
            for field in self._fields
            if (name := self._source.named(field.name)) is not None
        ]
        return " OR ".join(conditions) or "false"

    def _value(self, field: NestedField, choice: str, clauses: _Clauses) -> str:
        kind = type_text(field.field_type)
        values = {
            at: self._new(field, clause)
            for at, clause in clauses.items()
            if clause.action in WRITES
        }
        if self._plan.only_changes and len(set(values.values())) == 1:
            # Rows that no clause is for are not written, whatever stands in their columns; those
            # of an upsert have the table's types, so that nothing can fail.
            return f"CAST({next(iter(values.values()))} AS {kind})"
        cases = "".join(f" WHEN {at} THEN CAST({new} AS {kind})" for at, new in values.items())
        return f"CASE {choice}{cases} END" if cases else f"CAST(NULL AS {kind})"

    def _new(self, field: NestedField, clause: MergeClause) -> str:
        """What a clause writes into a column."""
        if clause.action is Action.UPDATE:
            return self._update(field, clause)
        return self._insert(field, clause)

    def _update(self, field: NestedField, clause: MergeClause) -> str:
        old = self._target(field.name)
        if clause.values is not None:
            return self._values.assigned(field, old, clause.values)
        name = self._source.named(field.name)
        return old if name is None else self._from_source(name)

    def _insert(self, field: NestedField, clause: MergeClause) -> str:
        values: Mapping[tuple[str, ...], Value] = clause.values or {}
        if (field.name,) in values:
            return self._values.value(values[(field.name,)], field.field_type, field.name)
        name = self._source.named(field.name) if clause.values is None else None
        if name is not None:
            return self._from_source(name)
        default = Constant(value=field.write_default)
        return self._values.value(default, field.field_type, field.name)

    def _target(self, name: str) -> str:
        return f"{self._plan.target}.{quoted(name)}"

    def _from_source(self, name: str) -> str:
        return f"{self._plan.source}.{quoted(name)}"


def _cases(
    choice: str, clauses: _Clauses, values: Mapping[Action, str], otherwise: str = _NULL
) -> str:
    """What a row gets by the action of the clause that was chosen for it."""
    cases = "".join(
        f" WHEN {at} THEN {values[clause.action]}"
        for at, clause in clauses.items()
        if clause.action in values and clause.action is not Action.KEEP
    )
    return f"CASE {choice}{cases} ELSE {otherwise} END" if cases else otherwise


def _writes(clauses: _Clauses) -> bool:
    return any(clause.action in WRITES for clause in clauses.values())


def _part(name: str) -> str:
    return f"struct_extract({_MADE}, '{name}')"

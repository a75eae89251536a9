"""The rows of a merge as Spark frames: which rows meet, which clause applies, what becomes of them.

A small source is broadcast: the table's rows stream past it, and the source rows that none of them
met are inserted afterwards. Otherwise both sides are joined as Spark sees fit. The table's rows go
by the alias `t`, the source's by `s`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as sql

from frazil.data.metadata_columns import LAST_UPDATED, ROW_ID
from frazil.filter.text.sql_text import SOURCE, TARGET
from frazil.format.values.types import plain_value
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import NestedField
from frazil.rows.actions import ACTION, KEY, SOURCE_ROW, Action, SinkResult
from frazil.rows.merge_clauses import Clause, Side, has, updates
from frazil.spark.expressions.conditions import literal, quoted
from frazil.spark.rows.changed_rows import Condition
from frazil.spark.rows.new_values import Paths, assigned
from frazil.spark.rows.sql_expressions import HeldExpression, SqlExpressions, cast, fitted
from frazil.spark.types.spark_types import spark_type
from frazil.spark.write.sinks import sources_met
from frazil.value_classes import dataclass

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from frazil.spark.rows.merge_source import SparkSource

Then: TypeAlias = "Callable[[list[SinkResult]], tuple[DataFrame, int] | None]"
"""Makes a second frame, and how many rows it has at most, from the results of a first."""
_CHOICE: Final = "__frazil_choice"
_MAX_BROADCAST: Final = 1_000_000
"""Rows of a source that are broadcast; about 100 MB at most."""


SparkClause: TypeAlias = Clause[Condition | HeldExpression, Paths]


@dataclass(frozen=True, kw_only=True)
class MergeFrames:
    """A merge of a source into rows of a table."""

    schema: Schema
    rows: DataFrame
    source: SparkSource
    on: Column
    clauses: Sequence[SparkClause]
    only_changes: bool = False
    """Whether an update that changes no column is left out."""
    held: Any = None
    """Java's list of the expressions of a statement."""

    def frames(self) -> tuple[DataFrame, Then | None]:
        """Rows with actions; and, where the rest of the source is known only after them, what
        makes a frame of it from the results."""
        table, source = self.rows.alias(TARGET), self._aliased()
        if has(self.clauses, Side.TARGET_ONLY) or self.source.num_rows > _MAX_BROADCAST:
            return self._decided(source.join(table, self.on, self._kind())), None
        met = table.join(F.broadcast(source), self.on, "inner")
        then = self._unmet if has(self.clauses, Side.SOURCE_ONLY) else None
        return self._decided(met, sides=(Side.MATCHED,)), then

    def _unmet(self, results: list[SinkResult]) -> tuple[DataFrame, int] | None:
        """The source rows that no row of the table met, to be inserted, and how many they are."""
        met = sources_met(results)
        if len(met) == self.source.num_rows:
            return None
        left = source = self._aliased()
        if len(met):
            ids = pa.table({"id": pa.array(met)})
            gone = source.sparkSession.createDataFrame(ids)
            number = F.col(quoted(SOURCE_ROW, alias=SOURCE))
            left = source.join(F.broadcast(gone), number == gone["id"], "left_anti")
        rest = self._decided(left.alias(SOURCE), sides=(Side.SOURCE_ONLY,))
        return rest, self.source.num_rows - len(met)

    def _aliased(self) -> DataFrame:
        return self.source.frame.alias(SOURCE)

    def _kind(self) -> str:
        if has(self.clauses, Side.TARGET_ONLY):
            return "full"
        return "left" if has(self.clauses, Side.SOURCE_ONLY) else "inner"

    # What becomes of them

    def _decided(self, joined: DataFrame, sides: tuple[Side, ...] = tuple(Side)) -> DataFrame:
        texts = SqlExpressions(joined, self.held)
        clauses = [clause for clause in self.clauses if clause.side in sides]
        # With one side, which rows exist is known; a join's null rows tell them apart otherwise.
        is_one = len(sides) == 1
        in_target = _truth(sides[0] is Side.MATCHED) if is_one else _exists(KEY, TARGET)
        in_source = "true" if is_one else _exists(SOURCE_ROW, SOURCE)
        holds = {
            Side.MATCHED: f"({in_target} AND {in_source})",
            Side.SOURCE_ONLY: f"(NOT {in_target})",
            Side.TARGET_ONLY: f"(NOT {in_source})",
        }
        whens = [
            f"WHEN {self._applies(clause, holds[clause.side], texts)} THEN {at}"
            for at, clause in enumerate(clauses)
        ]
        choice = f"CASE {' '.join(whens)} ELSE -1 END" if whens else "-1"
        has_target = sides != (Side.SOURCE_ONLY,)
        action = _by_choice([str(int(clause.action)) for clause in clauses], str(int(Action.KEEP)))
        columns = [(field.name, self._value(field, clauses, texts)) for field in self.schema.fields]
        if updates(self.clauses):
            row_id = quoted(ROW_ID.name, alias=TARGET) if has_target else "NULL"
            updated = f"CASE WHEN {action} = {int(Action.UPDATE)} THEN {row_id} END"
            columns += [
                (ROW_ID.name, f"CAST({updated} AS BIGINT)"),
                (LAST_UPDATED.name, "CAST(NULL AS BIGINT)"),
            ]
        key = quoted(KEY, alias=TARGET) if has_target else "CAST(NULL AS BIGINT)"
        columns += [(KEY, key), (ACTION, action)]
        if sides == (Side.MATCHED,) or (self.only_changes and has_target):
            columns.append((SOURCE_ROW, quoted(SOURCE_ROW, alias=SOURCE)))
        # Rows that matched are kept even where no clause applies: they must not match twice.
        where = f"{_CHOICE} >= 0 OR {holds[Side.MATCHED]}"
        return texts.selected(columns, extra=(_CHOICE, choice), where=where)

    def _applies(self, clause: SparkClause, holds: str, texts: SqlExpressions) -> str:
        if clause.condition is not None:
            holds = f"{holds} AND {texts.condition(clause.condition, holds)}"
        if self.only_changes and clause.action is Action.UPDATE:
            holds = f"{holds} AND ({self._differs()})"
        return holds

    def _differs(self) -> str:
        columns = ((field.name, self._fitted_source_column(field)) for field in self.schema.fields)
        parts = [
            f"NOT ({theirs} <=> {quoted(name, alias=TARGET)})"
            for name, theirs in columns
            if theirs is not None
        ]
        return " OR ".join(parts) or "false"

    def _value(self, field: NestedField, clauses: list[SparkClause], texts: SqlExpressions) -> str:
        kind = spark_type(field.field_type)
        empty = cast("NULL", kind)
        values = []
        for at, clause in enumerate(clauses):
            guard = f"{_CHOICE} = {at}"
            if clause.action is Action.DELETE:
                values.append(empty)
            elif clause.action is Action.UPDATE:
                values.append(self._update(field, clause, texts, guard))
            else:
                values.append(self._insert(field, clause, texts, guard, kind))
        return _by_choice(values, empty)

    def _update(
        self, field: NestedField, clause: SparkClause, texts: SqlExpressions, guard: str
    ) -> str:
        old = quoted(field.name, alias=TARGET)
        if clause.values is not None:
            return assigned(old, field, clause.values, texts, guard)
        return self._fitted_source_column(field) or old

    def _insert(
        self,
        field: NestedField,
        clause: SparkClause,
        texts: SqlExpressions,
        guard: str,
        kind: sql.DataType,
    ) -> str:
        if clause.values is not None:
            if (field.name,) in clause.values:
                return texts.fitting(clause.values[(field.name,)], kind, guard, field.name)
        elif (value := self._fitted_source_column(field)) is not None:
            return value
        if field.write_default is None:
            return cast("NULL", kind)
        default = literal(plain_value(field.write_default, field.field_type), field.field_type)
        return cast(texts.value(default, guard), kind)

    def _fitted_source_column(self, field: NestedField) -> str | None:
        """The source's column of the same name, as one of the table's type."""
        own = self.source.named(field.name)
        if own is None:
            return None
        source_type = self.source.frame.schema[own].dataType
        text = quoted(own, alias=SOURCE)
        return fitted(text, source_type, spark_type(field.field_type), field.name)


def _exists(name: str, alias: str) -> str:
    return f"({quoted(name, alias=alias)} IS NOT NULL)"


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _by_choice(values: list[str], otherwise: str) -> str:
    """The value of the clause that was chosen."""
    whens = [f"WHEN {_CHOICE} = {at} THEN {value}" for at, value in enumerate(values)]
    return f"CASE {' '.join(whens)} ELSE {otherwise} END" if whens else otherwise

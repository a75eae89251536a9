"""The rows of a merge as Spark frames: which rows meet, which clause applies, what becomes of them.

A small source is broadcast: the table's rows stream past it, and the source rows that none of them
met are inserted afterwards. Otherwise both sides are joined as Spark sees fit. The table's rows go
by the alias `t`, the source's by `s`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from frazil.data.metadata_columns import LAST_UPDATED, ROW_ID
from frazil.expr.sql_text import SOURCE, TARGET
from frazil.format.types import plain
from frazil.rows.actions import ACTION, KEY, SOURCE_ROW, Action, SinkResult
from frazil.rows.engine import Side
from frazil.spark.conditions import literal, quoted, value_of
from frazil.spark.sinks import sources_met
from frazil.spark.spark_types import spark_type
from frazil.spark.target import Condition
from frazil.spark.update import Paths, assigned

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from frazil.spark.merge_source import SparkSource

Then: TypeAlias = "Callable[[list[SinkResult]], tuple[DataFrame, int] | None]"
"""Makes a second frame, and how many rows it has at most, from the results of a first."""
_CHOICE: Final = "__frazil_choice"
_MOST_BROADCAST: Final = 1_000_000
"""Rows of a source that are broadcast; about 100 MB at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """What to do with some rows. `values` None takes every column from the source by name."""

    side: Side
    action: Action
    condition: Condition | None = None
    values: Paths | None = None


@dataclass(frozen=True, kw_only=True)
class MergeFrames:
    """A merge of a source into rows of a table."""

    schema: Schema
    rows: DataFrame
    source: SparkSource
    on: Column
    clauses: Sequence[Clause]
    only_changes: bool = False
    """Whether an update that changes no column is left out."""

    @property
    def updates(self) -> bool:
        """Whether rows live on in new files."""
        return any(clause.action is Action.UPDATE for clause in self.clauses)

    def frames(self) -> tuple[DataFrame, Then | None]:
        """Rows with actions; and, where the rest of the source is known only after them, what
        makes a frame of it from the results."""
        table, source = self.rows.alias(TARGET), self._aliased()
        if self._has(Side.TARGET_ONLY) or self.source.num_rows > _MOST_BROADCAST:
            return self._decided(source.join(table, self.on, self._kind())), None
        met = table.join(F.broadcast(source), self.on, "inner")
        then = self._unmet if self._has(Side.SOURCE_ONLY) else None
        return self._decided(met, sides=(Side.MATCHED,)), then

    def _unmet(self, results: list[SinkResult]) -> tuple[DataFrame, int] | None:
        """The source rows that no row of the table met, to be inserted, and how many they are."""
        met = sources_met(results)
        if len(met) == self.source.num_rows:
            return None
        left = source = self._aliased()
        if len(met):
            ids = pa.table({"id": pa.array(met.to_array(), pa.int64())})
            gone = source.sparkSession.createDataFrame(ids)
            number = F.col(quoted(SOURCE_ROW, alias=SOURCE))
            left = source.join(F.broadcast(gone), number == gone["id"], "left_anti")
        rest = self._decided(left.alias(SOURCE), sides=(Side.SOURCE_ONLY,))
        return rest, self.source.num_rows - len(met)

    def _aliased(self) -> DataFrame:
        return self.source.frame.alias(SOURCE)

    def _has(self, side: Side) -> bool:
        return any(clause.side is side for clause in self.clauses)

    def _kind(self) -> str:
        if self._has(Side.TARGET_ONLY):
            return "full"
        return "left" if self._has(Side.SOURCE_ONLY) else "inner"

    # What becomes of them

    def _decided(self, joined: DataFrame, sides: tuple[Side, ...] = tuple(Side)) -> DataFrame:
        clauses = [clause for clause in self.clauses if clause.side in sides]
        is_one = len(sides) == 1
        in_target = F.lit(sides[0] is Side.MATCHED) if is_one else _exists(KEY, TARGET)
        in_source = F.lit(True) if is_one else _exists(SOURCE_ROW, SOURCE)
        holds = {
            Side.MATCHED: in_target & in_source,
            Side.SOURCE_ONLY: ~in_target,
            Side.TARGET_ONLY: ~in_source,
        }
        choice = F.lit(-1)
        for at, clause in reversed(list(enumerate(clauses))):
            choice = F.when(self._applies(clause, holds[clause.side]), F.lit(at)).otherwise(choice)
        chosen = joined.withColumn(_CHOICE, choice)
        # Rows that matched are kept even where no clause applies: they must not match twice.
        chosen = chosen.filter((F.col(_CHOICE) >= 0) | holds[Side.MATCHED])
        has_target = sides != (Side.SOURCE_ONLY,)
        action = _by_choice([F.lit(int(each.action)) for each in clauses], F.lit(int(Action.KEEP)))
        columns = [self._value(each, clauses).alias(each.name) for each in self.schema.fields]
        if self.updates:
            row_id = F.col(quoted(ROW_ID.name, alias=TARGET)) if has_target else F.lit(None)
            columns += [
                F.when(action == int(Action.UPDATE), row_id).cast("long").alias(ROW_ID.name),
                F.lit(None).cast("long").alias(LAST_UPDATED.name),
            ]
        key = F.col(quoted(KEY, alias=TARGET)) if has_target else F.lit(None).cast("long")
        columns += [key.alias(KEY), action.alias(ACTION)]
        if sides == (Side.MATCHED,) or (self.only_changes and has_target):
            columns.append(F.col(quoted(SOURCE_ROW, alias=SOURCE)).alias(SOURCE_ROW))
        return chosen.select(*columns)

    def _applies(self, clause: Clause, holds: Column) -> Column:
        if clause.condition is not None:
            holds = holds & _column(clause.condition)
        if self.only_changes and clause.action is Action.UPDATE:
            holds = holds & self._differs()
        return holds

    def _differs(self) -> Column:
        made = F.lit(False)
        for field in self.schema.fields:
            found = self._source_column(field.name)
            if found is not None:
                made = made | ~found.eqNullSafe(F.col(quoted(field.name, alias=TARGET)))
        return made

    def _value(self, field: NestedField, clauses: list[Clause]) -> Column:
        kind = spark_type(field.field_type)
        empty = F.lit(None).cast(kind)
        values = []
        for clause in clauses:
            if clause.action is Action.DELETE:
                values.append(empty)
            elif clause.action is Action.UPDATE:
                values.append(self._update(field, clause).cast(kind))
            else:
                values.append(self._insert(field, clause).cast(kind))
        return _by_choice(values, empty)

    def _update(self, field: NestedField, clause: Clause) -> Column:
        old = F.col(quoted(field.name, alias=TARGET))
        if clause.values is not None:
            return assigned(old, field.name, clause.values)
        found = self._source_column(field.name)
        return old if found is None else found

    def _insert(self, field: NestedField, clause: Clause) -> Column:
        if clause.values is not None:
            if (field.name,) in clause.values:
                return value_of(clause.values[(field.name,)])
        elif (found := self._source_column(field.name)) is not None:
            return found
        if field.write_default is None:
            return F.lit(None)
        return literal(plain(field.write_default, field.field_type), field.field_type)

    def _source_column(self, name: str) -> Column | None:
        found = self.source.named(name)
        return None if found is None else F.col(quoted(found, alias=SOURCE))


def _exists(name: str, alias: str) -> Column:
    return F.col(quoted(name, alias=alias)).isNotNull()


def _column(given: Condition) -> Column:
    return given if isinstance(given, Column) else F.expr(given)


def _by_choice(values: list[Column], otherwise: Column) -> Column:
    """The value of the clause that was chosen."""
    if len(values) == 1:
        return F.when(F.col(_CHOICE) == 0, values[0]).otherwise(otherwise)
    made = otherwise
    for at, value in enumerate(values):
        made = F.when(F.col(_CHOICE) == at, value).otherwise(made)
    return made

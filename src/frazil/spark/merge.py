"""Merge a frame into a table: matched rows are updated or deleted, others inserted; one snapshot.

The builder only collects clauses. Executing it joins the rows of the table that the source can
reach with the source, decides row by row which clause applies, and hands the rows to `row_level`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.types import NestedField
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from frazil.commit.change import Isolation
from frazil.commit.result import CommitResult
from frazil.data.metadata_columns import LAST_UPDATED, ROW_ID
from frazil.errors import InvalidInput
from frazil.format.types import plain
from frazil.rows.editor import MERGE_ISOLATION
from frazil.rows.planned import Planned
from frazil.spark import native
from frazil.spark.conditions import literal
from frazil.spark.merge_keys import KeyPair, pairs_of, reach
from frazil.spark.row_level import (
    ACTION,
    KEY,
    Action,
    RowLevelJob,
    explained,
    quoted,
    value_of,
)
from frazil.spark.session import CatalogLike, table_of
from frazil.spark.spark_types import spark_type
from frazil.spark.update import assigned, check_columns
from frazil.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TARGET, SOURCE = "t", "s"
_MARK = "__frazil_source"
_CHOICE = "__frazil_choice"
Condition: TypeAlias = str | Column | None


class Side(Enum):
    """Which rows a clause is for."""

    MATCHED = "matched"
    SOURCE_ONLY = "not matched"
    TARGET_ONLY = "not matched by source"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """What to do with some rows. `values` None takes every column from the source by name."""

    side: Side
    action: Action
    condition: Condition = None
    values: Mapping[str, Any] | None = None


def merge(
    target: Table | str,
    source: DataFrame,
    on: str | Column | Sequence[str],
    *,
    catalog: CatalogLike | None = None,
) -> Merge:
    """Begin a merge. `on` names key columns that both sides have, or is a condition over the
    aliases `t` (the table) and `s` (the source).

    >>> frazil.spark.merge(orders, changes, on=["id"]).upsert().execute()  # doctest: +SKIP
    """
    found = table_of(source.sparkSession, target, catalog)
    if not isinstance(on, str | Column) and not on:
        raise InvalidInput("merge needs a condition or key columns: on=['id']")
    return Merge(table=found, source=source, on=on if isinstance(on, str | Column) else tuple(on))


@dataclass(frozen=True, kw_only=True)
class Merge:
    """A merge being put together: every method returns a longer one, `execute` carries it out.

    Of the clauses for a row the first whose condition holds applies; without one it stays.
    """

    table: Table
    source: DataFrame
    on: str | Column | tuple[str, ...]
    clauses: tuple[Clause, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)

    def when_matched_update(
        self, values: Mapping[str, Any] | None = None, *, condition: Condition = None
    ) -> Merge:
        """Give matched rows new values: `{"price": "s.price"}`; by default every column of the
        source."""
        return self._with(Side.MATCHED, Action.UPDATE, condition, values)

    def when_matched_delete(self, *, condition: Condition = None) -> Merge:
        """Delete matched rows."""
        return self._with(Side.MATCHED, Action.DELETE, condition)

    def when_not_matched_insert(
        self, values: Mapping[str, Any] | None = None, *, condition: Condition = None
    ) -> Merge:
        """Insert source rows that match nothing; by default with every column of the source."""
        return self._with(Side.SOURCE_ONLY, Action.INSERT, condition, values)

    def when_not_matched_by_source_update(
        self, values: Mapping[str, Any], *, condition: Condition = None
    ) -> Merge:
        """Give rows of the table that match nothing new values."""
        return self._with(Side.TARGET_ONLY, Action.UPDATE, condition, values)

    def when_not_matched_by_source_delete(self, *, condition: Condition = None) -> Merge:
        """Delete rows of the table that match nothing."""
        return self._with(Side.TARGET_ONLY, Action.DELETE, condition)

    def upsert(self) -> Merge:
        """Update what matches, insert what does not."""
        return self.when_matched_update().when_not_matched_insert()

    def summary(self, properties: Mapping[str, str]) -> Merge:
        """Properties for the snapshot's summary."""
        return replace(self, properties={**self.properties, **properties})

    def execute(self) -> CommitResult:
        """Carry it out as one snapshot."""
        return _Execution(self).run()

    def _with(
        self,
        side: Side,
        action: Action,
        condition: Condition,
        values: Mapping[str, Any] | None = None,
    ) -> Merge:
        if values is not None:
            check_columns(values, self.table.schema)
            if action is Action.INSERT and any("." in name for name in values):
                raise InvalidInput("an insert names whole columns, not parts of structs")
        clause = Clause(side=side, action=action, condition=condition, values=values)
        return replace(self, clauses=(*self.clauses, clause))

    def has(self, *sides: Side) -> bool:
        """Whether a clause is for one of these sides."""
        return any(clause.side in sides for clause in self.clauses)


class _Execution:
    """One run of a merge."""

    def __init__(self, merge: Merge) -> None:
        if not merge.clauses:
            raise InvalidInput("merge has no clause: say what to do, e.g. when_matched_update()")
        self._merge = merge
        self._table = merge.table
        self._table.handle.check_writable()
        self._schema = merge.table.schema
        spark = merge.source.sparkSession
        self._spark = spark
        exact = spark.conf.get("spark.sql.caseSensitive", "false") == "true"
        self._fold = (lambda name: name) if exact else str.lower
        self._source_columns = {self._fold(name): name for name in merge.source.columns}
        self._updates = any(clause.action is Action.UPDATE for clause in merge.clauses)

    def run(self) -> CommitResult:
        source = self._merge.source
        if self._merge.has(Side.TARGET_ONLY) or not self._pairs():
            return self._run(source, AlwaysTrue())
        # The keys are looked at before the rows are joined: both must be the same rows.
        level = source.storageLevel
        is_kept = level.useMemory or level.useDisk
        rows = source if is_kept else source.persist()
        try:
            return self._run(rows, reach(rows, self._pairs(), self._schema))
        finally:
            if not is_kept:
                rows.unpersist()

    def _run(self, rows: DataFrame, reached: BooleanExpression) -> CommitResult:
        with explained("merge"):
            source = rows.withColumn(_MARK, F.lit(True)).alias(SOURCE)
            scan = self._table.scan(reached)
            # Files are chosen by the range of the keys; within them the join chooses the rows.
            planned = Planned.of(scan)
            every = replace(scan, matching=AlwaysTrue())
            planned = Planned(every, planned.plan)
            target = native.frame(
                self._spark, every, metadata_columns=(ROW_ID.name,), key=KEY, planned=planned
            ).alias(TARGET)
            frame = self._rows(self._joined(source, target))
        return RowLevelJob(
            table=self._table,
            planned=planned,
            with_lineage=self._updates,
            conflict_filter=scan.filter,
            isolation=Isolation.parse(
                self._table.properties.get(MERGE_ISOLATION, Isolation.SERIALIZABLE)
            ),
            summary=self._merge.properties,
        ).run(frame)

    # Which rows meet

    def _pairs(self) -> list[KeyPair]:
        on = self._merge.on
        if isinstance(on, tuple):
            return [KeyPair(target=name, source=self._source_name(name)) for name in on]
        if isinstance(on, str):
            return pairs_of(on, self._schema, self._merge.source.columns)
        return []

    def _source_name(self, name: str) -> str:
        found: str | None = self._source_columns.get(self._fold(name))
        if found is None or name not in {field.name for field in self._schema.fields}:
            raise InvalidInput(f"key column {name!r} is not in both the table and the source")
        return found

    def _condition(self) -> Column:
        on = self._merge.on
        if isinstance(on, Column):
            return on
        if isinstance(on, str):
            return F.expr(on)
        equal = [
            F.col(quoted(pair.target, TARGET)) == F.col(quoted(pair.source, SOURCE))
            for pair in self._pairs()
        ]
        return reduce(lambda left, right: left & right, equal)

    def _joined(self, source: DataFrame, target: DataFrame) -> DataFrame:
        on = self._condition()
        if not self._merge.has(Side.MATCHED, Side.TARGET_ONLY):
            missing = source.join(target, on, "left_anti").alias(SOURCE)
            return missing.join(target.limit(0), F.lit(False), "left")
        if self._merge.has(Side.TARGET_ONLY):
            return source.join(target, on, "full")
        return source.join(target, on, "left" if self._merge.has(Side.SOURCE_ONLY) else "inner")

    # What becomes of them

    def _rows(self, joined: DataFrame) -> DataFrame:
        in_target = F.col(quoted(KEY, TARGET)).isNotNull()
        in_source = F.col(quoted(_MARK, SOURCE)).isNotNull()
        sides = {
            Side.MATCHED: in_target & in_source,
            Side.SOURCE_ONLY: ~in_target,
            Side.TARGET_ONLY: ~in_source,
        }
        choice = F.lit(-1)
        for at, clause in reversed(list(enumerate(self._merge.clauses))):
            applies = sides[clause.side]
            if clause.condition is not None:
                applies = applies & value_of(clause.condition)
            choice = F.when(applies, F.lit(at)).otherwise(choice)
        chosen = joined.withColumn(_CHOICE, choice)
        # Rows that matched are kept even where no clause applies: they must not match twice.
        chosen = chosen.filter((F.col(_CHOICE) >= 0) | sides[Side.MATCHED])
        columns = [self._value(field).alias(field.name) for field in self._schema.fields]
        if self._updates:
            is_update = self._action() == int(Action.UPDATE)
            columns += [
                F.when(is_update, F.col(quoted(ROW_ID.name, TARGET))).alias(ROW_ID.name),
                F.lit(None).cast("long").alias(LAST_UPDATED.name),
            ]
        return chosen.select(
            *columns, F.col(quoted(KEY, TARGET)).alias(KEY), self._action().alias(ACTION)
        )

    def _action(self) -> Column:
        made = F.lit(int(Action.KEEP))
        for at, clause in enumerate(self._merge.clauses):
            made = F.when(F.col(_CHOICE) == at, F.lit(int(clause.action))).otherwise(made)
        return made

    def _value(self, field: NestedField) -> Column:
        kind = spark_type(field.field_type)
        made = F.lit(None).cast(kind)
        for at, clause in enumerate(self._merge.clauses):
            if clause.action is Action.DELETE:
                continue
            new = (
                self._update(field, clause)
                if clause.action is Action.UPDATE
                else (self._insert(field, clause))
            )
            made = F.when(F.col(_CHOICE) == at, new.cast(kind)).otherwise(made)
        return made

    def _update(self, field: NestedField, clause: Clause) -> Column:
        old = F.col(quoted(field.name, TARGET))
        if clause.values is not None:
            return assigned(old, field.name, clause.values)
        found = self._source_columns.get(self._fold(field.name))
        return old if found is None else F.col(quoted(found, SOURCE))

    def _insert(self, field: NestedField, clause: Clause) -> Column:
        if clause.values is not None:
            if field.name in clause.values:
                return value_of(clause.values[field.name])
        else:
            found = self._source_columns.get(self._fold(field.name))
            if found is not None:
                return F.col(quoted(found, SOURCE))
        if field.write_default is None:
            return F.lit(None)
        return literal(plain(field.write_default, field.field_type), field.field_type)

"""One run of a merge on Spark.

A source is looked at once, before anything of the table is read: its keys say which part of the
table it can reach, its size says how to join. A small source is broadcast: the table's rows stream
past it, and the source rows that none of them met are inserted afterwards. Otherwise both sides are
joined as Spark sees fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyiceberg.types import NestedField
from pyroaring import BitMap64
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from frazil.commit.change import Isolation
from frazil.commit.result import CommitResult
from frazil.data.metadata_columns import LAST_UPDATED, ROW_ID
from frazil.errors import InvalidInput
from frazil.format.types import plain
from frazil.rows.editor import MERGE_ISOLATION
from frazil.spark.conditions import condition, explained, literal, quoted, value_of
from frazil.spark.merge_clauses import Clause, Side
from frazil.spark.merge_keys import KeyPair, Looked, looked_at, pairs_of, reach
from frazil.spark.row_level import ACTION, SOURCE, Action, RowLevelJob
from frazil.spark.scan_plan import KEY
from frazil.spark.spark_types import spark_type
from frazil.spark.target import Target
from frazil.spark.update import assigned

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from frazil.spark.merge import Merge

TABLE_ALIAS, SOURCE_ALIAS = "t", "s"
_CHOICE: Final = "__frazil_choice"
_MOST_BROADCAST: Final = 1_000_000
"""Rows of a source that are broadcast; about 100 MB at most."""


def run(merge: Merge) -> CommitResult:
    """Carry a merge out."""
    with explained("merge"), _kept(merge) as (rows, looked):
        return _Run(merge, rows, looked).run()


@contextmanager
def _kept(merge: Merge) -> Iterator[tuple[DataFrame, Looked]]:
    """The source with numbered rows, read once: what is looked at is what is joined."""
    source = merge.source
    numbered = source.withColumn(SOURCE, F.monotonically_increasing_id()).persist()
    try:
        yield numbered, looked_at(numbered, _pairs(merge), merge.table.schema)
    finally:
        numbered.unpersist()


def _pairs(merge: Merge) -> list[KeyPair]:
    if isinstance(merge.on, tuple):
        return [KeyPair(target=name, source=_source_name(merge, name)) for name in merge.on]
    if isinstance(merge.on, str):
        return pairs_of(merge.on, merge.table.schema, merge.source.columns)
    return list(merge.pairs)


def _source_columns(merge: Merge) -> dict[str, str]:
    exact = merge.source.sparkSession.conf.get("spark.sql.caseSensitive", "false") == "true"
    return {name if exact else name.lower(): name for name in merge.source.columns}


def _source_name(merge: Merge, name: str) -> str:
    known = _source_columns(merge)
    found = known.get(name) or known.get(name.lower())
    if found is None or name not in {field.name for field in merge.table.schema.fields}:
        raise InvalidInput(f"key column {name!r} is not in both the table and the source")
    return found


class _Run:
    """The frames of one run."""

    def __init__(self, merge: Merge, rows: DataFrame, looked: Looked) -> None:
        self._merge = merge
        self._looked = looked
        self._schema = merge.table.schema
        self._source = rows.alias(SOURCE_ALIAS)
        self._columns = _source_columns(merge)
        self._updates = any(clause.action is Action.UPDATE for clause in merge.clauses)
        self._target = Target.of(rows.sparkSession, merge.table, bound=merge.bound)
        found = self._target.rows
        if not merge.has(Side.TARGET_ONLY):
            within = reach(looked, merge.table.schema)
            found = found.filter(condition(within, lambda each: F.col(quoted(*each.path))))
        self._rows = found.alias(TABLE_ALIAS)

    def run(self) -> CommitResult:
        job = RowLevelJob(
            target=self._target,
            with_lineage=self._updates,
            isolation=Isolation.parse(
                self._merge.table.properties.get(MERGE_ISOLATION, Isolation.SERIALIZABLE)
            ),
            summary=self._merge.properties,
            meets_once=self._merge.has(Side.MATCHED),
        )
        if self._merge.has(Side.TARGET_ONLY) or self._looked.rows > _MOST_BROADCAST:
            return job.run(self._decided(self._joined()))
        met = self._rows.join(F.broadcast(self._source), self._condition(), "inner")
        then = self._unmet if self._merge.has(Side.SOURCE_ONLY) else None
        return job.run(self._decided(met, sides=(Side.MATCHED,)), then)

    def _unmet(self, met: BitMap64) -> DataFrame | None:
        """The source rows that no row of the table met, to be inserted."""
        if len(met) == self._looked.rows:
            return None
        spark = self._source.sparkSession
        ids = spark.createDataFrame(pa.table({"id": pa.array(met.to_array(), pa.int64())}))
        number = F.col(quoted(SOURCE, alias=SOURCE_ALIAS))
        left = self._source.join(F.broadcast(ids), number == ids["id"], "left_anti")
        return self._decided(left.alias(SOURCE_ALIAS), sides=(Side.SOURCE_ONLY,))

    # Which rows meet

    def _condition(self) -> Column:
        on = self._merge.on
        if isinstance(on, Column):
            return on
        if isinstance(on, str):
            return F.expr(on)
        equal = [
            F.col(quoted(pair.target, alias=TABLE_ALIAS))
            == F.col(quoted(pair.source, alias=SOURCE_ALIAS))
            for pair in _pairs(self._merge)
        ]
        return reduce(lambda left, right: left & right, equal)

    def _joined(self) -> DataFrame:
        if self._merge.has(Side.TARGET_ONLY):
            kind = "full"
        else:
            kind = "left" if self._merge.has(Side.SOURCE_ONLY) else "inner"
        return self._source.join(self._rows, self._condition(), kind)

    # What becomes of them

    def _decided(self, joined: DataFrame, sides: tuple[Side, ...] = tuple(Side)) -> DataFrame:
        clauses = [clause for clause in self._merge.clauses if clause.side in sides]
        is_one = len(sides) == 1
        in_target = F.lit(sides[0] is Side.MATCHED) if is_one else _exists(KEY, TABLE_ALIAS)
        in_source = F.lit(True) if is_one else _exists(SOURCE, SOURCE_ALIAS)
        holds = {
            Side.MATCHED: in_target & in_source,
            Side.SOURCE_ONLY: ~in_target,
            Side.TARGET_ONLY: ~in_source,
        }
        choice = F.lit(-1)
        for at, clause in reversed(list(enumerate(clauses))):
            applies = holds[clause.side]
            if clause.condition is not None:
                applies = applies & _column(clause.condition)
            choice = F.when(applies, F.lit(at)).otherwise(choice)
        chosen = joined.withColumn(_CHOICE, choice)
        # Rows that matched are kept even where no clause applies: they must not match twice.
        chosen = chosen.filter((F.col(_CHOICE) >= 0) | holds[Side.MATCHED])
        has_target = sides != (Side.SOURCE_ONLY,)
        action = _by_choice([F.lit(int(each.action)) for each in clauses], F.lit(int(Action.KEEP)))
        columns = [self._value(each, clauses).alias(each.name) for each in self._schema.fields]
        if self._updates:
            row_id = F.col(quoted(ROW_ID.name, alias=TABLE_ALIAS)) if has_target else F.lit(None)
            columns += [
                F.when(action == int(Action.UPDATE), row_id).cast("long").alias(ROW_ID.name),
                F.lit(None).cast("long").alias(LAST_UPDATED.name),
            ]
        key = F.col(quoted(KEY, alias=TABLE_ALIAS)) if has_target else F.lit(None).cast("long")
        columns += [key.alias(KEY), action.alias(ACTION)]
        if sides == (Side.MATCHED,):
            columns.append(F.col(quoted(SOURCE, alias=SOURCE_ALIAS)).alias(SOURCE))
        return chosen.select(*columns)

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
        old = F.col(quoted(field.name, alias=TABLE_ALIAS))
        if clause.values is not None:
            return assigned(old, field.name, clause.values)
        found = self._source_column(field.name)
        return old if found is None else found

    def _insert(self, field: NestedField, clause: Clause) -> Column:
        if clause.values is not None:
            if field.name in clause.values:
                return value_of(clause.values[field.name])
        elif (found := self._source_column(field.name)) is not None:
            return found
        if field.write_default is None:
            return F.lit(None)
        return literal(plain(field.write_default, field.field_type), field.field_type)

    def _source_column(self, name: str) -> Column | None:
        found = self._columns.get(name) or self._columns.get(name.lower())
        return None if found is None else F.col(quoted(found, alias=SOURCE_ALIAS))


def _exists(name: str, alias: str) -> Column:
    return F.col(quoted(name, alias=alias)).isNotNull()


def _column(given: str | Column) -> Column:
    return given if isinstance(given, Column) else F.expr(given)


def _by_choice(values: list[Column], otherwise: Column) -> Column:
    """The value of the clause that was chosen."""
    if len(values) == 1:
        return F.when(F.col(_CHOICE) == 0, values[0]).otherwise(otherwise)
    made = otherwise
    for at, value in enumerate(values):
        made = F.when(F.col(_CHOICE) == at, value).otherwise(made)
    return made

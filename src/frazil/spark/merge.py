"""Merge a frame into a table: matched rows are updated or deleted, others inserted; one snapshot.

The builder only collects clauses. Executing it looks at the source once, joins it with the rows of
the table that it can reach (`merge_frames`), and hands the rows to `row_level`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from frazil.commit.change import Isolation
from frazil.commit.result import CommitResult
from frazil.errors import InvalidInput
from frazil.expr.sql_text import SOURCE, TARGET
from frazil.rows.actions import Action
from frazil.rows.editor import MERGE_ISOLATION
from frazil.rows.engine import KeyPair, Side, reach
from frazil.spark.conditions import condition as column_of
from frazil.spark.conditions import explained, quoted
from frazil.spark.find_table import CatalogLike, table_of
from frazil.spark.merge_frames import Clause, MergeFrames
from frazil.spark.merge_source import SparkSource, pairs_of
from frazil.spark.row_level import RowLevelJob
from frazil.spark.target import Binding, Condition, Target
from frazil.spark.update import by_path
from frazil.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def merge(
    table: Table | str,
    source: DataFrame,
    on: str | Column | Sequence[str],
    *,
    catalog: CatalogLike | None = None,
) -> Merge:
    """Build a merge. `on` lists key columns that both sides have, or is a condition over the
    aliases `t` (the table) and `s` (the source).

    >>> frazil.spark.merge(orders, changes, on=["id"]).upsert().execute()  # doctest: +SKIP
    """
    found = table_of(source.sparkSession, table, catalog)
    if not isinstance(on, str | Column) and not on:
        raise InvalidInput("merge needs a condition or key columns: on=['id']")
    if isinstance(on, str) and on in {field.name for field in found.schema.fields}:
        on = (on,)
    return Merge(table=found, source=source, on=on if isinstance(on, str | Column) else tuple(on))


@dataclass(frozen=True, kw_only=True)
class Merge:
    """Builds a merge: each method returns a new builder with one more clause; `execute` runs it.

    For each row, the first clause whose condition holds applies; if there is none, the row is kept.
    Values are literals; `frazil.expr("s.price")` and Spark columns are expressions over `t` and
    `s`.
    """

    table: Table
    source: DataFrame
    on: str | Column | tuple[str, ...]
    clauses: tuple[Clause, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    bound: Binding | None = None
    pairs: tuple[KeyPair, ...] = ()
    """Equal columns that a condition of columns is known to ask for."""
    held: Any = None
    """Java's list of the expressions of a statement."""

    def when_matched_update(
        self, values: Mapping[str, Any] | None = None, *, condition: Condition | None = None
    ) -> Merge:
        """Update matched rows; by default, every column of the source."""
        return self._with(Side.MATCHED, Action.UPDATE, condition, values)

    def when_matched_delete(self, *, condition: Condition | None = None) -> Merge:
        """Delete matched rows."""
        return self._with(Side.MATCHED, Action.DELETE, condition)

    def when_not_matched_insert(
        self, values: Mapping[str, Any] | None = None, *, condition: Condition | None = None
    ) -> Merge:
        """Insert source rows without a match; by default, with every column of the source."""
        return self._with(Side.SOURCE_ONLY, Action.INSERT, condition, values)

    def when_not_matched_by_source_update(
        self, values: Mapping[str, Any], *, condition: Condition | None = None
    ) -> Merge:
        """Update table rows without a match in the source."""
        return self._with(Side.TARGET_ONLY, Action.UPDATE, condition, values)

    def when_not_matched_by_source_delete(self, *, condition: Condition | None = None) -> Merge:
        """Delete table rows without a match in the source."""
        return self._with(Side.TARGET_ONLY, Action.DELETE, condition)

    def upsert(self) -> Merge:
        """Update matched rows and insert the others."""
        return self.when_matched_update().when_not_matched_insert()

    def summary(self, properties: Mapping[str, str]) -> Merge:
        """Properties for the snapshot's summary."""
        return replace(self, properties={**self.properties, **properties})

    def execute(self) -> CommitResult:
        """Carry it out as one snapshot."""
        if not self.clauses:
            raise InvalidInput("merge has no clause: say what to do, e.g. when_matched_update()")
        with explained("merge"):
            source = SparkSource(self.source)
            try:
                return self._run(source)
            finally:
                source.release()

    def _run(self, source: SparkSource) -> CommitResult:
        schema = self.table.schema
        pairs = self._pairs(source)
        target = Target.of(self.source.sparkSession, self.table, bound=self.bound)
        rows = target.rows
        if not self.has(Side.TARGET_ONLY):
            within = reach(source, pairs, schema)
            rows = rows.filter(column_of(within, lambda each: F.col(quoted(*each.path))))
        merging = MergeFrames(
            schema=schema,
            rows=rows,
            source=source,
            on=self._on(pairs),
            clauses=self.clauses,
            held=self.held,
        )
        job = RowLevelJob(
            target=target,
            with_lineage=merging.updates,
            isolation=Isolation.parse(
                self.table.properties.get(MERGE_ISOLATION, Isolation.SERIALIZABLE)
            ),
            summary=self.properties,
            meets_once=self.has(Side.MATCHED),
        )
        return job.run(*merging.frames())

    def _pairs(self, source: SparkSource) -> list[KeyPair]:
        if isinstance(self.on, str):
            return pairs_of(self.on, self.table.schema, self.source.columns)
        if isinstance(self.on, Column):
            return list(self.pairs)
        names = {field.name for field in self.table.schema.fields}
        found = [(name, source.named(name)) for name in self.on]
        for name, spelled in found:
            if spelled is None or name not in names:
                raise InvalidInput(f"key column {name!r} is not in both the table and the source")
        return [KeyPair(target=name, source=str(spelled)) for name, spelled in found]

    def _on(self, pairs: Sequence[KeyPair]) -> Column:
        if isinstance(self.on, str | Column):
            return F.expr(self.on) if isinstance(self.on, str) else self.on
        equal = [
            F.col(quoted(pair.target, alias=TARGET)) == F.col(quoted(pair.source, alias=SOURCE))
            for pair in pairs
        ]
        return reduce(lambda left, right: left & right, equal)

    def _with(
        self,
        side: Side,
        action: Action,
        condition: Condition | None,
        values: Mapping[str, Any] | None = None,
    ) -> Merge:
        new = None if values is None else by_path(values, self.table.schema)
        if action is Action.INSERT and any(len(path) > 1 for path in new or ()):
            raise InvalidInput("an insert names whole columns, not parts of structs")
        clause = Clause(side=side, action=action, condition=condition, values=new)
        return replace(self, clauses=(*self.clauses, clause))

    def has(self, *sides: Side) -> bool:
        """Whether a clause is for one of these sides."""
        return any(clause.side in sides for clause in self.clauses)

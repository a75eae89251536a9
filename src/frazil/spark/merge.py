"""Merge a frame into a table: matched rows are updated or deleted, others inserted; one snapshot.

The builder only collects clauses. Executing it joins the rows of the table that the source can
reach with the source, decides row by row which clause applies, and hands the rows to `row_level`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column

from frazil.commit.result import CommitResult
from frazil.errors import InvalidInput
from frazil.spark.merge_clauses import Clause, Side
from frazil.spark.merge_keys import KeyPair
from frazil.spark.row_level import Action
from frazil.spark.session import CatalogLike, table_of
from frazil.spark.target import Binding, Condition
from frazil.spark.update import check_columns
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
        """Run the merge as one snapshot."""
        from frazil.spark.merge_run import run

        if not self.clauses:
            raise InvalidInput("merge has no clause: say what to do, e.g. when_matched_update()")
        return run(self)

    def _with(
        self,
        side: Side,
        action: Action,
        condition: Condition | None,
        values: Mapping[str, Any] | None = None,
    ) -> Merge:
        if values is not None:
            check_columns(values, self.table.schema)
            names = {field.name for field in self.table.schema.fields}
            if action is Action.INSERT and not set(values) <= names:
                raise InvalidInput("an insert names whole columns, not parts of structs")
        clause = Clause(side=side, action=action, condition=condition, values=values)
        return replace(self, clauses=(*self.clauses, clause))

    def has(self, *sides: Side) -> bool:
        """Whether a clause is for one of these sides."""
        return any(clause.side in sides for clause in self.clauses)

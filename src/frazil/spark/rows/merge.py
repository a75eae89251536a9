"""Merge a frame into a table: matched rows are updated or deleted, others inserted; one snapshot.

The builder only collects clauses. Executing it looks at the source once, joins it with the rows of
the table that it can reach (`merge_frames`), and hands the rows to `row_level`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Self

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from frazil.commit.result import CommitResult
from frazil.errors import InvalidInput
from frazil.filter.text.sql_text import SOURCE, TARGET
from frazil.properties.registry import MERGE_ISOLATION
from frazil.rows.actions import Action
from frazil.rows.engine import KeyPair, reach
from frazil.rows.merge_clauses import MergeClauses, Side, check_insert, has, may_meet_once, updates
from frazil.spark.expressions.conditions import condition as column_of
from frazil.spark.expressions.conditions import explained, quoted
from frazil.spark.options.write_terms import WriteTerms
from frazil.spark.rows.changed_rows import Binding, ChangedRows, Condition
from frazil.spark.rows.merge_frames import MergeFrames
from frazil.spark.rows.merge_source import SparkSource, pairs_of, with_source
from frazil.spark.rows.new_values import by_path
from frazil.spark.rows.overwrites import base_of_frame
from frazil.spark.rows.row_level import RowLevelJob
from frazil.spark.session.find_table import CatalogLike, table_of
from frazil.spark.session.session_bridge import refresh_cache
from frazil.table.table import Table
from frazil.value_classes import dataclass, replace

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
    opened = table_of(source.sparkSession, table, catalog)
    if not isinstance(on, str | Column) and not on:
        raise InvalidInput("merge needs a condition or key columns: on=['id']")
    if isinstance(on, str) and on in {field.name for field in opened.metadata.schema().fields}:
        on = (on,)
    return Merge(table=opened, source=source, on=on if isinstance(on, str | Column) else tuple(on))


@dataclass(frozen=True, kw_only=True)
class Merge(MergeClauses[Condition]):
    """Builds a merge: each method returns a new builder with one more clause; `execute` runs it.

    For each row, the first clause whose condition holds applies; if there is none, the row is kept.
    Values are literals; `frazil.expr("s.price")` and Spark columns are expressions over `t` and
    `s`.
    """

    table: Table
    source: DataFrame
    on: str | Column | tuple[str, ...]
    terms: WriteTerms | None = None
    bound: Binding | None = None
    metadata_columns: tuple[str, ...] = ()
    pairs: tuple[KeyPair, ...] = ()
    """Equal columns that a condition of columns is known to ask for."""
    held: Any = None
    """Java's list of the expressions of a statement."""

    def execute(self) -> CommitResult:
        """Carry it out as one snapshot."""
        self._need_clauses()
        terms = self.terms or WriteTerms(
            table=self.table, base=base_of_frame(self.table, self.source)
        )
        terms = replace(terms, summary={**terms.summary, **self.properties})
        with explained("merge"):
            result = with_source(self.source, lambda source: self._run(source, terms))
        if self.terms is None:
            refresh_cache(self.source.sparkSession, self.table)
        return result

    def _run(self, source: SparkSource, terms: WriteTerms) -> CommitResult:
        schema = self.table.metadata.schema()
        pairs = self._pairs(source)
        target = ChangedRows.of(
            self.source.sparkSession,
            self.table,
            bound=self.bound,
            scan=terms.scan(),
            metadata_columns=self.metadata_columns,
        )
        rows = target.rows
        if not has(self.clauses, Side.TARGET_ONLY):
            within = reach(source, pairs, schema)
            rows = rows.filter(column_of(within, lambda clause: F.col(quoted(*clause.path))))
        merging = MergeFrames(
            schema=schema,
            rows=rows,
            source=source,
            on=self._on(pairs),
            clauses=self.clauses,
            held=self.held,
        )
        job = RowLevelJob(
            terms=terms,
            target=target,
            with_lineage=updates(self.clauses),
            isolation=terms.level(MERGE_ISOLATION),
            meets_once=may_meet_once(self.clauses),
        )
        return job.run(*merging.frames())

    def _pairs(self, source: SparkSource) -> list[KeyPair]:
        if isinstance(self.on, str):
            return pairs_of(self.on, self.table.metadata.schema(), self.source.columns)
        if isinstance(self.on, Column):
            return list(self.pairs)
        names = {field.name for field in self.table.metadata.schema().fields}
        pairs = [(name, source.named(name)) for name in self.on]
        for name, spelled in pairs:
            if spelled is None or name not in names:
                raise InvalidInput(f"key column {name!r} is not in both the table and the source")
        return [KeyPair(target=name, source=str(spelled)) for name, spelled in pairs]

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
        values: Mapping[Any, Any] | None = None,
    ) -> Self:
        new = None if values is None else by_path(values, self.table.metadata.schema())
        check_insert(action, new or ())
        return super()._with(side, action, condition, new)

"""Row-level changes of the functions and of Spark SQL: results of a job become one commit.

What happens to rows is the algebra of `rows.actions`; conditions and values are Spark's own, and
what they prune is known once Spark has planned the job.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from frazil.commit.change import Change, Isolation, Searched
from frazil.commit.result import CommitResult
from frazil.rows.actions import Action, RowNumbers, RowSink, SinkResult
from frazil.rows.planned import Planned
from frazil.spark.expressions.pushed import Pushed
from frazil.spark.options.write_terms import WriteTerms
from frazil.spark.rows.changed_rows import ChangedRows
from frazil.spark.write.sinks import written
from frazil.spark.write.writer import commit_added, discard_entries
from frazil.table.table import Table
from frazil.value_classes import frozen, replace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from frazil.spark.rows.merge_frames import Then


@frozen
class RowLevelJob:
    """A frame of rows with actions, to be carried out on the files of a plan."""

    terms: WriteTerms
    target: ChangedRows
    with_lineage: bool
    isolation: Isolation
    meets_once: bool = True
    """Whether a row of the table may be met by one row only."""

    @property
    def table(self) -> Table:
        """The table that changes."""
        return self.target.table

    def run(self, frame: DataFrame, then: Then | None = None) -> CommitResult:
        """Carry the actions out; one snapshot.

        `then` makes a second frame, of rows to insert, once it is known what became of the first.
        """
        began = time.perf_counter()
        planned, pushed = self.target.planned(frame)
        sink = RowSink.of(
            self.table.metadata,
            storage=self.table._handle.storage,
            location=self.table.location,
            with_lineage=self.with_lineage,
        )
        results = written(frame, sink)
        try:
            if then is not None and (more := then(results)) is not None:
                rest, max_rows = more
                results += written(rest, sink, max_rows=max_rows)
            # A source row may meet many rows of the table: that is not counted here.
            outcome = SinkResult.union(
                [replace(result, sources=RowNumbers()) for result in results]
            )
            if self.meets_once:
                outcome.check()
        except BaseException:
            discard_entries(self.table, SinkResult.union(results).entries)
            raise
        result = commit_added(
            self.terms, outcome.entries, lambda: self._change(planned, pushed, outcome)
        )
        return replace(result, ms=(time.perf_counter() - began) * 1000)

    def _change(self, planned: Planned, pushed: Pushed, outcome: SinkResult) -> Change:
        removed, vectors = outcome.retired(planned)
        return Change(
            branch=self.table.branch_name,
            base_snapshot_id=planned.base_snapshot_id,
            added=outcome.entries if outcome.entries.num_rows else None,
            removed=removed,
            vectors=vectors,
            searched=(Searched(filter=pushed.expression, isolation=self.isolation),),
            rows_updated=outcome.counts.get(Action.UPDATE, 0),
        )

"""Updates that write column files: executors compute and write, the driver commits."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from frazil.commit.change import Change, Searched
from frazil.commit.loop import discard, undoing
from frazil.commit.result import CommitResult
from frazil.data.metadata_columns import POS
from frazil.properties.registry import UPDATE_ISOLATION
from frazil.rows.actions import KEY, Action, RowSink, SinkResult
from frazil.rows.columns.column_changes import cheaper_by_columns, updated_columns
from frazil.rows.columns.column_sink import ColumnSink
from frazil.rows.planned import Planned
from frazil.spark.expressions.conditions import explained
from frazil.spark.expressions.pushed import Pushed
from frazil.spark.options.write_terms import WriteTerms
from frazil.spark.rows.changed_rows import ChangedRows, Condition
from frazil.spark.rows.new_values import Paths, new_columns, updated
from frazil.spark.write.column_files import values_written
from frazil.spark.write.column_task import FILE_BASE
from frazil.spark.write.sinks import written
from frazil.spark.write.writer import commit_added
from frazil.value_classes import frozen, replace

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@frozen
class ColumnJob:
    """New values of rows, written as columns where that is asked for or less, else as rows.

    The rows of `target` have their position besides their key.
    """

    terms: WriteTerms
    target: ChangedRows
    assignments: Paths
    held: Any = None

    def run(self, where: Condition | None, *, is_auto: bool) -> CommitResult:
        """Update the rows that match; one snapshot."""
        began = time.perf_counter()
        table, rows = self.target.table, self.target.rows
        metadata = self.terms.metadata
        names = dict.fromkeys(path[0] for path in self.assignments)
        fields = [table.metadata.schema().find_field(name) for name in names]
        sink_files: list[str] = []
        with explained("update"):
            rows = rows if where is None else rows.filter(where)
            values = new_columns(rows, fields, self.assignments, held=self.held)
            planned, pushed = self.target.planned(values)
        by_columns = np.ones(planned.num_files, dtype=np.bool_)
        if is_auto:
            by_columns = cheaper_by_columns(
                planned,
                metadata,
                self.assignments,
                lambda: _touched(values, planned, is_all=where is None),
            )
        with undoing(lambda: discard(table._handle.storage, sink_files)), explained("update"):
            change = self._columns(values, planned, by_columns, sink_files)
            outcome = SinkResult.union([])
            if not by_columns.all():
                outcome = self._rows(rows, planned, by_columns)
            done = commit_added(
                self.terms,
                outcome.entries,
                lambda: self._change(change, planned, pushed, outcome),
            )
        return replace(done, ms=(time.perf_counter() - began) * 1000)

    def _columns(
        self,
        values: DataFrame,
        planned: Planned,
        by_columns: npt.NDArray[np.bool_],
        sink_files: list[str],
    ) -> Change:
        table = self.target.table
        if not by_columns.any():
            return Change(branch=table.branch_name, base_snapshot_id=planned.base_snapshot_id)
        names = dict.fromkeys(path[0] for path in self.assignments)
        sink = ColumnSink.of(
            planned,
            [table.metadata.schema().find_field(name) for name in names],
            handle=table._handle,
            metadata=self.terms.metadata,
            written=sink_files,
        )
        chosen = values if by_columns.all() else _of_files(values, planned, by_columns)
        part = planned.part(np.flatnonzero(by_columns))
        return updated_columns(table.branch_name, planned, values_written(chosen, part, sink))

    def _rows(
        self, rows: DataFrame, planned: Planned, by_columns: npt.NDArray[np.bool_]
    ) -> SinkResult:
        table = self.target.table
        sink = RowSink.of(
            self.terms.metadata, storage=table._handle.storage, location=table.location
        )
        others = _of_files(rows, planned, ~by_columns) if by_columns.any() else rows
        frame = updated(others, table.metadata.schema(), self.assignments, held=self.held)
        outcome = SinkResult.union(written(frame, sink))
        outcome.check()
        return outcome

    def _change(
        self, columns: Change, planned: Planned, pushed: Pushed, outcome: SinkResult
    ) -> Change:
        removed, vectors = outcome.retired(planned)
        isolation = self.terms.level(UPDATE_ISOLATION)
        return replace(
            columns,
            added=outcome.entries if outcome.entries.num_rows else None,
            removed=removed,
            vectors=vectors,
            searched=(Searched(filter=pushed.expression, isolation=isolation),),
            rows_updated=outcome.counts.get(Action.UPDATE, 0),
        )


def _file_base() -> Column:
    return F.col(KEY) - F.col(POS.name)


def _touched(values: DataFrame, planned: Planned, *, is_all: bool) -> npt.NDArray[np.int64]:
    """How many rows of each file get new values."""
    if is_all:
        return planned.records
    counted = values.groupBy(_file_base().alias(FILE_BASE)).count().toArrow()
    rows_by_base = dict(zip(*(column.to_pylist() for column in counted.columns), strict=True))
    return np.array([rows_by_base.get(base, 0) for base in planned.bases.tolist()], dtype=np.int64)


def _of_files(rows: DataFrame, planned: Planned, chosen: npt.NDArray[np.bool_]) -> DataFrame:
    """The rows of some files of a plan."""
    bases = pa.table({FILE_BASE: pa.array(planned.bases[chosen], pa.int64())})
    files = F.broadcast(rows.sparkSession.createDataFrame(bases))
    return rows.join(files, _file_base() == files[FILE_BASE], "left_semi")

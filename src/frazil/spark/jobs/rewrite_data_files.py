"""Rewrite data files: fewer and fuller, sorted, or in Z-order. Rows keep their ids.

Groups of files are rewritten by Spark jobs, some side by side; each lands as a `replace`. Tasks
that pack files read them with Frazil's own reader, so that rows need not pass through Spark; rows
that are sorted or partitioned again do. A file that another commit took or deleted rows of
meanwhile is a conflict: its group is dropped, and no deleted row comes back.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from pyspark import inheritable_thread_target
from pyspark.errors import PySparkException

from frazil.commit.loop import undoing
from frazil.commit.result import CommitResult
from frazil.data.metadata_columns import LAST_UPDATED, LINEAGE, ROW_ID, with_columns
from frazil.data.write.write_options import WriteOptions
from frazil.errors import CommitConflict, FrazilError, InvalidInput
from frazil.filter.text.partition_by import parse_sort_order
from frazil.format.entries.batch import EntryBatch
from frazil.iceberg.expressions import BooleanExpression
from frazil.iceberg.sorting import UNSORTED, SortOrder
from frazil.maintenance.compact import every_row, replacement
from frazil.maintenance.progress import Progress
from frazil.properties.registry import TARGET_FILE_SIZE
from frazil.rows.planned import Planned
from frazil.rows.selection import Group, Selection, current_specs, even
from frazil.rows.z_order import ZOrder
from frazil.scan.tasks import split_tasks
from frazil.spark.bridge.verbs import bridge_for
from frazil.spark.jobs.bars import progress_bars
from frazil.spark.read import bulk_reads
from frazil.spark.rows.zorder import z_order
from frazil.spark.session.executor_tasks import answers, spread
from frazil.spark.session.find_table import CatalogLike, session, table_of
from frazil.spark.session.packed_entries import unpacked
from frazil.spark.write.distribution import Distribution, distributed, order_columns
from frazil.spark.write.pack_task import PackTask, shares
from frazil.spark.write.write_task import WriteTask
from frazil.spark.write.writer import discard_entries
from frazil.table.table import Table
from frazil.text_format import counted, size
from frazil.value_classes import dataclass, field, frozen, replace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Strategy = Literal["bin-pack", "sort", "z-order"]
_Z = "__frazil_z"


@frozen
class FailedGroup:
    """Files that stayed as they were, and why."""

    locations: tuple[str, ...]
    reason: str


@frozen
class Rewritten:
    """What a rewrite of data files did."""

    snapshot_ids: tuple[int, ...] = ()
    groups: int = 0
    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    records: int = 0
    failed: tuple[FailedGroup, ...] = ()
    ms: float = 0.0

    def __str__(self) -> str:
        text = (
            f"rewrote {counted(self.files_before, 'file')} ({size(self.bytes_before)}) as "
            f"{self.files_after:,} ({size(self.bytes_after)}) in "
            f"{counted(len(self.snapshot_ids), 'commit')}, {self.ms / 1000:.1f} s"
        )
        return f"{text}; {counted(len(self.failed), 'group')} failed" if self.failed else text


def rewrite_data_files(
    table: Table | str,
    where: str | BooleanExpression | None = None,
    *,
    strategy: Strategy = "bin-pack",
    by: Sequence[str] | None = None,
    target_file_bytes: int | None = None,
    min_file_bytes: int | None = None,
    max_file_bytes: int | None = None,
    min_input_files: int = 5,
    delete_ratio: float = 0.3,
    max_group_bytes: int | None = None,
    rewrite_all: bool = False,
    partial_progress: bool = False,
    max_commits: int = 10,
    concurrent_groups: int = 2,
    catalog: CatalogLike | None = None,
    summary: Mapping[str, str] | None = None,
    progress: bool | None = None,
) -> Rewritten:
    """Rewrite the files that may hold matching rows. `by` lists the columns of a sort (`"price
    desc"`; by default the table's sort order) or of a Z-order.

    With `partial_progress`, groups are committed in up to `max_commits` commits, and a group that
    fails is left unchanged; otherwise everything is one commit.
    """
    spark = session()
    target = table_of(spark, table, catalog)
    target._handle.check_writable()
    if max_commits < 1 or concurrent_groups < 1:
        raise InvalidInput("max_commits and concurrent_groups must be above 0")
    size = target_file_bytes or WriteOptions.from_properties(target.properties).target_file_bytes
    selection = Selection(
        target_file_bytes=size,
        min_file_bytes=min_file_bytes,
        max_file_bytes=max_file_bytes,
        min_input_files=min_input_files,
        delete_ratio=delete_ratio,
        rewrite_all=rewrite_all,
    )
    if max_group_bytes is not None:
        selection = replace(selection, max_group_bytes=max_group_bytes)
    writer = _GroupWriter.of(spark, target, where, strategy, by, selection)
    if strategy != "bin-pack":
        selection = even(selection)
    job = _Job(
        writer=writer,
        groups=selection.groups(writer.planned.plan, current=current_specs(target.metadata)),
        partial=partial_progress,
        max_commits=max_commits if partial_progress else 1,
        concurrent=concurrent_groups,
        summary=dict(summary or {}),
    )
    with progress_bars(f"rewrite {target.name}", visible=progress) as report:
        return job.run(report)


@dataclass(frozen=True, kw_only=True)
class _GroupWriter:
    """Reads the rows of a group and rewrites them."""

    spark: SparkSession
    table: Table
    planned: Planned
    order: SortOrder
    is_own_order: bool
    z_columns: tuple[str, ...]
    target_file_bytes: int
    max_file_bytes: int

    @staticmethod
    def of(
        spark: SparkSession,
        table: Table,
        where: str | BooleanExpression | None,
        strategy: Strategy,
        by: Sequence[str] | None,
        selection: Selection,
    ) -> _GroupWriter:
        scan = table.scan(where)
        planned = every_row(scan)
        order, is_own = UNSORTED, False
        z_columns: tuple[str, ...] = ()
        if strategy == "sort":
            is_own = not by
            order = (
                table.metadata.sort_order()
                if is_own
                else parse_sort_order(list(by or ()), table.metadata.schema())
            )
            if not order.fields:
                raise InvalidInput("no sort columns: pass by=[…] or set the table's sort order")
        elif strategy == "z-order":
            z_columns = ZOrder.of(by or (), table.metadata.schema()).columns
        elif strategy != "bin-pack":
            raise InvalidInput(f"strategy is {strategy!r}; expected bin-pack, sort or z-order")
        elif by:
            raise InvalidInput("by= requires strategy='sort' or 'z-order'")
        return _GroupWriter(
            spark=spark,
            table=table,
            planned=planned,
            order=order,
            is_own_order=is_own,
            z_columns=z_columns,
            target_file_bytes=selection.target_file_bytes,
            max_file_bytes=selection.large_file_bytes,
        )

    def write(self, group: Group) -> EntryBatch:
        """The entries of the new files."""
        target = self._target()
        if self.order.fields or self.z_columns or group.is_stale:
            work = self._distributed(self._rows(group), group)
            results = answers(work, target.run)
        else:
            tasks = split_tasks(self.planned.tasks(group.rows), self.target_file_bytes)
            work = spread(self.spark, shares(tasks, group.outputs(self.target_file_bytes)))
            reading = replace(self.planned.reading(), schema=target.schema)
            results = answers(work, PackTask(reading=reading, target=target).run)
        return EntryBatch.concat([unpacked(answer) for answer in results])

    def _target(self) -> WriteTask:
        metadata = self.table.metadata
        task = WriteTask.of(
            metadata,
            with_columns(metadata.schema(), LINEAGE),
            storage=self.table._handle.storage,
            location=self.table.location,
        )
        sized = {**task.properties, TARGET_FILE_SIZE.key: str(self.max_file_bytes)}
        task = replace(task, properties=sized)
        if (self.order.fields and not self.is_own_order) or self.z_columns:
            return replace(task, sort_order=UNSORTED)  # rows arrive in the order asked for
        return task

    def _rows(self, group: Group) -> DataFrame:
        return bulk_reads.frame(
            self.spark,
            self.planned.scan,
            metadata_columns=(ROW_ID.name, LAST_UPDATED.name),
            planned=self.planned.part(group.rows),
            bridge=bridge_for(self.spark),
        )

    def _distributed(self, rows: DataFrame, group: Group) -> DataFrame:
        """Rows of which each file gets a range, or all that belong to its partition."""
        outputs = group.outputs(self.target_file_bytes)
        schema = self.table.metadata.schema()
        if self.z_columns:
            z = z_order(rows, self.z_columns, rows=group.records)
            wide = rows.withColumn(_Z, z).repartitionByRange(outputs, _Z)
            return wide.sortWithinPartitions(_Z).drop(_Z)
        if self.order.fields:
            by = order_columns(rows, self.order, schema)
            return rows.repartitionByRange(outputs, *by).sortWithinPartitions(*by)
        return distributed(
            rows,
            schema=schema,
            spec=self.table.metadata.spec(),
            sort_order=None,
            mode=Distribution.HASH,
        )


@frozen(eq=False)
class _Written:
    group: Group
    entries: EntryBatch


@dataclass(kw_only=True)
class _Job:
    """All groups: written side by side, committed as they come."""

    writer: _GroupWriter
    groups: list[Group]
    partial: bool
    max_commits: int
    concurrent: int
    summary: Mapping[str, str]
    commits: list[CommitResult] = field(default_factory=list)
    landed: list[_Written] = field(default_factory=list)
    failed: list[FailedGroup] = field(default_factory=list)

    def run(self, progress: Progress) -> Rewritten:
        began = time.perf_counter()
        per_commit = -(-len(self.groups) // self.max_commits) if self.groups else 1
        waiting: list[_Written] = []

        def discard_waiting() -> None:
            for written in waiting:
                discard_entries(self.writer.table, written.entries)

        with undoing(discard_waiting):
            for written in self._written(progress):
                waiting.append(written)
                if self.partial and len(waiting) >= per_commit:
                    self._commit(waiting)
                    waiting = []
            if waiting:
                self._commit(waiting)
        return self._result((time.perf_counter() - began) * 1000)

    def _written(self, progress: Progress) -> Iterator[_Written]:
        total = len(self.groups)
        progress(0, total, "groups")
        with ThreadPoolExecutor(max_workers=self.concurrent) as pool:
            # Jobs belong to the caller's job group, description and pool, in whichever thread.
            write = inheritable_thread_target(self.writer.spark)(self.writer.write)
            futures = {pool.submit(write, group): group for group in self.groups}
            try:
                for number, future in enumerate(as_completed(futures), start=1):
                    group = futures.pop(future)
                    try:
                        entries = future.result()
                    except (FrazilError, PySparkException) as error:
                        if not self.partial:
                            raise
                        self._give_up(group, error)
                    else:
                        yield _Written(group=group, entries=entries)
                    progress(number, total, "groups")
            finally:
                self._stop(futures)

    def _stop(self, futures: Mapping[Future[EntryBatch], Group]) -> None:
        """After a failure: what is still being written will not be committed."""
        for future in futures:
            if not future.cancel():
                with suppress(FrazilError, PySparkException):
                    discard_entries(self.writer.table, future.result())

    def _commit(self, written: Sequence[_Written]) -> None:
        try:
            self.commits.append(self._land(written))
        except CommitConflict as conflict:
            if not self.partial:
                raise
            if len(written) > 1:
                for part in written:
                    self._commit([part])
                return
            discard_entries(self.writer.table, written[0].entries)
            self._give_up(written[0].group, conflict)
        else:
            self.landed += written

    def _land(self, written: Sequence[_Written]) -> CommitResult:
        table = self.writer.table
        change = replacement(
            self.writer.planned,
            [part.group for part in written],
            EntryBatch.concat([part.entries for part in written]),
            branch=table.branch_name,
            summary=self.summary,
        )
        return table._handle.commit(change)

    def _give_up(self, group: Group, error: Exception) -> None:
        names = self.writer.planned.plan.files.take(group.rows).pylist("location")
        self.failed.append(FailedGroup(locations=tuple(names), reason=str(error)))

    def _result(self, ms: float) -> Rewritten:
        new = [part.entries for part in self.landed]
        return Rewritten(
            snapshot_ids=tuple(
                int(commit.snapshot.snapshot_id) for commit in self.commits if commit.snapshot
            ),
            groups=len(self.landed),
            files_before=sum(len(part.group.rows) for part in self.landed),
            files_after=sum(entries.num_rows for entries in new),
            bytes_before=sum(part.group.bytes for part in self.landed),
            bytes_after=sum(int(entries.numpy("file_size_in_bytes").sum()) for entries in new),
            records=sum(int(entries.numpy("record_count").sum()) for entries in new),
            failed=tuple(self.failed),
            ms=ms,
        )

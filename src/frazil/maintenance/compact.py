"""Data files are rewritten: fewer and fuller, sorted, or in Z-order. Rows keep their ids and ages.

Groups of files, one partition each, are written and land together as one `replace`. Files are
packed by Frazil's own reader and writer, several groups side by side; an engine sorts. A file that
another commit took or deleted rows of meanwhile is a conflict, so no deleted row comes back.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from typing import Any, Final

from frazil.commit.change import Change
from frazil.commit.handle import TableHandle
from frazil.commit.loop import discard, undoing
from frazil.commit.result import CommitResult
from frazil.data.metadata_columns import LINEAGE, with_columns
from frazil.data.write.write_files import write_rows
from frazil.data.write.write_options import WriteOptions
from frazil.errors import InvalidInput
from frazil.filter.condition import Where
from frazil.filter.text.partition_by import parse_sort_order
from frazil.format import paths
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.column_files import all_locations
from frazil.format.metadata.metadata import MAIN
from frazil.iceberg.pyiceberg_values import AnyOrder, from_pyiceberg
from frazil.iceberg.sorting import UNSORTED, SortOrder
from frazil.maintenance.progress import Progress, silent
from frazil.properties.registry import TARGET_FILE_SIZE
from frazil.rows.actions import RowSink
from frazil.rows.duckdb.duckdb_engine import DuckDbEngine
from frazil.rows.engine import Engine
from frazil.rows.planned import Planned
from frazil.rows.scan import Scan
from frazil.rows.selection import Group, Selection, current_specs, even
from frazil.rows.z_order import ZOrder
from frazil.scan.tasks import TaskReader
from frazil.threads import in_threads
from frazil.tree.locate import ADDRESS
from frazil.value_classes import dataclass, field, frozen, replace

_SIDE_BY_SIDE: Final = 4


def compact(
    handle: TableHandle,
    where: Where = None,
    *,
    branch: str,
    sort_by: Sequence[str] | AnyOrder | None = None,
    zorder_by: Sequence[str] | None = None,
    target_file_bytes: int | None = None,
    min_input_files: int = 5,
    rewrite_all: bool = False,
    merge_columns: bool = False,
    engine: Engine | None = None,
    summary: Mapping[str, str] | None = None,
    progress: Progress = silent,
) -> CommitResult:
    """Rewrite the files that may hold matching rows and are worth it; one commit or none."""
    began = time.perf_counter()
    handle.check_writable()
    metadata = handle.refresh().metadata
    options = WriteOptions.from_properties(metadata.properties, target_file_bytes=target_file_bytes)
    selection = Selection(
        target_file_bytes=options.target_file_bytes,
        min_input_files=min_input_files,
        rewrite_all=rewrite_all,
        merge_columns=merge_columns,
    )
    order = _order(handle, sort_by, zorder_by)
    planned = _planned(handle, where, branch)
    chosen = selection if order is None else even(selection)
    groups = chosen.groups(planned.plan, current=current_specs(metadata))
    if not groups:
        return CommitResult.nothing("no data file is worth rewriting")
    job = _Job(
        planned=planned,
        order=order,
        target_file_bytes=options.target_file_bytes,
        engine=engine or DuckDbEngine(),
    )
    result = _land(handle, job, groups, branch=branch, summary=summary, progress=progress)
    return replace(result, ms=(time.perf_counter() - began) * 1000)


def _land(
    handle: TableHandle,
    job: _Job,
    groups: Sequence[Group],
    *,
    branch: str,
    summary: Mapping[str, str] | None,
    progress: Progress,
) -> CommitResult:
    """Write the groups and commit them in the place of their files."""
    with undoing(lambda: discard(handle.storage, job.written)):
        with closing(job.run(groups, progress)) as written:
            entries = EntryBatch.concat(list(written))
        change = replacement(job.planned, groups, entries, branch=branch, summary=summary or {})
        return handle.commit(change)


@frozen
class WithoutDeleted:
    """Files with deleted rows, rewritten without them."""

    files: tuple[str, ...]
    rows: int
    result: CommitResult


def rewrite_without_deleted(
    handle: TableHandle,
    where: Where = None,
    *,
    branch: str,
    summary: Mapping[str, str] | None = None,
    progress: Progress = silent,
) -> WithoutDeleted:
    """Rewrite every file that may hold matching rows and has a deleted one."""
    handle.check_writable()
    metadata = handle.refresh().metadata
    target = WriteOptions.from_properties(metadata.properties).target_file_bytes
    planned = _planned(handle, where, branch)
    selection = Selection(target_file_bytes=target, only_deleted=True)
    groups = selection.groups(planned.plan, current=current_specs(metadata))
    if not groups:
        nothing = CommitResult.nothing("no data file has deleted rows")
        return WithoutDeleted(files=(), rows=0, result=nothing)
    chosen = [planned.plan.files.take(group.rows) for group in groups]
    before = sum(int(entries.numpy("record_count", missing=0).sum()) for entries in chosen)
    job = _Job(planned=planned, order=None, target_file_bytes=target, engine=DuckDbEngine())
    result = _land(handle, job, groups, branch=branch, summary=summary, progress=progress)
    names = [
        name
        for entries in chosen
        for name in (*entries.pylist("location"), *all_locations(entries).to_pylist())
    ]
    return WithoutDeleted(
        files=tuple(paths.resolve(handle.location, name) for name in names),
        rows=before - job.rows,
        result=result,
    )


@frozen
class FilesDue:
    """What `compact` would rewrite now, without options."""

    files: int
    rows: int
    bytes: int
    partitions: int


def files_due(handle: TableHandle, where: Where = None, *, branch: str = MAIN) -> FilesDue:
    """The files that `compact` would rewrite now; reads metadata alone."""
    metadata = handle.metadata
    options = WriteOptions.from_properties(metadata.properties)
    planned = _planned(handle, where, branch)
    selection = Selection(target_file_bytes=options.target_file_bytes)
    groups = selection.groups(planned.plan, current=current_specs(metadata))
    chosen = [planned.plan.files.take(group.rows) for group in groups]
    dead = sum(
        int(entries.numpy("deletion_vector.cardinality", missing=0).sum()) for entries in chosen
    )
    return FilesDue(
        files=sum(entries.num_rows for entries in chosen),
        rows=sum(int(entries.numpy("record_count", missing=0).sum()) for entries in chosen) - dead,
        bytes=sum(int(entries.numpy("file_size_in_bytes", missing=0).sum()) for entries in chosen),
        partitions=len(groups),
    )


def _planned(handle: TableHandle, where: Where, branch: str) -> Planned:
    """The files that may hold matching rows, as the table's columns of today."""
    return every_row(
        Scan(
            _handle=replace(handle),
            snapshot=handle.tip(branch),
            matching=where,
            schema_override=handle.metadata.schema(),
        )
    )


def every_row(scan: Scan) -> Planned:
    """All rows of the files that a scan's filter leaves: the filter chooses files, not rows."""
    planned = Planned.of(scan)
    return planned.seen_by(replace(scan, matching=None, params=()))


def replacement(
    planned: Planned,
    groups: Sequence[Group],
    added: EntryBatch,
    *,
    branch: str,
    summary: Mapping[str, str],
) -> Change:
    """Files of a plan make way for others with the same rows."""
    snapshot = planned.scan.snapshot
    assert snapshot is not None
    if added.num_rows:
        # Rows keep the age they were read at: later equality deletes still apply to them.
        added = added.with_constant("tracking.sequence_number", snapshot.sequence_number)
    files = planned.plan.files
    replaced = [files.take(group.rows).select(ADDRESS) for group in groups]
    return Change(
        branch=branch,
        base_snapshot_id=int(snapshot.snapshot_id),
        added=added if added.num_rows else None,
        replaced=EntryBatch.concat(replaced),
        is_rewrite=True,
        summary=summary,
    )


def _order(
    handle: TableHandle, sort_by: Sequence[str] | AnyOrder | None, zorder_by: Sequence[str] | None
) -> SortOrder | ZOrder | None:
    schema = handle.metadata.schema()
    if sort_by is not None and zorder_by is not None:
        raise InvalidInput("give sort_by or zorder_by, not both")
    if zorder_by is not None:
        names = [zorder_by] if isinstance(zorder_by, str) else zorder_by
        return ZOrder.of(names, schema)
    if sort_by is None:
        return None
    stated: Any = from_pyiceberg(sort_by)
    order = stated if isinstance(stated, SortOrder) else parse_sort_order(stated, schema)
    if not order.fields:
        raise InvalidInput("sort_by names no column; leave it out to pack files as they are")
    return order


@dataclass(kw_only=True)
class _Job:
    """Writes groups of files; `written` collects the new files as they appear."""

    planned: Planned
    order: SortOrder | ZOrder | None
    target_file_bytes: int
    engine: Engine
    written: list[str] = field(default_factory=list)
    rows: int = 0

    def run(self, groups: Sequence[Group], progress: Progress) -> Generator[EntryBatch]:
        """The entries of the new files, group by group."""
        total = sum(len(group.rows) for group in groups)
        files_read = 0
        progress(0, total, "files compacted")
        with closing(self._all(groups)) as written:
            for group, entries in zip(groups, written, strict=True):
                yield entries
                self.rows += int(entries.numpy("record_count", missing=0).sum())
                files_read += len(group.rows)
                progress(files_read, total, "files compacted")

    def _all(self, groups: Sequence[Group]) -> Generator[EntryBatch]:
        threads = 1 if self.order is not None else _SIDE_BY_SIDE  # engines use all cores
        yield from in_threads(groups, self._one, threads=threads)

    def _one(self, group: Group) -> EntryBatch:
        part = self.planned.part(group.rows)
        return self._packed(part) if self.order is None else self._sorted(part, self.order)

    def _packed(self, part: Planned) -> EntryBatch:
        scan = part.scan
        metadata = scan._handle.metadata
        schema = with_columns(metadata.schema(), LINEAGE)
        reader = TaskReader(replace(scan._reading(), schema=schema))
        return write_rows(
            reader.read_ahead(part.tasks()),
            storage=scan._handle.storage,
            location=scan._handle.location,
            schema=schema,
            spec=metadata.spec(),
            sort_order=metadata.sort_order(),
            derived=metadata.expressions,
            properties=self._properties,
            write_id=uuid.uuid4(),
            written=self.written,
        )

    def _sorted(self, part: Planned, order: SortOrder | ZOrder) -> EntryBatch:
        handle = part.scan._handle
        sink = RowSink.of(
            handle.metadata, storage=handle.storage, location=handle.location, written=self.written
        )
        # Rows arrive in order; the writer need not sort them.
        sink = replace(sink, properties=self._properties, sort_order=UNSORTED)
        files = self.engine.sorted(part, order, sink)
        entries = EntryBatch.concat([file.entries for file in files])
        table_order = handle.metadata.sort_order()
        if isinstance(order, SortOrder) and table_order.fields == order.fields and entries.num_rows:
            entries = entries.with_constant("sort_order_id", table_order.order_id)
        return entries

    @property
    def _properties(self) -> dict[str, str]:
        table_properties = self.planned.scan._handle.metadata.properties
        return {**table_properties, TARGET_FILE_SIZE.key: str(self.target_file_bytes)}

"""The part of a table that concerns its history: changes, maintenance, comparison."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self, cast

from frazil.argument_checks import check_arguments
from frazil.catalog.backend import TableName
from frazil.catalog.names import Identifier
from frazil.commit.handle import TableHandle
from frazil.errors import AlreadyExists, InvalidInput, NotFound
from frazil.format.checks import check_count
from frazil.format.metadata.metadata import RefKind, Snapshot
from frazil.maintenance.progress import or_notebook_bar
from frazil.properties.registry import NAME_MAPPING, VERIFY_CHECKSUMS
from frazil.storage import checked_location
from frazil.table import refs
from frazil.table.refs import AsOf

if TYPE_CHECKING:
    from frazil.commit.result import CommitResult
    from frazil.data.read.read_files import Reading
    from frazil.filter.condition import Where
    from frazil.iceberg.pyiceberg_values import AnyOrder
    from frazil.iceberg.schema import Schema
    from frazil.maintenance.analyze import Health
    from frazil.maintenance.check.problems import CheckReport
    from frazil.maintenance.compare import ComparedState, Comparison
    from frazil.maintenance.progress import Progress
    from frazil.maintenance.purge_deleted import Purged
    from frazil.maintenance.removal.expire import Expired
    from frazil.maintenance.removal.orphans import Orphans
    from frazil.maintenance.table_statistics import Counter, TableStatistics
    from frazil.rows.engine import Engine
    from frazil.scan.change_feed import Changes
    from frazil.table.catalog import Catalog

Moment = int | str | date | datetime | timedelta


@check_arguments
class HistoryOperations:
    """What changed, and keeping a table healthy."""

    _handle: TableHandle
    branch_name: str

    # Changes

    def changes(
        self,
        since: AsOf | None = None,
        until: AsOf | None = None,
        *,
        columns: Sequence[str] | None = None,
        collapse: bool = False,
        pair_updates: bool = True,
    ) -> Changes:
        """What changed after `since`, up to and including `until`; lazy.

        Both are snapshot ids, branches, tags or times. Without `since`, the feed starts with the
        oldest snapshot that has not expired, whose rows all count as inserted. `collapse` returns
        the net difference per row id instead of every step.

        >>> orders.changes(since="yesterday").to_arrow()                     # doctest: +SKIP
        """
        from frazil.scan.change_feed import Changes

        handle = self._handle.current().at_rest()
        if until is None:
            self._handle.note_read(self.branch_name)
        last = self._snapshot(handle, until)
        first = None if since is None else self._since(handle, since)
        chain, starts_whole = _chain(handle, first, last)
        schema = handle.metadata.schema()
        if until is not None and last is not None:
            schema = handle.metadata.schema_of(last)
        return Changes(
            _reader=handle.reader(),
            _reading=_feed_reading(handle, schema, columns),
            source=str(handle.metadata.table_uuid),
            since=first,
            snapshots=tuple(chain),
            collapse=collapse,
            pair_updates=pair_updates,
            starts_whole=starts_whole,
        )

    def snapshot(self, as_of: AsOf) -> Snapshot:
        """A snapshot by id, by the name of a branch or tag, or as of a time."""
        return refs.resolve(self._handle.current(), as_of, branch=self.branch_name)

    def _snapshot(self, handle: TableHandle, as_of: AsOf | None) -> Snapshot | None:
        """The snapshot that is meant, by default the branch's newest."""
        if as_of is None:
            return handle.tip(self.branch_name)
        return refs.resolve(handle, as_of, branch=self.branch_name)

    def _since(self, handle: TableHandle, since: AsOf) -> Snapshot | None:
        """The snapshot to start after; a time before the first one is the beginning."""
        try:
            return self._snapshot(handle, since)
        except NotFound:
            if not _is_time(since, handle):
                raise
            return None

    # Comparing and publishing

    def compare(self, other: AsOf | HistoryOperations, *, as_of: AsOf | None = None) -> Comparison:
        """The difference between this table and another snapshot, branch or table.

        >>> print(orders.compare("audit"))                                  # doctest: +SKIP
        """
        from frazil.maintenance.compare import compare

        left = self._side(as_of)
        if isinstance(other, HistoryOperations):
            return compare(left, other._side(None))
        return compare(left, self._side(other))

    def _side(self, as_of: AsOf | None) -> ComparedState:
        from frazil.maintenance.compare import ComparedState

        handle = self._handle.current().at_rest()
        snapshot = self._snapshot(handle, as_of)
        ref = handle.metadata.refs.get(as_of) if isinstance(as_of, str) else None
        is_branch = as_of is None or (ref is not None and ref.kind is RefKind.BRANCH)
        schema = handle.metadata.schema()
        if not is_branch and snapshot is not None:
            schema = handle.metadata.schema_of(snapshot)
        at = f"@{self.branch_name}" if as_of is None else f" as of {_label(as_of)}"
        return ComparedState(
            handle=handle, snapshot=snapshot, schema=schema, label=f"{handle.name}{at}"
        )

    def fast_forward(self, branch: str | None = None, *, to: AsOf) -> CommitResult:
        """Move a branch, by default this one, forward to a snapshot that descends from it."""
        from frazil.maintenance.pick import fast_forward

        return fast_forward(self._handle, branch or self.branch_name, self.snapshot(to))

    def cherry_pick(self, snapshot: AsOf) -> CommitResult:
        """Apply the changes of a snapshot from another branch to this one."""
        from frazil.maintenance.pick import cherry_pick

        return cherry_pick(self._handle, self.branch_name, self.snapshot(snapshot))

    # Maintenance

    def expire_snapshots(
        self,
        older_than: Moment | None = None,
        keep_last: int | None = None,
        *,
        snapshot_ids: Collection[int] | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Expired:
        """Remove old snapshots, and the files that only they referenced.

        `older_than` is a time or an age (`"7 days"`, `timedelta(days=7)`). Defaults come from the
        table's `history.expire.*` properties and the retention of each branch and tag. Snapshots
        that a branch or tag points at are kept.

        >>> orders.expire_snapshots(older_than="7 days")                    # doctest: +SKIP
        """
        return self._expire_snapshots(
            older_than,
            keep_last,
            snapshot_ids=snapshot_ids,
            dry_run=dry_run,
            progress=or_notebook_bar(progress),
        )

    def _expire_snapshots(
        self, older_than: Moment | None, keep_last: int | None, **how: Any
    ) -> Expired:
        from frazil.maintenance.removal.expire import expire_snapshots

        before = _moment_ms(older_than, self._handle)
        return expire_snapshots(self._handle, older_than_ms=before, keep_last=keep_last, **how)

    def remove_orphan_files(
        self,
        older_than: Moment | None = None,
        *,
        location: str | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Orphans:
        """Delete files in the table's folders that no snapshot references. Files younger than
        `older_than` (default: three days) are kept."""
        from frazil.maintenance.removal.orphans import remove_orphan_files

        return remove_orphan_files(
            self._handle,
            older_than_ms=_moment_ms(older_than, self._handle),
            location=location,
            dry_run=dry_run,
            progress=or_notebook_bar(progress),
        )

    def rewrite_manifests(
        self, *, leaves: Sequence[str] | None = None, progress: Progress | None = None
    ) -> CommitResult:
        """Rewrite leaves, clustered and without dead entries. Commits nothing if none needs it."""
        from frazil.maintenance.rewrite_manifests import rewrite_manifests

        return rewrite_manifests(
            self._handle, branch=self.branch_name, leaves=leaves, progress=or_notebook_bar(progress)
        )

    def compact_metadata(self, *, progress: Progress | None = None) -> CommitResult:
        """Move the root's entries to leaves and merge small leaves, if that gains anything."""
        from frazil.maintenance.rewrite_manifests import compact_metadata

        return compact_metadata(
            self._handle, branch=self.branch_name, progress=or_notebook_bar(progress)
        )

    def compact(
        self,
        where: Where = None,
        *,
        sort_by: Sequence[str] | AnyOrder | None = None,
        zorder_by: Sequence[str] | None = None,
        target_file_bytes: int | None = None,
        min_input_files: int = 5,
        rewrite_all: bool = False,
        merge_columns: bool = False,
        engine: Engine | None = None,
        summary: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ) -> CommitResult:
        """Rewrite small data files, and files with many deleted rows, into files of a good size.

        Rows keep their ids and do not appear in change feeds. `where` selects the files that may
        hold a matching row. With `sort_by` (`["day", "price desc"]`) or `zorder_by`, each selected
        partition is sorted as a whole. New files aim for `target_file_bytes`, by default
        `write.target-file-size-bytes`; a partition with fewer than `min_input_files` small files is
        left alone. `rewrite_all` also rewrites files that already have a good size, `merge_columns`
        those with columns in column files. If another writer deletes or updates rows of these files
        in the meantime, compaction fails with a conflict; run it again.

        >>> orders.compact(where="day >= '2024-01-01'")                     # doctest: +SKIP
        """
        from frazil.maintenance.compact import compact

        return compact(
            self._handle,
            where,
            branch=self.branch_name,
            sort_by=sort_by,
            zorder_by=zorder_by,
            target_file_bytes=target_file_bytes,
            min_input_files=min_input_files,
            rewrite_all=rewrite_all,
            merge_columns=merge_columns,
            engine=engine,
            summary=summary,
            progress=or_notebook_bar(progress),
        )

    def purge_deleted(
        self,
        where: Where = None,
        *,
        summary: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ) -> Purged:
        """Rewrite the data files that hold deleted rows, and no others, without those rows.

        The files before still belong to older snapshots. The report names them; when these
        snapshots have expired, `files_left()` proves that no file has the rows any more.

        >>> report = customers.purge_deleted()                              # doctest: +SKIP
        >>> customers.expire_snapshots(older_than="0 days", keep_last=1)    # doctest: +SKIP
        >>> report.files_left()                                             # doctest: +SKIP
        []
        """
        from frazil.maintenance.purge_deleted import purge_deleted

        return purge_deleted(
            self._handle,
            where,
            branch=self.branch_name,
            summary=summary,
            progress=or_notebook_bar(progress),
        )

    def analyze(self, *, progress: Progress | None = None) -> Health:
        """Measure the table's health and suggest what to run."""
        from frazil.maintenance.analyze import analyze

        return analyze(self._handle, branch=self.branch_name, progress=or_notebook_bar(progress))

    def compute_statistics(
        self, columns: Sequence[str] | None = None, *, as_of: AsOf | None = None
    ) -> TableStatistics:
        """Count the distinct values of columns, by default of all primitive ones.

        Reads the rows once and writes a theta sketch per column, as Iceberg's
        `compute_table_stats` does. The counts are those of one snapshot: after the next commit
        they are out of date, and ignored.
        """
        return self._compute_statistics(columns, as_of)

    def _compute_statistics(
        self,
        columns: Sequence[str] | None,
        as_of: AsOf | None,
        counter: Counter | None = None,
    ) -> TableStatistics:
        from frazil.maintenance.table_statistics import compute_statistics

        handle = self._handle.current()
        snapshot = self._snapshot(handle, as_of)
        if snapshot is None:
            raise InvalidInput(f"{handle.name}: the table has no snapshot to count values of")
        schema = handle.metadata.schema()
        if as_of is not None:
            schema = refs.schema_at(handle.metadata, as_of, snapshot)
        return compute_statistics(handle, snapshot, schema, columns, counter=counter)

    def distinct_counts(self, *, as_of: AsOf | None = None) -> dict[str, int]:
        """Distinct values by column, where `compute_statistics` or another engine counted them in
        this snapshot; counts of others are out of date and left out."""
        from frazil.format.metadata.statistics_files import distinct_counts

        handle = self._handle.current()
        counts = distinct_counts(handle.metadata, self._snapshot(handle, as_of))
        names = {id: handle.metadata.schema().find_column_name(id) for id in counts}
        return {name: counts[id] for id, name in names.items() if name is not None}

    def check(
        self,
        *,
        deep: bool = False,
        history: bool = True,
        repair: bool = False,
        progress: Progress | None = None,
    ) -> CheckReport:
        """Check every rule of the format; problems are reported, not raised.

        `deep` also reads data files. `repair` replaces unusable values in the catalog, such as a
        summary that is not text; files are never changed.
        """
        from frazil.maintenance.check.check import check

        return check(
            self._handle,
            deep=deep,
            history=history,
            repair=repair,
            progress=or_notebook_bar(progress),
        )

    # Copies

    def clone(
        self,
        catalog: Catalog,
        name: TableName,
        *,
        as_of: AsOf | None = None,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """A new table on the same data files, with metadata of its own.

        A tag `clone/<name>` on this table protects the files that the clone uses.
        """
        from frazil.maintenance.clone import clone

        identifier = Identifier.parse(name)
        snapshot = self._snapshot(self._handle.current(), as_of)
        place = None if location is None else checked_location(location)
        catalog.create_namespace(identifier.namespace, if_not_exists=True)
        clone(
            self._handle,
            catalog._pointers,
            name,
            snapshot=snapshot,
            location=place,
            properties=properties,
            progress=or_notebook_bar(progress),
        )
        return cast(Self, catalog.load_table(name))

    def copy_to(
        self, location: str, *, catalog: Catalog, name: TableName, progress: Progress | None = None
    ) -> Self:
        """Copy the table with its history to another location and register the copy."""
        from frazil.maintenance.relocate import copy_table

        place = checked_location(location)
        _check_free(catalog, Identifier.parse(name))
        storage = catalog._pointers.storage(place)
        json = copy_table(self._handle, place, storage=storage, progress=or_notebook_bar(progress))
        return cast(Self, catalog.register_table(name, json))

    def move_to(self, location: str, *, catalog: Catalog, progress: Progress | None = None) -> Self:
        """Copy the table to another location and point its name there. The old files are kept."""
        from frazil.maintenance.relocate import move_table

        move_table(
            self._handle,
            catalog._pointers,
            checked_location(location),
            progress=or_notebook_bar(progress),
        )
        return cast(Self, catalog.load_table(self._handle.name))


def _feed_reading(handle: TableHandle, schema: Schema, columns: Sequence[str] | None) -> Reading:
    from frazil.data.metadata_columns import with_dropped
    from frazil.data.read.read_files import Reading
    from frazil.rows.scan import select_columns

    metadata = handle.metadata
    chosen = schema
    if columns is not None:
        chosen = select_columns(schema, columns, specs=metadata.partition_specs)
    return Reading(
        storage=handle.storage,
        schema=chosen,
        table_schema=with_dropped(schema, metadata.schemas),
        specs=metadata.specs_by_id(),
        name_mapping=NAME_MAPPING.of(metadata.properties),
        verify_checksums=VERIFY_CHECKSUMS.of(metadata.properties),
    )


def _check_free(catalog: Catalog, name: Identifier) -> None:
    if catalog.table_exists(name):
        raise AlreadyExists(f"table {name} already exists")


def _label(as_of: AsOf) -> str:
    return str(as_of.snapshot_id) if isinstance(as_of, Snapshot) else str(as_of)


def _moment_ms(moment: Moment | None, handle: TableHandle) -> int | None:
    """A time, or an age before now, in milliseconds since 1970."""
    if moment is None:
        return None
    if isinstance(moment, timedelta):
        if moment < timedelta(0):
            raise InvalidInput(f"{moment} is a negative age; expected a time or an age before now")
        return handle.context.now_ms() - int(moment.total_seconds() * 1000)
    if isinstance(moment, str):
        back = refs.age(moment)
        if back is not None:
            return _moment_ms(back, handle)
        timestamp_ms = refs.time_ms(handle, moment)
        if timestamp_ms is None:
            raise InvalidInput(
                f"{moment!r} is neither a time (ISO 8601) nor an age such as '7 days'"
            )
        return timestamp_ms
    if not isinstance(moment, date):
        return _milliseconds(moment)
    return refs.moment_ms(moment)


_1980_MS = 315_532_800_000


def _milliseconds(number: int) -> int:
    """A number is milliseconds since 1970; one that is more likely an age is refused."""
    if check_count(number, "older_than", minimum=0) < _1980_MS:
        raise InvalidInput(
            f"older_than is {number}; expected a time, or an age with its unit: "
            f"timedelta(days={min(number, 9999)}) or '{number} days'"
        )
    return number


def _is_time(since: AsOf, handle: TableHandle) -> bool:
    if isinstance(since, date):
        return True
    if not isinstance(since, str) or since in handle.metadata.refs or refs.is_id(since):
        return False
    return refs.time_ms(handle, since) is not None


def _chain(
    handle: TableHandle, since: Snapshot | None, until: Snapshot | None
) -> tuple[list[Snapshot], bool]:
    """Snapshots after one up to another, oldest first, and whether something lies before them."""
    chain: list[Snapshot] = []
    for snapshot in refs.ancestors(handle, until):
        if since is not None and snapshot.snapshot_id == since.snapshot_id:
            return chain[::-1], False
        chain.append(snapshot)
    starts_whole = bool(chain) and chain[-1].parent_snapshot_id is not None
    if since is not None:
        end = "nothing" if until is None else f"snapshot {until.snapshot_id}"
        reason = (
            f"the snapshots before {chain[-1].snapshot_id} have expired"
            if starts_whole
            else "it is not in its history"
        )
        raise InvalidInput(
            f"{handle.name}: changes from snapshot {since.snapshot_id} to {end} are not available: "
            f"{reason}"
        )
    return chain[::-1], starts_whole

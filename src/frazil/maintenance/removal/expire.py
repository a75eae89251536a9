"""Expire snapshots: forget them in the catalog, then delete what only they reached.

The catalog comes first: from then on they cannot be referenced, and a crash leaves files that
orphan removal finds. Cost follows what expires: expired roots are read and those next to them; only
when something other than roots would be deleted are the other kept roots read, too. Leaves are
opened where expired and kept snapshots differ. See `reachable` for why the result is exact.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import Any

from frazil.catalog.notes import Notes
from frazil.catalog.ownership import check_certain, collects_garbage
from frazil.commit.change import Change
from frazil.commit.handle import TableHandle
from frazil.commit.stream_progress import carried
from frazil.commit.updates import MetadataUpdate, RemoveRef, RemoveSnapshots, SetProperties
from frazil.errors import NotFound, Unsupported
from frazil.format.metadata.metadata import FORMAT_VERSION, RefKind, Snapshot, TableMetadata
from frazil.legacy.publish.published_notes import forget_snapshots, shown_snapshots
from frazil.maintenance import retention
from frazil.maintenance.progress import Progress, silent
from frazil.maintenance.removal.file_deletion import (
    Deleter,
    deletable,
    delete_all,
    ownership_of,
)
from frazil.maintenance.removal.kept_files import copies_for
from frazil.maintenance.removal.reachable import Holdings, Reach, Unreachable, statistics_files
from frazil.maintenance.retention import Ancestry, Due, Retention
from frazil.text_format import counted
from frazil.value_classes import field, frozen

_log = logging.getLogger(__name__)

_ROWS = ("data-files", "delete-files", "deletion-vectors")
_NOUNS = {
    "data-files": ("data file", "data files"),
    "delete-files": ("delete file", "delete files"),
    "deletion-vectors": ("deletion vector file", "deletion vector files"),
    "leaves": ("leaf", "leaves"),
    "roots": ("root", "roots"),
    "statistics": ("statistics file", "statistics files"),
}


@frozen
class Expired:
    """What an expiry did, or with `is_dry_run` would do. `files` are addresses by kind.

    `spared` are files that nothing reaches any more but that are not the table's own to delete, or
    hold rows of a table with `gc.enabled=false`.
    """

    snapshot_ids: tuple[int, ...]
    refs: tuple[str, ...]
    files: dict[str, tuple[str, ...]] = field(default_factory=dict)
    spared: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    is_dry_run: bool = False

    @property
    def file_count(self) -> int:
        """How many files were deleted, or would be."""
        return sum(len(paths) for paths in self.files.values()) - len(self.failed)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return {
            "dry-run": self.is_dry_run,
            "snapshots": list(self.snapshot_ids),
            "refs": list(self.refs),
            "files": {kind: list(paths) for kind, paths in self.files.items()},
            "spared": list(self.spared),
            "failed": [{"path": path, "reason": reason} for path, reason in self.failed],
        }

    def __str__(self) -> str:
        verb = "would expire" if self.is_dry_run else "expired"
        kinds = ", ".join(
            counted(len(paths), *_NOUNS[kind]) for kind, paths in self.files.items() if paths
        )
        snapshots = counted(len(self.snapshot_ids), "snapshot")
        text = f"{verb} {snapshots}; files deleted: {kinds or 'none'}"
        if self.refs:
            text += f"; branches and tags removed: {', '.join(self.refs)}"
        if self.spared:
            text += f"; {counted(len(self.spared), 'file')} kept, as others may use them"
        if self.failed:
            text += f"; {len(self.failed)} could not be deleted"
        return text


def expire_snapshots(
    handle: TableHandle,
    *,
    older_than_ms: int | None = None,
    keep_last: int | None = None,
    snapshot_ids: Collection[int] | None = None,
    dry_run: bool = False,
    deleter: Deleter = delete_all,
    progress: Progress = silent,
) -> Expired:
    """Expire by age and number, or exactly the snapshots given. `deleter` deletes their files."""
    metadata = handle.refresh().metadata
    if metadata.format_version < FORMAT_VERSION and not dry_run:
        raise Unsupported(
            f"{handle.name}: snapshots of a format-version {metadata.format_version} table "
            "cannot be expired; upgrade it first",
            feature=f"writing format-version {metadata.format_version}",
        )
    if not dry_run:
        check_certain(metadata, "expiry", name=handle.name)
    history = list(handle.head.snapshots())
    due = _due(handle, history, older_than_ms, keep_last, snapshot_ids)
    ids = tuple(int(snapshot.snapshot_id) for snapshot in due.snapshots)
    if not ids and not due.refs:
        return Expired(snapshot_ids=(), refs=(), is_dry_run=dry_run)
    if not dry_run:
        updates: list[MetadataUpdate] = [RemoveRef(name=name) for name in due.refs]
        if batches := _batches(metadata, history, set(ids)):
            updates.append(SetProperties(updates=batches))
        handle.commit(Change(updates=(*updates, RemoveSnapshots(snapshot_ids=ids))))
        # What landed meanwhile is kept too: asked for after the others can no longer be named.
        kinds = _files_now(handle, metadata, due.snapshots, progress)
    else:
        retained = [snapshot for snapshot in history if int(snapshot.snapshot_id) not in set(ids)]
        kinds = _files_of(handle, metadata, due.snapshots, retained, progress)
    kept_kinds = () if collects_garbage(metadata) else _ROWS
    candidates = {path for kind, paths in kinds.items() if kind not in kept_kinds for path in paths}
    deletable_files = deletable(ownership_of(handle), candidates, handle.storage, progress=progress)
    mine = {kind: tuple(sorted(deletable_files & paths)) for kind, paths in kinds.items()}
    spared = sorted(set().union(*kinds.values()) - {p for paths in mine.values() for p in paths})
    failed: tuple[tuple[str, str], ...] = ()
    if not dry_run:
        chosen = [path for paths in mine.values() for path in paths]
        served = _served_for(handle, set(ids))
        failed = deleter(handle.storage, [*chosen, *served], progress=progress).failed
        _log.info("%s: %d snapshots expired, %d files", handle.name, len(ids), len(chosen))
    return Expired(
        snapshot_ids=ids,
        refs=due.refs,
        files={kind: paths for kind, paths in mine.items() if paths},
        spared=tuple(spared),
        failed=failed,
        is_dry_run=dry_run,
    )


def _served_for(handle: TableHandle, gone: Collection[int]) -> tuple[str, ...]:
    """Files that a server made for snapshots that are gone now: their published form, and copies of
    their data files. A table that was never shown to a client has none."""
    notes: Notes | None = getattr(handle.head, "notes", None)
    published_notes = {} if notes is None else shown_snapshots(notes)
    if notes is None or not published_notes:
        return ()
    remaining_ids = [int(snapshot.snapshot_id) for snapshot in handle.head.snapshots()]
    published = forget_snapshots(notes, handle.location, remaining_ids, shown=published_notes)
    return (*published, *copies_for(handle.storage, handle.location, gone))


def _due(
    handle: TableHandle,
    history: Sequence[Snapshot],
    older_than_ms: int | None,
    keep_last: int | None,
    snapshot_ids: Collection[int] | None,
) -> Due:
    metadata = handle.metadata
    if snapshot_ids is not None and older_than_ms is None and keep_last is None:
        return retention.chosen(metadata, history, snapshot_ids)
    rules = Retention.of(
        metadata.properties,
        now_ms=handle.context.now_ms(),
        older_than_ms=older_than_ms,
        keep_last=keep_last,
    )
    due = retention.due(metadata, history, rules)
    if snapshot_ids is None:
        return due
    more = retention.chosen(metadata, history, snapshot_ids)
    both = {int(snapshot.snapshot_id): snapshot for snapshot in (*due.snapshots, *more.snapshots)}
    return Due(snapshots=tuple(both.values()), refs=due.refs)


def _batches(metadata: TableMetadata, history: Sequence[Snapshot], ids: set[int]) -> dict[str, str]:
    """The newest batch of every streaming query, where the snapshot that tells it goes."""
    ancestry = Ancestry.of(history)
    batches: dict[str, str] = {}
    for name, ref in metadata.refs.items():
        if ref.kind is RefKind.BRANCH:
            lineage = ancestry.lineage(int(ref.snapshot_id))
            gone = [snapshot for snapshot in lineage if int(snapshot.snapshot_id) in ids]
            batches.update(carried(name, gone, metadata.properties))
    return batches


def _files_now(
    handle: TableHandle, metadata: TableMetadata, expired: Sequence[Snapshot], progress: Progress
) -> dict[str, frozenset[str]]:
    """What nothing reaches that is kept now. Another expiry may take snapshots while it is read."""
    retained = list(handle.head.snapshots())
    while True:
        try:
            return _files_of(handle, metadata, expired, retained, progress)
        except NotFound:
            current = list(handle.head.snapshots())
            if len(current) >= len(retained):
                raise
            retained = current


def _files_of(
    handle: TableHandle,
    metadata: TableMetadata,
    expired: Sequence[Snapshot],
    retained: Sequence[Snapshot],
    progress: Progress,
) -> dict[str, frozenset[str]]:
    """Addresses by kind that no kept snapshot reaches."""
    kinds = _unreachable(handle, metadata, expired, retained, progress).by_kind()
    gone = {int(snapshot.snapshot_id) for snapshot in expired}
    entries = (*metadata.statistics, *metadata.partition_statistics)
    about = statistics_files(entries, handle.location)
    in_use = {path for path, id in about.items() if id not in gone}
    kinds["statistics"] = frozenset(about.keys() - in_use)
    return kinds


def _unreachable(
    handle: TableHandle,
    metadata: TableMetadata,
    expired: Sequence[Snapshot],
    retained: Sequence[Snapshot],
    progress: Progress,
) -> Unreachable:
    if not expired:
        return Unreachable()
    # A file may be deleted if no kept snapshot reaches it. Snapshots that reach a file follow each
    # other, so what only expired ones reach is missing from the kept ones next to them. Where that
    # leaves more than roots, all kept snapshots are asked: a branch or a rollback may have brought
    # a file back.
    reach = Reach(handle.reader(metadata), snapshots=(*expired, *retained), progress=progress)
    gone = reach.holdings(expired, what="expired roots", missing_ok=True)
    ancestry = Ancestry.of((*expired, *retained))
    close = ancestry.neighbours(int(snapshot.snapshot_id) for snapshot in expired)
    near = [snapshot for snapshot in retained if int(snapshot.snapshot_id) in close]
    held = reach.holdings(near, what="kept roots") if near else Holdings()
    if near:
        unreachable = reach.only_in(gone, held)
        if len(near) == len(retained) or not _has_more_than_roots(unreachable):
            return unreachable
    return reach.only_in(gone, reach.holdings(retained, what="kept roots"))


def _has_more_than_roots(unreachable: Unreachable) -> bool:
    return any(files for kind, files in unreachable.by_kind().items() if kind != "roots")

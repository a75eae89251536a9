"""Files of a table that no snapshot reaches: left by crashes, or by deletions that failed.

Only folders that the table owns alone are listed (`catalog.ownership` says which). Listing comes
first and what is reachable second, so that a file committed in between is found to be in use.
Young files may belong to a commit under way and are left alone, as are metadata JSON files that
the log names, hidden files, and folders that look like another table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.catalog.notes import Notes
from frazil.catalog.ownership import Ownership
from frazil.commit.handle import TableHandle
from frazil.format.metadata.metadata import History
from frazil.legacy.publish.published import published_files
from frazil.legacy.publish.published_notes import (
    forget_snapshots,
    shown_files,
    shown_snapshots,
)
from frazil.maintenance.progress import Progress, silent
from frazil.maintenance.removal.address_set import AddressSet, hashes_in
from frazil.maintenance.removal.file_deletion import Deleter, delete_all, ownership_of
from frazil.maintenance.removal.listing import ListedFiles, Lister, list_files
from frazil.maintenance.removal.reachable import Reach, statistics_files
from frazil.storage import FileInfo, checked_location
from frazil.text_format import counted
from frazil.value_classes import frozen

SAFETY_AGE_MS = 3 * 24 * 3600 * 1000
_METADATA_FILE = r"\.metadata\.json$|^root-"
_KEPT_NAMES = frozenset({"version-hint.text"})


@frozen
class Orphans:
    """What orphan removal found and did, or with `is_dry_run` would do.

    `other_tables` are folders below this table that belong to another one and were not touched;
    `shared_folders` are folders of this table that were not listed because others use them too.
    """

    files: tuple[FileInfo, ...]
    failed: tuple[tuple[str, str], ...] = ()
    young: int = 0
    other_tables: tuple[str, ...] = ()
    shared_folders: tuple[str, ...] = ()
    is_dry_run: bool = False

    @property
    def total_bytes(self) -> int:
        """The size of the files."""
        return sum(file.size for file in self.files)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return {
            "dry-run": self.is_dry_run,
            "files": [{"path": file.path, "bytes": file.size} for file in self.files],
            "bytes": self.total_bytes,
            "young": self.young,
            "other-tables": list(self.other_tables),
            "shared-folders": list(self.shared_folders),
            "failed": [{"path": path, "reason": reason} for path, reason in self.failed],
        }

    def __str__(self) -> str:
        verb = "would remove" if self.is_dry_run else "removed"
        files = counted(len(self.files) - len(self.failed), "file")
        text = f"{verb} {files}, {counted(self.total_bytes, 'byte')}"
        if self.young:
            text += f"; {counted(self.young, 'unknown file')} too recent to remove"
        if self.other_tables:
            text += f"; {counted(len(self.other_tables), 'folder')} of other tables skipped"
        if self.shared_folders:
            text += f"; skipped, shared with other tables: {', '.join(self.shared_folders)}"
        if self.failed:
            text += f"; {len(self.failed)} could not be deleted"
        return text


def remove_orphan_files(
    handle: TableHandle,
    *,
    older_than_ms: int | None = None,
    location: str | None = None,
    dry_run: bool = False,
    lister: Lister = list_files,
    deleter: Deleter = delete_all,
    progress: Progress = silent,
) -> Orphans:
    """Delete files in the table's folders, or in one folder below the table, that nothing reaches
    and that are older than a moment, by default three days ago. `lister` lists a folder, with all
    that is below, `deleter` deletes."""
    handle.refresh()
    owned = ownership_of(handle)
    if not dry_run:
        owned.check_collects("orphan removal")
    before = handle.context.now_ms() - SAFETY_AGE_MS if older_than_ms is None else older_than_ms
    location = None if location is None else checked_location(location)
    chosen = owned.owned_folders() if location is None else {owned.below(location): location}
    listed = ListedFiles(
        (
            part
            for spelled in chosen.values()
            for part in lister(handle.storage, spelled.rstrip("/"), progress=progress)
        ),
        canonical=owned.canonical_folder,
    )
    in_use = _in_use(handle, owned, progress)
    folders = owned.folders
    neighbours = other_tables(listed, folders)
    unused = np.flatnonzero(~in_use.holds(listed.hashes))
    judged = [
        not (name := owned.canonical(path)).startswith(neighbours)
        and not _is_kept(name, folders)
        and owned.owns_unknown(path)
        for path in listed.paths(unused)
    ]
    unknown = list(listed.infos(unused[np.array(judged, dtype=np.bool_)], handle.storage))
    old = tuple(
        sorted((file for file in unknown if file.modified_ms < before), key=lambda file: file.path)
    )
    failed: tuple[tuple[str, str], ...] = ()
    if not dry_run:
        paths = [file.path for file in old]
        failed = deleter(handle.storage, paths, progress=progress).failed
    return Orphans(
        files=old,
        failed=failed,
        young=len(unknown) - len(old),
        other_tables=tuple(neighbours),
        shared_folders=owned.shared_folders() if location is None else (),
        is_dry_run=dry_run,
    )


def _in_use(handle: TableHandle, owned: Ownership, progress: Progress) -> AddressSet:
    """Files that a snapshot or the metadata names, as of now."""
    state = handle.refresh()
    history = _history(handle)
    snapshots = list(handle.head.snapshots()) if history is None else list(history.snapshots)
    reach = Reach(handle.reader(), snapshots=snapshots, progress=progress)
    reached = reach.everything(snapshots, spelling=owned.canonical_all)
    metadata = state.metadata
    more = {
        *statistics_files((*metadata.statistics, *metadata.partition_statistics), handle.location),
        *published_files(metadata, handle.storage),
        *shown_to_clients(handle, kept=[int(snapshot.snapshot_id) for snapshot in snapshots]),
        *json_files(handle, history),
        *catalog_objects(handle),
    }
    canonical = owned.canonical_all(pa.array(list(more), pa.string()))
    return reached.union(AddressSet([hashes_in(*canonical)]))


def shown_to_clients(handle: TableHandle, *, kept: Collection[int]) -> set[str]:
    """Files that a server published for snapshots of this table; others are forgotten here."""
    notes: Notes | None = getattr(handle.head, "notes", None)
    if notes is None or notes.is_empty():
        return set()
    forget_snapshots(notes, handle.location, kept, shown=shown_snapshots(notes))
    return shown_files(notes)


def _history(handle: TableHandle) -> History | None:
    """Snapshots and logs of a table, from a head that has them together."""
    history: Callable[[], History] | None = getattr(handle.head, "history", None)
    return None if history is None else history()


def json_files(handle: TableHandle, history: History | None = None) -> set[str]:
    """The metadata JSON files that the catalog and the log name."""
    current = handle.state.metadata_location
    paths = set() if current is None else {current}
    logged = history or _history(handle)
    if logged is not None:
        paths |= {entry.metadata_file for entry in logged.metadata_log}
    return paths


def catalog_objects(handle: TableHandle) -> set[str]:
    """Objects in the table's folders in which its catalog keeps its state."""
    head_objects = getattr(handle.head, "head_objects", None)
    return set() if head_objects is None else head_objects()


def _is_kept(path: str, folders: tuple[str, ...]) -> bool:
    """Whether a name says that a file is not to be judged: hidden, or a pointer of other tools."""
    below = next((path[len(folder) :] for folder in folders if path.startswith(folder)), path)
    parts = below.split("/")
    hidden = any(part.startswith((".", "_")) and "=" not in part for part in parts)
    return hidden or parts[-1] in _KEPT_NAMES


def other_tables(listed: ListedFiles, folders: tuple[str, ...]) -> tuple[str, ...]:
    """Folders below this table that have metadata of their own: a root or a metadata JSON file in
    a folder `metadata`."""
    owners = {
        place.removesuffix("metadata/")
        for place, names in listed.names_in(lambda place: place.endswith("/metadata/"))
        if pc.any(pc.match_substring_regex(names, _METADATA_FILE)).as_py()
    }
    return tuple(sorted(owners - {"/", *folders}))

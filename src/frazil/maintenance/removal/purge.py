"""Drop a table and delete its files: those its metadata names, and what lies in its own folders.

Files that belong to others stay: files below the table's location that it never named, other
tables inside it, folders that it shares. What is to be deleted is decided before the table leaves
the catalog; nothing is deleted unless it has left.
"""

from __future__ import annotations

import logging
from typing import Any

from frazil.catalog.backend import CatalogBackend, TableName
from frazil.catalog.names import Identifier
from frazil.catalog.ownership import Ownership
from frazil.commit.handle import TableHandle
from frazil.errors import FrazilError
from frazil.legacy.publish.published import published_files
from frazil.maintenance.clone import check_not_cloned
from frazil.maintenance.removal.file_deletion import deletable, delete_all, ownership_of
from frazil.maintenance.removal.listing import ListedFiles, list_files
from frazil.maintenance.removal.orphans import json_files, other_tables
from frazil.maintenance.removal.reachable import Reach, statistics_files
from frazil.value_classes import frozen

_log = logging.getLogger(__name__)


@frozen
class PurgeResult:
    """What a purge deleted. `spared` are files the table named that are not its own to delete."""

    table: str
    files: tuple[str, ...]
    spared: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    shared_folders: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return {
            "table": self.table,
            "files": list(self.files),
            "spared": list(self.spared),
            "failed": [{"path": path, "reason": reason} for path, reason in self.failed],
            "shared-folders": list(self.shared_folders),
        }

    def __str__(self) -> str:
        text = f"dropped {self.table}; files deleted: {len(self.files)}"
        if self.spared:
            text += f"; files of others left alone: {len(self.spared)}"
        if self.shared_folders:
            text += f"; folders shared with other tables: {', '.join(self.shared_folders)}"
        if self.failed:
            text += f"; could not be deleted: {len(self.failed)}"
        return text


def purge_table(catalog: CatalogBackend, name: TableName) -> PurgeResult:
    """Take a table out of its catalog, then delete the files that are its own."""
    identifier = Identifier.parse(name)
    head = catalog.load(identifier)
    handle = TableHandle.of(
        str(identifier), head, catalog.storage(head.state.metadata.location), state=head.state
    )
    owned = ownership_of(handle)
    owned.check_collects("purge")
    check_not_cloned(name, handle.metadata, also=owned.clones())
    named_files = _named(handle)
    files = deletable(owned, named_files, handle.storage)
    spared = sorted(named_files - files)
    tombstone = getattr(head, "object_path", None)  # refuses writers that were stalled in a commit
    catalog.drop(identifier)
    files |= _listed(handle, owned)
    files.discard(tombstone)
    deletion = delete_all(handle.storage, sorted(files))
    _log.info("%s: dropped, %d files deleted", identifier, len(deletion.paths))
    return PurgeResult(
        table=str(identifier),
        files=deletion.paths,
        spared=tuple(spared),
        failed=deletion.failed,
        shared_folders=owned.shared_folders(),
    )


def _named(handle: TableHandle) -> set[str]:
    """Every file that the table's metadata names, as far as it can be read."""
    metadata = handle.metadata
    paths = json_files(handle)
    entries = (*metadata.statistics, *metadata.partition_statistics)
    paths |= statistics_files(entries, handle.location).keys()
    snapshots = list(handle.head.snapshots())
    try:
        reach = Reach(handle.reader(), snapshots=snapshots)
        for addresses in reach.addresses(snapshots):
            paths.update(addresses.to_pylist())
        paths |= published_files(metadata, handle.storage)
    except FrazilError as error:
        # A table that is damaged can be dropped too: its own folders are listed.
        _log.warning("%s: not everything it names could be read: %s", handle.name, error)
    return paths


def _listed(handle: TableHandle, owned: Ownership) -> set[str]:
    parts = (
        part
        for spelled in owned.owned_folders().values()
        for part in list_files(handle.storage, spelled.rstrip("/"))
    )
    listed = ListedFiles(parts, canonical=owned.canonical_folder)
    neighbours = other_tables(listed, owned.folders)
    return {path for path in listed.paths() if not owned.canonical(path).startswith(neighbours)}

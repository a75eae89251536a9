"""Deleted rows taken out of the data files that still hold them, with a report that proves it.

A deleted row stays in its file until the file is rewritten, and the file stays until the last
snapshot that refers to it has expired. Only files with deleted rows are rewritten.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from frazil.commit.handle import TableHandle
from frazil.commit.result import CommitResult
from frazil.filter.condition import Where
from frazil.maintenance.compact import rewrite_without_deleted
from frazil.maintenance.progress import Progress, silent
from frazil.storage import Storage
from frazil.text_format import counted
from frazil.value_classes import field, frozen


@frozen
class Purged:
    """What was rewritten, and where the deleted rows still are."""

    _storage: Storage = field(repr=False)
    table: str
    rows: int
    """Deleted rows that the new files do not have."""
    old_files: tuple[str, ...]
    """The files that have them, which older snapshots still refer to."""
    snapshots: tuple[int, ...]
    """Snapshots to expire before the old files can go."""
    result: CommitResult

    def files_left(self) -> list[str]:
        """The old files that are still in the storage; none is left when the rows are gone."""
        return [name for name in self.old_files if self._storage.exists(name)]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "table": self.table,
            "rows": self.rows,
            "old-files": list(self.old_files),
            "files-left": self.files_left(),
            "snapshots": list(self.snapshots),
            "snapshot-id": self.result.snapshot_id,
        }

    def __str__(self) -> str:
        if not self.old_files:
            return f"{self.table}: no data file has deleted rows"
        remaining = len(self.files_left())
        text = (
            f"{self.table}: {counted(self.rows, 'deleted row')} purged from "
            f"{counted(len(self.old_files), 'file')}"
        )
        if not remaining:
            return f"{text}; none of these files exists any more"
        return (
            f"{text}; {counted(remaining, 'old file')} still in the storage until "
            f"{counted(len(self.snapshots), 'older snapshot')} "
            f"{'expires' if len(self.snapshots) == 1 else 'expire'}"
        )


def purge_deleted(
    handle: TableHandle,
    where: Where = None,
    *,
    branch: str,
    summary: Mapping[str, str] | None = None,
    progress: Progress = silent,
) -> Purged:
    """Rewrite every file that may hold matching rows and has a deleted one; one commit or none."""
    rewritten = rewrite_without_deleted(
        handle, where, branch=branch, summary=summary, progress=progress
    )
    older = [
        int(snapshot.snapshot_id)
        for snapshot in handle.head.snapshots()
        if rewritten.files and snapshot.snapshot_id != rewritten.result.snapshot_id
    ]
    return Purged(
        _storage=handle.storage,
        table=handle.name,
        rows=rewritten.rows,
        old_files=rewritten.files,
        snapshots=tuple(older),
        result=rewritten.result,
    )

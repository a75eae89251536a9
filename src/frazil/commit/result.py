"""What a write did, as callers get it: one type for every operation.

Knows nothing of heads and trees. An operation that had nothing to do says so in a note.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from frazil.format.metadata import Snapshot
from frazil.words import card, counted, listed, size

if TYPE_CHECKING:
    from frazil.commit.summary import Tally

NONE = "none"
METADATA = "metadata"
STAGED = "staged; the transaction commits it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Rows and data files that a snapshot added, removed and updated.

    A row is updated when it lives on with its row id; such a row is neither added nor removed. A
    file is updated when it gets another deletion vector. Rows that an equality delete retires are
    not known until the table is read, so they are not counted.
    """

    rows_added: int = 0
    rows_removed: int = 0
    rows_updated: int = 0
    files_added: int = 0
    files_removed: int = 0
    files_updated: int = 0

    @staticmethod
    def of(
        *,
        added: Tally,
        removed: Tally,
        before: Tally,
        after: Tally,
        carried: int,
        updated: int,
        moves: bool,
    ) -> Counts:
        """From the entries that came, went and changed. `carried` rows were gone before, `updated`
        is how many rows the operation rewrote; `moves` when every row lives on elsewhere, as after
        compaction."""
        came = added.records - added.vector_rows
        went = removed.records - removed.vector_rows + after.vector_rows - before.vector_rows
        went = max(0, went - carried)
        both = min(came, went) if moves else min(updated, came, went)
        return Counts(
            rows_added=came - both,
            rows_removed=went - both,
            rows_updated=0 if moves else both,
            files_added=added.data_files + added.equality_files,
            files_removed=removed.data_files + removed.equality_files,
            files_updated=after.data_files,
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CommitResult:
    """What a write did.

    `operation` is Iceberg's word (append, delete, overwrite, replace), `metadata` when only the
    table's definition or a branch or tag changed, or `none` when there was nothing to do. `ms` is
    the time of the whole operation. `shared_by` is how many appends the snapshot holds, when a
    server committed those of several writers together. `notes` lists what else the caller should
    know.
    """

    operation: str = NONE
    snapshot: Snapshot | None = None
    rows_added: int = 0
    rows_removed: int = 0
    rows_updated: int = 0
    files_added: int = 0
    files_removed: int = 0
    files_updated: int = 0
    metadata_files: int = 0
    metadata_bytes: int = 0
    attempts: int = 0
    shared_by: int = 1
    ms: float = 0.0
    notes: tuple[str, ...] = ()

    @staticmethod
    def nothing(note: str, *, ms: float = 0.0) -> CommitResult:
        """An operation that changed nothing, and why."""
        return CommitResult(notes=(note,), ms=ms)

    @property
    def committed(self) -> bool:
        """Whether the table changed."""
        return self.operation != NONE

    @property
    def snapshot_id(self) -> int | None:
        """The id of the new snapshot, if there is one."""
        return None if self.snapshot is None else int(self.snapshot.snapshot_id)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "operation": self.operation,
            "snapshot-id": self.snapshot_id,
            "rows": {
                "added": self.rows_added,
                "removed": self.rows_removed,
                "updated": self.rows_updated,
            },
            "files": {
                "added": self.files_added,
                "removed": self.files_removed,
                "updated": self.files_updated,
            },
            "metadata-files": self.metadata_files,
            "metadata-bytes": self.metadata_bytes,
            "attempts": self.attempts,
            "shared-by": self.shared_by,
            "ms": round(self.ms, 1),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        notes = "".join(f"; {note}" for note in self.notes)
        if not self.committed:
            return f"nothing committed{notes}"
        what = ", ".join(text for text in (self._counts("row"), self._counts("file")) if text)
        written = f"{counted(self.metadata_files, 'metadata file')} of {size(self.metadata_bytes)}"
        return (
            f"{self.operation}{': ' if what else ''}{what}"
            + (f"; snapshot {self.snapshot_id}, {written}" if self.snapshot else "")
            + (f", shared by {self.shared_by} appends" if self.shared_by > 1 else "")
            + (f"; {self.attempts} attempts" if self.attempts > 1 else "")
            + f"; {self.ms:.0f} ms{notes}"
        )

    def __repr__(self) -> str:
        return f"CommitResult({self})"

    def _repr_html_(self) -> str:
        title = f"{self.operation}" if self.committed else "nothing committed"
        facts = {
            "snapshot": self.snapshot_id,
            "rows": self._counts("row"),
            "files": self._counts("file"),
            "metadata": ""
            if self.snapshot is None
            else f"{counted(self.metadata_files, 'file')}, {size(self.metadata_bytes)}",
            "shared by": f"{self.shared_by} appends" if self.shared_by > 1 else None,
            "attempts": self.attempts or None,
            "time": f"{self.ms:.0f} ms" if self.committed else None,
            "notes": "; ".join(self.notes),
        }
        return card(title, facts)

    def _counts(self, of: str) -> str:
        parts = {verb: getattr(self, f"{of}s_{verb}") for verb in ("added", "removed", "updated")}
        return listed(parts, of=of)

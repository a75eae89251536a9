"""What a write did: one type from the commit loop to the caller, for every operation.

An operation that had nothing to do says so in a note.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from frazil.format.metadata.metadata import Snapshot
from frazil.text_format import card, counted, listed, size
from frazil.value_classes import field, frozen

if TYPE_CHECKING:
    from frazil.commit.head import State
    from frazil.commit.summary import Tally

NONE = "none"
METADATA = "metadata"
STAGED = "staged; the transaction commits it"
_SUMMED = (
    *(f"{of}_{verb}" for of in ("rows", "files") for verb in ("added", "removed", "updated")),
    "column_files",
    "column_bytes",
    "metadata_files",
    "metadata_bytes",
)


@frozen(repr=False)
class CommitResult:
    """What a write did.

    `operation` is Iceberg's word (append, delete, overwrite, replace), `metadata` when only the
    table's definition or a branch or tag changed, or `none` when there was nothing to do.

    A row is updated when it lives on with its row id; such a row is neither added nor removed. A
    file is updated when it gets another deletion vector, or columns in `column_files` that were
    written beside it (`column_bytes`). Rows that an equality delete retires are
    not known until the table is read, so they are not counted.

    `snapshots` are those that were made, the newest last, and `state` is the table as the commit
    left it. `shared_by` is how many appends the snapshot holds, when a server committed those of
    several writers together. `ms` is the time of the whole operation. `notes` lists what else the
    caller should know.
    """

    operation: str = NONE
    snapshots: tuple[Snapshot, ...] = ()
    rows_added: int = 0
    rows_removed: int = 0
    rows_updated: int = 0
    files_added: int = 0
    files_removed: int = 0
    files_updated: int = 0
    column_files: int = 0
    column_bytes: int = 0
    metadata_files: int = 0
    metadata_bytes: int = 0
    attempts: int = 0
    shared_by: int = 1
    ms: float = 0.0
    notes: tuple[str, ...] = ()
    state: State | None = field(default=None, compare=False)

    @staticmethod
    def of(
        operation: str,
        *,
        added: Tally,
        removed: Tally,
        before: Tally,
        after: Tally,
        carried: int = 0,
        updated: int = 0,
        in_place: int = 0,
    ) -> CommitResult:
        """Counts from the entries that came, went and changed. `carried` rows were gone before,
        `updated` is how many rows the operation rewrote, `in_place` how many rows of files got new
        columns."""
        came = added.records - added.vector_rows
        went = removed.records - removed.vector_rows + after.vector_rows - before.vector_rows
        went = max(0, went - carried)
        is_move = operation == "replace"  # every row lives on elsewhere, as after compaction
        both = min(came, went) if is_move else min(updated, came, went)
        return CommitResult(
            operation=operation,
            rows_added=came - both,
            rows_removed=went - both,
            rows_updated=0 if is_move else both + in_place,
            files_added=added.data_files + added.equality_files,
            files_removed=removed.data_files + removed.equality_files,
            files_updated=after.data_files,
        )

    @staticmethod
    def sum(results: Sequence[CommitResult]) -> CommitResult:
        """What several changes that land at once did together, said of the last snapshot."""
        if len(results) == 1:
            return results[0]
        operations = [result.operation for result in results if result.snapshots] or [METADATA]
        sums = {name: sum(getattr(result, name) for result in results) for name in _SUMMED}
        snapshots = tuple(snapshot for result in results for snapshot in result.snapshots)
        return CommitResult(operation=operations[-1], snapshots=snapshots, **sums)

    @staticmethod
    def nothing(note: str, *, ms: float = 0.0) -> CommitResult:
        """An operation that changed nothing, and why."""
        return CommitResult(notes=(note,), ms=ms)

    @property
    def committed(self) -> bool:
        """Whether the table changed."""
        return self.operation != NONE

    @property
    def snapshot(self) -> Snapshot | None:
        """The new snapshot, if there is one."""
        return self.snapshots[-1] if self.snapshots else None

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
            "column-files": self.column_files,
            "column-bytes": self.column_bytes,
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
            + (f"; {self._columns}" if self.column_files else "")
            + (f"; snapshot {self.snapshot_id}, {written}" if self.snapshot else "")
            + (f", shared by {self.shared_by} appends" if self.shared_by > 1 else "")
            + (f"; {self.attempts} attempts" if self.attempts > 1 else "")
            + f"; {self.ms:,.0f} ms{notes}"
        )

    def __repr__(self) -> str:
        return f"CommitResult({self})"

    def _repr_html_(self) -> str:
        title = f"{self.operation}" if self.committed else "nothing committed"
        facts = {
            "snapshot": self.snapshot_id,
            "rows": self._counts("row"),
            "files": self._counts("file"),
            "column files": self._columns if self.column_files else None,
            "metadata": ""
            if self.snapshot is None
            else f"{counted(self.metadata_files, 'file')}, {size(self.metadata_bytes)}",
            "shared by": f"{self.shared_by} appends" if self.shared_by > 1 else None,
            "attempts": self.attempts or None,
            "time": f"{self.ms:,.0f} ms" if self.committed else None,
            "notes": "; ".join(self.notes),
        }
        return card(title, facts)

    @property
    def _columns(self) -> str:
        return f"{counted(self.column_files, 'column file')} of {size(self.column_bytes)}"

    def _counts(self, of: str) -> str:
        parts = {verb: getattr(self, f"{of}s_{verb}") for verb in ("added", "removed", "updated")}
        return listed(parts, of=of)

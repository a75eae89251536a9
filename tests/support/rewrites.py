"""Files replaced by others with the same rows, chosen by the test and not by compaction."""

from __future__ import annotations

from collections.abc import Sequence

import frazil
from frazil.commit.change import Change
from frazil.format import paths
from frazil.format.entries.batch import EntryBatch


def rewrite_files(
    table: frazil.Table, remove: Sequence[str], add: EntryBatch, *, base: int | None = None
) -> frazil.CommitResult:
    """Commit the rewrite of files as they were at a snapshot, by default the last one loaded."""
    tip = table.current_snapshot()
    assert tip is not None
    gone = [{"location": paths.relativise(table.location, path)} for path in remove]
    change = Change(
        branch=table.branch_name,
        base_snapshot_id=tip.snapshot_id if base is None else base,
        added=add.with_constant("tracking.sequence_number", tip.sequence_number),
        replaced=EntryBatch.from_rows(gone),
        is_rewrite=True,
    )
    return table._handle.commit(change)

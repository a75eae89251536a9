"""Numbers that the summary of a snapshot states. Writers may leave any of them out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from frazil.format.metadata.metadata import Snapshot

COLUMN_FILES_TOTAL: Final = "frazil.total-column-files"


def has_column_files(snapshot: Snapshot) -> bool:
    """Whether columns of a snapshot's files lie in column files, of which the summary tells."""
    return bool(number(snapshot.summary, COLUMN_FILES_TOTAL))


def number(summary: Mapping[str, str], key: str) -> int | None:
    """A number of a summary; None for what is not there or is none."""
    text = summary.get(key, "")
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() else None


def live_rows(snapshot: Snapshot | None) -> int | None:
    """Rows that are not deleted; None where the summary cannot tell: with equality deletes, and
    where older formats count position deletes, which may name a row twice."""
    if snapshot is None:
        return 0
    keys = ("total-records", "total-position-deletes", "total-equality-deletes")
    records, positions, equality = (number(snapshot.summary, key) for key in keys)
    if records is None or positions is None or equality != 0:
        return None
    return records - positions if snapshot.root_manifest is not None or not positions else None


def rows_changed(snapshot: Snapshot) -> tuple[int, int]:
    """Rows that a snapshot added and removed; rows that were deleted before do not count again.

    Rows that are rewritten, as by compaction, count as both.
    """

    def stated(key: str) -> int:
        return number(snapshot.summary, key) or 0

    added = stated("added-records")
    removed = stated("deleted-records")
    removed += stated("added-position-deletes") - stated("removed-position-deletes")
    return (added, removed) if removed >= 0 else (added - removed, 0)

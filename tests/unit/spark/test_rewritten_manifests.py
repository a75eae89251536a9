"""What a rewrite of leaves says that it did."""

from __future__ import annotations

import pytest

from frazil.spark.jobs.rewrite_leaves import RewrittenManifests


@pytest.mark.parametrize(
    ("snapshot_id", "before", "after", "expected"),
    [
        (7, 0, 1, "moved the root's entries to 1 leaf, 0.3 s"),
        (7, 12, 2, "rewrote 12 leaves as 2 leaves, 0.3 s"),
        (7, 2, 1, "rewrote 2 leaves as 1 leaf, 0.3 s"),
        (None, 3, 3, "no leaf is worth rewriting"),
    ],
)
def test_a_report_names_what_was_rewritten(
    snapshot_id: int | None, before: int, after: int, expected: str
) -> None:
    report = RewrittenManifests(
        snapshot_id=snapshot_id, leaves_before=before, leaves_after=after, ms=312.0
    )
    assert str(report) == expected

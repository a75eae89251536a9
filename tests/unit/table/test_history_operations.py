"""The history operations of the facade: arguments as users give them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from frazil.errors import InvalidInput
from frazil.table import Table
from tests.support.history import new_table, rows, snapshot_id, told


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = new_table(tmp_path)
    for number in range(3):
        made.append(rows(number))
    return made


def test_ages_and_times_say_what_is_old(table: Table) -> None:
    last = table.snapshots()[-1]
    moment = datetime.fromtimestamp((last.timestamp_ms + 1) / 1000, UTC)
    asked: list[int | str | datetime | timedelta] = [
        last.timestamp_ms + 1,
        moment,
        moment.isoformat(),
        moment.replace(tzinfo=None).isoformat(),
        moment.replace(tzinfo=None),
        timedelta(0),
        "0 days",
    ]
    for older_than in asked:
        found = table.expire_snapshots(older_than=older_than, dry_run=True)
        assert len(found.snapshot_ids) == 2, older_than
    assert table.expire_snapshots(older_than=timedelta(days=1), dry_run=True).snapshot_ids == ()


def test_what_is_no_time_is_refused(table: Table) -> None:
    with pytest.raises(InvalidInput, match="ISO 8601"):
        table.expire_snapshots(older_than="last week")
    with pytest.raises(InvalidInput, match=r"older_than is 1\.5"):
        table.remove_orphan_files(older_than=1.5)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="keep_last"):
        table.expire_snapshots(keep_last=0)


def test_keep_last_counts_per_branch(table: Table) -> None:
    found = table.expire_snapshots(older_than=timedelta(0), keep_last=2, dry_run=True)
    assert len(found.snapshot_ids) == 1


def test_chosen_snapshots_go_alone(table: Table) -> None:
    second = int(table.snapshots()[1].snapshot_id)
    done = table.expire_snapshots(snapshot_ids=[second])
    assert done.snapshot_ids == (second,)
    assert len(table.snapshots()) == 2
    with pytest.raises(InvalidInput, match="have expired"):
        table.changes(since=int(table.snapshots()[0].snapshot_id))


def test_changes_follow_the_branch_of_the_table(table: Table) -> None:
    side = table.branch("side", create=True)
    start = snapshot_id(side)
    side.append(rows(9))
    assert told(side.changes(since=start)) == [(0, "insert", "x", 9)]
    assert table.changes(since=start).snapshots == ()


def test_a_feed_is_fixed_when_it_is_made(table: Table) -> None:
    feed = table.changes()
    table.append(rows(9))
    assert feed.to_arrow().num_rows == 3
    assert table.changes().to_arrow().num_rows == 4


def test_reports_of_care_have_text_and_values(table: Table) -> None:
    table.delete("id = 0")
    expired = table.expire_snapshots(older_than=timedelta(0))
    assert str(expired) == "expired 3 snapshots; files deleted: 1 data file, 3 roots"
    assert expired.to_dict()["dry-run"] is False
    assert str(table.remove_orphan_files()) == "removed 0 files, 0 bytes"
    assert table.check().to_dict()["problems"] == ()
    assert table.analyze().to_dict()["data_files"] == 2

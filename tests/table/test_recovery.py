"""A catalog that is lost: tables come back as they were, and nothing is deleted in doubt."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import frazil
from frazil.errors import Unsupported
from frazil.table import Table
from tests.support.history import eight_commits, files_of, rows, state_of

FUTURE = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return eight_commits(tmp_path)


@pytest.mark.parametrize("keep_last", [1, 2, 5])
def test_a_table_is_recovered_after_an_expiry(table: Table, tmp_path: Path, keep_last: int) -> None:
    table.expire_snapshots(older_than=FUTURE, keep_last=keep_last)
    table.append(rows(50))
    table.expire_snapshots(older_than=FUTURE, keep_last=keep_last)
    before = state_of(table)
    found, story = frazil.connect(tmp_path / "new").recover_table("shop.orders", table.location)
    assert state_of(found) == before
    assert story.is_certain
    assert [s.snapshot_id for s in found.snapshots()] == [s.snapshot_id for s in table.snapshots()]
    assert found.metadata.next_row_id == table.metadata.next_row_id
    assert found.check(deep=True).problems == ()
    done = found.remove_orphan_files(older_than=FUTURE)
    assert done.files == ()
    assert state_of(found) == before
    found.append(rows(60))
    assert len(state_of(found)) == len(before) + 1


def test_a_branch_is_recovered_by_name_after_an_expiry(table: Table, tmp_path: Path) -> None:
    side = table.branch("side", create=True)
    side.append(rows(70))
    table.append(rows(80))
    side.refresh().append(rows(71))
    table.refresh().expire_snapshots(older_than=FUTURE)
    found, _ = frazil.connect(tmp_path / "new").recover_table("shop.orders", table.location)
    assert state_of(found) == state_of(table)
    assert state_of(found.branch("side", create=False)) == state_of(side.refresh())


def test_nothing_is_deleted_while_a_recovery_is_in_doubt(table: Table, tmp_path: Path) -> None:
    table.tag("audited")
    table.append(rows(50))
    table.append(rows(51))
    table.expire_snapshots(older_than=FUTURE)
    catalog = frazil.connect(tmp_path / "new")
    found, story = catalog.recover_table("shop.orders", table.location)
    assert not story.is_certain
    files = files_of(found)
    for call in (
        lambda: found.remove_orphan_files(older_than=FUTURE),
        lambda: found.expire_snapshots(older_than=FUTURE),
        lambda: catalog.drop_table("shop.orders", purge=True),
    ):
        with pytest.raises(Unsupported, match=r"frazil\.recovery\.uncertain"):
            call()
    assert files_of(found) == files
    found.remove_orphan_files(dry_run=True)
    found.set_properties(remove=["frazil.recovery.uncertain"])
    found.expire_snapshots(older_than=timedelta(days=1))
    assert state_of(found) == state_of(table)

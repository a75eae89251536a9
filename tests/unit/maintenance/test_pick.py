"""Cherry-pick and fast-forward: publishing work that was done on a branch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from frazil.errors import CommitConflict, InvalidInput, Unsupported
from frazil.table import Table
from tests.support.history import SMALL, new_table, rows, snapshot_id, state_of, told
from tests.support.trees import ScriptedHead


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = new_table(tmp_path)
    made.append(rows(1, 2, 3))
    return made


def _ids(table: Table) -> list[int]:
    return sorted(id for id, _ in state_of(table).values())


def test_audited_work_is_published_by_fast_forward(table: Table) -> None:
    audit = table.branch("audit", create=True)
    audit.append(rows(4))
    audit.delete("id = 1")
    assert _ids(table.refresh()) == [1, 2, 3]
    table.fast_forward(to="audit")
    assert _ids(table) == [2, 3, 4]
    assert snapshot_id(table) == snapshot_id(audit)


def test_a_named_branch_is_forwarded_or_made(table: Table) -> None:
    table.branch("release", create=True)
    table.append(rows(4))
    table.fast_forward("release", to="main")
    table.fast_forward("fresh", to="main")
    refs = table.metadata.refs
    assert refs["release"].snapshot_id == refs["fresh"].snapshot_id == refs["main"].snapshot_id


def test_a_branch_with_work_of_its_own_is_not_forwarded(table: Table) -> None:
    audit = table.branch("audit", create=True)
    audit.append(rows(4))
    table.refresh().append(rows(5))
    with pytest.raises(InvalidInput, match="cherry-pick instead"):
        table.fast_forward(to="audit")
    table.tag("fixed")
    with pytest.raises(InvalidInput, match="tag"):
        table.fast_forward("fixed", to="main")


def test_a_picked_append_brings_its_files_and_row_ids(table: Table) -> None:
    audit = table.branch("audit", create=True)
    audit.append(rows(4, 5))
    picked = snapshot_id(audit)
    table.refresh().append(rows(6))
    done = table.cherry_pick(picked)
    assert done.snapshot is not None
    assert done.snapshot.summary["source-snapshot-id"] == str(picked)
    assert _ids(table) == [1, 2, 3, 4, 5, 6]
    mine = {row: key for key, row in state_of(table).items()}
    theirs = {row: key for key, row in state_of(audit).items()}
    assert mine[4, "x"] == theirs[4, "x"]
    assert table.check(deep=True).problems == ()


def test_picked_updates_and_deletes_apply_to_this_branchs_rows(table: Table) -> None:
    audit = table.branch("audit", create=True)
    audit.update({"v": "y"}, where="id = 2")
    update = snapshot_id(audit)
    audit.delete("id = 3")
    delete = snapshot_id(audit)
    table.refresh().delete("id = 1")
    table.cherry_pick(delete)
    start = snapshot_id(table)
    assert _ids(table) == [2]
    table.cherry_pick(update)
    assert list(state_of(table).values()) == [(2, "y")]
    assert told(table.changes(since=start)) == [
        (0, "update_postimage", "y", 2),
        (0, "update_preimage", "x", 2),
    ]
    assert table.check(deep=True).problems == ()


def test_picked_file_removals_are_found_wherever_the_entry_is(tmp_path: Path) -> None:
    table = new_table(tmp_path, properties=SMALL)
    for number in range(5):
        table.append(rows(number))
    audit = table.branch("audit", create=True)
    audit.delete("id = 2")
    picked = snapshot_id(audit)
    table.refresh().append(rows(9))
    table.rewrite_manifests()
    table.cherry_pick(picked)
    assert _ids(table) == [0, 1, 3, 4, 9]
    assert table.check(deep=True).problems == ()


def test_the_next_snapshot_of_a_branch_is_taken_as_it_is(table: Table) -> None:
    audit = table.branch("audit", create=True)
    audit.append(rows(4))
    done = table.refresh().cherry_pick("audit")
    assert done.snapshot is None
    assert snapshot_id(table) == snapshot_id(audit)


def test_a_snapshot_is_picked_once(table: Table) -> None:
    audit = table.branch("audit", create=True)
    audit.append(rows(4))
    picked = snapshot_id(audit)
    table.refresh().append(rows(5))
    table.cherry_pick(picked)
    with pytest.raises(InvalidInput, match="picked onto main before"):
        table.cherry_pick(picked)
    with pytest.raises(InvalidInput, match="in the history"):
        table.cherry_pick(int(table.snapshots()[0].snapshot_id))


def test_rows_that_are_gone_on_this_branch_are_a_conflict(table: Table) -> None:
    audit = table.branch("audit", create=True)
    audit.update({"v": "y"}, where="id = 2")
    table.refresh().delete("id >= 0")
    before = snapshot_id(table)
    with pytest.raises(CommitConflict):
        table.cherry_pick("audit")
    assert snapshot_id(table.refresh()) == before
    assert sorted(table.metadata.refs) == ["audit", "main"]


def test_an_expiry_during_a_pick_is_a_conflict_for_the_expiry(table: Table) -> None:
    """The picked snapshot has a name while the pick is under way."""
    audit = table.branch("audit", create=True)
    audit.append(rows(4))
    picked = snapshot_id(audit)
    table.refresh().append(rows(5))
    table.drop_ref("audit")
    other = replace(table, _handle=replace(table._handle))
    head = table._handle.head
    table._handle.head = scripted = ScriptedHead(head)
    refused: list[str] = []

    def expire() -> None:
        with pytest.raises(InvalidInput) as error:
            other.expire_snapshots(snapshot_ids=[picked])
        refused.append(str(error.value))

    scripted.before_swap += [lambda: None, expire]
    table.cherry_pick(picked)
    assert f"pick/{picked}" in refused[0]
    assert _ids(table) == [1, 2, 3, 4, 5]
    assert list(table.metadata.refs) == ["main"]
    other.expire_snapshots(snapshot_ids=[picked])
    assert _ids(table) == [1, 2, 3, 4, 5]


def test_equality_deletes_are_not_picked(table: Table) -> None:
    audit = table.branch("audit", create=True)
    audit.set_properties({"write.equality-deletes.enabled": "true"})
    audit.row_delta().add_equality_deletes(pa.table({"id": [1]}), on=["id"]).commit()
    table.refresh().append(rows(5))
    with pytest.raises(Unsupported, match="delete files"):
        table.cherry_pick("audit")


def test_expiry_keeps_files_that_were_picked(table: Table) -> None:
    audit = table.branch("audit", create=True)
    audit.append(rows(4))
    picked = snapshot_id(audit)
    table.refresh().append(rows(5))
    table.cherry_pick(picked)
    table.drop_ref("audit")
    table.expire_snapshots(snapshot_ids=[picked])
    assert _ids(table) == [1, 2, 3, 4, 5]
    assert table.check(deep=True).problems == ()


def _both_ways(folder: Path) -> tuple[Table, int, int]:
    """Files in a leaf of a branch, one born with a vector, picked onto main and moved to a leaf."""
    table = new_table(folder, properties={"write.root.max-data-entries": "1"})
    table.append(rows(1))
    audit = table.branch("audit", create=True)
    with audit.transaction() as tx:
        tx.append(rows(4, 5, 6))
        tx.append(rows(7))
        tx.delete("id = 5")
    there = snapshot_id(audit)
    for number in range(3):
        table.refresh().append(rows(10 + number))
    table.cherry_pick(there)
    table.rewrite_manifests()
    return table, there, snapshot_id(table)


def test_files_in_leaves_of_two_branches_outlive_one_of_them(tmp_path: Path) -> None:
    table, _, here = _both_ways(tmp_path / "source goes")
    table.drop_ref("audit")
    table.expire_snapshots(keep_last=1, older_than=2**60)
    table._handle.context.cache.clear()
    assert [int(s.snapshot_id) for s in table.snapshots()] == [here]
    assert _ids(table) == [1, 4, 6, 7, 10, 11, 12]
    assert table.check(deep=True).problems == ()

    table, there, _ = _both_ways(tmp_path / "pick goes")
    table.overwrite(rows(1))
    table.expire_snapshots(keep_last=1, older_than=2**60)
    table._handle.context.cache.clear()
    assert len(table.snapshots()) == 2
    assert sorted(id for id, _ in state_of(table, there).values()) == [1, 4, 6, 7]
    assert table.check(deep=True).problems == ()

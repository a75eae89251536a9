"""Leaves written anew: fewer, fuller, apart, and with no change of rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from frazil.commit.change import Change
from frazil.commit.loop import commit
from frazil.errors import NotFound
from frazil.format.batch import EntryBatch
from frazil.maintenance.overlap import overlap_of
from frazil.table import Table
from tests.support.history import SMALL, new_table, rows, snapshot_id, state_of
from tests.support.trees import ScriptedHead


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Files whose ids are scattered over the order in which they came."""
    made = new_table(tmp_path, properties=SMALL)
    for number in range(18):
        made.append(rows((number * 7) % 18))
    return made


def _leaves(table: Table) -> list[int]:
    tree = table._handle.reader().tree(table.current_snapshot())
    return [leaf.record_count for leaf in tree.leaves()]


def _overlap(table: Table) -> float:
    tree = table._handle.reader().tree(table.current_snapshot())
    return overlap_of(tree, table.metadata).average


def test_leaves_are_full_and_apart_afterwards(table: Table) -> None:
    before, start = state_of(table), snapshot_id(table)
    assert _overlap(table) > 0
    done = table.rewrite_manifests()
    assert done is not None
    assert done.snapshot is not None
    assert done.snapshot.operation == "replace"
    assert _leaves(table) == [6, 6, 6]
    assert _overlap(table) == 0
    assert state_of(table) == before
    assert table.changes(since=start).to_arrow().num_rows == 0
    assert table.changes(since=start).files().num_rows == 0
    assert table.check(deep=True).problems == ()


def test_a_tidy_tree_is_left_alone(table: Table) -> None:
    table.rewrite_manifests()
    assert not table.rewrite_manifests().committed
    assert not table.compact_metadata().committed
    assert len(table.snapshots()) == 19


def test_an_empty_table_has_nothing_to_rewrite(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    assert not table.rewrite_manifests().committed
    assert not table.compact_metadata().committed


def test_dead_entries_are_dropped(table: Table) -> None:
    table.rewrite_manifests()
    table.delete("id < 4")
    table.delete("id = 9")
    before = state_of(table)
    done = table.compact_metadata()
    assert done is not None
    tree = table._handle.reader().tree(table.current_snapshot())
    assert sum(leaf.dead for leaf in tree.leaves()) == 0
    assert tree.content().num_rows == 0
    assert sum(_leaves(table)) == 13
    assert state_of(table) == before
    assert table.check(deep=True).problems == ()


def test_compaction_moves_the_roots_entries_to_a_leaf(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    table.append(rows(2))
    table.compact_metadata()
    tree = table._handle.reader().tree(table.current_snapshot())
    assert tree.content().num_rows == 0
    assert _leaves(table) == [2]


def test_named_leaves_alone_can_be_rewritten(table: Table) -> None:
    leaf = table._handle.reader().tree(table.current_snapshot()).leaves()[0]
    kept = {
        ref.location
        for ref in table._handle.reader().tree(table.current_snapshot()).leaves()
        if ref.location != leaf.location
    }
    table.rewrite_manifests(leaves=[leaf.location])
    now = {ref.location for ref in table._handle.reader().tree(table.current_snapshot()).leaves()}
    assert kept < now
    assert leaf.location not in now
    with pytest.raises(NotFound, match="no leaf"):
        table.rewrite_manifests(leaves=["metadata/leaf-none.parquet"])


def test_a_commit_that_lands_first_is_kept(table: Table) -> None:
    """Another commit takes a file out of a leaf while that leaf is rewritten."""
    plan = table.scan(where="id = 5").plan()
    gone = EntryBatch.from_rows([{"location": plan.files.pylist("location")[0]}])
    head, around = table._handle.head, table._handle.around
    table._handle.head = scripted = ScriptedHead(head)
    scripted.before_swap.append(lambda: commit(Change(removed=gone), head=head, around=around))
    done = table.rewrite_manifests()
    assert done is not None
    assert done.attempts == 2
    table._handle.head = head
    assert sorted(id for id, _ in state_of(table.refresh()).values()) == [
        id for id in range(18) if id != 5
    ]
    assert table.check(deep=True).problems == ()


def test_a_branch_is_rewritten_by_itself(table: Table) -> None:
    side = table.branch("side", create=True)
    main = snapshot_id(table)
    side.rewrite_manifests()
    assert snapshot_id(table.refresh()) == main
    assert snapshot_id(side.refresh()) != main
    assert state_of(side) == state_of(table)

"""Leaves written anew: fewer, fuller, apart, and with no change of rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.commit.change import Change
from frazil.commit.loop import commit
from frazil.errors import InvalidInput, NotFound
from frazil.format.entries.batch import EntryBatch
from frazil.table import Table
from frazil.tree.clusters import overlap_of
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


@pytest.fixture
def upgraded(tmp_path: Path) -> Iterator[Table]:
    """A table that was of version 2, with a position delete and an equality delete."""
    schema = pa.schema([("id", pa.int64())])
    with frazil.connect(tmp_path / "before") as catalog:
        made = catalog.create_table("shop.things", schema)
        made.append([{"id": id} for id in range(4)])
        made.append([{"id": id} for id in range(4, 8)])
        made.set_properties({"write.equality-deletes.enabled": "true"})
        made.row_delta().add_equality_deletes(pa.table({"id": [2, 5]}), on=["id"]).commit()
        made.delete("id = 6")
        published = made.publish(format_version=2).metadata_location
    with frazil.connect(tmp_path / "after") as catalog:
        table = catalog.register_table("shop.things", published)
        table.upgrade()
        yield table


def _kinds(table: Table) -> list[tuple[str, int]]:
    """Leaves as what they list, and the version that wrote them, 0 for one before 4."""
    tree = table._handle.reader().tree(table.current_snapshot())
    return sorted((leaf.content_type.name, leaf.format_version) for leaf in tree.leaves())


def test_old_equality_deletes_stay_in_their_manifests(upgraded: Table) -> None:
    table = upgraded
    assert {version for _, version in _kinds(table)} == {0}
    rows = [{"id": id} for id in (0, 1, 3, 4, 7)]
    assert sorted(table.scan().to_pylist(), key=lambda row: row["id"]) == rows
    assert table.rewrite_manifests().snapshot is not None
    kept = [name for name, version in _kinds(table) if version == 0]
    assert kept == ["DELETE_MANIFEST"] * len(kept)
    assert kept
    assert all(name == "DATA_MANIFEST" for name, version in _kinds(table) if version > 0)
    assert sorted(table.scan().to_pylist(), key=lambda row: row["id"]) == rows
    assert table.rewrite_manifests().snapshot is None
    table.delete("id = 3")
    table.append([{"id": 5}])
    table.rewrite_manifests()
    assert sorted(row["id"] for row in table.scan().to_pylist()) == [0, 1, 4, 5, 7]
    tree = table._handle.reader().tree(table.current_snapshot())
    (old,) = {leaf.location for leaf in tree.leaves() if leaf.format_version == 0}
    with pytest.raises(InvalidInput, match="equality deletes"):
        table.rewrite_manifests(leaves=[old])
    assert not table.check(deep=True).problems


def test_old_data_manifests_age_out_and_deletes_still_apply(upgraded: Table) -> None:
    table = upgraded
    table.append([{"id": 100}])  # assigns row ids
    ids = {row["id"]: row["_row_id"] for row in table.scan(columns=["id", "_row_id"]).to_pylist()}
    assert sorted(ids) == [0, 1, 3, 4, 7, 100]
    for id in (101, 102):
        table.append([{"id": id}])
    assert ("DATA_MANIFEST", 0) not in _kinds(table)
    assert ("DELETE_MANIFEST", 0) in _kinds(table)
    now = {row["id"]: row["_row_id"] for row in table.scan(columns=["id", "_row_id"]).to_pylist()}
    assert {id: now[id] for id in ids} == ids
    assert sorted(now) == [*sorted(ids), 101, 102]
    table.delete("id = 3")
    table.rewrite_manifests()
    left = sorted(row["id"] for row in table.scan().to_pylist())
    assert left == [0, 1, 4, 7, 100, 101, 102]
    assert not table.check(deep=True).problems


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
    head, context = table._handle.head, table._handle.context
    table._handle.head = scripted = ScriptedHead(head)
    scripted.before_swap.append(lambda: commit(Change(removed=gone), head=head, context=context))
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

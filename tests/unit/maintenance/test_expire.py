"""Expiry deletes exactly what no kept snapshot reaches."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from frazil.commit.change import Change
from frazil.commit.handle import now_ms
from frazil.commit.loop import commit
from frazil.commit.updates import SetRef
from frazil.errors import CommitConflict, InvalidInput, StorageError
from frazil.format.metadata.metadata import RefKind, SnapshotRef
from frazil.maintenance.removal.expire import expire_snapshots
from frazil.storage import LocalStorage
from frazil.table import Table, refs
from tests.support.history import SMALL, files_of, new_table, rows, snapshot_id, state_of
from tests.support.trees import ScriptedHead


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return new_table(tmp_path)


def _names(files: dict[str, tuple[str, ...]], table: Table) -> dict[str, int]:
    assert all(path.startswith(table.location) for found in files.values() for path in found)
    return {kind: len(found) for kind, found in files.items()}


def test_roots_of_appends_go_and_their_files_stay(table: Table) -> None:
    for number in range(4):
        table.append(rows(number))
    before = files_of(table)
    done = table.expire_snapshots(older_than=timedelta(0))
    assert len(done.snapshot_ids) == 3
    assert _names(done.files, table) == {"roots": 3}
    gone = before - files_of(table)
    assert len(gone) == 3
    assert all(path.startswith("metadata/root-") for path in gone)
    assert table.scan().count() == 4
    assert len(table.snapshots()) == 1


def test_removed_files_go_with_the_last_snapshot_that_has_them(table: Table) -> None:
    table.append(rows(1))
    table.append(rows(2))
    table.tag("both")
    table.delete("id = 1")
    table.append(rows(3))
    done = table.expire_snapshots(older_than=timedelta(0))
    assert _names(done.files, table) == {"roots": 2}
    assert sorted(id for id, _ in state_of(table, "both").values()) == [1, 2]
    table.drop_ref("both")
    done = table.expire_snapshots(older_than=timedelta(0))
    assert _names(done.files, table) == {"data-files": 1, "roots": 1}
    assert sorted(id for id, _ in state_of(table).values()) == [2, 3]


def test_old_vectors_go_when_they_are_replaced(table: Table) -> None:
    table.append(rows(1, 2, 3))
    table.delete("id = 1")
    table.delete("id = 2")
    done = table.expire_snapshots(older_than=timedelta(0))
    assert _names(done.files, table) == {"deletion-vectors": 1, "roots": 2}
    assert sorted(id for id, _ in state_of(table).values()) == [3]


def test_a_puffin_file_stays_while_one_of_its_vectors_is_used(tmp_path: Path) -> None:
    table = new_table(tmp_path, properties=SMALL)
    table.append(rows(1, 2))
    table.append(rows(3, 4))
    table.delete("id = 1 or id = 3")  # one Puffin file for two data files
    for number in range(5):
        table.append(rows(10 + number))
    table.delete("id = 2")  # the first file is empty and goes
    table.append(rows(20))
    done = table.expire_snapshots(older_than=timedelta(0))
    assert "deletion-vectors" not in done.files
    assert len(done.files["data-files"]) == 1
    assert table.check(deep=True).problems == ()
    assert sorted(id for id, _ in state_of(table).values()) == [4, 10, 11, 12, 13, 14, 20]


def test_rewritten_leaves_go_with_the_snapshots_before(tmp_path: Path) -> None:
    table = new_table(tmp_path, properties=SMALL)
    for number in range(10):
        table.append(rows(number))
    table.rewrite_manifests()
    done = table.expire_snapshots(older_than=timedelta(0))
    assert "data-files" not in done.files
    assert len(done.files["leaves"]) >= 1
    assert table.check(deep=True).problems == ()


def test_a_dry_run_says_the_same_and_does_nothing(table: Table) -> None:
    table.append(rows(1))
    table.append(rows(2))
    table.delete("id = 1")
    before = files_of(table)
    dry = table.expire_snapshots(older_than=timedelta(0), dry_run=True)
    assert files_of(table) == before
    assert len(table.snapshots()) == 3
    done = table.expire_snapshots(older_than=timedelta(0))
    assert done.files == dry.files
    assert (dry.is_dry_run, done.is_dry_run) == (True, False)
    assert str(dry).startswith("would expire 2 snapshots")
    assert done.to_dict()["snapshots"] == list(dry.snapshot_ids)


def test_nothing_to_expire_is_nothing(table: Table) -> None:
    assert table.expire_snapshots().snapshot_ids == ()
    table.append(rows(1))
    done = table.expire_snapshots()
    assert done.snapshot_ids == ()
    assert done.file_count == 0


def test_branches_and_tags_are_protected(table: Table) -> None:
    table.append(rows(1))
    first = snapshot_id(table)
    table.branch("side", create=True).append(rows(2))
    table.refresh()
    table.append(rows(3))
    table.tag("now")
    with pytest.raises(InvalidInput, match="now"):
        table.expire_snapshots(snapshot_ids=[snapshot_id(table)])
    done = table.expire_snapshots(older_than=timedelta(0))
    assert done.snapshot_ids == (first,)
    assert len(state_of(table, "side")) == 2


def test_an_aged_tag_is_removed_with_what_it_kept(table: Table) -> None:
    table.append(rows(1))
    table.tag("short", max_age_ms=1000)
    table.delete("id = 1")
    table.append(rows(2))
    later = now_ms() + 2000
    table._handle.context = replace(table._handle.context, now_ms=lambda: later)
    done = table.expire_snapshots(older_than=timedelta(0))
    assert done.refs == ("short",)
    assert len(done.files["data-files"]) == 1
    assert list(table.metadata.refs) == ["main"]


def test_a_snapshot_named_meanwhile_is_a_conflict(table: Table) -> None:
    table.append(rows(1))
    table.append(rows(2))
    first = table.snapshots()[0]
    update = SetRef(
        name="late",
        ref=SnapshotRef(snapshot_id=first.snapshot_id, kind=RefKind.TAG),
        expected=None,
    )
    head, context = table._handle.head, table._handle.context
    table._handle.head = scripted = ScriptedHead(head)
    scripted.before_swap.append(
        lambda: commit(Change(updates=(update,)), head=head, context=context)
    )
    before = files_of(table)
    with pytest.raises(CommitConflict, match="got a name"):
        table.expire_snapshots(snapshot_ids=[int(first.snapshot_id)])
    assert files_of(table) == before
    assert state_of(table.refresh(), "late")


def test_a_file_added_again_is_kept(table: Table) -> None:
    """The same file in a history that was rolled back and in the one that went on."""
    table.append(rows(1))
    start = snapshot_id(table)
    table.append(rows(2))
    entries = table.scan(where="id = 2").plan().files
    path = entries.pylist("location")[0]
    stray = snapshot_id(table)
    table.rollback(start)
    table.append(rows(3))
    table.add_files([f"{table.location}/{path}"])
    done = table.expire_snapshots(snapshot_ids=[stray])
    assert "data-files" not in done.files
    assert sorted(id for id, _ in state_of(table).values()) == [1, 2, 3]


def test_files_that_cannot_be_deleted_are_reported(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.append(rows(1))
    table.append(rows(2))

    def refuse(self: LocalStorage, path: str) -> None:
        raise StorageError(f"{path}: denied")

    monkeypatch.setattr(LocalStorage, "delete", refuse)
    done = table.expire_snapshots(older_than=timedelta(0))
    ((path, reason),) = done.failed
    assert "root-" in path
    assert "denied" in reason
    assert done.file_count == 0
    assert len(table.snapshots()) == 1


def test_a_root_that_is_gone_already_does_not_stop_it(table: Table) -> None:
    table.append(rows(1))
    table.append(rows(2))
    first = table.snapshots()[0]
    table._handle.storage.delete(f"{table.location}/{first.root_manifest}")
    table._handle.context.cache.clear()
    done = expire_snapshots(table._handle, snapshot_ids=[int(first.snapshot_id)])
    assert done.snapshot_ids == (int(first.snapshot_id),)
    assert table.scan().count() == 2


def test_progress_is_told(table: Table) -> None:
    for number in range(3):
        table.append(rows(number))
    seen: list[tuple[int, int, str]] = []
    table.expire_snapshots(
        older_than=timedelta(0), progress=lambda done, total, what: seen.append((done, total, what))
    )
    assert (2, 2, "expired roots") in seen
    assert (2, 2, "files deleted") in seen


@pytest.mark.parametrize("seed", range(3))
def test_what_is_left_is_what_is_reached(tmp_path: Path, seed: int) -> None:
    """Random histories and expiries: every kept snapshot reads as before, no file is left over."""
    chance = random.Random(seed)
    table = new_table(tmp_path, properties=SMALL)
    table.append(rows(0))
    top = 1
    for step in range(24):
        named = [name for name in table.metadata.refs if name != "main"]
        pick = chance.randrange(top + 1)
        match chance.choice("aaaaaadddutgrweec"):
            case "a":
                table.append(rows(*range(top, top + 3)))
                top += 3
            case "d":
                table.delete(f"id >= {pick} and id < {pick + chance.choice([1, 7])}")
            case "u":
                table.update({"v": "y"}, where=f"id = {pick}")
            case "t":
                table.tag(f"t{step}", chance.choice(table.snapshots()).snapshot_id)
            case "g" if named:
                table.drop_ref(chance.choice(named))
            case "r":
                lineage = list(refs.ancestors(table._handle, table.current_snapshot()))
                table.rollback(chance.choice(lineage).snapshot_id)
            case "w":
                table.rewrite_manifests()
            case "c":
                keys = pa.table({"id": [pick]})
                table.set_properties({"write.equality-deletes.enabled": "true"})
                table.row_delta().add_equality_deletes(keys, on=["id"]).commit()
            case "e":
                _expire_some(table, chance)
    _expire_some(table, chance)


def _expire_some(table: Table, chance: random.Random) -> None:
    before = {s.snapshot_id: state_of(table, s.snapshot_id) for s in table.snapshots()}
    named = {ref.snapshot_id for ref in table.metadata.refs.values()}
    free = [s.snapshot_id for s in table.snapshots() if s.snapshot_id not in named]
    table.expire_snapshots(snapshot_ids=[id for id in free if chance.random() < 0.5])
    table._handle.context.cache.clear()
    left = table.snapshots()
    assert {s.snapshot_id: state_of(table, s.snapshot_id) for s in left} == {
        s.snapshot_id: before[s.snapshot_id] for s in left
    }
    used: set[str] = set()
    for snapshot in left:
        assert snapshot.root_manifest is not None
        used.add(snapshot.root_manifest)
        tree = table._handle.reader().tree(snapshot)
        used.update(leaf.location for leaf in tree.leaves())
        for batch in table._handle.reader().all_live(tree):
            used.update(batch.pylist("location"))
            used.update(name for name in batch.pylist("deletion_vector.location") if name)
    assert files_of(table) == used

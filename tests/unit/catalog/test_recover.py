"""Rebuilding a table from its files: what can be told, and what is said when it cannot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.catalog import export
from frazil.catalog.recover import recover
from frazil.errors import NotFound
from frazil.format.metadata import metadata_json
from frazil.format.metadata.metadata import (
    History,
    RefKind,
    SchemaId,
    Snapshot,
    SnapshotId,
    SnapshotRef,
    TableMetadata,
)
from frazil.storage import LocalStorage
from tests.support.catalogs import append_and_land, orders, snapshot_after
from tests.support.memory_catalog import MemoryCatalog

STORAGE = LocalStorage()


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def write_root(
    metadata: TableMetadata, snapshot: Snapshot, *, content: str = "root", **others: str
) -> None:
    """A root with no entries, as a commit would leave it."""
    assert snapshot.root_manifest is not None
    path = Path(metadata.location, snapshot.root_manifest)
    path.parent.mkdir(parents=True, exist_ok=True)
    facts = {
        "format-version": "4",
        "content": content,
        "table-uuid": str(metadata.table_uuid),
        "snapshot-id": str(snapshot.snapshot_id),
        "sequence-number": str(snapshot.sequence_number),
        "frazil.snapshot": metadata_json.snapshot_text(snapshot),
        **others,
    }
    empty = pa.table({"location": pa.array([], pa.string())})
    with pq.ParquetWriter(path, empty.schema, store_schema=False) as writer:
        writer.add_key_value_metadata({key: value for key, value in facts.items() if value})
        writer.write_table(empty)


def commit(metadata: TableMetadata, number: int, *, branch: str = "main") -> TableMetadata:
    """Write a root and move on."""
    snapshot = snapshot_after(metadata, number, branch=branch)
    write_root(metadata, snapshot)
    return metadata.with_snapshot(snapshot, branch=branch)


def start(place: str) -> TableMetadata:
    metadata = orders(place)
    export.render(metadata, History(), version=0, storage=STORAGE)
    return metadata


def test_commits_after_the_json_are_replayed(place: str) -> None:
    metadata = start(place)
    for number in (11, 12, 13):
        metadata = commit(metadata, number)
    found = recover(place, STORAGE)
    assert found.metadata == metadata
    assert [each.snapshot_id for each in found.history.snapshots] == [11, 12, 13]
    assert [entry.snapshot_id for entry in found.history.snapshot_log] == [11, 12, 13]
    assert found.is_certain
    (note,) = found.notes
    assert "newest root" in note


def test_a_json_that_is_up_to_date_needs_no_roots(place: str) -> None:
    metadata = commit(start(place), 1)
    snapshot = snapshot_after(orders(place), 1)
    history = History().advanced(orders(place), metadata, added=(snapshot,))
    path = export.render(metadata, history, version=1, storage=STORAGE)
    found = recover(place, STORAGE)
    assert (found.metadata, found.metadata_location) == (metadata, path)
    assert found.history.snapshots == (snapshot,)
    assert [entry.metadata_file for entry in found.history.metadata_log] == [path]
    assert (found.is_certain, found.notes) == (True, ())


def test_a_recovered_table_goes_back_into_a_catalog(place: str, tmp_path: Path) -> None:
    commit(start(place), 1)
    found = recover(place, STORAGE)
    catalog = MemoryCatalog(warehouse=str(tmp_path))
    catalog.namespaces.create("shop")
    head = catalog.create_table("shop.orders", found.metadata, found.history)
    assert [each.snapshot_id for each in append_and_land(head, 2).snapshots.values()] == [2]
    assert [each.snapshot_id for each in head.snapshots()] == [1, 2]


def test_a_root_that_lost_its_race_is_left_out(place: str) -> None:
    first = start(place)
    loser = snapshot_after(first, 99)
    write_root(first, loser)
    metadata = commit(commit(first, 1), 2)
    found = recover(place, STORAGE)
    assert found.metadata == metadata
    assert found.is_certain
    assert any("has 2 roots" in note and "successors" in note for note in found.notes)


def test_two_last_roots_are_ambiguous(place: str) -> None:
    first = commit(start(place), 1)
    write_root(first, snapshot_after(first, 2))
    late = replace(snapshot_after(first, 3), timestamp_ms=first.last_updated_ms + 500)
    write_root(first, late)
    found = recover(place, STORAGE)
    assert not found.is_certain
    assert found.metadata.current_snapshot_id == 3
    assert any("not known which one landed" in note for note in found.notes)


def test_a_gap_is_reported(place: str) -> None:
    first = commit(start(place), 1)
    later = replace(snapshot_after(first, 2), sequence_number=4)
    write_root(first, later)
    found = recover(place, STORAGE)
    assert found.metadata.current_snapshot_id == 2
    assert not found.is_certain
    assert any("from 2 to 3" in note for note in found.notes)


def test_a_root_whose_parent_has_expired_is_complete_by_itself(place: str) -> None:
    first = start(place)
    lost = first.with_snapshot(snapshot_after(first, 1))
    metadata = commit(lost, 2)
    found = recover(place, STORAGE)
    assert found.metadata == metadata
    assert [each.snapshot_id for each in found.history.snapshots] == [2]
    assert found.is_certain
    assert any("its parent, snapshot 1, has no root any more" in note for note in found.notes)


def test_snapshots_of_the_json_that_expired_after_it_are_left_out(place: str) -> None:
    first = start(place)
    snapshots = []
    metadata = first
    for number in (1, 2, 3):
        snapshots.append(snapshot_after(metadata, number))
        metadata = commit(metadata, number)
    tag = SnapshotRef(snapshot_id=SnapshotId(1), kind=RefKind.TAG)
    tagged = metadata.with_ref("old", tag, now_ms=metadata.last_updated_ms)
    export.render(tagged, History(snapshots=tuple(snapshots)), version=3, storage=STORAGE)
    metadata = commit(metadata, 4)
    for snapshot in snapshots:
        assert snapshot.root_manifest is not None
        Path(place, snapshot.root_manifest).unlink()
    found = recover(place, STORAGE)
    assert [each.snapshot_id for each in found.history.snapshots] == [4]
    assert found.metadata.current_snapshot_id == 4
    assert list(found.metadata.refs) == ["main"]
    assert any("old" in note for note in found.notes)


def test_a_snapshot_that_only_a_lost_tag_kept_leaves_a_doubt(place: str) -> None:
    first = start(place)
    kept = commit(first, 1)
    lost = kept.with_snapshot(snapshot_after(kept, 2))
    metadata = commit(lost, 3)
    found = recover(place, STORAGE)
    assert found.metadata.current_snapshot_id == metadata.current_snapshot_id
    assert [each.snapshot_id for each in found.history.snapshots] == [1, 3]
    assert not found.is_certain
    assert any("no branch leads to its snapshot, 1" in note for note in found.doubts)


def test_a_root_that_lost_a_race_does_not_push_the_newest_out(place: str) -> None:
    """The winner of the race has expired; the loser's file was left by a crash."""
    first = start(place)
    loser = replace(snapshot_after(first, 99), added_rows=500)
    write_root(first, loser)
    won = first.with_snapshot(snapshot_after(first, 1))
    metadata = commit(won, 2)
    found = recover(place, STORAGE)
    assert found.metadata.current_snapshot_id == 2
    assert found.metadata.next_row_id >= max(500, metadata.next_row_id)
    assert not found.is_certain


def test_a_branch_is_followed_by_its_tip(place: str) -> None:
    metadata = commit(start(place), 1)
    base = metadata
    audit = SnapshotRef(snapshot_id=SnapshotId(1))
    metadata = metadata.with_ref("audit", audit, now_ms=metadata.last_updated_ms)
    history = History(snapshots=(snapshot_after(orders(place), 1),))
    export.render(metadata, history, version=2, storage=STORAGE)
    metadata = commit(metadata, 2)
    metadata = commit(metadata, 3, branch="audit")
    found = recover(place, STORAGE)
    assert {name: ref.snapshot_id for name, ref in found.metadata.refs.items()} == {
        "main": 2,
        "audit": 3,
    }
    assert base.current_snapshot_id == 1
    assert any("may belong to any of audit, main" in note for note in found.notes)


def test_a_branch_made_after_the_json_is_kept_without_a_name(place: str) -> None:
    metadata = commit(start(place), 1)
    metadata = commit(metadata, 2)
    stray = replace(snapshot_after(metadata, 3), parent_snapshot_id=SnapshotId(1))
    write_root(metadata, stray)
    found = recover(place, STORAGE)
    assert found.metadata.current_snapshot_id == 2
    assert [each.snapshot_id for each in found.history.snapshots] == [1, 2, 3]
    assert not found.is_certain


def test_a_root_may_say_its_branch(place: str) -> None:
    metadata = commit(start(place), 1)
    write_root(metadata, snapshot_after(metadata, 2), **{"frazil.branch": "audit"})
    found = recover(place, STORAGE)
    assert found.metadata.current_snapshot_id == 1
    assert found.metadata.ref("audit").snapshot_id == 2
    assert found.metadata.ref("audit").kind is RefKind.BRANCH


def test_a_schema_nobody_wrote_down_is_reported(place: str) -> None:
    metadata = start(place)
    write_root(metadata, replace(snapshot_after(metadata, 1), schema_id=SchemaId(5)))
    found = recover(place, STORAGE)
    assert not found.is_certain
    assert any("schema 5" in note for note in found.notes)


def test_what_cannot_be_read_is_left_out_and_named(place: str) -> None:
    metadata = commit(start(place), 1)
    folder = Path(place, "metadata")
    (folder / "00009-broken.metadata.json").write_text('{"format-version": 4')
    (folder / "00010-newer.metadata.json").write_text('{"format-version": 7}')
    (folder / "root-broken.parquet").write_bytes(b"PAR1 no PAR1")
    found = recover(place, STORAGE)
    assert found.metadata == metadata
    for name in ("00009-broken", "00010-newer", "root-broken"):
        assert any(name in note for note in found.notes)


def test_other_files_are_not_taken_for_roots(place: str) -> None:
    metadata = start(place)
    write_root(metadata, snapshot_after(metadata, 1), content="data")
    foreign = replace(snapshot_after(metadata, 2), root_manifest="metadata/foreign.parquet")
    write_root(metadata, foreign, **{"table-uuid": "other"})
    found = recover(place, STORAGE)
    assert found.metadata == metadata
    assert found.notes == ()


def test_a_root_that_says_nothing_of_its_snapshot_is_reported(place: str) -> None:
    metadata = start(place)
    write_root(metadata, snapshot_after(metadata, 1), **{"frazil.snapshot": ""})
    found = recover(place, STORAGE)
    assert found.metadata == metadata
    assert not found.is_certain


def test_the_json_of_another_table_is_not_mixed_in(place: str) -> None:
    start(place)
    newer = orders(place).with_properties({"owner": "new"}, now_ms=9_000)
    export.render(newer, History(), version=0, storage=STORAGE)
    found = recover(place, STORAGE)
    assert found.metadata == newer
    assert any("another table" in note for note in found.notes)


def test_a_moved_table_is_recovered_where_it_is(place: str, tmp_path: Path) -> None:
    metadata = commit(start(place), 1)
    moved = tmp_path / "moved"
    Path(place).rename(moved)
    found = recover(str(moved), STORAGE)
    assert found.metadata == metadata.relocated(str(moved))


def test_without_a_json_nothing_can_be_recovered(place: str) -> None:
    commit(orders(place), 1)
    with pytest.raises(NotFound, match="schema"):
        recover(place, STORAGE)

"""Roots and leaves of other writers, wrong leaves, projections, threads."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frazil.commit.change import Change
from frazil.errors import FormatError, NotFound
from frazil.format.entries import manifest
from frazil.format.entries.batch import EntryBatch
from frazil.format.metadata.metadata import Snapshot, SnapshotId
from frazil.format.vectors import bitmap
from frazil.tree.changes import changes_of
from frazil.tree.locate import locate
from frazil.tree.read import LEAF, POSITION, Tree, TreeReader, labelled
from frazil.tree.table_shape import shape_of
from tests.support.trees import Bench, bounds, located


class Foreign:
    """Roots and leaves as another writer could make them."""

    def __init__(self, folder: Path) -> None:
        self.bench = Bench(folder)
        self.made = 0

    def write(self, rows: list[dict[str, Any]], content: str) -> str:
        self.made += 1
        location = f"metadata/{content}-{self.made}.parquet"
        data = manifest.encode(
            self.bench.entries(rows),
            content=content,  # type: ignore[arg-type]
            names=shape_of(self.bench.metadata).names,
            codec="zstd",
        )
        self.bench.storage.write_new(f"{self.bench.location}/{location}", data)
        return location

    def leaf_row(self, location: str, entries: int, **more: Any) -> dict[str, Any]:
        path = f"{self.bench.location}/{location}"
        return {
            "tracking.status": 0,
            "tracking.snapshot_id": 7,
            "tracking.sequence_number": 3,
            "tracking.file_sequence_number": 3,
            "content_type": 3,
            "location": location,
            "record_count": entries,
            "file_size_in_bytes": self.bench.storage.size(path),
            "manifest_info.added_files_count": entries,
            "manifest_info.existing_files_count": 0,
            "manifest_info.deleted_files_count": 0,
            "manifest_info.replaced_files_count": 0,
            "manifest_info.added_rows_count": 10 * entries,
            "manifest_info.existing_rows_count": 0,
            "manifest_info.deleted_rows_count": 0,
            "manifest_info.replaced_rows_count": 0,
            "manifest_info.format_version": 4,
            "manifest_info.min_sequence_number": 1,
            **{key.replace("__", "."): value for key, value in more.items()},
        }

    def snapshot(self, rows: list[dict[str, Any]]) -> Snapshot:
        return Snapshot(
            snapshot_id=SnapshotId(7),
            sequence_number=3,
            timestamp_ms=1,
            root_manifest=self.write(rows, "root"),
        )

    def tree(self, rows: list[dict[str, Any]]) -> tuple[TreeReader, Tree]:
        reader = self.bench.reader()
        return reader, reader.tree(self.snapshot(rows))


MIXED: list[dict[str, Any]] = [
    {"location": "A", "tracking.status": 1},
    {"location": "B", "tracking.status": 0, "tracking.snapshot_id": 2}
    | {"tracking.sequence_number": 2, "tracking.file_sequence_number": 2},
    {"location": "C", "tracking.status": 2},
    {"location": "D", "tracking.status": 4, "tracking.snapshot_id": 1}
    | {"tracking.sequence_number": 1, "tracking.file_sequence_number": 1},
    {"location": "E", "tracking.status": 3},
    {"location": "F", "tracking.status": 1, "tracking.sequence_number": 1},
]


def test_a_leaf_that_mixes_statuses_is_read(tmp_path: Path) -> None:
    foreign = Foreign(tmp_path)
    leaf = foreign.write(MIXED, "data")
    dead = bitmap.encode(np.array([5]))
    reader, tree = foreign.tree(
        [foreign.leaf_row(leaf, 6, tracking__first_row_id=100, manifest_info__dv=dead)]
    )
    (ref,) = tree.leaves()
    live = reader.live(ref)
    assert live.pylist("location") == ["A", "B", "D"]
    assert live.pylist(POSITION) == [0, 1, 3]
    assert live.pylist("tracking.sequence_number") == [3, 2, 1]
    assert live.pylist("tracking.snapshot_id") == [7, 2, 1]
    assert live.pylist("tracking.first_row_id") == [100, 110, 120]
    assert reader.entries(ref).num_rows == 6


def test_an_added_leaf_of_mixed_statuses_tells_its_changes(tmp_path: Path) -> None:
    foreign = Foreign(tmp_path)
    leaf = foreign.write(MIXED, "data")
    snapshot = foreign.snapshot([foreign.leaf_row(leaf, 6, tracking__status=1)])
    found = changes_of(foreign.bench.reader(), snapshot)
    assert found.added.pylist("location") == ["A", "F"]
    assert found.deleted.pylist("location") == ["C"]
    assert found.modified.pylist("location") == ["D"]
    assert found.replaced.pylist("location") == ["E"]
    assert found.added.pylist(LEAF) == [leaf, leaf]


def test_only_leaves_that_speak_of_the_snapshot_are_opened_for_its_changes(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties={"write.root.max-data-entries": "2"})
    bench.append("D1", "D2", "D3")
    bench.append("D4", "D5", "D6")
    bench.remove("D4")
    with bench.storage.recording() as calls:
        assert bench.changes() == {"deleted": ["D4"]}
    opened = {call.path.rpartition("/")[2] for call in calls if call.verb == "read"}
    names = {bench.leaf_location("M2").rpartition("/")[2]}
    names.add((bench.tip.root_manifest or "").rpartition("/")[2])
    assert opened == names


def test_a_leaf_with_another_number_of_entries_is_refused(tmp_path: Path) -> None:
    foreign = Foreign(tmp_path)
    leaf = foreign.write(MIXED, "data")
    reader, tree = foreign.tree([foreign.leaf_row(leaf, 5)])
    with pytest.raises(FormatError) as error:
        reader.live(tree.leaves()[0])
    assert error.value.path == f"{foreign.bench.location}/{leaf}"
    assert error.value.field == "record_count"
    assert "has 6 entries; its root says 5" in str(error.value)


@pytest.mark.parametrize("vector", [b"\x01\x00", b"\x09" * 8, bitmap.encode(np.array([6]))])
def test_a_bad_manifest_vector_is_refused_by_leaf_and_field(tmp_path: Path, vector: bytes) -> None:
    foreign = Foreign(tmp_path)
    leaf = foreign.write(MIXED, "data")
    reader, tree = foreign.tree([foreign.leaf_row(leaf, 6, manifest_info__dv=vector)])
    with pytest.raises(FormatError) as error:
        reader.live(tree.leaves()[0])
    assert error.value.path == leaf
    assert error.value.field == "manifest_info.dv"


@pytest.mark.parametrize("key", ["tracking.deleted_positions", "tracking.replaced_positions"])
def test_bad_positions_are_refused_by_leaf_and_field(tmp_path: Path, key: str) -> None:
    foreign = Foreign(tmp_path)
    leaf = foreign.write(MIXED, "data")
    row = foreign.leaf_row(leaf, 6) | {key: bitmap.encode(np.array([6]))}
    with pytest.raises(FormatError) as error:
        changes_of(foreign.bench.reader(), foreign.snapshot([row]))
    assert (error.value.path, error.value.field) == (leaf, key)


def test_a_leaf_is_no_root_and_a_leaf_holds_no_leaf(tmp_path: Path) -> None:
    foreign = Foreign(tmp_path)
    leaf = foreign.write(MIXED, "data")
    wrong = Snapshot(
        snapshot_id=SnapshotId(7), sequence_number=3, timestamp_ms=1, root_manifest=leaf
    )
    with pytest.raises(FormatError, match="expected root"):
        foreign.bench.reader().tree(wrong)
    deep = foreign.write([foreign.leaf_row(leaf, 6)], "data")
    reader, tree = foreign.tree([foreign.leaf_row(deep, 1)])
    with pytest.raises(FormatError, match="two levels"):
        reader.live(tree.leaves()[0])


def test_a_leaf_that_is_gone_is_not_found(tmp_path: Path) -> None:
    foreign = Foreign(tmp_path)
    leaf = foreign.write(MIXED, "data")
    reader, tree = foreign.tree([foreign.leaf_row(leaf, 6)])
    foreign.bench.storage.delete(f"{foreign.bench.location}/{leaf}")
    with pytest.raises(NotFound):
        reader.live(tree.leaves()[0])


def test_a_path_that_would_leave_the_table_is_refused(tmp_path: Path) -> None:
    foreign = Foreign(tmp_path)
    row = foreign.leaf_row(foreign.write(MIXED, "data"), 6) | {"location": "../other/leaf.parquet"}
    reader, tree = foreign.tree([row])
    with pytest.raises(FormatError, match=r"'\.\.' segment"):
        reader.live(tree.leaves()[0])


def test_no_snapshot_is_an_empty_tree(tmp_path: Path) -> None:
    reader = Bench(tmp_path).reader()
    tree = reader.tree(None)
    assert tree.leaves() == ()
    assert [batch.num_rows for batch in reader.all_live(tree)] == [0]


def test_lineage_asked_for_alone_is_explicit(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties={"write.root.max-data-entries": "1"})
    bench.append("D1", "D2")
    (leaf,) = bench.tree().leaves()
    batch = bench.reader().live(leaf, keys=["tracking.first_row_id"])
    assert batch.pylist("tracking.first_row_id") == [0, 10]
    ages = bench.reader().live(leaf, keys=["tracking.sequence_number"])
    assert ages.pylist("tracking.sequence_number") == [1, 1]


def test_leaves_are_read_in_order_and_across_threads(tmp_path: Path) -> None:
    reader = Bench(tmp_path).reader()
    meet = threading.Barrier(2, timeout=20)

    def work(number: int) -> int:
        meet.wait()  # passes only when two run at once
        return number * 10

    assert list(reader.map([1, 2, 3, 4], work)) == [10, 20, 30, 40]
    assert list(reader.map([7], lambda number: number)) == [7]
    assert list(reader.map([1, 2], lambda number: number, parallel=False)) == [1, 2]


def test_entries_are_labelled_with_their_leaf(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties={"write.root.max-data-entries": "2"})
    bench.append("D1", "D2", "D3")
    bench.append("D4")
    found = EntryBatch.concat(bench.reader().all_live(bench.tree()))
    leaf = bench.leaf_location("M1")
    where = dict(zip(found.pylist("location"), found.pylist(LEAF), strict=True))
    assert where == {"D4": None, "D1": leaf, "D2": leaf, "D3": leaf}
    assert labelled(EntryBatch.empty(), None).pylist(LEAF) == []


# Finding files


def test_files_are_found_in_the_root_and_in_leaves(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties={"write.root.max-data-entries": "2"})
    bench.append("D1", "D2", "D3")
    bench.append("D4")
    bench.remove("D2")
    tree = bench.tree()
    found = locate(bench.reader(), tree, located("D4", "D3", "D2", "nowhere", "D1"))
    assert found.missing == ("D2", "nowhere")
    assert found.leaf.tolist() == [-1, 0, -2, -2, 0]
    assert found.position.tolist() == [1, 2, -2, -2, 0]
    assert found.root_rows.tolist() == [1]
    assert {row: list(rows) for row, rows in found.by_leaf().items()} == {0: [0, 2]}


def test_entries_come_in_the_order_they_were_asked_for(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties={"write.root.max-data-entries": "2"})
    bench.append("D1", "D2", "D3")
    bench.append("D4")
    reader, tree = bench.reader(), bench.tree()
    found = locate(reader, tree, located("D3", "D4", "D1"))
    for keys in (None, ["location", "tracking.first_row_id"]):
        entries = found.entries(reader, tree, keys=keys)
        assert entries.pylist("location") == ["D3", "D4", "D1"]
        assert entries.pylist("tracking.first_row_id") == [20, 30, 0]


def test_a_good_hint_opens_only_its_leaf(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties={"write.root.max-data-entries": "2"})
    bench.append("D1", "D2", "D3")
    bench.append("D4", "D5", "D6")
    reader, tree = bench.reader(), bench.tree()
    leaf = bench.leaf_location("M2")
    with bench.storage.recording() as calls:
        found = locate(reader, tree, located("D5", leaf=leaf, positions=[1]))
    assert found.missing == ()
    assert {call.path for call in calls} == {f"{bench.location}/{leaf}"}


# Writing


def test_leaves_are_clustered_by_partition_and_bounds(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path,
        properties={"write.root.max-data-entries": "1", "write.leaf.target-entries": "2"},
    )
    starts = [30, 10, 40, 0, 20]
    rows = [{"location": f"D{start}", **bounds(1, start, start + 9)} for start in starts]
    bench.commit(Change(added=bench.entries(rows)))
    leaves = [[entry.name for entry in bench.leaf(name)] for name in ("M1", "M2", "M3")]
    assert leaves == [["D0", "D10"], ["D20", "D30"], ["D40"]]
    info = bench.row("M2")
    assert info["content_stats.1.lower_bound"] == 20
    assert info["content_stats.1.upper_bound"] == 39
    assert info["content_stats.1.value_count"] == 20
    assert info["content_stats.1.tight_bounds"] is True


def test_data_and_deletes_go_to_leaves_of_their_own(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path,
        properties={"write.root.max-data-entries": "1", "write.root.max-delete-entries": "1"},
    )
    deletes = {"content_type": 2, "equality_ids": [1]}
    bench.commit(
        Change(
            added=bench.entries(
                [
                    {"location": "E1", **deletes},
                    {"location": "D1"},
                    {"location": "D2"},
                    {"location": "E2", **deletes},
                ]
            )
        )
    )
    assert [(entry.name, entry.row) for entry in bench.root()] == [("M1", 0), ("N1", None)]
    assert [entry.name for entry in bench.leaf("M1")] == ["D1", "D2"]
    assert [entry.name for entry in bench.leaf("N1")] == ["E1", "E2"]
    assert bench.metadata.next_row_id == 20

"""How the tree adapts while a change is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frazil.commit.adapt import added_entries
from frazil.commit.change import Change
from frazil.errors import InvalidInput
from frazil.format.entries import manifest
from frazil.format.entries.batch import EntryBatch
from frazil.format.vectors import bitmap
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.transforms import IdentityTransform
from frazil.properties.registry import LEAF_TARGET_ENTRIES
from frazil.tree import policy
from frazil.tree.table_shape import shape_of
from tests.support.trees import Bench, bounds, located, seen
from tests.support.upgraded import legacy_table, rows, upgraded

SMALL_ROOT = {"write.root.max-data-entries": "2", "write.root.max-delete-entries": "2"}


def test_what_the_caller_says_of_tracking_is_replaced() -> None:
    given = EntryBatch.from_rows(
        [
            {
                "tracking.status": 0,
                "tracking.snapshot_id": 3,
                "tracking.file_sequence_number": 4,
                "tracking.modified_snapshot_id": 5,
                "tracking.sequence_number": 6,
                "tracking.first_row_id": 7,
                "content_type": 0,
                "location": "D1",
                "@leaf": "M1",
                "@position": 3,
            }
        ]
    )
    added = added_entries(given, snapshot_id=9)
    assert added is not None
    assert added.row(0) == {
        "tracking.status": 1,
        "tracking.sequence_number": 6,
        "tracking.first_row_id": 7,
        "content_type": 0,
        "location": "D1",
    }


def test_a_leaf_cannot_be_added_as_a_file(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    for content in (1, 3, 4):
        with pytest.raises(InvalidInput, match="only data files and equality delete files"):
            bench.commit(Change(added=bench.files("D1", content_type=content)))


def test_equality_deletes_are_flushed_to_leaves_of_their_own(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    deletes = {"content_type": 2, "equality_ids": [1]}
    bench.append("D1")
    bench.append("E1", **deletes)
    bench.append("E2", **deletes)
    bench.append("D2")
    assert bench.root() == [
        seen("N1", "EXISTING", by=4, seq=4),
        seen("D1", "EXISTING", by=1, seq=1, row=0),
        seen("D2", "ADDED", by=4, seq=4, row=10),
    ]
    assert bench.leaf("N1") == [
        seen("E1", "EXISTING", by=2, seq=2),
        seen("E2", "EXISTING", by=3, seq=3),
    ]
    assert bench.changes() == {"added": ["D2"]}


def test_a_heavy_root_is_flushed_before_it_is_full(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties={"write.root.target-bytes": "1"})
    bench.append("D1")
    bench.append("D2")
    assert [entry.name for entry in bench.root()] == ["M1", "D2"]


def test_a_leaf_that_the_commit_changes_is_not_compacted_in_it(tmp_path: Path) -> None:
    properties = {**SMALL_ROOT, "write.leaf.max-dead-ratio": "0.3"}
    bench = Bench(tmp_path, properties=properties)
    bench.append("D1", "D2", "D3")
    bench.append("D4", "D5", "D6")
    bench.remove("D1", "D4")  # both are ripe for the next commit
    bench.remove("D2")
    assert bench.root() == [
        seen("M1", "MODIFIED", by=1, seq=1, row=0, dv={0, 1}, dv_by=4, deleted={1}),
        seen("M3", "EXISTING", by=4, seq=4, row=60),
    ]
    assert [entry.name for entry in bench.leaf("M3")] == ["D5", "D6"]
    assert bench.changes() == {"deleted": ["D2"]}


def test_a_flush_and_a_compaction_that_meet_make_leaves_of_their_own(tmp_path: Path) -> None:
    properties = {**SMALL_ROOT, "write.leaf.max-dead-ratio": "0.3"}
    bench = Bench(tmp_path, properties=properties)
    bench.append("D1", "D2", "D3")
    bench.append("D4")
    bench.commit(
        Change(removed=located("D1"), added=bench.files("D5"), base_snapshot_id=bench.tip_id())
    )
    bench.append("D6")
    assert [entry.name for entry in bench.root()] == ["M2", "M3", "D6"]
    leaves = {tuple(entry.name for entry in bench.leaf(name)) for name in ("M2", "M3")}
    assert leaves == {("D4", "D5"), ("D2", "D3")}
    assert bench.changes() == {"added": ["D6"]}


def test_eight_small_leaves_are_merged(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties={"write.root.max-data-entries": "1"})
    for number in range(8):
        bench.append(f"A{number}", f"B{number}")
    assert len(bench.tree().leaves()) == 8
    bench.append("C")
    assert len(bench.tree().leaves()) == 1
    assert len(bench.live()) == 17
    assert bench.changes() == {"added": ["C"]}


def test_leaves_are_rewritten_when_asked(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    bench.append("D1", "D2", "D3")
    bench.append("D4", "D5", "D6")
    bench.append("D7")
    bench.remove("D2", "D5")
    leaves = tuple(leaf.location for leaf in bench.tree().leaves())
    bench.commit(Change(rewrite_leaves=(*leaves, "metadata/leaf-gone.parquet")))
    (entry,) = bench.root()
    assert entry.status == "EXISTING"
    assert sorted(e.name for e in bench.leaf(entry.name)) == ["D1", "D3", "D4", "D6", "D7"]
    assert bench.tip.operation == "replace"
    assert bench.changes() == {}
    assert bench.live() == {"D1": (), "D3": (), "D4": (), "D6": (), "D7": ()}


def test_old_manifests_are_dropped_once_every_file_in_them_is_dead(tmp_path: Path) -> None:
    old = legacy_table(tmp_path)
    for number in range(3):
        old.append(rows(number))
    files = [entry["data_file"]["file_path"] for entry in old.inspect.entries().to_pylist()]
    metadata, history = upgraded(old)
    bench = Bench(tmp_path, metadata=metadata, history=history)
    names = [name.removeprefix(f"{bench.location}/") for name in files]
    bench.remove(*names[:2])
    assert [entry.status for entry in bench.root()].count("MODIFIED") == 2
    bench.append("D1")
    assert [entry.status for entry in bench.root()] == ["EXISTING", "ADDED"]
    assert set(bench.live()) == {names[2], "D1"}


class _Foreign(Bench):
    """A root as another writer makes it: its leaf of three has the second DELETED by status."""

    def __init__(self, folder: Path, *, dead: list[int]) -> None:
        super().__init__(folder, properties={"write.root.max-data-entries": "1"})
        self.append("D1", "D2", "D3")
        leaf = self.tree().leaves()[0]
        self._rewrite(leaf.location, lambda b: b.with_column("tracking.status", [1, 2, 1]))
        size = self.storage.size(f"{self.location}/{leaf.location}")

        def edited(root: EntryBatch) -> EntryBatch:
            return (
                root.with_column("manifest_info.dv", [bitmap.encode(np.array(dead))])
                .with_column("manifest_info.deleted_files_count", [1])
                .with_column("file_size_in_bytes", [size])
            )

        self._rewrite(self.tip.root_manifest or "", edited)
        self.context = self.new_context()

    def _rewrite(self, location: str, change: Any) -> None:
        path = f"{self.location}/{location}"
        read = manifest.decode(self.storage.read(path), path=path)
        self.storage.delete(path)
        data = manifest.encode(
            change(read.batch),
            content=read.content,
            names=shape_of(self.metadata).names,
            codec="zstd",
        )
        self.storage.write_new(path, data)


def test_a_vector_may_repeat_positions_that_are_dead_by_status(tmp_path: Path) -> None:
    """One writer counts the second file in the vector, another does not: D3 lives in both."""
    repeats = _Foreign(tmp_path / "a", dead=[0, 1])
    assert repeats.live() == {"D3": ()}
    repeats.append("D4")
    assert repeats.live() == {"D3": (), "D4": ()}

    tells_apart = _Foreign(tmp_path / "b", dead=[0, 2])
    assert tells_apart.live() == {}
    tells_apart.append("D4")
    assert [entry.name for entry in tells_apart.root()] == ["D4"]


def test_a_partitioned_flush_is_clustered_by_partition(tmp_path: Path) -> None:
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "country"))
    bench = Bench(
        tmp_path,
        spec=spec,
        properties={"write.root.max-data-entries": "4", "write.leaf.target-entries": "2"},
    )
    files = [("D1", "DE", 5), ("D2", "AT", 9), ("D3", "DE", 1), ("D4", "AT", 2)]
    for name, country, low in files:
        row = {"location": name, "spec_id": 0, "partition.1000": country, **bounds(1, low, low)}
        bench.commit(Change(added=bench.entries([row])))
    bench.append("D5", spec_id=0)
    leaves = [[entry.name for entry in bench.leaf(name)] for name in ("M1", "M2")]
    assert leaves == [["D4", "D2"], ["D3", "D1"]]


def test_a_rewrite_into_leaves_keeps_the_age_of_its_rows(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    bench.append("D1")
    bench.append("D2")
    new = bench.files("R1", "R2", "R3", tracking__sequence_number=1)
    change = Change(
        replaced=located("D1", "D2"), added=new, is_rewrite=True, base_snapshot_id=bench.tip_id()
    )
    bench.commit(change)
    assert bench.root()[0] == seen("M1", "ADDED", by=3, seq=3, row=20)
    assert bench.row("M1")["manifest_info.min_sequence_number"] == 1
    live = bench.reader().live(bench.tree().leaves()[0])
    assert live.pylist("tracking.sequence_number") == [1, 1, 1]
    assert live.pylist("tracking.file_sequence_number") == [3, 3, 3]
    assert live.pylist("tracking.first_row_id") == [20, 30, 40]


def test_old_files_that_got_a_vector_are_flushed_apart(tmp_path: Path) -> None:
    """M1 has days 1 to 4. F1 comes back with a vector, and would widen the leaf of days 8 and 9."""
    bench = Bench(tmp_path, properties={"write.root.max-data-entries": "4"})

    def append(*days: int) -> Mapping[str, str]:
        rows = [{"location": f"F{day}", **bounds(1, day, day)} for day in days]
        bench.commit(Change(added=bench.entries(rows)))
        return bench.tip.summary

    append(1, 2, 3, 4)
    flushed = append(7)
    assert flushed["frazil.entries-flushed"] == "4"
    bench.delete_rows("F1", 0)
    append(8, 9)
    assert [_days(bench, leaf) for leaf in _leaves(bench)] == [(1, 4)]
    done = append(10)  # the root held F1, F7, F8, F9
    assert done["frazil.entries-flushed"] == "4"
    # Most of M1's range is where F1 lies, so F1 joins it again.
    assert done["frazil.leaves-merged"] == "1"
    assert "frazil.leaves-split" not in done
    assert sorted(_days(bench, leaf) for leaf in _leaves(bench)) == [(1, 4), (7, 9)]
    assert bench.live()["F1"] == (0,)
    assert bench.changes() == {"added": ["F10"]}


def test_a_group_that_does_not_fit_one_leaf_is_split(tmp_path: Path) -> None:
    limits = {"write.root.max-data-entries": "4", "write.leaf.target-entries": "2"}
    bench = Bench(tmp_path, properties=limits)
    bench.append("A", "B", "C", "D")
    bench.append("E")
    done = bench.tip.summary
    assert done["frazil.entries-flushed"] == "4"
    assert done["frazil.leaves-split"] == "2"
    assert done["frazil.leaves-written"] == "2"


def test_large_commits_and_rewrites_write_larger_leaves_as_the_table_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With sizes of a millionth: leaves of 4, and more where 2 of them do not hold the table."""
    monkeypatch.setattr(policy, "LEAF_TARGET_ENTRIES", replace(LEAF_TARGET_ENTRIES, default=4))
    monkeypatch.setattr(policy, "_MOST_LEAVES", 2)
    monkeypatch.setattr(policy, "_MOST_GROWN", 16)
    bench = Bench(tmp_path, properties={"write.root.max-data-entries": "2"})

    def leaves() -> list[int]:
        return [leaf.record_count for leaf in bench.tree().leaves()]

    bench.append(*(f"A{n}" for n in range(8)))
    assert leaves() == [4, 4]
    bench.append(*(f"B{n}" for n in range(9)))  # 17 files: leaves of 16
    assert leaves() == [4, 4, 9]
    names = tuple(leaf.location for leaf in bench.tree().leaves())
    bench.commit(Change(rewrite_leaves=names, base_snapshot_id=bench.tip_id()))
    assert leaves() == [9, 8]


def _leaves(bench: Bench) -> list[str]:
    return [leaf.location for leaf in bench.tree().leaves()]


def _days(bench: Bench, location: str) -> tuple[int, int]:
    row = next(
        row
        for row in (bench.tree().root.row(at) for at in range(bench.tree().root.num_rows))
        if row["location"] == location
    )
    return row["content_stats.1.lower_bound"], row["content_stats.1.upper_bound"]

"""Worked examples: files are added, the root grows, flushes and compacts."""

from __future__ import annotations

from pathlib import Path

from tests.support.trees import Bench, seen

SMALL_ROOT = {"write.root.max-data-entries": "2"}


def test_append_root(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    assert bench.kinds_written(lambda: bench.append("D1", "D2", "D3")) == ["leaf", "root"]
    assert bench.root() == [seen("M1", "ADDED", by=1, seq=1, row=0)]

    assert bench.kinds_written(lambda: bench.append("D4")) == ["root"]
    assert bench.root() == [
        seen("M1", "EXISTING", by=1, seq=1, row=0),
        seen("D4", "ADDED", by=2, seq=2, row=30),
    ]
    assert bench.changes() == {"added": ["D4"]}

    assert bench.kinds_written(lambda: bench.append("D5")) == ["root"]
    assert bench.root() == [
        seen("M1", "EXISTING", by=1, seq=1, row=0),
        seen("D4", "EXISTING", by=2, seq=2, row=30),
        seen("D5", "ADDED", by=3, seq=3, row=40),
    ]
    assert bench.changes() == {"added": ["D5"]}
    assert bench.metadata.next_row_id == 50


def test_append_leaf(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    bench.append("D1", "D2", "D3")
    assert bench.kinds_written(lambda: bench.append("D4", "D5", "D6")) == ["leaf", "root"]
    assert bench.root() == [
        seen("M1", "EXISTING", by=1, seq=1, row=0),
        seen("M2", "ADDED", by=2, seq=2, row=30),
    ]
    # Nothing in the leaf depends on the head it lands on: a retry can use it again.
    assert bench.leaf("M2") == [
        seen("D4", "ADDED", by=None, seq=None),
        seen("D5", "ADDED", by=None, seq=None),
        seen("D6", "ADDED", by=None, seq=None),
    ]
    inherited = bench.reader().live(bench.tree().leaves()[1])
    assert inherited.pylist("location") == ["D4", "D5", "D6"]
    assert inherited.pylist("tracking.snapshot_id") == [2, 2, 2]
    assert inherited.pylist("tracking.sequence_number") == [2, 2, 2]
    assert inherited.pylist("tracking.file_sequence_number") == [2, 2, 2]
    assert inherited.pylist("tracking.first_row_id") == [30, 40, 50]
    info = bench.row("M2")
    assert info["record_count"] == 3
    assert info["manifest_info.added_files_count"] == 3
    assert info["manifest_info.added_rows_count"] == 30
    assert info["manifest_info.existing_files_count"] == 0
    assert info["manifest_info.min_sequence_number"] == 2
    assert bench.changes() == {"added": ["D4", "D5", "D6"]}


def test_flush_on_append(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    bench.append("D1")
    bench.append("D2")
    assert bench.kinds_written(lambda: bench.append("D3")) == ["leaf", "root"]
    assert bench.root() == [
        seen("M1", "EXISTING", by=3, seq=3, row=20),
        seen("D3", "ADDED", by=3, seq=3, row=20),
    ]
    assert bench.leaf("M1") == [
        seen("D1", "EXISTING", by=1, seq=1, row=0),
        seen("D2", "EXISTING", by=2, seq=2, row=10),
    ]
    info = bench.row("M1")
    assert info["manifest_info.added_files_count"] == 0
    assert info["manifest_info.existing_files_count"] == 2
    assert info["manifest_info.existing_rows_count"] == 20
    assert info["manifest_info.min_sequence_number"] == 1
    assert bench.changes() == {"added": ["D3"]}
    assert bench.live() == {"D1": (), "D2": (), "D3": ()}


def test_flush_keeps_dv(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    bench.append("D1", "D2")
    bench.delete_rows("D1", 5)
    bench.append("D3")
    assert bench.root() == [
        seen("M1", "EXISTING", by=3, seq=3, row=20),
        seen("D3", "ADDED", by=3, seq=3, row=20),
    ]
    assert bench.leaf("M1") == [
        seen("D2", "EXISTING", by=1, seq=1, row=10),
        seen("D1", "EXISTING", by=1, seq=1, row=0, dv={5}, dv_by=2),
    ]
    assert bench.changes() == {"added": ["D3"]}
    assert bench.live() == {"D1": (5,), "D2": (), "D3": ()}


def test_compact_on_append(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties={**SMALL_ROOT, "write.leaf.max-dead-ratio": "0.3"})
    bench.append("D1", "D2", "D3")
    bench.append("D4", "D5", "D6")
    bench.remove("D1", "D5")
    assert bench.root() == [
        seen("M1", "MODIFIED", by=1, seq=1, row=0, dv={0}, dv_by=3, deleted={0}),
        seen("M2", "MODIFIED", by=2, seq=2, row=30, dv={1}, dv_by=3, deleted={1}),
    ]
    assert bench.kinds_written(lambda: bench.append("D7")) == ["leaf", "root"]
    assert bench.root() == [
        seen("M3", "EXISTING", by=4, seq=4, row=60),
        seen("D7", "ADDED", by=4, seq=4, row=60),
    ]
    assert bench.leaf("M3") == [
        seen("D2", "EXISTING", by=1, seq=1, row=10),
        seen("D3", "EXISTING", by=1, seq=1, row=20),
        seen("D4", "EXISTING", by=2, seq=2, row=30),
        seen("D6", "EXISTING", by=2, seq=2, row=50),
    ]
    assert bench.changes() == {"added": ["D7"]}
    assert bench.live() == {"D2": (), "D3": (), "D4": (), "D6": (), "D7": ()}

"""Worked examples: a table of an older version takes its first v4 commits."""

from __future__ import annotations

from pathlib import Path

from tests.support.trees import Bench, seen
from tests.support.upgraded import legacy_table, rows, upgraded


def _upgraded(folder: Path) -> tuple[Bench, list[str], list[str]]:
    """A table with two v2 manifests; the locations of its two data files and of its manifests."""
    old = legacy_table(folder)
    old.append(rows(1, 2, 3))
    old.append(rows(4, 5))
    snapshot = old.current_snapshot()
    assert snapshot is not None
    prefix = f"file://{folder}/table/"
    manifests = [
        (file.sequence_number, file.manifest_path.removeprefix(prefix))
        for file in snapshot.manifests(old.io)
    ]
    files = [
        (entry["sequence_number"], entry["data_file"]["file_path"].removeprefix(prefix))
        for entry in old.inspect.entries().to_pylist()
    ]
    metadata, history = upgraded(old)
    bench = Bench(folder, metadata=metadata, history=history)
    return bench, [name for _, name in sorted(files)], [name for _, name in sorted(manifests)]


def test_upgrade_first_commit(tmp_path: Path) -> None:
    bench, files, manifests = _upgraded(tmp_path)
    before = bench.tip
    stored = set(bench.stored())
    assert before.manifest_list is not None
    assert bench.kinds_written(lambda: bench.append("D3")) == ["root"]
    # The newest manifest comes first in PyIceberg's list.
    second, first = bench.head.snapshot(int(before.snapshot_id)), None
    first = bench.head.snapshot(int(second.parent_snapshot_id or 0))
    bench.call_leaves({manifests[0]: "M1", manifests[1]: "M2"})
    assert bench.root() == [
        seen("M2", "EXISTING", by=int(second.snapshot_id), seq=2, row=0),
        seen("M1", "EXISTING", by=int(first.snapshot_id), seq=1, row=2),
        seen("D3", "ADDED", by=1, seq=3, row=5),
    ]
    for name, count in (("M1", 3), ("M2", 2)):
        entry = bench.row(name)
        assert entry["manifest_info.format_version"] == 0
        assert entry["file_format"] == "avro"
        assert entry["record_count"] == 1
        assert entry["manifest_info.added_rows_count"] == count
    assert bench.tip.first_row_id == 0
    assert bench.tip.added_rows == 15
    assert bench.metadata.next_row_id == 15
    assert bench.changes() == {"added": ["D3"]}
    assert bench.live() == {files[0]: (), files[1]: (), "D3": ()}
    assert stored <= set(bench.stored())


def test_remove_legacy(tmp_path: Path) -> None:
    bench, files, manifests = _upgraded(tmp_path)
    manifest = tmp_path / "table" / manifests[0]
    bytes_before = manifest.read_bytes()
    old = {s.sequence_number: int(s.snapshot_id) for s in bench.head.snapshots()}
    assert bench.kinds_written(lambda: bench.remove(files[0])) == ["root"]
    bench.call_leaves({manifests[0]: "M1", manifests[1]: "M2"})
    assert bench.root() == [
        seen("M2", "EXISTING", by=old[2], seq=2, row=0),
        seen("M1", "MODIFIED", by=old[1], seq=1, row=2, dv={0}, dv_by=1, deleted={0}),
    ]
    assert manifest.read_bytes() == bytes_before
    assert bench.changes() == {"deleted": [files[0]]}
    assert bench.live() == {files[1]: ()}
    assert bench.kinds_written(lambda: bench.append("D3")) == ["leaf", "root"]
    bench.call_leaves({bench.tree().leaves()[0].location: "M3"})
    assert bench.root() == [
        seen("M3", "EXISTING", by=2, seq=4, row=5),  # its file states its own row id
        seen("D3", "ADDED", by=2, seq=4, row=5),
    ]
    assert bench.changes() == {"added": ["D3"]}
    assert bench.live() == {files[1]: (), "D3": ()}

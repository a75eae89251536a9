"""Worked examples: whole files are removed or swapped for others."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from frazil.commit.change import Change
from tests.support.trees import Bench, located, seen

SMALL_ROOT = {"write.root.max-data-entries": "2"}


def test_remove_root(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1", "D2")
    assert bench.kinds_written(lambda: bench.remove("D1")) == ["root"]
    assert bench.root() == [
        seen("D1", "DELETED", by=2, seq=1, row=0),
        seen("D2", "EXISTING", by=1, seq=1, row=10),
    ]
    assert bench.changes() == {"deleted": ["D1"]}
    assert bench.live() == {"D2": ()}

    bench.append("D3")
    assert bench.root() == [
        seen("D2", "EXISTING", by=1, seq=1, row=10),
        seen("D3", "ADDED", by=3, seq=3, row=20),
    ]
    assert bench.changes() == {"added": ["D3"]}


def test_remove_leaf(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    bench.append("D1", "D2", "D3")
    leaf = f"{bench.location}/{bench.leaf_location('M1')}"
    before = bench.storage.read(leaf)
    info = bench.row("M1")

    assert bench.kinds_written(lambda: bench.remove("D2")) == ["root"]
    assert bench.root() == [
        seen("M1", "MODIFIED", by=1, seq=1, row=0, dv={1}, dv_by=2, deleted={1})
    ]
    assert bench.storage.read(leaf) == before
    after = bench.row("M1")
    physical = {key: info[key] for key in info if key.startswith("manifest_info.")}
    assert {key: after[key] for key in physical} == physical
    assert after["record_count"] == 3
    assert bench.changes() == {"deleted": ["D2"]}
    assert bench.live() == {"D1": (), "D3": ()}


def test_remove_leaf_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    bench.append("D1", "D2", "D3")
    bench.remove("D2")
    assert bench.kinds_written(lambda: bench.remove("D3")) == ["root"]
    assert bench.root() == [
        seen("M1", "MODIFIED", by=1, seq=1, row=0, dv={1, 2}, dv_by=3, deleted={2})
    ]
    assert bench.changes() == {"deleted": ["D3"]}
    assert bench.live() == {"D1": ()}


@pytest.mark.parametrize(("before", "now"), [(100, 10), (10, 100)])
def test_a_root_has_the_dead_positions_and_those_of_this_commit(
    tmp_path: Path, before: int, now: int
) -> None:
    """To keep the previous vector beside the new one would be 210 positions in the first case,
    where this is 120, and 120 in the second, which is rarer, where this is 210."""
    bench = Bench(tmp_path)
    names = [f"D{n:03d}" for n in range(250)]
    bench.append(*names)
    bench.remove(*names[:before])
    bench.remove(*names[before : before + now])
    (leaf,) = bench.root()
    assert leaf.dv == frozenset(range(before + now))
    assert leaf.deleted == frozenset(range(before, before + now))
    stored = len(leaf.dv) + len(leaf.deleted)
    previous_and_new = before + (before + now)
    assert (stored, previous_and_new) in ((120, 210), (210, 120))


def test_a_leaf_with_nothing_alive_is_dropped_by_the_next_commit(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    bench.append("D1", "D2", "D3")
    bench.remove("D1", "D2", "D3")
    assert bench.root() == [
        seen("M1", "MODIFIED", by=1, seq=1, row=0, dv={0, 1, 2}, dv_by=2, deleted={0, 1, 2})
    ]
    assert bench.changes() == {"deleted": ["D1", "D2", "D3"]}
    bench.append("D4")
    assert bench.root() == [seen("D4", "ADDED", by=3, seq=3, row=30)]
    bench.remove("D4")
    assert bench.root() == [seen("D4", "DELETED", by=4, seq=3, row=30)]
    bench.append("D5")
    assert bench.root() == [seen("D5", "ADDED", by=5, seq=5, row=40)]


def test_overwrite_root(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")
    for old, new in (("D1", "D2"), ("D2", "D3")):
        change = Change(
            removed=located(old), added=bench.files(new), base_snapshot_id=bench.tip_id()
        )
        assert bench.kinds_written(partial(bench.commit, change)) == ["root"]
        assert bench.changes() == {"added": [new], "deleted": [old]}
    first, second = (bench.head.snapshot(number) for number in (2, 3))
    assert bench.root(first) == [
        seen("D1", "DELETED", by=2, seq=1, row=0),
        seen("D2", "ADDED", by=2, seq=2, row=10),
    ]
    assert bench.root(second) == [
        seen("D2", "DELETED", by=3, seq=2, row=10),
        seen("D3", "ADDED", by=3, seq=3, row=20),
    ]
    assert second.operation == "overwrite"


def test_overwrite_leaf(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    bench.append("D1", "D2", "D3")
    change = Change(removed=located("D2"), added=bench.files("D4"), base_snapshot_id=1)
    assert bench.kinds_written(lambda: bench.commit(change)) == ["root"]
    assert bench.root() == [
        seen("M1", "MODIFIED", by=1, seq=1, row=0, dv={1}, dv_by=2, deleted={1}),
        seen("D4", "ADDED", by=2, seq=2, row=30),
    ]
    assert bench.changes() == {"added": ["D4"], "deleted": ["D2"]}
    assert bench.live() == {"D1": (), "D3": (), "D4": ()}


def test_remove_file_with_dv(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    bench.append("D1", "D2", "D3")
    bench.delete_rows("D1", 4)
    bench.remove("D1")
    assert bench.root() == [
        seen("M1", "EXISTING", by=1, seq=1, row=0, dv={0}, dv_by=2),
        seen("D1", "DELETED", by=3, seq=1, row=0, dv={4}, dv_by=2),
    ]
    assert bench.changes() == {"deleted": ["D1"]}
    bench.append("D4")
    # The vector went with its file: no entry of the tree speaks of it any more.
    assert bench.root() == [
        seen("M1", "EXISTING", by=1, seq=1, row=0, dv={0}, dv_by=2),
        seen("D4", "ADDED", by=4, seq=4, row=30),
    ]
    summary = bench.head.snapshot(3).summary
    assert summary["removed-dvs"] == "1"
    assert summary["total-position-deletes"] == "0"

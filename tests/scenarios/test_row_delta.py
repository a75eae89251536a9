"""Worked examples: rows are deleted, files come with vectors, data is rewritten."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from frazil.commit.change import Change
from frazil.format.entries.fields import ContentType
from frazil.scan.plan import plan
from tests.support.trees import Bench, bounds, located, seen

SMALL_ROOT = {"write.root.max-data-entries": "2"}
BIG = {"record_count": 100}


def test_row_delta_root(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1", **BIG)
    work = bench.kinds_written(lambda: bench.delete_rows("D1", 5, 12, added=bench.files("D2")))
    assert work == ["puffin", "root"]
    assert bench.root() == [
        seen("D1", "REPLACED", by=2, seq=1, row=0),
        seen("D1", "MODIFIED", by=1, seq=1, row=0, dv={5, 12}, dv_by=2),
        seen("D2", "ADDED", by=2, seq=2, row=100),
    ]
    assert bench.changes() == {"added": ["D2"], "replaced": ["D1"], "modified": ["D1"]}
    assert bench.live() == {"D1": (5, 12), "D2": ()}


def test_row_delta_leaf(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties={"write.root.max-data-entries": "1"})
    bench.append("D1", "D2", **BIG)
    assert bench.root() == [seen("M1", "ADDED", by=1, seq=1, row=0)]
    work = bench.kinds_written(lambda: bench.delete_rows("D1", 5, added=bench.files("D3")))
    assert work == ["puffin", "root"]
    assert bench.root() == [
        seen("M1", "MODIFIED", by=1, seq=1, row=0, dv={0}, dv_by=2, replaced={0}),
        seen("D1", "MODIFIED", by=1, seq=1, row=0, dv={5}, dv_by=2),
        seen("D3", "ADDED", by=2, seq=2, row=200),
    ]
    assert bench.changes() == {"added": ["D3"], "replaced": ["D1"], "modified": ["D1"]}
    assert bench.live() == {"D1": (5,), "D2": (), "D3": ()}


def test_row_delta_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties={"write.root.max-data-entries": "1"})
    bench.append("D1", "D2", **BIG)
    bench.delete_rows("D1", 5)
    work = bench.kinds_written(lambda: bench.delete_rows("D1", 7, 99))
    assert work == ["puffin", "root"]
    assert bench.root() == [
        seen("M1", "EXISTING", by=1, seq=1, row=0, dv={0}, dv_by=2),
        seen("D1", "REPLACED", by=3, seq=1, row=0, dv={5}, dv_by=2),
        seen("D1", "MODIFIED", by=1, seq=1, row=0, dv={5, 7, 99}, dv_by=3),
    ]
    assert bench.changes() == {"replaced": ["D1"], "modified": ["D1"]}
    assert bench.live() == {"D1": (5, 7, 99), "D2": ()}
    summary = bench.tip.summary
    assert summary["operation"] == "delete"
    assert summary["added-position-deletes"] == "3"
    assert summary["removed-position-deletes"] == "1"
    assert summary["total-position-deletes"] == "3"


def test_born_with_dv(tmp_path: Path) -> None:
    vector = {
        "deletion_vector.location": "data/v.puffin",
        "deletion_vector.offset": 4,
        "deletion_vector.size_in_bytes": 44,
        "deletion_vector.cardinality": 2,
    }
    for limit, place in (("100", "root"), ("1", "leaf")):
        bench = Bench(tmp_path / place, properties={"write.root.max-data-entries": limit})
        files = bench.entries([{"location": "D1", **vector}, {"location": "D2"}])
        work = bench.kinds_written(partial(bench.commit, Change(added=files)))
        assert work == (["root"] if place == "root" else ["leaf", "root"])
        reader = bench.reader()
        born, plain = (
            batch.row(index)
            for batch in reader.all_live(bench.tree())
            for index in range(batch.num_rows)
        )
        assert born["location"] == "D1"
        assert born["tracking.status"] == 1
        assert {key: born[key] for key in vector} == vector
        assert born["tracking.modified_snapshot_id"] == 1
        assert "tracking.modified_snapshot_id" not in plain
        assert bench.changes() == {"added": ["D1", "D2"]}


def test_rewrite_data(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    bench.append("D1", "D8", "D9")
    bench.append("D2")
    change = Change(
        replaced=located("D1", "D2"),
        added=bench.files("D3", record_count=20, tracking__sequence_number=1),
        is_rewrite=True,
        base_snapshot_id=2,
    )
    assert bench.kinds_written(lambda: bench.commit(change)) == ["root"]
    assert bench.root() == [
        seen("M1", "MODIFIED", by=1, seq=1, row=0, dv={0}, dv_by=3, replaced={0}),
        seen("D2", "REPLACED", by=3, seq=2, row=30),
        seen("D3", "ADDED", by=3, seq=1, file_seq=3, row=40),
    ]
    assert bench.tip.operation == "replace"
    assert bench.changes() == {"added": ["D3"], "replaced": ["D1", "D2"]}
    assert bench.live() == {"D3": (), "D8": (), "D9": ()}


def test_equality_delete(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.commit(
        Change(
            added=bench.entries(
                [{"location": "D1", **bounds(1, 1, 10)}, {"location": "D2", **bounds(1, 20, 30)}]
            )
        )
    )
    equality = bench.entries(
        [
            {
                "location": "E1",
                "content_type": int(ContentType.EQUALITY_DELETES),
                "record_count": 1,
                "equality_ids": [1],
                **bounds(1, 7, 7),
            }
        ]
    )
    assert bench.kinds_written(lambda: bench.commit(Change(added=equality))) == ["root"]
    assert bench.root() == [
        seen("D1", "EXISTING", by=1, seq=1, row=0),
        seen("D2", "EXISTING", by=1, seq=1, row=10),
        seen("E1", "ADDED", by=2, seq=2),
    ]
    assert bench.metadata.next_row_id == 20
    assert bench.tip.operation == "delete"
    bench.commit(Change(added=bench.entries([{"location": "D3", **bounds(1, 1, 10)}])))

    found = plan(bench.reader(), bench.tip)
    assert found.deletes is not None
    assert found.deletes.pylist("location") == ["E1"]
    names = found.files.pylist("location")
    # D2 has no 7, D3 is younger than the delete.
    assert {names[row]: deletes for row, deletes in found.matches.items()} == {"D1": (0,)}

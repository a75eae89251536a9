"""Two changes of one transaction as one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pyiceberg.expressions import AlwaysTrue, Or

from frazil.commit.change import Change, Isolation
from frazil.commit.fold import fold
from frazil.commit.updates import SetProperties
from frazil.expr.parse import parse
from tests.support.trees import Bench, located


def _fold(bench: Bench, first: Change, second: Change) -> Change:
    around = bench.around
    return fold(
        first,
        second,
        storage=around.storage,
        location=around.location,
        new_id=around.new_id,
        written=[],
    )


def test_additions_and_removals_add_up(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("X1", "X2")
    both = _fold(
        bench,
        Change(added=bench.files("D1"), removed=located("X1"), base_snapshot_id=1),
        Change(
            added=bench.files("D2"),
            removed=located("X2"),
            updates=(SetProperties(updates={"a": "1"}),),
            summary={"note": "y"},
        ),
    )
    bench.commit(both)
    assert bench.live() == {"D1": (), "D2": ()}
    assert bench.changes() == {"added": ["D1", "D2"], "deleted": ["X1", "X2"]}
    assert bench.metadata.properties["a"] == "1"
    assert bench.tip.summary["note"] == "y"


def test_a_file_added_and_removed_again_was_never_there(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("X1")
    both = _fold(bench, Change(added=bench.files("D1", "D2")), Change(removed=located("D1", "X1")))
    bench.commit(both)
    assert bench.changes() == {"added": ["D2"], "deleted": ["X1"]}


def test_rows_of_an_added_file_are_born_deleted(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    both = _fold(
        bench,
        Change(added=bench.files("D1", "D2")),
        Change(vectors=(bench.vector("D1", 2, 5),)),
    )
    thrice = _fold(bench, both, Change(vectors=(bench.vector("D1", 7),)))
    assert thrice.vectors == ()
    bench.commit(thrice)
    assert bench.live() == {"D1": (2, 5, 7), "D2": ()}
    assert bench.changes() == {"added": ["D1", "D2"]}


def test_vectors_of_one_file_are_united(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("X1", "X2")
    both = _fold(
        bench,
        Change(vectors=(bench.vector("X1", 2, 5),), base_snapshot_id=1),
        Change(vectors=(bench.vector("X1", 3, exclusive=True), bench.vector("X2", 0))),
    )
    merged = {edit.location: edit for edit in both.vectors}
    assert np.array_equal(merged["X1"].positions, [2, 3, 5])
    assert merged["X1"].exclusive
    bench.commit(both)
    assert bench.live() == {"X1": (2, 3, 5), "X2": (0,)}


def test_a_file_removed_after_its_rows_were_deleted_is_only_removed(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("X1", "X2")
    both = _fold(
        bench,
        Change(vectors=(bench.vector("X1", 2),), base_snapshot_id=1),
        Change(removed=located("X1")),
    )
    bench.commit(both)
    assert bench.changes() == {"deleted": ["X1"]}


def test_the_stricter_isolation_and_either_filter_count(tmp_path: Path) -> None:
    schema = Bench(tmp_path).metadata.schema()
    low, high = parse("id < 5", schema), parse("id > 9", schema)
    bench = Bench(tmp_path / "b")
    loose = Change(conflict_filter=low, isolation=Isolation.SNAPSHOT)
    assert _fold(bench, loose, Change(conflict_filter=high)).conflict_filter == Or(low, high)
    assert _fold(bench, loose, Change(conflict_filter=high)).isolation is Isolation.SERIALIZABLE
    assert _fold(bench, loose, loose).isolation is Isolation.SNAPSHOT
    everything = Change(conflict_filter=AlwaysTrue())
    assert _fold(bench, Change(), everything).conflict_filter == AlwaysTrue()


def test_only_two_rewrites_make_a_rewrite(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    rewrite = Change(replaced=located("X1"), is_rewrite=True)
    assert _fold(bench, rewrite, Change(added=bench.files("D1"))).operation == "overwrite"
    assert _fold(bench, rewrite, rewrite).operation == "replace"

"""Two changes of one transaction as one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from frazil.commit.change import Change, Isolation, Searched
from frazil.commit.fold import fold
from frazil.commit.updates import SetProperties
from frazil.errors import CommitConflict
from frazil.filter.text.filter_text import parse
from tests.support.trees import Bench, bounds, located


def _fold(bench: Bench, first: Change, second: Change) -> Change:
    context = bench.context
    return fold(
        first,
        second,
        storage=context.storage,
        location=context.location,
        new_id=context.new_id,
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


def test_each_filter_keeps_its_own_isolation(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("X1")
    schema = bench.metadata.schema()
    loose = Change(
        removed=located("X1"),
        base_snapshot_id=1,
        searched=(Searched(filter=parse("id < 5", schema), isolation=Isolation.SNAPSHOT),),
    )
    strict = Change(searched=(Searched(filter=parse("id > 90", schema)),))
    with_append = _fold(bench, loose, Change(added=bench.files("D1")))
    with_both = _fold(bench, _fold(bench, loose, strict), Change(added=bench.files("D2")))
    bench.other(Change(added=bench.entries([{"location": "low", **bounds(1, 1, 9)}])))
    bench.other(Change(added=bench.entries([{"location": "high", **bounds(1, 80, 99)}])))
    with pytest.raises(CommitConflict) as error:
        bench.commit(with_both)
    assert [conflict.where for conflict in error.value.conflicts] == ["high"]
    bench.commit(with_append)
    assert bench.live() == {"low": (), "high": (), "D1": ()}


def test_only_two_rewrites_make_a_rewrite(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    rewrite = Change(replaced=located("X1"), is_rewrite=True)
    assert _fold(bench, rewrite, Change(added=bench.files("D1"))).operation == "overwrite"
    assert _fold(bench, rewrite, rewrite).operation == "replace"

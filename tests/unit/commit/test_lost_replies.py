"""Swaps whose reply was lost: what landed is found, and nothing it may use is deleted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from frazil.commit.change import Change
from frazil.commit.head import Draft, Lost, Outcome, State, Unknown
from frazil.commit.loop import commit
from frazil.commit.updates import SetProperties
from frazil.errors import (
    CatalogError,
    CommitConflict,
    CommitUnknown,
)
from tests.support.trees import Bench
from tests.unit.commit.test_loop import SMALL_ROOT, _FullDisk, _kinds, _Refusing


def test_append_after_lost_reply_lands_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.head.lose_reply_after = [True]
    done = bench.append("D1")
    assert done.attempts == 1
    assert bench.head.swaps == 1
    assert bench.live() == {"D1": ()}
    assert done.state is not None
    assert done.state.version == bench.head.load().version
    assert _kinds(bench) == ["root"]


def test_a_swap_that_did_not_land_is_tried_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.head.lose_reply_after = [False]
    assert bench.append("D1").attempts == 2
    assert bench.live() == {"D1": ()}
    assert [int(s.snapshot_id) for s in bench.head.snapshots()] == [1]


def test_a_swap_that_lands_late_is_not_repeated(tmp_path: Path) -> None:
    """The reply is lost, the question comes too early, and then the first swap arrives."""
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    head = _Late(bench)
    done = commit(
        Change(added=bench.files("D1", "D2", "D3")),
        head=head,
        context=bench.context,
        sleep=lambda _: None,
    )
    assert [int(s.snapshot_id) for s in bench.head.snapshots()] == [1]
    assert bench.live() == {"D1": (), "D2": (), "D3": ()}
    assert done.snapshot is not None
    assert done.snapshot.root_manifest == bench.tip.root_manifest
    assert _kinds(bench) == ["leaf", "root"]


def test_a_swap_that_lands_before_the_next_attempt_is_built_is_no_conflict(tmp_path: Path) -> None:
    """The file that the change removes is gone by now: by the change itself."""
    bench = Bench(tmp_path)
    bench.append("D1", "D2")
    done = commit(
        bench.removal("D1"),
        head=_LandsOnLoad(bench),
        context=bench.context,
        base=bench.head.load(),
        sleep=lambda _: None,
    )
    assert done.snapshot is not None
    assert (done.snapshot.root_manifest, done.rows_removed) == (bench.tip.root_manifest, 10)
    assert bench.live() == {"D2": ()}


def test_an_error_after_a_swap_in_doubt_is_not_certain(tmp_path: Path) -> None:
    """The writer of the data files must not delete them: the swap may land yet."""
    bench = Bench(tmp_path, properties={"commit.retry.total-timeout-ms": "0"})
    bench.head.lose_reply_after = [False]
    with pytest.raises(CommitUnknown, match="still may"):
        bench.append("D1")


def test_a_swap_in_doubt_that_others_overtook_is_a_conflict(tmp_path: Path) -> None:
    """A compare-and-set on a version that is gone cannot land any more."""
    bench = Bench(tmp_path)
    bench.append("D1", "D2")
    change = bench.removal("D1")
    bench.head.lose_reply_after = [False]
    bench.head.before_swap = [lambda: bench.other(bench.removal("D1"))]
    with pytest.raises(CommitConflict):
        bench.commit(change, base=bench.head.load())
    assert _kinds(bench) == ["root", "root"]


def test_an_outcome_that_cannot_be_told_deletes_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    bench.head.lose_reply_after = [True]
    bench.head.unreachable = 99
    with pytest.raises(CommitUnknown, match="snapshot 1 may or may not have landed"):
        bench.append("D1", "D2", "D3")
    bench.head.unreachable = 0
    assert bench.live() == {"D1": (), "D2": (), "D3": ()}


def test_the_catalog_is_asked_more_than_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.head.lose_reply_after = [True]
    bench.head.unreachable = 2
    assert bench.append("D1").attempts == 1


def test_an_interruption_in_the_swap_deletes_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path)

    def interrupted(base: State, draft: Draft) -> Outcome:
        bench.head.inner.swap(base, draft)
        raise KeyboardInterrupt

    head = _Refusing(bench, interrupted)
    with pytest.raises(CommitUnknown) as error:
        commit(Change(added=bench.files("D1")), head=head, context=bench.context)
    assert isinstance(error.value.__cause__, KeyboardInterrupt)
    assert bench.live() == {"D1": ()}


def test_an_interruption_while_building_leaves_nothing_behind(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    context = replace(bench.new_context(), storage=_FullDisk("root", KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        commit(Change(added=bench.files("D1", "D2", "D3")), head=bench.head, context=context)
    assert bench.stored() == []


def test_files_of_an_attempt_in_doubt_are_kept_when_the_commit_gives_up(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties={"commit.retry.num-retries": "0"})
    bench.head.lose_reply_after = [False]
    with pytest.raises(CommitUnknown, match="still may"):
        bench.append("D1")
    assert _kinds(bench) == ["root"]


def test_a_metadata_change_whose_reply_was_lost_is_unknown(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.head.lose_reply_after = [True]
    with pytest.raises(CommitUnknown):
        bench.commit(Change(updates=(SetProperties(updates={"note": "x"}),)))


class _Late(_Refusing):
    """The first swap's reply is lost and the swap itself arrives before the second."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench, lambda *_: Lost())
        self._pending: tuple[State, Draft] | None = None

    def swap(self, base: State, draft: Draft) -> Outcome:
        if self._pending is None:
            self._pending = (base, draft)
            return Unknown(cause=CatalogError("connection reset"))
        self._bench.head.inner.swap(*self._pending)
        return self._bench.head.inner.swap(base, draft)


class _LandsOnLoad(_Refusing):
    """The first swap's reply is lost; it lands when the head is loaded for the next attempt."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench, lambda *_: Lost())
        self._pending: tuple[State, Draft] | None = None
        self._questions = 0
        self.load = self._load
        self.landed = self._landed

    def swap(self, base: State, draft: Draft) -> Outcome:
        self._pending = (base, draft)
        return Unknown(cause=CatalogError("connection reset"))

    def _landed(self, snapshot_id: int) -> State | None:
        self._questions += 1
        return self._bench.head.inner.landed(snapshot_id)

    def _load(self) -> State:
        if self._questions == 1 and self._pending is not None:
            self._bench.head.inner.swap(*self._pending)
            self._pending = None
        return self._bench.head.inner.load()

"""Several changes in one state, given snapshot ids, and tables that land together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from frazil.commit.change import Change, StoredVector, VectorEdit
from frazil.commit.head import AllLanded, Draft, Head, Landed, Lost, Outcomes, State, Unknown
from frazil.commit.together import Plan, StaleBase, Work, commit_together
from frazil.commit.updates import RemoveRef, SetProperties, SetRef
from frazil.errors import CommitConflict, CommitUnknown
from frazil.format import puffin
from frazil.format.metadata import RefKind, SnapshotId, SnapshotRef
from tests.support.trees import Bench


def swap(drafts: Sequence[tuple[Work, State, Draft]]) -> Outcomes:
    """One table, by its own head."""
    ((work, base, draft),) = drafts
    outcome = work.head.swap(base, draft)
    return AllLanded(states=(outcome.state,)) if isinstance(outcome, Landed) else outcome


def land(bench: Bench, plan: Plan | Sequence[Change]) -> State:
    chosen: Plan = plan if callable(plan) else lambda state: plan
    work = Work(head=bench.head, around=bench.surroundings(), plan=chosen)
    return commit_together([work], swap)[0]


def test_changes_of_one_commit_are_snapshots_that_follow_one_another(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")
    state = land(
        bench,
        [
            Change(added=bench.files("D2"), snapshot_id=77),
            Change(
                removed=bench.entries([{"location": "D1"}]), snapshot_id=78, base_snapshot_id=77
            ),
            Change(
                updates=(
                    SetRef(
                        name="done",
                        ref=SnapshotRef(snapshot_id=SnapshotId(77), kind=RefKind.TAG),
                        expected=None,
                    ),
                )
            ),
        ],
    )
    assert state.version == 2
    assert state.metadata.refs["done"].snapshot_id == 77
    tip = bench.tip
    assert (tip.snapshot_id, tip.parent_snapshot_id, tip.sequence_number) == (78, 77, 3)
    assert bench.live() == {"D2": ()}
    assert bench.live(bench.head.snapshot(77)) == {"D1": (), "D2": ()}


def test_a_snapshot_may_change_nothing_and_say_what_it_is(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")
    land(bench, [Change(recorded_operation="append", snapshot_id=9, summary={"epoch": "0"})])
    assert (bench.tip.snapshot_id, bench.tip.operation) == (9, "append")
    assert bench.tip.summary["epoch"] == "0"
    assert bench.live() == {"D1": ()}


def test_a_staged_snapshot_leaves_its_branch(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")
    land(bench, [Change(added=bench.files("D2"), snapshot_id=9, is_staged=True)])
    assert bench.tip.snapshot_id == 1
    assert bench.live(bench.head.snapshot(9)) == {"D1": (), "D2": ()}


def test_without_main_the_table_is_empty_and_starts_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")
    land(bench, [Change(updates=(RemoveRef(name="main"),)), Change(added=bench.files("D2"))])
    assert bench.live() == {"D2": ()}
    assert bench.tip.parent_snapshot_id is None


def test_a_stored_vector_is_used_as_it_lies(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1", "D2")
    data, (blob, _) = puffin.write_vectors(
        [("D1", np.array([2, 5])), ("D2", np.array([1]))], created_by="other"
    )
    bench.storage.write_new(f"{bench.location}/data/theirs.puffin", data)
    stored = StoredVector(
        location="data/theirs.puffin",
        offset=blob.offset,
        size_in_bytes=blob.size_in_bytes,
        cardinality=2,
    )
    edit = VectorEdit(location="D1", positions=np.array([2, 5]), adopted=stored)
    kinds = bench.kinds_written(lambda: land(bench, [Change(vectors=(edit,))]))
    assert kinds == ["root"]
    assert bench.live() == {"D1": (2, 5), "D2": ()}
    # What the vector becomes is more than what is stored: then it is written.
    bench.delete_rows("D2", 7)
    more = VectorEdit(location="D2", positions=np.array([1]), adopted=stored)
    assert bench.kinds_written(lambda: land(bench, [Change(vectors=(more,))])) == ["puffin", "root"]
    assert bench.live() == {"D1": (2, 5), "D2": (1, 7)}


def test_a_lost_race_is_planned_again_and_leaves_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    seen: list[int] = []

    def plan(state: State) -> list[Change]:
        seen.append(state.version)
        return [Change(added=bench.files("D1"), snapshot_id=50)]

    bench.head.before_swap = [lambda: bench.other(Change(added=bench.files("X1")))]
    land(bench, plan)
    assert seen == [0, 1]
    assert bench.live() == {"D1": (), "X1": ()}
    assert len(bench.stored()) == 2


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_writers_of_several_tables_take_turns_in_one_order(tmp_path: Path, order: str) -> None:
    """Two writers that hold one table each and wait for the other would stop both."""
    benches = {name: Bench(tmp_path / name) for name in "ab"}
    turns: list[str] = []

    @contextmanager
    def turn(name: str) -> Iterator[None]:
        turns.append(name)
        yield

    works = []
    for name in order:
        bench = benches[name]
        change = Change(added=bench.files("D1"))
        head = _Queued(bench.head, partial(turn, name))
        works.append(Work(head=head, around=bench.surroundings(), plan=lambda _, c=change: [c]))  # type: ignore[misc]
    answers = iter(list[Outcomes]([Lost(), AllLanded(states=())]))
    assert commit_together(works, lambda _: next(answers)) == ()
    assert turns == ["a", "b"]


class _Queued:
    """A head with a queue."""

    def __init__(self, head: Head, turn: Callable[[], AbstractContextManager[None]]) -> None:
        self.load = head.load
        self.swap = head.swap
        self.landed = head.landed
        self.snapshot = head.snapshot
        self.snapshots = head.snapshots
        self.turn = turn


def test_a_plan_that_refuses_lands_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path)

    def plan(state: State) -> list[Change]:
        raise CommitConflict("not on this state")

    with pytest.raises(CommitConflict, match="not on this state"):
        land(bench, plan)
    assert bench.stored() == []


@pytest.mark.parametrize("landed", [True, False])
def test_a_lost_reply_is_looked_into(tmp_path: Path, landed: bool) -> None:
    bench = Bench(tmp_path)

    def doubtful(drafts: Sequence[tuple[Work, State, Draft]]) -> Outcomes:
        if landed:
            swap(drafts)
        return Unknown(cause=OSError("gone"))

    work = Work(
        head=bench.head,
        around=bench.surroundings(),
        plan=lambda state: [Change(added=bench.files("D1"), snapshot_id=5)],
    )
    if landed:
        assert commit_together([work], doubtful)[0].metadata.current_snapshot_id == 5
    else:
        with pytest.raises(CommitUnknown):
            commit_together([work], doubtful)
    assert len(bench.stored()) == 1  # nothing is deleted after a doubt


def test_properties_alone_are_a_commit_too(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    state = land(bench, [Change(updates=(SetProperties(updates={"a": "b"}),))])
    assert state.metadata.properties["a"] == "b"
    assert isinstance(bench.head.swap(state, Draft(metadata=state.metadata)), Landed)
    assert isinstance(bench.head.swap(state, Draft(metadata=state.metadata)), Lost)


def test_a_state_known_already_is_trusted_and_not_loaded_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")
    known = bench.head.load()
    seen: list[State] = []

    def plan(state: State) -> Sequence[Change]:
        seen.append(state)
        return [Change(added=bench.files("D2"))]

    work = Work(head=bench.head, around=bench.surroundings(), plan=plan, base=known)
    commit_together([work], swap)
    assert [state is known for state in seen] == [True]
    assert bench.live() == {"D1": (), "D2": ()}


@pytest.mark.parametrize("refuses", [False, True])
def test_a_known_state_that_is_old_by_now_gives_way_to_the_newest(
    tmp_path: Path, refuses: bool
) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")
    known = bench.head.load()
    bench.append("D2")
    seen: list[int] = []

    def plan(state: State) -> Sequence[Change]:
        seen.append(state.version)
        if refuses and state is known:
            raise StaleBase
        return [Change(added=bench.files("D3"))]

    work = Work(head=bench.head, around=bench.surroundings(), plan=plan, base=known)
    commit_together([work], swap)
    assert seen == [known.version, known.version + 1]
    assert bench.live() == {"D1": (), "D2": (), "D3": ()}
    roots = {path.name for path in tmp_path.rglob("root-*")}
    assert len(roots) == 3  # the one that lost the race is gone

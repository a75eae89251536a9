"""Several changes in one state, given snapshot ids, and tables that land together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from frazil.commit.change import Change, VectorEdit
from frazil.commit.head import Draft, Head, Landed, Lost, Outcome, State, Unknown
from frazil.commit.loop import Plan, StaleBase, TableCommit, commit_tables, replayed
from frazil.commit.updates import RemoveRef, SetProperties, SetRef
from frazil.errors import CommitConflict, CommitUnknown
from frazil.format.metadata.metadata import RefKind, SnapshotId, SnapshotRef
from frazil.format.vectors import puffin
from tests.support.trees import Bench


def swap(drafts: Sequence[tuple[TableCommit, State, Draft]]) -> Outcome:
    """One table, by its own head."""
    ((table, base, draft),) = drafts
    return table.head.swap(base, draft)


def land(bench: Bench, plan: Plan | Sequence[Change]) -> State:
    chosen: Plan = plan if callable(plan) else lambda state: plan
    work = TableCommit(head=bench.head, context=bench.new_context(), plan=chosen)
    (result,) = commit_tables([work], swap)
    assert result.state is not None
    return result.state


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
    data, (stored, _) = puffin.write_vectors(
        [("D1", np.array([2, 5])), ("D2", np.array([1]))],
        location="data/theirs.puffin",
        created_by="other",
    )
    bench.storage.write_new(f"{bench.location}/data/theirs.puffin", data)
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

    tables = []
    for name in order:
        bench = benches[name]
        change = Change(added=bench.files("D1"))
        head = _Queued(bench.head, partial(turn, name))
        tables.append(TableCommit(head=head, context=bench.new_context(), plan=replayed(change)))
    states = tuple(benches[name].head.load() for name in order)
    answers = iter(list[Outcome]([Lost(), Landed(states=states)]))
    results = commit_tables(tables, lambda _: next(answers), sleep=lambda _: None)
    assert [result.attempts for result in results] == [2, 2]
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

    def doubtful(drafts: Sequence[tuple[TableCommit, State, Draft]]) -> Outcome:
        if landed:
            swap(drafts)
        return Unknown(cause=OSError("gone"))

    work = TableCommit(
        head=bench.head,
        context=bench.new_context(),
        plan=lambda state: [Change(added=bench.files("D1"), snapshot_id=5)],
    )
    if landed:
        (result,) = commit_tables([work], doubtful)
        assert result.state is not None
        assert result.state.metadata.current_snapshot_id == 5
    else:
        with pytest.raises(CommitUnknown):
            commit_tables([work], doubtful)
    # Each of the swaps whose reply was lost may land yet: what they use is not deleted.
    assert len(bench.stored()) == (1 if landed else 3)


def test_what_several_tables_did_is_told_of_each(tmp_path: Path) -> None:
    benches = [Bench(tmp_path / name) for name in "ab"]
    benches[1].append("D1", "D2")
    changes = [
        Change(added=benches[0].files("D1")),
        Change(removed=benches[1].entries([{"location": "D1"}]), base_snapshot_id=1),
    ]
    tables = [
        TableCommit(head=bench.head, context=bench.new_context(), plan=replayed(change))
        for bench, change in zip(benches, changes, strict=True)
    ]

    def swap_both(drafts: Sequence[tuple[TableCommit, State, Draft]]) -> Outcome:
        outcomes = [table.head.swap(base, draft) for table, base, draft in drafts]
        return Landed(states=tuple(o.states[0] for o in outcomes if isinstance(o, Landed)))

    first, second = commit_tables(tables, swap_both)
    assert (first.operation, first.rows_added, first.files_removed) == ("append", 10, 0)
    assert (second.operation, second.rows_removed, second.files_removed) == ("delete", 10, 1)
    assert second.snapshot_id == benches[1].tip.snapshot_id


def test_a_change_that_is_replayed_writes_its_vectors_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")
    plan = replayed(Change(vectors=(bench.vector("D1", 3),), base_snapshot_id=1))
    table = TableCommit(head=bench.head, context=bench.new_context(), plan=plan)
    bench.head.before_swap = [lambda: bench.other(Change(added=bench.files("X1")))]
    kinds = bench.kinds_written(lambda: commit_tables([table], sleep=lambda _: None))
    assert sorted(kinds) == ["puffin", "root", "root", "root"]
    assert bench.live() == {"D1": (3,), "X1": ()}


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

    work = TableCommit(head=bench.head, context=bench.new_context(), plan=plan, base=known)
    commit_tables([work], swap)
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

    work = TableCommit(head=bench.head, context=bench.new_context(), plan=plan, base=known)
    commit_tables([work], swap)
    assert seen == [known.version, known.version + 1]
    assert bench.live() == {"D1": (), "D2": (), "D3": ()}
    roots = {path.name for path in tmp_path.rglob("root-*")}
    assert len(roots) == 3  # the one that lost the race is gone

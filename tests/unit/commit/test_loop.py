"""Races, lost replies, failures: a change lands once or not at all and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from frazil.commit.change import Change
from frazil.commit.head import Draft, Lost, Outcome, State
from frazil.commit.loop import RetryLimits, commit
from frazil.commit.updates import RemoveSnapshots, SetProperties, SetRef
from frazil.errors import (
    CatalogError,
    CommitConflict,
    CommitUnknown,
    InvalidInput,
    NotFound,
    StorageError,
)
from frazil.format.metadata.metadata import RefKind, SnapshotId, SnapshotRef
from frazil.storage import LocalStorage
from tests.support.trees import Bench, kind_of, located, seen

SMALL_ROOT = {"write.root.max-data-entries": "2"}


def _kinds(bench: Bench) -> list[str]:
    """Metadata files that are there, by kind."""
    return sorted(kind_of(path) for path in bench.stored())


# Lost races


def test_a_lost_race_writes_only_the_root_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    bench.head.before_swap = [lambda: bench.other(Change(added=bench.files("X1")))]
    kinds = bench.kinds_written(lambda: bench.append("D1", "D2", "D3"))
    assert kinds == ["leaf", "root", "root", "root"]  # the second root is the other writer's
    assert bench.root() == [
        seen("M1", "ADDED", by=1, seq=2, row=10),
        seen("X1", "EXISTING", by=2, seq=1, row=0),
    ]
    # The leaf inherits what the winning attempt says.
    inherited = bench.reader().live(bench.tree().leaves()[0])
    assert inherited.pylist("tracking.sequence_number") == [2, 2, 2]
    assert inherited.pylist("tracking.first_row_id") == [10, 20, 30]
    assert _kinds(bench) == ["leaf", "root", "root"]
    assert bench.tip.summary["frazil.leaves-written"] == "1"
    sizes = sum(
        bench.storage.size(f"{bench.location}/{path}")
        for path in (bench.leaf_location("M1"), bench.tip.root_manifest)
    )
    assert bench.tip.summary["frazil.metadata-bytes-written"] == str(sizes)


def test_a_lost_race_reuses_the_puffin_when_the_vector_is_still_the_same(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")
    bench.head.before_swap = [lambda: bench.other(Change(added=bench.files("X1")))]
    kinds = bench.kinds_written(lambda: bench.delete_rows("D1", 3))
    assert kinds == ["puffin", "root", "root", "root"]
    assert _kinds(bench) == ["puffin", "root", "root", "root"]
    assert bench.live() == {"D1": (3,), "X1": ()}


def test_a_puffin_that_a_merge_made_useless_is_removed(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")
    other = Change(vectors=(bench.vector("D1", 8),), base_snapshot_id=1)
    bench.head.before_swap = [lambda: bench.other(other)]
    kinds = bench.kinds_written(lambda: bench.delete_rows("D1", 3))
    assert kinds == ["puffin", "root", "puffin", "root", "puffin", "root"]
    # Theirs, and the union: the first one of ours is gone, and so is the root that lost.
    assert _kinds(bench) == ["puffin", "puffin", "root", "root", "root"]
    assert bench.live() == {"D1": (3, 8)}


def test_a_flush_is_done_again_when_another_commit_changed_an_entry_of_it(tmp_path: Path) -> None:
    """The leaf of the first attempt holds D1 without the rows deleted meanwhile."""
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    bench.append("D1", "D2")
    other = Change(vectors=(bench.vector("D1", 8),), base_snapshot_id=1)
    bench.head.before_swap = [lambda: bench.other(other)]
    bench.append("D3")
    assert bench.live() == {"D1": (8,), "D2": (), "D3": ()}
    assert bench.changes() == {"added": ["D3"]}
    assert _kinds(bench).count("leaf") == 1


def test_a_flush_is_done_again_when_another_commit_removed_an_entry_of_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    bench.append("D1", "D2")
    bench.head.before_swap = [
        lambda: bench.other(Change(removed=located("D1"), base_snapshot_id=1))
    ]
    bench.append("D3")
    assert bench.live() == {"D2": (), "D3": ()}
    assert "leaf" not in _kinds(bench)


def test_a_flush_is_used_again_when_its_entries_are_as_they_were(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties={"write.root.max-data-entries": "3"})
    bench.append("D1", "D2", "D3")
    # The other writer's append flushes as well; ours then finds only its leaf and its file.
    bench.head.before_swap = [lambda: bench.other(Change(added=bench.files("X1")))]
    bench.append("D4")
    assert bench.live() == {"D1": (), "D2": (), "D3": (), "X1": (), "D4": ()}
    assert _kinds(bench) == ["leaf", "root", "root", "root"]

    other = Bench(tmp_path / "again", properties={"write.root.max-data-entries": "3"})
    other.append("D1", "D2", "D3")
    state = other.head.load()
    touch = SetProperties(updates={"note": "x"})
    other.head.before_swap = [lambda: other.other(Change(updates=(touch,)))]
    kinds = other.kinds_written(lambda: other.append("D4"))
    assert kinds == ["leaf", "root", "root"]
    assert other.head.load().version == state.version + 2
    assert other.root() == [
        seen("M1", "EXISTING", by=2, seq=2, row=30),
        seen("D4", "ADDED", by=2, seq=2, row=30),
    ]


def test_a_compaction_is_done_again_when_another_commit_touched_its_leaf(tmp_path: Path) -> None:
    properties = {**SMALL_ROOT, "write.leaf.max-dead-ratio": "0.3"}
    bench = Bench(tmp_path, properties=properties)
    bench.append("D1", "D2", "D3")
    bench.remove("D1")
    bench.head.before_swap = [
        lambda: bench.other(Change(removed=located("D2"), base_snapshot_id=2))
    ]
    bench.append("D4")
    assert bench.live() == {"D3": (), "D4": ()}
    assert bench.changes() == {"added": ["D4"]}


def test_an_entry_that_moved_between_planning_and_commit_is_found_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    bench.append("D1", "D2")
    base = bench.head.load()
    removal = bench.removal("D1")  # planned while D1 is in the root
    bench.other(Change(added=bench.files("D3")))  # flushes D1 and D2
    bench.commit(removal, base=base)
    assert bench.root() == [
        seen("M1", "MODIFIED", by=2, seq=2, row=20, dv={0}, dv_by=3, deleted={0}),
        seen("D3", "EXISTING", by=2, seq=2, row=20),
    ]


@pytest.mark.parametrize(
    ("leaf", "position"),
    [("metadata/leaf-gone.parquet", 0), ("M1", 1), ("M1", 77), ("M1", -3)],
    ids=["another leaf", "another file's position", "past the end", "before the start"],
)
def test_a_stale_hint_is_only_a_hint(tmp_path: Path, leaf: str, position: int) -> None:
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    bench.append("D1", "D2", "D3")
    where = bench.leaf_location("M1") if leaf == "M1" else leaf
    hinted = located("D1", leaf=where, positions=[position])
    bench.commit(Change(removed=hinted, base_snapshot_id=1))
    assert bench.live() == {"D2": (), "D3": ()}


def test_a_hint_for_a_dead_position_does_not_hold(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    bench.append("D1", "D2", "D3")
    leaf = bench.leaf_location("M1")
    bench.delete_rows("D1", 4)
    vector = bench.vector("D1", 6, leaf=leaf, position=0)
    bench.commit(Change(vectors=(vector,), base_snapshot_id=1))
    assert bench.live() == {"D1": (4, 6), "D2": (), "D3": ()}


def test_giving_up_leaves_nothing_behind(tmp_path: Path) -> None:
    properties = {**SMALL_ROOT, "commit.retry.num-retries": "3"}
    bench = Bench(tmp_path, properties=properties)
    bench.append("D0")
    before = bench.stored()
    head = _Refusing(bench, lambda *_: Lost())
    waits: list[float] = []
    with pytest.raises(CommitConflict, match="gave up after 4 attempts"):
        commit(
            Change(added=bench.files("D1", "D2", "D3")),
            head=head,
            context=bench.context,
            sleep=waits.append,
            chance=lambda: 1.0,
        )
    assert head.swaps == 4
    assert waits == [0.02, 0.02, 0.02]  # the longest wait, the same after every attempt
    assert bench.stored() == before


def test_waits_lie_between_the_limits() -> None:
    limits = RetryLimits(min_wait_ms=10, max_wait_ms=100)
    assert [limits.wait_ms(chance=chance) for chance in (0.0, 0.5, 1.0)] == [10, 55, 100]
    assert RetryLimits(min_wait_ms=50, max_wait_ms=20).wait_ms(chance=1.0) == 50


def test_a_lost_race_is_followed_by_a_turn(tmp_path: Path) -> None:
    """The state is loaded in the turn: what landed before it cannot come in between."""
    bench = Bench(tmp_path)
    bench.append("D0")
    head = _Queued(bench)
    answers = iter([lambda *_: Lost(), bench.head.inner.swap])
    head.answer = lambda *swap: next(answers)(*swap)
    waits: list[float] = []
    done = commit(
        Change(added=bench.files("D1")),
        head=head,
        context=bench.context,
        base=bench.head.load(),
        sleep=waits.append,
    )
    assert head.steps == ["swap", "turn", "load", "swap", "leave"]
    assert (done.attempts, waits) == (2, [])


def test_a_writer_without_a_base_begins_with_a_turn(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D0")
    head = _Queued(bench)
    head.answer = bench.head.inner.swap
    commit(Change(added=bench.files("D1")), head=head, context=bench.context)
    assert head.steps == ["turn", "load", "swap", "leave"]


def test_a_commit_that_fails_in_its_turn_leaves_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D0")
    head = _Queued(bench)
    head.answer = _raise(CatalogError("the database is gone"))
    with pytest.raises(CatalogError):
        commit(Change(added=bench.files("D1")), head=head, context=bench.context)
    assert head.steps == ["turn", "load", "swap", "leave"]


def test_retry_limits_come_from_properties() -> None:
    limits = RetryLimits.of({"commit.retry.num-retries": "7", "commit.retry.max-wait-ms": "5"})
    assert (limits.num_retries, limits.max_wait_ms) == (7, 5)
    with pytest.raises(InvalidInput, match=r"commit\.retry\.num-retries is 'many'"):
        RetryLimits.of({"commit.retry.num-retries": "many"})


def test_a_commit_stops_at_its_deadline(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties={"commit.retry.total-timeout-ms": "0"})
    head = _Refusing(bench, lambda *_: Lost())
    with pytest.raises(CommitConflict):
        commit(Change(added=bench.files("D1")), head=head, context=bench.context)
    assert head.swaps == 1


# Conflicts and failures


def test_a_conflict_leaves_nothing_behind(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    bench.append("X1", "X2")
    base = bench.head.load()
    change = Change(removed=located("X1"), added=bench.files("D1", "D2", "D3"), base_snapshot_id=1)
    bench.head.before_swap = [lambda: bench.other(bench.removal("X1"))]
    with pytest.raises(CommitConflict):
        bench.commit(change, base=base)
    assert _kinds(bench) == ["root", "root"]


@pytest.mark.parametrize("failing", ["leaf", "puffin", "root"])
def test_a_failed_write_leaves_nothing_behind(tmp_path: Path, failing: str) -> None:
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    bench.append("X1", "X2")
    before = bench.stored()
    disk = _FullDisk(failing)
    context = replace(bench.new_context(), storage=disk)
    change = Change(
        vectors=(bench.vector("X1", 1),), added=bench.files("D1", "D2", "D3"), base_snapshot_id=1
    )
    with pytest.raises(StorageError, match="No space left"):
        commit(change, head=bench.head, context=context)
    assert bench.stored() == before
    assert bench.live() == {"X1": (), "X2": ()}


def test_a_head_that_refuses_leaves_nothing_behind(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    head = _Refusing(bench, _raise(CatalogError("read-only")))
    with pytest.raises(CatalogError):
        commit(Change(added=bench.files("D1")), head=head, context=bench.context)
    assert bench.stored() == []


def test_files_that_cannot_be_removed_do_not_hide_the_error(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    head = _Refusing(bench, _raise(CatalogError("read-only")))
    context = replace(bench.new_context(), storage=_Undeletable())
    with pytest.raises(CatalogError):
        commit(Change(added=bench.files("D1")), head=head, context=context)
    assert _kinds(bench) == ["root"]


def test_a_table_dropped_meanwhile_is_not_found(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.head.before_swap = [lambda: bench.catalog.drop("test.table")]
    with pytest.raises(NotFound):
        commit(Change(added=bench.files("D1")), head=bench.head, context=bench.context)
    assert bench.stored() == []


# Metadata, branches


def test_metadata_and_files_change_in_one_version(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    version = bench.head.load().version
    bench.commit(Change(added=bench.files("D1"), updates=(SetProperties(updates={"note": "x"}),)))
    state = bench.head.load()
    assert state.version == version + 1
    assert state.metadata.properties["note"] == "x"
    assert bench.live() == {"D1": ()}


def test_a_metadata_change_makes_no_snapshot_and_no_file(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    change = Change(updates=(SetProperties(updates={"note": "x"}),))
    assert bench.kinds_written(lambda: bench.commit(change)) == []
    assert bench.head.load().tip() is None


def test_snapshots_are_forgotten_with_the_metadata(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")
    bench.append("D2")
    bench.commit(Change(updates=(RemoveSnapshots(snapshot_ids=(1,)),)))
    assert [int(s.snapshot_id) for s in bench.head.snapshots()] == [2]


def test_a_snapshot_that_got_a_name_is_not_forgotten(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")
    bench.append("D2")
    tag = SnapshotRef(snapshot_id=SnapshotId(1), kind=RefKind.TAG)
    bench.commit(Change(updates=(SetRef(name="v1", ref=tag, expected=None),)))
    with pytest.raises(CommitConflict, match="got a name meanwhile"):
        bench.commit(Change(updates=(RemoveSnapshots(snapshot_ids=(1,)),)))


def test_a_commit_to_a_branch_leaves_main_alone(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")
    bench.commit(Change(added=bench.files("D2"), branch="audit"))
    bench.append("D3")
    bench.commit(
        Change(removed=located("D1"), added=bench.files("D4"), branch="audit", base_snapshot_id=2)
    )
    state = bench.head.load()
    audit = state.tip("audit")
    assert audit is not None
    assert audit.parent_snapshot_id == 2
    assert bench.root(audit) == [
        seen("D1", "DELETED", by=4, seq=1, row=0),
        seen("D2", "EXISTING", by=2, seq=2, row=10),
        seen("D4", "ADDED", by=4, seq=4, row=30),
    ]
    assert bench.root() == [
        seen("D1", "EXISTING", by=1, seq=1, row=0),
        seen("D3", "ADDED", by=3, seq=3, row=20),
    ]


def test_a_tag_cannot_be_committed_to(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")
    tag = SnapshotRef(snapshot_id=SnapshotId(1), kind=RefKind.TAG)
    bench.commit(Change(updates=(SetRef(name="v1", ref=tag, expected=None),)))
    before = bench.stored()
    with pytest.raises(InvalidInput, match="is a tag"):
        bench.commit(Change(added=bench.files("D2"), branch="v1"))
    assert bench.stored() == before


def test_an_interruption_on_leaving_the_turn_keeps_what_landed(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D0")
    head = _Queued(bench)
    head.answer = bench.head.inner.swap
    head.leaving = KeyboardInterrupt()
    with pytest.raises(CommitUnknown, match="has landed"):
        commit(Change(added=bench.files("D1")), head=head, context=bench.context)
    assert bench.live() == {"D0": (), "D1": ()}


# Fakes of the seams


def _raise(error: Exception) -> Callable[..., Outcome]:
    def refuse(*_: object) -> Outcome:
        raise error

    return refuse


class _Refusing:
    """A head whose swap answers what the test says."""

    def __init__(self, bench: Bench, answer: Callable[..., Outcome]) -> None:
        self._bench = bench
        self._answer = answer
        self.swaps = 0
        self.load = bench.head.inner.load
        self.landed = bench.head.inner.landed
        self.snapshot = bench.head.inner.snapshot
        self.snapshots = bench.head.inner.snapshots

    def swap(self, base: State, draft: Draft) -> Outcome:
        self.swaps += 1
        return self._answer(base, draft)


class _Queued(_Refusing):
    """A head with a queue, which tells in which order it was asked."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench, lambda *swap: self.answer(*swap))
        self.answer: Callable[..., Outcome] = lambda *_: Lost()
        self.steps: list[str] = []
        self.leaving: BaseException | None = None
        self.load = self._load

    @contextmanager
    def turn(self) -> Iterator[None]:
        self.steps.append("turn")
        try:
            yield
        finally:
            self.steps.append("leave")
            if self.leaving is not None:
                raise self.leaving

    def swap(self, base: State, draft: Draft) -> Outcome:
        self.steps.append("swap")
        return super().swap(base, draft)

    def _load(self) -> State:
        self.steps.append("load")
        return self._bench.head.inner.load()


class _FullDisk(LocalStorage):
    """Writing one kind of file fails."""

    def __init__(self, kind: str, error: BaseException | None = None) -> None:
        super().__init__()
        self._kind = kind
        self._error = error or StorageError("write failed: No space left on device")

    def write_new(self, path: str, data: bytes | pa.Buffer) -> None:
        if kind_of(path) == self._kind:
            raise self._error
        super().write_new(path, data)


class _Undeletable(LocalStorage):
    """Nothing can be deleted."""

    def delete(self, path: str) -> None:
        raise StorageError(f"{path}: delete failed")

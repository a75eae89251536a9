"""The conflict matrix: what another commit may do between planning and landing, and what not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from frazil.commit.change import Change, Isolation, Searched
from frazil.commit.head import Draft
from frazil.commit.updates import HaveUnpartitionedSpec
from frazil.errors import CommitConflict, InvalidInput
from frazil.filter.text.filter_text import parse
from frazil.format.entries.fields import ContentType
from frazil.format.metadata.metadata import SnapshotId, SnapshotRef
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.transforms import IdentityTransform
from tests.support.trees import Bench, bounds, located, seen

SMALL_ROOT = {"write.root.max-data-entries": "2"}


def _whats(error: pytest.ExceptionInfo[CommitConflict]) -> list[tuple[str, str, int | None]]:
    return [(c.what, c.where, c.by_snapshot_id) for c in error.value.conflicts]


def test_two_appends_both_land(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    base = bench.head.load()
    bench.other(Change(added=bench.files("D1")))
    done = bench.commit(Change(added=bench.files("D2")), base=base)
    assert done.attempts == 2
    assert bench.root() == [
        seen("D1", "EXISTING", by=1, seq=1, row=0),
        seen("D2", "ADDED", by=2, seq=2, row=10),
    ]


def test_a_file_that_another_commit_removed_cannot_be_removed(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1", "D2")
    removal = bench.removal("D1", "D2")
    bench.other(bench.removal("D1"))
    with pytest.raises(CommitConflict) as error:
        bench.commit(removal)
    assert _whats(error) == [("file is no longer in the table", "D1", None)]
    assert bench.live() == {"D2": ()}


def test_removals_of_different_files_both_land(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    bench.append("D1", "D2", "D3")
    removal = bench.removal("D1")
    base = bench.head.load()
    bench.other(bench.removal("D3"))
    assert bench.commit(removal, base=base).attempts == 2
    assert bench.root() == [
        seen("M1", "MODIFIED", by=1, seq=1, row=0, dv={0, 2}, dv_by=3, deleted={0})
    ]


def test_a_rewrite_conflicts_with_a_vector_put_on_its_file(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1", "D2")
    rewrite = Change(
        replaced=located("D1", "D2"), added=bench.files("D3"), is_rewrite=True, base_snapshot_id=1
    )
    base = bench.head.load()
    bench.other(Change(vectors=(bench.vector("D2", 4),), base_snapshot_id=1))
    with pytest.raises(CommitConflict) as error:
        bench.commit(rewrite, base=base)
    assert _whats(error) == [("deletion vector changed", "D2", 2)]
    assert bench.live() == {"D1": (), "D2": (4,)}


def test_a_rewrite_of_a_file_that_had_a_vector_when_planned_lands(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")
    bench.delete_rows("D1", 4)
    rewrite = Change(
        replaced=located("D1"), added=bench.files("D3"), is_rewrite=True, base_snapshot_id=2
    )
    bench.other(Change(added=bench.files("D2")))
    bench.commit(rewrite)
    assert bench.live() == {"D2": (), "D3": ()}


def test_files_swapped_by_name_conflict_with_a_vector_put_on_one_of_them(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")
    swap = Change(removed=located("D1"), added=bench.files("D2"), base_snapshot_id=1)
    bench.other(Change(vectors=(bench.vector("D1", 0),), base_snapshot_id=1))
    with pytest.raises(CommitConflict) as error:
        bench.commit(swap)
    assert _whats(error) == [("deletion vector changed", "D1", 2)]


def test_files_removed_by_a_filter_may_have_got_a_vector(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")
    overwrite = Change(
        removed=located("D1"),
        added=bench.files("D2"),
        base_snapshot_id=1,
        searched=(Searched(filter=parse("id < 100", bench.metadata.schema())),),
    )
    bench.other(Change(vectors=(bench.vector("D1", 0),), base_snapshot_id=1))
    bench.commit(overwrite)
    assert bench.live() == {"D2": ()}


def test_a_file_that_got_a_vector_can_still_be_removed(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1", "D2")
    removal = bench.removal("D1")
    bench.other(Change(vectors=(bench.vector("D1", 3),), base_snapshot_id=1))
    bench.commit(removal)
    assert bench.live() == {"D2": ()}
    assert bench.root() == [
        seen("D2", "EXISTING", by=1, seq=1, row=10),
        seen("D1", "DELETED", by=3, seq=1, row=0, dv={3}, dv_by=2),
    ]


def _deletion(bench: Bench, isolation: Isolation) -> Change:
    return Change(
        removed=located("D1"),
        base_snapshot_id=1,
        searched=(Searched(filter=parse("id < 15", bench.metadata.schema()), isolation=isolation),),
    )


@pytest.mark.parametrize("isolation", Isolation)
def test_a_file_added_meanwhile_that_could_match_conflicts_when_serializable(
    tmp_path: Path, isolation: Isolation
) -> None:
    bench = Bench(tmp_path)
    bench.commit(Change(added=bench.entries([{"location": "D1", **bounds(1, 1, 10)}])))
    deletion = _deletion(bench, isolation)
    bench.other(Change(added=bench.entries([{"location": "D2", **bounds(1, 20, 30)}])))
    bench.other(Change(added=bench.entries([{"location": "D3", **bounds(1, 10, 20)}])))
    if isolation is Isolation.SNAPSHOT:
        bench.commit(deletion)
        assert bench.live() == {"D2": (), "D3": ()}
        return
    with pytest.raises(CommitConflict) as error:
        bench.commit(deletion)
    assert _whats(error) == [("file added that could match", "D3", 3)]
    assert bench.live() == {"D1": (), "D2": (), "D3": ()}


def test_a_file_added_meanwhile_that_cannot_match_is_no_conflict(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.commit(Change(added=bench.entries([{"location": "D1", **bounds(1, 1, 10)}])))
    deletion = _deletion(bench, Isolation.SERIALIZABLE)
    bench.other(Change(added=bench.entries([{"location": "D2", **bounds(1, 20, 30)}])))
    bench.commit(deletion)
    assert bench.live() == {"D2": ()}


def test_files_added_meanwhile_in_a_leaf_are_checked_too(tmp_path: Path) -> None:
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    bench.commit(Change(added=bench.entries([{"location": "D1", **bounds(1, 1, 10)}])))
    deletion = _deletion(bench, Isolation.SERIALIZABLE)
    new = [{"location": f"D{n}", **bounds(1, 10 * n, 10 * n + 9)} for n in (1_2, 0, 5)]
    bench.other(Change(added=bench.entries(new)))
    with pytest.raises(CommitConflict) as error:
        bench.commit(deletion)
    assert _whats(error) == [("file added that could match", "D0", 2)]


def test_files_that_a_rewrite_added_hold_no_new_rows(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.commit(Change(added=bench.entries([{"location": "D1", **bounds(1, 1, 10)}])))
    bench.append("D2", "D3")
    deletion = replace(_deletion(bench, Isolation.SERIALIZABLE), base_snapshot_id=2)
    together = bench.entries([{"location": "D4", **bounds(1, 10, 20)}])
    rewrite = Change(
        replaced=located("D2", "D3"), added=together, is_rewrite=True, base_snapshot_id=2
    )
    bench.other(rewrite)
    bench.commit(deletion)
    assert bench.live() == {"D4": ()}


def test_what_was_added_and_then_rewritten_still_conflicts(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.commit(Change(added=bench.entries([{"location": "D1", **bounds(1, 1, 10)}])))
    deletion = _deletion(bench, Isolation.SERIALIZABLE)
    bench.other(Change(added=bench.entries([{"location": "D2", **bounds(1, 10, 20)}])))
    rewrite = Change(
        replaced=located("D2"), added=bench.files("D3"), is_rewrite=True, base_snapshot_id=2
    )
    bench.other(rewrite)
    with pytest.raises(CommitConflict) as error:
        bench.commit(deletion)
    assert _whats(error) == [("file added that could match", "D2", 2)]


def test_an_insert_planned_on_a_filter_conflicts_with_a_matching_insert(tmp_path: Path) -> None:
    """An upsert that found no row of its key must not land beside another one's row."""
    bench = Bench(tmp_path)
    bench.append("D1")
    insert = Change(
        added=bench.files("D2"),
        base_snapshot_id=1,
        searched=(Searched(filter=parse("id = 7", bench.metadata.schema())),),
    )
    bench.other(Change(added=bench.entries([{"location": "D3", **bounds(1, 7, 7)}])))
    with pytest.raises(CommitConflict):
        bench.commit(insert)


def test_a_change_planned_on_an_empty_table_sees_all_that_came_since(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    insert = Change(
        added=bench.files("D2"),
        searched=(Searched(filter=parse("id = 7", bench.metadata.schema())),),
    )
    bench.other(Change(added=bench.entries([{"location": "D1", **bounds(1, 7, 7)}])))
    with pytest.raises(CommitConflict) as error:
        bench.commit(insert)
    assert _whats(error) == [("file added that could match", "D1", 1)]


def test_rows_deleted_by_two_commits_are_united(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")
    mine = Change(vectors=(bench.vector("D1", 2, 5),), base_snapshot_id=1)
    base = bench.head.load()
    bench.other(Change(vectors=(bench.vector("D1", 5, 9),), base_snapshot_id=1))
    assert bench.commit(mine, base=base).attempts == 2
    assert bench.root() == [
        seen("D1", "REPLACED", by=3, seq=1, row=0, dv={5, 9}, dv_by=2),
        seen("D1", "MODIFIED", by=1, seq=1, row=0, dv={2, 5, 9}, dv_by=3),
    ]


def test_two_updates_of_one_row_conflict(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")

    def update(new: str, *positions: int) -> Change:
        return Change(
            vectors=(bench.vector("D1", *positions, exclusive=True),),
            added=bench.files(new),
            base_snapshot_id=1,
        )

    bench.other(update("D2", 2, 3))
    with pytest.raises(CommitConflict) as error:
        bench.commit(update("D3", 3, 4))
    assert _whats(error) == [("a row to update was deleted meanwhile", "D1", None)]
    bench.commit(update("D4", 4))
    assert bench.live() == {"D1": (2, 3, 4), "D2": (), "D4": ()}


def test_a_vector_for_a_file_that_was_removed_conflicts(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1", "D2")
    mine = Change(vectors=(bench.vector("D1", 2),), base_snapshot_id=1)
    bench.other(bench.removal("D1"))
    with pytest.raises(CommitConflict) as error:
        bench.commit(mine)
    assert _whats(error) == [("file is no longer in the table", "D1", None)]


def test_every_conflict_is_listed_at_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1", "D2", "D3")
    mine = Change(
        removed=located("D1"),
        replaced=located("D2"),
        vectors=(bench.vector("D3", 1),),
        base_snapshot_id=1,
    )
    bench.other(bench.removal("D1", "D2", "D3"))
    with pytest.raises(CommitConflict) as error:
        bench.commit(mine)
    assert [conflict.where for conflict in error.value.conflicts] == ["D1", "D2", "D3"]


def test_a_branch_moved_to_another_history_is_a_conflict(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")
    bench.append("D2")
    rewrite = Change(replaced=located("D1"), is_rewrite=True, base_snapshot_id=2)
    state = bench.head.load()
    main = SnapshotRef(snapshot_id=SnapshotId(1))
    moved = state.metadata.with_ref("main", main, now_ms=9_000)
    bench.head.inner.swap(state, Draft(metadata=moved))
    with pytest.raises(CommitConflict) as error:
        bench.commit(rewrite)
    assert _whats(error) == [("history was replaced", "main", None)]


def test_history_that_was_expired_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")
    bench.append("D2")
    bench.append("D3")
    rewrite = Change(replaced=located("D1"), is_rewrite=True, base_snapshot_id=1)
    state = bench.head.load()
    bench.head.inner.swap(state, Draft(metadata=state.metadata, removed_snapshot_ids=(1, 2)))
    with pytest.raises(CommitConflict) as error:
        bench.commit(rewrite)
    assert _whats(error) == [("history was expired", "main", None)]


def test_a_file_named_twice_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1", "D2")
    both = Change(removed=located("D1"), vectors=(bench.vector("D1", 1),), base_snapshot_id=1)
    for change in (both, Change(removed=located("D2", "D2"), base_snapshot_id=1)):
        with pytest.raises(InvalidInput, match="more than once"):
            bench.commit(change)
    assert bench.live() == {"D1": (), "D2": ()}


# Equality deletes

BY_COUNTRY = PartitionSpec(
    PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="country"),
    spec_id=0,
)


def _equality_delete(name: str, lower: int, upper: int, **more: object) -> dict[str, object]:
    """A delete of ids; its bounds of the country count for nothing."""
    return {
        "location": name,
        "content_type": int(ContentType.EQUALITY_DELETES),
        "equality_ids": [1],
        **bounds(1, lower, upper),
        **bounds(2, "AT", "AT"),
        **more,
    }


def _update(bench: Bench, where: str, isolation: Isolation) -> Change:
    return Change(
        vectors=(bench.vector("D1", 1, exclusive=True),),
        added=bench.files("D2"),
        base_snapshot_id=1,
        searched=(Searched(filter=parse(where, bench.metadata.schema()), isolation=isolation),),
    )


@pytest.mark.parametrize("isolation", Isolation)
def test_an_update_conflicts_with_an_equality_delete_that_could_take_its_row(
    tmp_path: Path, isolation: Isolation
) -> None:
    bench = Bench(tmp_path, properties=SMALL_ROOT)
    bench.append("D1")
    one, other = _update(bench, "id = 7", isolation), _update(bench, "country = 'DE'", isolation)
    for name, lower, upper in (("E1", 1, 6), ("E2", 7, 7), ("E3", 8, 9)):
        bench.other(Change(added=bench.entries([_equality_delete(name, lower, upper)])))
    with pytest.raises(CommitConflict) as error:
        bench.commit(one)
    assert _whats(error) == [("equality delete that could match", "E2", 3)]
    with pytest.raises(CommitConflict) as error:
        bench.commit(other)
    assert [where for _, where, _ in _whats(error)] == ["E1", "E2", "E3"]


def test_an_equality_delete_that_has_been_turned_into_vectors_is_no_conflict(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")
    update = _update(bench, "id = 7", Isolation.SNAPSHOT)
    bench.other(Change(added=bench.entries([_equality_delete("E1", 7, 7)])))
    bench.other(
        Change(replaced=located("E1"), vectors=(bench.vector("D1", 5),), base_snapshot_id=2)
    )
    bench.commit(update)
    assert bench.live() == {"D1": (1, 5), "D2": ()}


@pytest.mark.parametrize("age", [1, 2, None])
def test_rewritten_files_that_keep_their_age_are_reached_by_later_equality_deletes(
    tmp_path: Path, age: int | None
) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")
    rewrite = Change(
        replaced=located("D1"),
        added=bench.files("D2", tracking__sequence_number=age),
        is_rewrite=True,
        base_snapshot_id=1,
    )
    bench.other(Change(added=bench.entries([_equality_delete("E1", 7, 7)])))
    if age == 1:
        bench.commit(rewrite)
        assert bench.live() == {"D2": (), "E1": ()}
        return
    with pytest.raises(CommitConflict) as error:
        bench.commit(rewrite)
    assert _whats(error) == [("equality delete that could match", "E1", 2)]


def test_a_delete_of_one_partition_does_not_reach_files_rewritten_to_another_spec(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, spec=BY_COUNTRY)
    inside = {"spec_id": 0, "partition.1000": "AT"}
    bench.commit(Change(added=bench.entries([{"location": "D1", **inside}])))
    bench.other(Change(updates=(HaveUnpartitionedSpec(spec_id=1),)))

    def rewrite(**placed: object) -> Change:
        new = {"location": "D2", "tracking.sequence_number": 1, **placed}
        return Change(
            replaced=located("D1"),
            added=bench.entries([new]),
            is_rewrite=True,
            base_snapshot_id=1,
        )

    bench.other(Change(added=bench.entries([_equality_delete("E1", 7, 7, **inside)])))
    with pytest.raises(CommitConflict):
        bench.commit(rewrite(spec_id=1))
    bench.commit(rewrite(**inside))
    assert bench.live() == {"D2": (), "E1": ()}

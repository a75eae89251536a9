"""Statuses: what may follow what, what is carried, what inherits."""

from __future__ import annotations

import pytest

from frazil.errors import FormatError, InvalidInput
from frazil.format.entries import tracking
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.tracking import Status, Tracking

LIVE = (Status.EXISTING, Status.ADDED, Status.MODIFIED)
DEAD = (Status.DELETED, Status.REPLACED)


def _entry(status: Status) -> Tracking:
    return Tracking(
        status=status, snapshot_id=1, sequence_number=2, file_sequence_number=3, first_row_id=4
    )


@pytest.mark.parametrize("status", LIVE)
def test_a_live_entry_can_be_carried_deleted_replaced_and_modified(status: Status) -> None:
    entry = _entry(status)
    assert entry.carried() == _entry(Status.EXISTING)
    assert (entry.deleted(by=9).status, entry.deleted(by=9).snapshot_id) == (Status.DELETED, 9)
    assert (entry.replaced(by=9).status, entry.replaced(by=9).snapshot_id) == (Status.REPLACED, 9)
    modified = entry.modified(by=9)
    assert (modified.status, modified.snapshot_id, modified.modified_snapshot_id) == (
        Status.MODIFIED,
        1,
        9,
    )
    for after in (entry.carried(), entry.deleted(by=9), entry.replaced(by=9), modified):
        assert (after.sequence_number, after.file_sequence_number, after.first_row_id) == (2, 3, 4)


@pytest.mark.parametrize("status", DEAD)
def test_nothing_dead_comes_back_to_life(status: Status) -> None:
    entry = _entry(status)
    for attempt in (
        entry.carried,
        lambda: entry.deleted(by=9),
        lambda: entry.replaced(by=9),
        lambda: entry.modified(by=9),
    ):
        with pytest.raises(InvalidInput, match="a removed entry cannot be revived"):
            attempt()


def test_live_is_existing_added_and_modified() -> None:
    assert {status for status in Status if status.is_live} == set(LIVE)


def test_nulls_inherit_and_only_added_entries_inherit_sequence_numbers() -> None:
    added = Tracking(status=Status.ADDED).inherited(snapshot_id=7, sequence_number=8)
    assert (added.snapshot_id, added.sequence_number, added.file_sequence_number) == (7, 8, 8)
    old = Tracking(status=Status.EXISTING).inherited(snapshot_id=7, sequence_number=8)
    assert (old.snapshot_id, old.sequence_number, old.file_sequence_number) == (7, None, None)
    explicit = _entry(Status.ADDED).inherited(snapshot_id=7, sequence_number=8)
    assert explicit == _entry(Status.ADDED)


def _leaf() -> EntryBatch:
    rows = [
        (Status.ADDED, None, None, 10),
        (Status.EXISTING, 3, 3, 20),
        (Status.ADDED, None, 2, 30),
        (Status.DELETED, None, None, 40),
        (Status.MODIFIED, 3, 1, 50),
        (Status.REPLACED, 4, 1, 60),
    ]
    return EntryBatch.from_rows(
        [
            {
                "tracking.status": int(status),
                "tracking.snapshot_id": snapshot,
                "tracking.sequence_number": sequence,
                "content_type": 0,
                "record_count": records,
            }
            for status, snapshot, sequence, records in rows
        ]
    )


def test_a_leaf_of_mixed_statuses_inherits_entry_by_entry() -> None:
    batch = tracking.inherit(_leaf(), snapshot_id=9, sequence_number=5, first_row_id=100)
    assert batch.pylist("tracking.snapshot_id") == [9, 3, 9, 9, 3, 4]
    assert batch.pylist("tracking.sequence_number") == [5, 3, 2, None, 1, 1]
    assert batch.pylist("tracking.file_sequence_number") == [5, None, 5, None, None, None]
    # Row ids go to live entries, in order; dead ones take none.
    assert batch.pylist("tracking.first_row_id") == [100, 110, 130, None, 160, None]


def test_first_row_ids_that_are_known_stay_and_take_no_room() -> None:
    batch = _leaf().slice(0, 3).with_column("tracking.first_row_id", [None, 7, None])
    numbered = tracking.assign_row_ids(batch, first_row_id=100)
    assert numbered.pylist("tracking.first_row_id") == [100, 7, 110]
    assert tracking.assign_row_ids(batch, first_row_id=None) is batch
    assert tracking.unnumbered_rows(batch) == 40


def test_only_data_files_have_row_ids() -> None:
    batch = _leaf().slice(0, 3).with_column("content_type", [0, 2, 0])
    numbered = tracking.assign_row_ids(batch, first_row_id=0)
    assert numbered.pylist("tracking.first_row_id") == [0, None, 10]
    assert tracking.unnumbered_rows(batch) == 40


def test_carrying_drops_the_dead_and_what_speaks_of_one_snapshot() -> None:
    batch = _leaf().with_column("tracking.deleted_positions", [b"x"] * 6)
    carried = tracking.carry(batch)
    assert carried.pylist("record_count") == [10, 20, 30, 50]
    assert carried.pylist("tracking.status") == [0, 0, 0, 0]
    assert not carried.has("tracking.deleted_positions")


@pytest.mark.parametrize("status", [5, -1, 9])
def test_an_unknown_status_is_refused_with_the_path(status: int) -> None:
    batch = EntryBatch.from_rows([{"tracking.status": status, "content_type": 0}])
    with pytest.raises(FormatError) as error:
        tracking.check(batch, root=True, path="metadata/root-1.parquet")
    assert error.value.path == "metadata/root-1.parquet"
    assert error.value.field == "tracking.status"
    assert f"is {status}; expected 0 to 4" in str(error.value)


@pytest.mark.parametrize(
    ("content", "root", "refused"),
    [
        (0, True, False),
        (3, True, False),
        (4, True, False),
        (2, False, False),
        (1, True, True),
        (5, True, True),
        (3, False, True),
        (4, False, True),
        (1, False, True),
    ],
)
def test_content_types_belong_to_a_level(content: int, root: bool, refused: bool) -> None:
    batch = EntryBatch.from_rows([{"tracking.status": 0, "content_type": content}])
    if not refused:
        tracking.check(batch, root=root)
        return
    with pytest.raises(FormatError) as error:
        tracking.check(batch, root=root, path="m.parquet")
    assert (error.value.path, error.value.field) == ("m.parquet", "content_type")

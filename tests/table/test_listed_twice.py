"""Files that a table lists more than once, or again after they were removed: each entry is an entry
of its own, with rows, row ids and deletes of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frazil
from frazil.errors import CommitConflict
from frazil.format.metadata.metadata import Snapshot

SCHEMA = pa.schema([("id", pa.int64())])
SMALL_ROOT = {"write.root.max-data-entries": "1", "write.leaf.target-entries": "2"}


@pytest.fixture(params=["root", "leaves"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[frazil.Table]:
    properties = SMALL_ROOT if request.param == "leaves" else {}
    with frazil.connect(tmp_path / "warehouse") as catalog:
        yield catalog.create_table(
            "shop.things",
            SCHEMA,
            properties={**properties, "write.equality-deletes.enabled": "true"},
        )


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "file.parquet"
    pq.write_table(pa.table({"id": [1, 2, 3]}), file)
    return str(file)


def _add(table: frazil.Table, path: str) -> Snapshot:
    done = table.add_files([path], check_duplicates=False).snapshot
    assert done is not None
    return done


def _rows(table: frazil.Table, at: Snapshot | None = None) -> list[tuple[int, int]]:
    """Rows as row id and value."""
    scan = table.scan(columns=["_row_id", "id"], as_of=at)
    return sorted((row["_row_id"], row["id"]) for row in scan.to_pylist())


def _net(table: frazil.Table, since: Snapshot) -> dict[str, list[tuple[int, int]]]:
    """The net feed by kind of change."""
    feed: dict[str, list[tuple[int, int]]] = {}
    for row in table.changes(since=since, collapse=True).to_arrow().to_pylist():
        feed.setdefault(row["_change_type"], []).append((row["_row_id"], row["id"]))
    return {kind: sorted(rows) for kind, rows in feed.items()}


def _difference(table: frazil.Table, since: Snapshot) -> dict[str, list[tuple[int, int]]]:
    """What two scans differ in: rows are immutable here, so each one went, came or stayed."""
    before, after = set(_rows(table, since)), set(_rows(table))
    sides = {"delete": sorted(before - after), "insert": sorted(after - before)}
    return {kind: rows for kind, rows in sides.items() if rows}


def _stepwise(table: frazil.Table, since: Snapshot) -> list[tuple[int, int]]:
    """The rows of a snapshot after every change of the feed has been applied."""
    rows = set(_rows(table, since))
    for change in table.changes(since=since).to_arrow().to_pylist():
        row = (change["_row_id"], change["id"])
        if change["_change_type"] == "delete":
            rows.remove(row)
        else:
            assert row not in rows
            rows.add(row)
    return sorted(rows)


def _check(table: frazil.Table, since: Snapshot) -> None:
    assert _stepwise(table, since) == _rows(table)
    assert _net(table, since) == _difference(table, since)
    problems = table.check(deep=True).problems
    assert not [problem for problem in problems if "live more than once" not in str(problem)]


def test_a_file_removed_and_added_again_changes_in_the_end(table: frazil.Table, path: str) -> None:
    since = _add(table, path)
    table.delete("true")
    _add(table, path)
    assert _net(table, since) == {
        "delete": [(0, 1), (1, 2), (2, 3)],
        "insert": [(3, 1), (4, 2), (5, 3)],
    }
    _check(table, since)


def test_a_file_added_a_second_time_is_an_insert(table: frazil.Table, path: str) -> None:
    since = _add(table, path)
    _add(table, path)
    _check(table, since)


def test_rows_of_both_entries_are_deleted(table: frazil.Table, path: str) -> None:
    first = _add(table, path)
    second = _add(table, path)
    table.delete("id = 2")
    for since in (first, second):
        _check(table, since)
    assert [id for _, id in _rows(table)] == [1, 3, 1, 3]


def test_an_entry_with_deleted_rows_does_not_stand_for_the_other(
    table: frazil.Table, path: str
) -> None:
    first = _add(table, path)
    table.delete("id = 2")
    second = _add(table, path)
    table.append([{"id": 9}])
    table.delete("id = 2")
    assert [id for _, id in _rows(table)] == [1, 3, 1, 3, 9]
    for since in (first, second):
        _check(table, since)
    table.delete("id = 1")
    assert [id for _, id in _rows(table)] == [3, 3, 9]
    for since in (first, second):
        _check(table, since)


def test_an_equality_delete_takes_rows_of_the_entry_that_is_not_otherwise_changed(
    table: frazil.Table, path: str
) -> None:
    _add(table, path)
    table.delete("id = 2")
    since = _add(table, path)
    table.row_delta().add_equality_deletes(pa.table({"id": [3]}), on=["id"]).commit()
    _check(table, since)
    assert [id for _, id in _rows(table)] == [1, 1, 2]
    third = _add(table, path)
    _check(table, since)
    table.row_delta().add_equality_deletes(pa.table({"id": [1]}), on=["id"]).commit()
    table.delete("id = 2")
    for each in (since, third):
        _check(table, each)
    assert [id for _, id in _rows(table)] == [3]


def test_equal_rows_are_found_in_every_entry(table: frazil.Table, path: str) -> None:
    table.set_properties({"write.equality-deletes.enabled": "false"})
    since = _add(table, path)
    table.delete("id = 3")
    _add(table, path)
    table.row_delta().add_equality_deletes(pa.table({"id": [2, 3]}), on=["id"]).commit()
    assert [id for _, id in _rows(table)] == [1, 1]
    _check(table, since)


def test_one_entry_goes_when_a_snapshot_is_picked(table: frazil.Table, path: str) -> None:
    _add(table, path)
    table.delete("id = 2")
    _add(table, path)
    branch = table.branch("work", create=True)
    picked = branch.delete("id in (2, 3)").snapshot
    assert picked is not None
    since = table.refresh().append([{"id": 9}]).snapshot
    assert since is not None
    table.cherry_pick(picked.snapshot_id)
    assert [id for _, id in _rows(table)] == [1, 1, 9]
    _check(table, since)


def test_compaction_and_updates_know_entries_apart(table: frazil.Table, path: str) -> None:
    _add(table, path)
    table.delete("id = 2")
    since = _add(table, path)
    before: list[Any] = _rows(table)
    table.update({"id": 7}, "id = 2")
    assert [id for _, id in _rows(table)] == [1, 3, 1, 7, 3]
    table.compact(min_input_files=1, sort_by=["id"])
    assert [row_id for row_id, _ in _rows(table)] == [row_id for row_id, _ in before]
    feed = table.changes(since=since, collapse=True).to_arrow().to_pylist()
    kinds = sorted((row["_change_type"], row["id"]) for row in feed)
    assert kinds == [("update_postimage", 7), ("update_preimage", 2)]


@pytest.mark.parametrize("what", ["update", "delete"])
def test_a_change_of_an_entry_that_went_meanwhile_conflicts(
    table: frazil.Table, path: str, what: str
) -> None:
    _add(table, path)
    table.delete("id = 2")
    _add(table, path)
    tx = table.transaction()
    if what == "delete":
        tx.delete("id = 1")
    else:
        tx.update({"id": 7}, "id = 1")
    table.delete("id in (1, 3)")  # all that the first entry had
    with pytest.raises(CommitConflict, match="no longer in the table"):
        tx.commit()
    assert [id for _, id in _rows(table.refresh())] == [2]


def test_file_changes_tell_entries_apart(table: frazil.Table, path: str) -> None:
    _add(table, path)
    table.delete("id = 2")
    since = _add(table, path)
    table.delete("id in (1, 2)")
    files = table.changes(since=since).files().to_pylist()
    shown = sorted((row["change"], row["first_row_id"], row["rows_removed"]) for row in files)
    assert shown == [("modified", 0, 1), ("modified", 3, 2)]

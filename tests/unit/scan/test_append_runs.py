"""Appends that follow one another are told by the last root, like each by its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from frazil.format.metadata.metadata import Snapshot
from frazil.scan.change_feed import file_changes
from frazil.table import Table
from frazil.tree.changes import append_runs, appended
from tests.support.history import SMALL, files_of, new_table, read_names, rows

SIZES = (1, 1, 2, 1, 9, 1, 1, 1, 1, 14, 1, 2, 1, 1, 1, 1, 1, 1)
"""Files per append: few stay in the root and are flushed later, many go to leaves at once."""


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return new_table(tmp_path, properties=SMALL)


def _append(table: Table, files: int) -> set[str]:
    """Append so many files; returns them."""
    before = files_of(table)
    with table.transaction() as tx:
        for number in range(files):
            tx.append(rows(number, number + 100))
    return {path for path in files_of(table) - before if path.startswith("data/")}


def _told(table: Table, since: Snapshot | None = None) -> list[tuple[int, int, set[str], int]]:
    """Ordinal, snapshot, files and rows of each snapshot that a feed of files tells of."""
    found = table.changes(since=since).files().to_pylist()
    assert {row["change"] for row in found} <= {"added"}
    assert {row["operation"] for row in found} <= {"append"}
    assert [row["change_ordinal"] for row in found] == sorted(
        row["change_ordinal"] for row in found
    )
    head = f"{table.location}/"
    told: dict[tuple[int, int], tuple[set[str], int]] = {}
    for row in found:
        names, count = told.get((row["change_ordinal"], row["snapshot_id"]), (set(), 0))
        name = row["path"].removeprefix(head)
        told[row["change_ordinal"], row["snapshot_id"]] = (
            names | {name},
            count + row["rows_added"],
        )
    return [(*key, *value) for key, value in told.items()]


def test_every_file_is_told_with_the_snapshot_that_added_it(table: Table) -> None:
    made = [_append(table, files) for files in SIZES]
    snapshots = table.snapshots()
    tree = table._handle.reader().tree(table.current_snapshot())
    assert tree.leaves()  # the first files are in leaves by now
    assert _told(table) == [
        (ordinal, int(snapshot.snapshot_id), files, 2 * len(files))
        for ordinal, (snapshot, files) in enumerate(zip(snapshots, made, strict=True))
    ]
    assert _told(table, since=snapshots[6]) == [
        (ordinal, int(snapshots[7 + ordinal].snapshot_id), files, 2 * len(files))
        for ordinal, files in enumerate(made[7:])
    ]


def test_rows_are_told_with_the_snapshot_that_added_them(table: Table) -> None:
    for files in (1, 2, 1):
        _append(table, files)
    feed = table.changes().to_arrow()
    assert feed.column("_change_ordinal").to_pylist() == [0] * 2 + [1] * 4 + [2] * 2
    assert feed.column("_row_id").to_pylist() == [*range(8)]
    assert feed.column("id").to_pylist() == [0, 100, 0, 100, 1, 101, 0, 100]
    net = table.changes(since=table.snapshots()[0], collapse=True).to_arrow()
    assert sorted(net.column("_row_id").to_pylist()) == [*range(2, 8)]


def test_equality_deletes_from_before_a_run_take_none_of_its_rows(table: Table) -> None:
    _append(table, 1)
    table.set_properties({"write.equality-deletes.enabled": "true"})
    table.row_delta().add_equality_deletes(pa.table({"id": [0]}), on=["id"]).commit()
    start = table.snapshots()[-1]
    _append(table, 1)
    _append(table, 1)
    for collapse in (False, True):
        feed = table.changes(since=start, collapse=collapse).to_arrow()
        assert feed.column("id").to_pylist() == [0, 100, 0, 100]
        assert set(feed.column("_change_type").to_pylist()) == {"insert"}


def test_a_run_ends_where_something_else_is_done(table: Table) -> None:
    _append(table, 1)
    _append(table, 1)
    table.delete("id = 0")
    _append(table, 1)
    table.update({"v": "y"}, where="id = 100")
    _append(table, 1)
    table.rewrite_manifests()
    _append(table, 1)
    _append(table, 1)
    runs = [[each.operation for each in run] for run in append_runs(table.snapshots())]
    assert [len(run) for run in runs] == [2, 1, 1, 1, 1, 1, 2]
    assert runs[0] == runs[-1] == ["append", "append"]


def test_snapshots_that_do_not_follow_one_another_are_no_run(table: Table) -> None:
    for _ in range(3):
        _append(table, 1)
    first, _, third = table.snapshots()
    assert [len(run) for run in append_runs([first, third])] == [1, 1]


@pytest.mark.parametrize("key", ["added-data-files", "added-records"])
def test_a_summary_that_does_not_fit_the_files_makes_each_root_speak_for_itself(
    table: Table, key: str
) -> None:
    made = [_append(table, 1), _append(table, 1)]
    first, second = table.snapshots()
    wrong = replace(first, summary={**first.summary, key: "7"})
    reader = table._handle.reader()
    reader.cache.clear()
    assert appended(reader, [first, second]) is not None
    assert appended(reader, [wrong, second]) is None
    reader.cache.clear()
    with table._handle.storage.recording() as calls:
        found = file_changes(reader, [wrong, second])
    assert read_names(calls) == ["root", "root"]
    names = [path.removeprefix(f"{table.location}/") for path in found.column("path").to_pylist()]
    assert [{name} for name in names] == made


def test_a_branch_that_left_a_run_tells_its_own_files(table: Table) -> None:
    _append(table, 1)
    table.branch("audit", create=True).append(rows(50))
    table.branch("audit", create=True).append(rows(51))
    _append(table, 1)
    feed = table.changes(until="audit").to_arrow()
    assert feed.column("id").to_pylist() == [0, 100, 50, 51]
    assert table.changes().to_arrow().column("id").to_pylist() == [0, 100, 0, 100]

"""What a change feed may read: one root per snapshot, and only the leaves that root names; for
appends that follow one another the last root alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from frazil.table import Table
from tests.support.history import new_table, read_names, rows, snapshot_id

SMALL = {"write.root.max-data-entries": "4", "write.leaf.target-entries": "10"}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Forty files in four leaves, and nothing in the root."""
    made = new_table(tmp_path_factory.mktemp("changes"), properties=SMALL)
    for number in range(40):
        made.append(rows(number, number + 1000))
    made.rewrite_manifests()
    tree = made._handle.reader().tree(made.current_snapshot())
    assert [leaf.record_count for leaf in tree.leaves()] == [10, 10, 10, 10]
    return made


def _read(table: Table, since: int, *, collapse: bool = False) -> tuple[list[str], list[str]]:
    """Kinds of files read for the files and for the rows that changed."""
    table._handle.context.cache.clear()
    with table._handle.storage.recording() as calls:
        table.changes(since=since).files()
    files = read_names(calls)
    table._handle.context.cache.clear()
    with table._handle.storage.recording() as calls:
        table.changes(since=since, collapse=collapse).to_arrow()
    return files, read_names(calls)


def test_appends_in_a_row_cost_one_root(table: Table) -> None:
    start = snapshot_id(table)
    for number in range(3):
        table.append(rows(100 + number))
    files, found = _read(table, start)
    assert files == ["root"]
    assert [kind for kind in found if kind in ("root", "leaf")] == ["root"]
    assert len(found) == 1 + 3


def test_appends_with_something_else_between_cost_a_root_per_run(table: Table) -> None:
    table.rewrite_manifests()
    start = snapshot_id(table)
    table.append(rows(110))
    table.append(rows(111))
    table.delete("id = 110")
    table.append(rows(112))
    files, _ = _read(table, start)
    assert files == ["root"] * 3


def test_a_removed_file_costs_the_leaf_it_was_in(table: Table) -> None:
    start = snapshot_id(table)
    table.delete("id = 5 or id = 1005")
    files, found = _read(table, start)
    assert files == ["root", "leaf"]
    assert found[:2] == ["root", "leaf"]
    assert len(found) == 3


def test_deleted_rows_cost_a_leaf_and_a_vector(table: Table) -> None:
    start = snapshot_id(table)
    table.delete("id = 15")
    files, found = _read(table, start)
    assert files == ["root", "leaf"]
    # The root, the leaf with the file as it was, the vector, and the file.
    assert len(found) == 4


def test_a_flush_costs_the_leaf_it_wrote_and_a_rewrite_its_root_alone(table: Table) -> None:
    table.rewrite_manifests()
    start = snapshot_id(table)
    for number in range(5):
        table.append(rows(200 + number))
    table.rewrite_manifests()
    files, found = _read(table, start)
    assert files == ["root", "leaf", "root"]
    # The replace snapshot is known from the catalog to change no row.
    assert [kind for kind in found if kind in ("root", "leaf")] == ["root", "leaf"]


def test_a_large_append_costs_the_leaves_it_added(tmp_path: Path) -> None:
    table = new_table(tmp_path, properties={"write.root.max-data-entries": "1"})
    table.append(rows(1))
    start = snapshot_id(table)
    with table.transaction() as tx:
        for number in range(3):
            tx.append(rows(10 + number))
    files, _ = _read(table, start)
    assert files == ["root", "leaf"]


def test_net_changes_read_only_files_that_differ_in_the_end(table: Table) -> None:
    start = snapshot_id(table)
    table.append(rows(300))
    table.delete("id = 300")
    _, found = _read(table, start, collapse=True)
    assert set(found) <= {"root", "leaf"}
    assert found.count("root") == 3  # two that changed, and the one at the start for its deletes

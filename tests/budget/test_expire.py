"""What an expiry may read: it follows what expires, not the table."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from frazil.table import Table
from tests.support.history import new_table, read_names, rows

PROPERTIES = {"write.root.max-data-entries": "4", "write.leaf.target-entries": "5"}


def _large(folder: Path, files: int) -> Table:
    """Files in leaves of five, and a short history after them."""
    table = new_table(folder, properties=PROPERTIES)
    with table.transaction() as tx:
        for number in range(files):
            tx.append(rows(number, number + 1000))
    table.rewrite_manifests()
    table.expire_snapshots(older_than=timedelta(0))
    return table


def _cost(table: Table) -> list[str]:
    table._handle.context.cache.clear()
    with table._handle.storage.recording() as calls:
        table.expire_snapshots(older_than=timedelta(0))
    return sorted(read_names(calls))


@pytest.mark.parametrize("files", [20, 60])
def test_appends_expire_without_opening_a_leaf(tmp_path: Path, files: int) -> None:
    table = _large(tmp_path, files)
    for number in range(3):
        table.append(rows(2000 + number))
    # Three roots that expire and the one that stays, however many leaves there are.
    assert _cost(table) == ["root"] * 4


@pytest.mark.parametrize("files", [20, 60])
def test_a_removed_file_costs_the_leaf_it_was_in(tmp_path: Path, files: int) -> None:
    table = _large(tmp_path, files)
    table.delete("id = 7 or id = 1007")
    assert _cost(table) == ["leaf"] + ["root"] * 2


def test_a_flush_costs_the_leaf_it_wrote(tmp_path: Path) -> None:
    table = _large(tmp_path, 60)
    for number in range(6):
        table.append(rows(2000 + number))
    # The files that the expired roots listed are looked for in the one leaf that is new.
    assert _cost(table) == ["leaf"] + ["root"] * 7


def test_only_neighbours_are_read_when_nothing_but_roots_goes(tmp_path: Path) -> None:
    table = _large(tmp_path, 20)
    for number in range(4):
        table.append(rows(2000 + number))
    table.tag("kept")
    snapshots = [int(s.snapshot_id) for s in table.snapshots()]
    table._handle.context.cache.clear()
    with table._handle.storage.recording() as calls:
        table.expire_snapshots(snapshot_ids=snapshots[:1])
    assert read_names(calls) == ["root", "root"]

"""Changes of v1 to v3 snapshots, by the manifests they added, and across an upgrade."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table as PyIcebergTable

import frazil
from frazil.table import Table
from tests.support.history import SCHEMA, rows, snapshot_id, told


def _tables(folder: Path, version: int) -> tuple[PyIcebergTable, frazil.Catalog]:
    """A table of PyIceberg's in a catalog that Frazil opens too."""
    catalog = frazil.connect(folder)
    old = SqlCatalog("default", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    old.create_namespace_if_not_exists("shop")
    properties = {"format-version": str(version)}
    return old.create_table("shop.orders", SCHEMA, properties=properties), catalog


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def old_table(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[PyIcebergTable, Table]:
    peer, catalog = _tables(tmp_path, request.param)
    peer.append(rows(1, 2))
    peer.append(rows(3))
    peer.append(rows(4))
    peer.delete("id == 3")
    return peer, catalog.load_table("shop.orders")


def test_every_old_snapshot_tells_its_own_change(
    old_table: tuple[PyIcebergTable, Table],
) -> None:
    _, table = old_table
    assert told(table.changes()) == [
        (0, "insert", "x", 1),
        (0, "insert", "x", 2),
        (1, "insert", "x", 3),
        (2, "insert", "x", 4),
        (3, "delete", "x", 3),
    ]


def test_a_merged_manifest_is_not_told_twice(tmp_path: Path) -> None:
    peer, catalog = _tables(tmp_path, 2)
    with peer.transaction() as change:
        change.set_properties(
            {"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "2"}
        )
    for number in range(5):
        peer.append(rows(number))
    table = catalog.load_table("shop.orders")
    assert told(table.changes()) == [(n, "insert", "x", n) for n in range(5)]
    assert table.changes().files().num_rows == 5


def test_rows_of_a_rewritten_file_without_row_ids_go_and_come(tmp_path: Path) -> None:
    peer, catalog = _tables(tmp_path, 2)
    peer.append(rows(1, 2))
    peer.delete("id == 2")
    table = catalog.load_table("shop.orders")
    assert told(table.changes())[2:] == [
        (1, "delete", "x", 1),
        (1, "delete", "x", 2),
        (1, "insert", "x", 1),
    ]


def test_a_range_across_the_upgrade_is_one_story(
    old_table: tuple[PyIcebergTable, Table],
) -> None:
    _, table = old_table
    start = table.snapshots()[1].snapshot_id
    table.upgrade()
    table.append(rows(5))
    table.update({"v": "y"}, where="id = 1")
    table.delete("id = 4")
    table.rewrite_manifests()
    assert told(table.changes(since=start)) == [
        (0, "insert", "x", 4),
        (1, "delete", "x", 3),
        (2, "insert", "x", 5),
        (3, "update_postimage", "y", 1),
        (3, "update_preimage", "x", 1),
        (4, "delete", "x", 4),
    ]
    assert told(table.changes(since=start, collapse=True)) == [
        (0, "delete", "x", 3),
        (0, "insert", "x", 5),
        (0, "update_postimage", "y", 1),
        (0, "update_preimage", "x", 1),
    ]
    assert table.check(deep=True).problems == ()


def test_an_upgraded_table_expires_what_v2_left(old_table: tuple[PyIcebergTable, Table]) -> None:
    _, table = old_table
    table.upgrade()
    table.append(rows(5))
    table.rewrite_manifests()
    ids = [s.snapshot_id for s in table.snapshots() if s.snapshot_id != snapshot_id(table)]
    done = table.expire_snapshots(snapshot_ids=ids)
    # Four manifest lists and one root; the manifests were rewritten; the deleted rows' file.
    assert len(done.files["roots"]) == 5
    assert all(path.endswith(".avro") for path in done.files["leaves"])
    assert len(done.files["data-files"]) == 1
    assert table.check(deep=True).problems == ()
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == [1, 2, 4, 5]

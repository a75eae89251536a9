"""Clones: own metadata on another table's files, safe from its expiry and harmless to it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import frazil
from frazil.errors import AlreadyExists, InvalidInput, Unsupported
from frazil.table import Catalog, Table
from tests.support.history import (
    SCHEMA,
    SMALL,
    catalog_in,
    files_of,
    rows,
    snapshot_id,
    state_of,
    told,
)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return catalog_in(tmp_path)


@pytest.fixture
def table(catalog: Catalog) -> Table:
    made = catalog.create_table("shop.orders", SCHEMA, properties=SMALL)
    for number in range(8):
        made.append(rows(number, number + 100))
    made.delete("id = 3")
    made.set_properties({"write.equality-deletes.enabled": "true"})
    made.row_delta().add_equality_deletes(pa.table({"id": [4]}), on=["id"]).commit()
    return made


def test_a_clone_has_the_same_rows_and_row_ids_and_no_data_files(
    catalog: Catalog, table: Table
) -> None:
    copy = table.clone(catalog, "lab.orders")
    assert state_of(copy) == state_of(table)
    assert all(path.startswith("metadata/") for path in files_of(copy))
    assert copy.check(deep=True).problems == ()
    assert copy.metadata.table_uuid != table.metadata.table_uuid


def test_the_two_go_separate_ways(catalog: Catalog, table: Table) -> None:
    copy = table.clone(catalog, "lab.orders")
    before = state_of(table)
    copy.delete("id < 3")
    copy.append(rows(50))
    assert state_of(table.refresh()) == before
    expected = {row for row in before.values() if row[0] >= 3} | {(50, "x")}
    assert set(state_of(copy).values()) == expected
    assert told(copy.changes())[-4:] == [
        (1, "delete", "x", 0),
        (1, "delete", "x", 1),
        (1, "delete", "x", 2),
        (2, "insert", "x", 50),
    ]
    assert copy.check(deep=True).problems == ()


def test_the_sources_expiry_leaves_a_clones_files(catalog: Catalog, table: Table) -> None:
    copy = table.clone(catalog, "lab.orders")
    before = state_of(copy)
    table.overwrite(rows(1))
    table.expire_snapshots(older_than=timedelta(0))
    table.remove_orphan_files(older_than=datetime(2100, 1, 1, tzinfo=UTC))
    catalog._cache.clear()
    assert state_of(copy) == before
    assert copy.check(deep=True).problems == ()


def test_the_reference_is_recorded_in_both(catalog: Catalog, table: Table) -> None:
    at = snapshot_id(table)
    copy = table.clone(catalog, "lab.orders")
    ref = table.metadata.refs["clone/lab.orders"]
    assert int(ref.snapshot_id) == at
    assert copy.properties["frazil.clone.source-name"] == "shop.orders"
    assert copy.properties["frazil.clone.source-snapshot-id"] == str(at)
    assert copy.properties["frazil.clone.source-uuid"] == str(table.metadata.table_uuid)


def test_the_files_of_a_cloned_table_are_not_purged(catalog: Catalog, table: Table) -> None:
    copy = table.clone(catalog, "lab.orders")
    with pytest.raises(InvalidInput, match=r"lab\.orders"):
        catalog.drop_table("shop.orders", purge=True)
    assert state_of(copy) == state_of(table)
    catalog.drop_table("lab.orders", purge=True)
    table.drop_ref("clone/lab.orders")
    catalog.drop_table("shop.orders", purge=True)
    assert not catalog.table_exists("shop.orders")


def test_a_dropped_pin_lets_the_source_expire(catalog: Catalog, table: Table) -> None:
    table.clone(catalog, "lab.orders")
    table.overwrite(rows(1))
    table.drop_ref("clone/lab.orders")
    done = table.expire_snapshots(older_than=timedelta(0))
    assert len(done.files["data-files"]) == 8


def test_a_clones_expiry_leaves_the_sources_files(catalog: Catalog, table: Table) -> None:
    copy = table.clone(catalog, "lab.orders")
    copy.delete("id >= 0")
    copy.append(rows(1))
    before = state_of(table)
    done = copy.expire_snapshots(older_than=timedelta(0))
    assert len(done.spared) >= 8
    assert "data-files" not in done.files
    catalog._cache.clear()
    assert state_of(table.refresh()) == before
    assert table.check(deep=True).problems == ()


def test_an_earlier_snapshot_can_be_cloned(catalog: Catalog, table: Table) -> None:
    first = table.snapshots()[0]
    copy = table.clone(catalog, "lab.first", as_of=int(first.snapshot_id))
    assert sorted(id for id, _ in state_of(copy).values()) == [0, 100]


def test_an_empty_table_can_be_cloned(catalog: Catalog) -> None:
    made = catalog.create_table("shop.empty", SCHEMA)
    copy = made.clone(catalog, "lab.empty")
    assert copy.scan().count() == 0
    copy.append(rows(1))
    assert copy.scan().count() == 1


def test_a_taken_name_leaves_no_trace(catalog: Catalog, table: Table) -> None:
    table.clone(catalog, "lab.orders")
    with pytest.raises(AlreadyExists):
        table.clone(catalog, "lab.orders")
    with pytest.raises(Unsupported, match="storage"):
        table.clone(catalog, "lab.far", location="s3://bucket/far")
    assert sorted(table.metadata.refs) == ["clone/lab.orders", "main"]


def test_a_clone_of_an_upgraded_table_reads_old_manifests(tmp_path: Path) -> None:
    catalog = frazil.connect(tmp_path)
    old = SqlCatalog(
        "default", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}"
    )
    old.create_namespace_if_not_exists("shop")
    peer = old.create_table("shop.old", SCHEMA, properties={"format-version": "2"})
    peer.append(rows(1, 2))
    table = catalog.load_table("shop.old")
    table.upgrade()
    table.append(rows(3))
    copy = table.clone(catalog, "lab.old")
    assert state_of(copy) == state_of(table)
    assert copy.check(deep=True).problems == ()

"""A catalog is copied from a database to a bucket and back: names and pointers, no files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.catalog.backend import CatalogBackend
from frazil.catalog.copy_catalog import copy_catalog
from frazil.catalog.objects.object_catalog import ObjectCatalog
from frazil.catalog.sql.sql_catalog import SqlCatalog
from frazil.errors import AlreadyExists, InvalidInput, NotFound
from tests.support.catalogs import append_and_land, long_history, orders
from tests.support.folder_bucket import bucket_storages
from tests.support.object_server import Bucket

VIEW = {"view-uuid": "f3a0c6f0-6d0e-4c36-9d0a-0d3a4b3f1c11", "format-version": 1}


def database(folder: Path) -> CatalogBackend:
    return SqlCatalog(f"sqlite:///{folder}/catalog.db", warehouse=f"{folder}/files")


def bucket_of(folder: Path) -> CatalogBackend:
    return ObjectCatalog(f"{folder}/warehouse", storages=bucket_storages(folder))


@pytest.fixture(params=["to a bucket", "to a database"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[CatalogBackend, CatalogBackend]:
    both = database(tmp_path), bucket_of(tmp_path)
    source, target = both if request.param == "to a bucket" else both[::-1]
    source.namespaces.create("shop", {"owner": "sales"})
    metadata, history = long_history(orders(source.location_for("shop.orders")), 150)
    source.create_table("shop.orders", metadata, history)
    append_and_land(source.load("shop.orders"), 999)
    source.namespaces.create("eu.archive")
    source.views.create("shop.cheap", VIEW)
    return source, target


def test_a_copied_table_has_its_state_and_its_whole_history(
    pair: tuple[CatalogBackend, CatalogBackend],
) -> None:
    source, target = pair
    done = copy_catalog(source, target)
    assert (done.tables, done.views) == (("shop.orders",), ("shop.cheap",))
    old, new = source.load("shop.orders"), target.load("shop.orders")
    assert new.state.metadata == old.state.metadata
    assert new.state.snapshots == old.state.snapshots
    assert new.history().snapshots == old.history().snapshots
    assert new.history().snapshot_log == old.history().snapshot_log
    assert target.namespaces.properties("shop") == {"owner": "sales"}
    assert target.namespaces.exists("eu.archive")
    assert target.views.load("shop.cheap").metadata == VIEW
    again = copy_catalog(source, target)
    assert (again.tables, again.known) == ((), ("shop.orders",))
    append_and_land(new, 1_000)


def test_a_moved_table_has_what_landed_while_it_was_copied(
    pair: tuple[CatalogBackend, CatalogBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = pair
    writer = source.load("shop.orders")
    create = target.create_table

    def create_late(*arguments: object) -> object:
        head = create(*arguments)  # type: ignore[arg-type]
        append_and_land(writer, 1_000)
        return head

    monkeypatch.setattr(target, "create_table", create_late)
    copy_catalog(source, target, drop_source=True)
    assert not source.table_exists("shop.orders")
    assert not source.views.exists("shop.cheap")
    head = target.load("shop.orders")
    assert head.state.metadata == writer.state.metadata
    assert [int(each.snapshot_id) for each in head.snapshots()] == [*range(1, 151), 999, 1_000]


def test_another_table_of_the_same_name_is_refused(
    pair: tuple[CatalogBackend, CatalogBackend],
) -> None:
    source, target = pair
    target.namespaces.create("shop")
    target.create_table("shop.orders", orders(target.location_for("shop.orders")))
    with pytest.raises(AlreadyExists, match="Nothing was copied"):
        copy_catalog(source, target)
    with pytest.raises(NotFound, match=r"shop\.nothing"):
        copy_catalog(source, target, tables=["shop.nothing"])


def test_tables_in_a_bucket_move_into_its_own_catalog_and_back(
    bucket: Bucket, tmp_path: Path
) -> None:
    first = frazil.connect(
        f"sqlite:///{tmp_path}/first.db", warehouse=bucket.warehouse, **bucket.properties
    )
    first.create_table("shop.orders", pa.table({"id": [1, 2]}))
    inside = frazil.connect(bucket.warehouse, **bucket.properties)
    copy_catalog(first._pointers, inside._pointers, drop_source=True)
    inside["shop.orders"].append(pa.table({"id": [3]}))
    back = frazil.connect(
        f"sqlite:///{tmp_path}/back.db", warehouse=bucket.warehouse, **bucket.properties
    )
    copy_catalog(inside._pointers, back._pointers, drop_source=True)
    back["shop.orders"].append(pa.table({"id": [4]}))
    assert sorted(back["shop.orders"].scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]
    assert inside.list_tables() == []


def test_tables_on_local_disk_do_not_go_to_a_bucket(bucket: Bucket, tmp_path: Path) -> None:
    local = frazil.connect(tmp_path / "warehouse")
    local.create_table("shop.orders", pa.table({"id": [1, 2]}))
    inside = frazil.connect(bucket.warehouse, **bucket.properties)
    with pytest.raises(InvalidInput, match="copy_to"):
        copy_catalog(local._pointers, inside._pointers)
    assert inside.list_namespaces() == []

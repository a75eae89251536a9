"""Tables copied and moved: relative paths stay true at the new place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

import frazil
from frazil.errors import CommitConflict, InvalidInput, Unsupported
from frazil.table import Catalog, Table
from tests.support.history import SCHEMA, SMALL, catalog_in, rows, state_of


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return catalog_in(tmp_path)


@pytest.fixture
def table(catalog: Catalog) -> Table:
    made = catalog.create_table(
        "shop.orders", SCHEMA, partition_by=["bucket[2](id)"], properties=SMALL
    )
    for number in range(6):
        made.append(rows(number, number + 100))
    made.tag("before")
    made.delete("id = 3")
    return made


def test_a_copied_directory_registers_and_reads_at_its_new_place(
    catalog: Catalog, table: Table, tmp_path: Path
) -> None:
    """No help from the source: the folder is copied as it is, the source is gone."""
    before, tagged = state_of(table), state_of(table, "before")
    json = table._handle.head.export()  # type: ignore[attr-defined]
    source = Path(table.location.removeprefix("file://"))
    place = tmp_path / "elsewhere" / "orders"
    shutil.copytree(source, place)
    shutil.rmtree(source)
    catalog.drop_table("shop.orders")
    other = frazil.connect(tmp_path / "second")
    moved = other.register_table("lab.orders", f"file://{place}/metadata/{json.split('/')[-1]}")
    assert moved.location == f"file://{place}"
    assert state_of(moved) == before
    assert state_of(moved, "before") == tagged
    moved.append(rows(50))
    assert len(state_of(moved)) == len(before) + 1
    assert moved.check(deep=True).problems == ()


def test_copy_to_takes_the_history_along(catalog: Catalog, table: Table, tmp_path: Path) -> None:
    place = f"file://{tmp_path}/copies/orders"
    copy = table.copy_to(place, catalog=catalog, name="lab.copy")
    assert copy.location == place
    assert [s.snapshot_id for s in copy.snapshots()] == [s.snapshot_id for s in table.snapshots()]
    assert state_of(copy, "before") == state_of(table, "before")
    assert copy.check(deep=True).problems == ()
    before = state_of(table)
    copy.delete("id >= 0")
    assert state_of(table.refresh()) == before
    shutil.rmtree(tmp_path / "warehouse" / "shop")
    catalog._cache.clear()
    assert len(state_of(copy, "before")) == 12


def test_move_to_changes_where_the_name_points(
    catalog: Catalog, table: Table, tmp_path: Path
) -> None:
    place = f"file://{tmp_path}/moved/orders"
    before = state_of(table)
    moved = table.move_to(place, catalog=catalog)
    assert (moved.name, moved.location) == ("shop.orders", place)
    assert catalog.load_table("shop.orders").location == place
    assert state_of(moved) == before
    moved.append(rows(60))
    assert moved.check(deep=True).problems == ()


def test_a_commit_during_a_move_is_a_conflict(
    catalog: Catalog, table: Table, tmp_path: Path
) -> None:
    late = catalog.load_table("shop.orders")
    done: list[int] = []

    def writes(count: int, total: int, what: str, /) -> None:
        if what == "files copied" and not done:
            done.append(count)
            late.append(rows(70))

    with pytest.raises(CommitConflict, match="landed while"):
        table.move_to(f"file://{tmp_path}/moved", catalog=catalog, progress=writes)
    assert catalog.load_table("shop.orders").location == late.location


def test_places_inside_one_another_are_refused(catalog: Catalog, table: Table) -> None:
    with pytest.raises(InvalidInput, match="overlap"):
        table.copy_to(f"{table.location}/inner", catalog=catalog, name="lab.inner")


def test_old_manifests_do_not_move(tmp_path: Path) -> None:
    (tmp_path / "wh").mkdir()
    catalog = frazil.connect(tmp_path / "wh")
    old = SqlCatalog(
        "default", uri=f"sqlite:///{tmp_path}/wh/catalog.db", warehouse=f"file://{tmp_path}/wh"
    )
    old.create_namespace_if_not_exists("shop")
    peer = old.create_table("shop.old", SCHEMA, properties={"format-version": "2"})
    peer.append(rows(1, 2))
    table = catalog.load_table("shop.old")
    table.upgrade()
    with pytest.raises(Unsupported, match="rewrite_manifests"):
        table.copy_to(f"file://{tmp_path}/copy", catalog=catalog, name="lab.copy")
    table.rewrite_manifests()
    table.expire_snapshots(keep_last=1, older_than=2**60)
    copy = table.copy_to(f"file://{tmp_path}/copy", catalog=catalog, name="lab.copy")
    assert state_of(copy) == state_of(table)
    assert copy.check(deep=True).problems == ()

"""What the views of every catalog promise, on memory, SQLite and PostgreSQL alike."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.catalog.backend import CatalogBackend
from frazil.catalog.names import Identifier
from frazil.catalog.sql.sql_catalog import SqlCatalog
from frazil.errors import AlreadyExists, CommitConflict, InvalidInput, NotFound
from tests.support.catalogs import orders

CHEAP = Identifier(namespace=("shop",), name="cheap")


def metadata(shop: CatalogBackend, sql: str) -> dict[str, Any]:
    version = {
        "version-id": 1,
        "schema-id": 0,
        "timestamp-ms": 1_700_000_000_000,
        "representations": [{"type": "sql", "sql": sql, "dialect": "duckdb"}],
    }
    column = {"id": 1, "name": "a", "type": "int", "required": False}
    return {
        "view-uuid": "f3a0c6f0-6d0e-4c36-9d0a-0d3a4b3f1c11",
        "format-version": 1,
        "location": f"{shop.warehouse}/shop/cheap",
        "current-version-id": 1,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": [column]}],
        "versions": [version],
        "version-log": [],
        "properties": {"note": "€"},
        "unknown-part": {"kept": [1, None]},
    }


@pytest.fixture
def shop(catalog: CatalogBackend) -> CatalogBackend:
    catalog.namespaces.create("shop")
    return catalog


def test_a_view_is_there_after_it_was_created(shop: CatalogBackend) -> None:
    assert not shop.views.exists("shop.cheap")
    shop.views.create("shop.cheap", metadata(shop, "SELECT 1"))
    found = shop.views.load("shop.cheap")
    assert found.identifier == CHEAP
    assert found.metadata == metadata(shop, "SELECT 1")
    assert shop.views.list("shop") == [CHEAP]


def test_a_view_is_not_a_table(shop: CatalogBackend) -> None:
    shop.views.create("shop.cheap", metadata(shop, "SELECT 1"))
    assert not shop.table_exists("shop.cheap")
    assert shop.list_tables("shop") == []
    with pytest.raises(NotFound):
        shop.load("shop.cheap")


def test_a_table_and_a_view_cannot_share_a_name(shop: CatalogBackend) -> None:
    shop.create_table("shop.orders", orders(shop.location_for("shop.orders")))
    with pytest.raises(AlreadyExists):
        shop.views.create("shop.orders", metadata(shop, "SELECT 1"))
    shop.views.create("shop.cheap", metadata(shop, "SELECT 1"))
    with pytest.raises(AlreadyExists):
        shop.create_table("shop.cheap", orders(shop.location_for("shop.cheap")))
    with pytest.raises(AlreadyExists):
        shop.rename("shop.orders", "shop.cheap")
    with pytest.raises(AlreadyExists):
        shop.views.rename("shop.cheap", "shop.orders")


def test_a_view_needs_its_namespace(catalog: CatalogBackend) -> None:
    with pytest.raises(NotFound):
        catalog.views.create("nowhere.cheap", metadata(catalog, "SELECT 1"))


def test_a_namespace_with_a_view_is_not_empty(shop: CatalogBackend) -> None:
    shop.views.create("shop.cheap", metadata(shop, "SELECT 1"))
    with pytest.raises(InvalidInput):
        shop.namespaces.drop("shop")
    shop.views.drop("shop.cheap")
    shop.namespaces.drop("shop")


def test_the_second_of_two_replacements_is_refused(shop: CatalogBackend) -> None:
    base = shop.views.create("shop.cheap", metadata(shop, "SELECT 1"))
    done = shop.views.replace(base, metadata(shop, "SELECT 2"))
    assert shop.views.load("shop.cheap") == done
    with pytest.raises(CommitConflict):
        shop.views.replace(base, metadata(shop, "SELECT 3"))
    assert shop.views.load("shop.cheap").metadata == metadata(shop, "SELECT 2")


def test_a_renamed_view_keeps_its_metadata(shop: CatalogBackend) -> None:
    shop.views.create("shop.cheap", metadata(shop, "SELECT 1"))
    shop.views.rename("shop.cheap", "shop.bargains")
    assert shop.views.load("shop.bargains").metadata == metadata(shop, "SELECT 1")
    assert not shop.views.exists("shop.cheap")
    shop.views.create("shop.cheap", metadata(shop, "SELECT 2"))


def test_a_dropped_view_is_gone(shop: CatalogBackend) -> None:
    base = shop.views.create("shop.cheap", metadata(shop, "SELECT 1"))
    shop.views.drop("shop.cheap")
    with pytest.raises(NotFound):
        shop.views.load("shop.cheap")
    with pytest.raises(NotFound):
        shop.views.drop("shop.cheap")
    with pytest.raises(CommitConflict):
        shop.views.replace(base, metadata(shop, "SELECT 2"))


def test_a_database_of_the_layout_without_views_gets_them(database_uri: str) -> None:
    first = SqlCatalog(database_uri, warehouse="file:///nowhere")
    with first.database.transaction() as transaction:
        transaction.run("DROP TABLE frazil_views")
        transaction.run("UPDATE frazil_layout SET layout_version = 1")
    first.close()
    second = SqlCatalog(database_uri, warehouse="file:///nowhere")
    second.namespaces.create("shop")
    second.views.create("shop.cheap", metadata(second, "SELECT 1"))
    assert second.views.exists("shop.cheap")
    second.close()

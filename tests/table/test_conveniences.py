"""Short ways to what a table has: rows, counts, views, branches, times in words."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

import frazil
from frazil.errors import AlreadyExists, InvalidInput, NotFound


@pytest.fixture
def catalog(tmp_path: Path) -> frazil.Catalog:
    return frazil.connect(tmp_path)


@pytest.fixture
def orders(catalog: frazil.Catalog) -> frazil.Table:
    return catalog.create_table("shop.orders", {"id": list(range(10)), "v": ["x"] * 10})


def test_rows_of_a_table(orders: frazil.Table) -> None:
    assert orders.to_arrow().num_rows == 10
    assert list(orders.to_pandas()["id"]) == list(range(10))
    assert orders.to_polars().height == 10
    assert orders.head().to_pylist() == [{"id": number, "v": "x"} for number in range(5)]
    assert orders.head(2).num_rows == 2
    with pytest.raises(InvalidInput, match="-1"):
        orders.head(-1)


def test_the_length_of_a_table_is_its_rows(orders: frazil.Table) -> None:
    assert len(orders) == 10
    orders.delete("id < 4")
    assert len(orders) == 6
    orders.delete("true")
    assert len(orders) == 0
    assert bool(orders)


def test_branches_and_tags_are_dropped_by_their_kind(orders: frazil.Table) -> None:
    orders.branch("audit", create=True)
    orders.tag("v1")
    with pytest.raises(NotFound, match="'v1' is not a branch; branches: audit, main"):
        orders.drop_branch("v1")
    with pytest.raises(NotFound, match="'audit' is not a tag; tags: v1"):
        orders.drop_tag("audit")
    with pytest.raises(InvalidInput, match="main"):
        orders.drop_branch("main")
    orders.drop_branch("audit")
    orders.drop_tag("v1")
    assert set(orders.metadata.refs) == {"main"}


def test_views_in_python(catalog: frazil.Catalog, orders: frazil.Table) -> None:
    catalog.create_view("shop.first two", "SELECT id FROM shop.orders WHERE id < 2")
    assert catalog.list_views() == catalog.list_views("shop") == ["shop.first two"]
    assert catalog.view_exists("shop.first two")
    assert not catalog.view_exists("shop.orders")
    assert catalog.list_tables() == ["shop.orders"]
    found = catalog.sql('SELECT * FROM shop."first two" ORDER BY id').to_pylist()
    assert found == [{"id": 0}, {"id": 1}]
    with pytest.raises(AlreadyExists):
        catalog.create_view("shop.first two", "SELECT 1 AS one")
    catalog.create_view("shop.first two", "SELECT 1 AS one", replace=True)
    assert catalog.view_query("shop.first two") == "SELECT 1 AS one"
    with pytest.raises(NotFound, match=r"shop\.first two is a view, not a table"):
        catalog.load_table("shop.first two")
    catalog.drop_view("shop.first two")
    assert catalog.list_views() == []
    with pytest.raises(NotFound):
        catalog.drop_view("shop.first two")


def test_times_in_words(orders: frazil.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    orders.append({"id": [10], "v": ["y"]})
    later = time.time() + 120
    context = replace(orders._handle.context, now_ms=lambda: int(later * 1000))
    monkeypatch.setattr(orders._handle, "context", context)
    assert orders.scan(as_of="1 minute ago").count() == 11
    assert orders.changes(since="1 minute ago").to_arrow().num_rows == 0
    with pytest.raises(NotFound, match="no snapshot of main is as old"):
        orders.scan(as_of="3 Hours ago")
    assert orders.changes(since="3 hours ago").to_arrow().num_rows == 11
    with pytest.raises(NotFound, match="a branch, tag, snapshot id or time"):
        orders.scan(as_of="a while ago")


def test_times_in_words_in_sql(tmp_path: Path) -> None:
    catalog = frazil.connect(tmp_path)
    catalog.create_table("shop.orders", {"id": [1]})
    count = "SELECT count(*) AS n FROM shop.orders"
    for clause in ("FOR TIMESTAMP AS OF '0 seconds ago'", "AT (TIMESTAMP => '0 seconds ago')"):
        assert catalog.sql(f"{count} {clause}").to_pylist() == [{"n": 1}]
    with pytest.raises(NotFound, match="no snapshot of main is as old"):
        catalog.sql(f"{count} TIMESTAMP AS OF '2 weeks ago'")
    with pytest.raises(InvalidInput, match="'a while ago' is not a timestamp"):
        catalog.sql(f"{count} TIMESTAMP AS OF 'a while ago'")

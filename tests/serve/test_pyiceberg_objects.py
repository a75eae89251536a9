"""Tables and catalogs as PyIceberg's own objects, without a server."""

from __future__ import annotations

import asyncio

import pyarrow as pa
import pytest
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import StaticTable

import frazil
from frazil.serve.running import Running
from frazil.table import Catalog

ROWS = [{"id": 1, "city": "Rome"}, {"id": 2, "city": "Oslo"}, {"id": 3, "city": "Lima"}]


@pytest.mark.parametrize("format_version", [2, 3])
def test_a_table_is_read_by_pyiceberg_as_it_is_when_asked_for(
    catalog: Catalog, format_version: int
) -> None:
    table = catalog.create_table("shop.orders", ROWS)
    table.delete("id = 2")
    static = frazil.to_pyiceberg(table, format_version=format_version)
    assert isinstance(static, StaticTable)
    assert static.metadata.format_version == format_version
    table.append([{"id": 4, "city": "Bern"}])
    assert sorted(static.scan().to_arrow()["id"].to_pylist()) == [1, 3]
    newer = frazil.to_pyiceberg(table, format_version=format_version)
    assert sorted(newer.scan("id > 1").to_arrow()["city"].to_pylist()) == ["Bern", "Lima"]
    assert table.check(deep=True).ok


def test_a_table_that_did_not_change_is_published_once(catalog: Catalog) -> None:
    table = catalog.create_table("shop.orders", ROWS)
    first = frazil.to_pyiceberg(table)
    assert frazil.to_pyiceberg(table).metadata_location == first.metadata_location


def test_a_static_table_takes_no_rows(catalog: Catalog) -> None:
    static = frazil.to_pyiceberg(catalog.create_table("shop.orders", ROWS), format_version=2)
    with pytest.raises(NotImplementedError):
        static.append(pa.table({"id": [9], "city": ["Bonn"]}))
    assert catalog["shop.orders"].scan().count() == 3


def test_a_catalog_is_read_and_written_by_pyiceberg(catalog: Catalog) -> None:
    orders = catalog.create_table("shop.orders", ROWS)
    theirs = catalog.as_pyiceberg()
    assert theirs.list_tables("shop") == [("shop", "orders")]
    theirs.load_table("shop.orders").append(pa.table({"id": [4], "city": ["Bern"]}))
    theirs.load_table("shop.orders").delete("id = 1")
    theirs.create_namespace("made")
    made = theirs.create_table("made.here", pa.schema([("n", pa.int64())]))
    made.append(pa.table({"n": [7, 8]}))
    with pytest.raises(NoSuchTableError):
        theirs.load_table("shop.nothing")
    theirs.close()
    assert sorted(orders.scan().to_arrow()["id"].to_pylist()) == [2, 3, 4]
    assert sorted(catalog["made.here"].scan().to_arrow()["n"].to_pylist()) == [7, 8]
    for name in ("shop.orders", "made.here"):
        assert catalog[name].check(deep=True).ok


def test_a_catalog_works_inside_an_event_loop(catalog: Catalog) -> None:
    catalog.create_table("shop.orders", ROWS)

    async def count() -> int:
        theirs = catalog.as_pyiceberg(format_version=3)
        return int(theirs.load_table("shop.orders").scan().count())

    assert asyncio.run(count()) == 3


def test_what_is_behind_a_server_is_reached_through_it(
    catalog: Catalog, server: Running, remote: Catalog
) -> None:
    catalog.create_table("shop.orders", ROWS)
    with pytest.raises(frazil.Unsupported, match="RestCatalog"):
        remote.as_pyiceberg()
    with pytest.raises(frazil.Unsupported, match="RestCatalog"):
        frazil.to_pyiceberg(remote["shop.orders"])


def test_other_versions_are_refused(catalog: Catalog) -> None:
    table = catalog.create_table("shop.orders", ROWS)
    with pytest.raises(frazil.InvalidInput, match="2 or 3"):
        frazil.to_pyiceberg(table, format_version=4)
    with pytest.raises(frazil.InvalidInput, match="2 or 3"):
        catalog.as_pyiceberg(format_version=1)

"""Requests to a bucket that holds the catalog too: counted by a proxy before a real S3 server."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

import frazil
from tests.support.object_server import Bucket
from tests.support.request_proxy import Proxy, request_proxy

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture
def proxy(bucket: Bucket) -> Iterator[Proxy]:
    with request_proxy(bucket) as proxy:
        frazil.connect(bucket.warehouse, **bucket.properties).create_table("shop.orders", ROWS)
        yield proxy


@pytest.fixture
def catalog(proxy: Proxy) -> frazil.Catalog:
    return frazil.connect(proxy.bucket.warehouse, **proxy.bucket.properties)


def asked(proxy: Proxy) -> list[tuple[str, str]]:
    """What was asked for since the last call: the method and the kind of object."""
    methods = proxy.methods()
    names = [request.name.partition("-")[0] for request in proxy.requests]
    proxy.clear()
    return [
        (method, "" if method == "LIST" else "data" if len(name) == 8 else name)
        for method, name in zip(methods, names, strict=True)
    ]


def test_connecting_and_opening(proxy: Proxy, catalog: frazil.Catalog) -> None:
    assert asked(proxy) == [("GET", "catalog.json")]
    catalog.load_table("shop.orders")
    assert asked(proxy) == [("GET", "orders.json"), ("GET", "head.json")]
    catalog.load_table("shop.orders")  # the head says which name it has
    assert asked(proxy) == [("GET", "head.json")]


def test_listing(proxy: Proxy, catalog: frazil.Catalog) -> None:
    proxy.clear()
    assert catalog.list_tables("shop") == ["shop.orders"]
    assert asked(proxy) == [("LIST", "")]
    assert catalog.list_namespaces() == ["shop"]
    assert asked(proxy) == [("LIST", "")]


def test_a_small_append(proxy: Proxy, catalog: frazil.Catalog) -> None:
    table = catalog.load_table("shop.orders")
    proxy.clear()
    table.append(ROWS)  # cold: the root that it builds on is read
    assert [method for method, _ in asked(proxy)] == ["PUT", "GET", "PUT", "PUT"]
    table.append(ROWS)
    requests = asked(proxy)
    assert [method for method, _ in requests] == ["PUT", "PUT", "PUT"]
    assert [name for _, name in requests[1:]] == ["root", "head.json"]


def test_a_property_and_a_tag(proxy: Proxy, catalog: frazil.Catalog) -> None:
    table = catalog.load_table("shop.orders")
    proxy.clear()
    table.set_properties({"owner": "sales"})
    assert asked(proxy).count(("PUT", "head.json")) == 1
    table.tag("eoy")
    assert asked(proxy).count(("PUT", "head.json")) == 1


def test_a_cold_plan(proxy: Proxy, catalog: frazil.Catalog) -> None:
    catalog.load_table("shop.orders")
    proxy.clear()
    table = catalog.load_table("shop.orders")
    assert len(list(table.scan().tasks())) == 1
    # The scan asks whether the head is still the one that was opened: 304, without content.
    assert asked(proxy) == [("GET", "head.json"), ("GET", "head.json"), ("GET", "root")]


def test_a_race_that_was_lost(proxy: Proxy, catalog: frazil.Catalog, bucket: Bucket) -> None:
    table = catalog.load_table("shop.orders")
    table.append(ROWS)
    other = frazil.connect(bucket.warehouse, **bucket.properties).load_table("shop.orders")
    other.append(ROWS)
    proxy.clear()
    table.append(ROWS)
    requests = asked(proxy)
    # The data is written once; the root and the head again, on the head that was first.
    assert [name for method, name in requests if method == "PUT"][1:] == [
        "root",
        "head.json",
        "root",
        "head.json",
    ]
    assert table.scan().count() == 12


CHANGES: dict[str, tuple[Callable[[frazil.Table], object], int]] = {
    "delete": (lambda table: table.delete("id = 2"), 7),
    "update": (lambda table: table.update({"s": "y"}, "id = 2"), 8),
    "upsert": (lambda table: table.upsert([{"id": 2, "s": "z"}], on=["id"]), 8),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_of_one_row(proxy: Proxy, catalog: frazil.Catalog, what: str) -> None:
    work, budget = CHANGES[what]
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "s": ["a", "b", "c"]})
    frazil.connect(proxy.bucket.warehouse, **proxy.bucket.properties).create_table("shop.s", rows)
    catalog.load_table("shop.s")
    proxy.clear()
    work(catalog.load_table("shop.s"))
    requests = asked(proxy)
    assert len(requests) <= budget
    assert requests.count(("GET", "root")) == 1
    assert requests.count(("PUT", "head.json")) == 1


@pytest.fixture
def neighbours(bucket: Bucket) -> int:
    """Other tables of the catalog, which whoever deletes files must not hit."""
    catalog = frazil.connect(bucket.warehouse, **bucket.properties)
    for number in range(3):
        catalog.create_table(f"shop.other{number}", ROWS)
    return 3


def test_expiry_asks_once_for_other_tables(
    proxy: Proxy, catalog: frazil.Catalog, neighbours: int
) -> None:
    table = catalog.load_table("shop.orders")
    for _ in range(4):
        table.append(ROWS)
    table.compact(rewrite_all=True)
    table = frazil.connect(proxy.bucket.warehouse, **proxy.bucket.properties).load_table(
        "shop.orders"
    )
    proxy.clear()
    expired = table.expire_snapshots("0 seconds", keep_last=1)
    assert len(expired.snapshot_ids) == 5
    requests = asked(proxy)
    assert requests.count(("GET", "root")) == 6
    assert requests.count(("PUT", "head.json")) == 1
    assert requests.count(("LIST", "")) == 1
    assert [name for _, name in requests].count("other0.json") == 1
    assert len([method for method, _ in requests if method == "POST"]) == 1
    # Beside these: name and head of each table, its own head again, and its notes.
    assert len(requests) <= 6 + 3 + 2 * (neighbours + 1) + 6


def test_orphans_of_a_table_that_has_none(
    proxy: Proxy, catalog: frazil.Catalog, neighbours: int
) -> None:
    table = catalog.load_table("shop.orders")
    proxy.clear()
    assert not table.remove_orphan_files("3 days").files
    requests = asked(proxy)
    assert not [method for method, _ in requests if method in ("PUT", "POST", "DELETE")]
    assert [name for _, name in requests].count("other0.json") == 1


def test_orphans_of_a_small_table_alone(proxy: Proxy, catalog: frazil.Catalog) -> None:
    table = catalog.load_table("shop.orders")
    proxy.clear()
    assert not table.remove_orphan_files("3 days").files
    requests = asked(proxy)
    # The names of tables, the three folders of a table, and whether there are notes.
    assert requests.count(("LIST", "")) == 5
    assert [name for _, name in requests].count("head.json") == 4
    # Beside these: its name, its root, and four questions whether it was published.
    assert len(requests) <= 5 + 4 + 6


def test_publishing(proxy: Proxy, catalog: frazil.Catalog) -> None:
    table = catalog.load_table("shop.orders")
    proxy.clear()
    table.publish(format_version=3)
    # The head, what was published before (in vain), the root; a manifest, the list, the state, the
    # metadata and the hint.
    assert len(asked(proxy)) <= 11
    table.append(ROWS)
    proxy.clear()
    table.publish(format_version=3)
    requests = asked(proxy)
    assert [method for method, _ in requests] == ["GET", *["PUT"] * 5]
    assert requests[0] == ("GET", "head.json")
    assert requests[-2:] == [("PUT", "v2.metadata.json"), ("PUT", "version")]


def test_publishers_of_two_processes_share_the_versions(
    proxy: Proxy, catalog: frazil.Catalog, bucket: Bucket
) -> None:
    ours = catalog.load_table("shop.orders")
    theirs = frazil.connect(bucket.warehouse, **bucket.properties).load_table("shop.orders")
    locations = []
    for number in range(4):
        table = (ours, theirs)[number % 2]
        table.append(ROWS)
        locations.append(table.publish(format_version=2).metadata_location)
    names = [location.rpartition("/")[2] for location in locations]
    assert names == [f"v{number}.metadata.json" for number in range(1, 5)]
    hint = ours._handle.storage.read(f"{ours.location}/metadata/version-hint.text")
    assert hint == b"4"
    for number, location in enumerate(locations):
        published = catalog.open_iceberg(location)
        assert published.scan().count() == 3 * (number + 2)


def test_purging_deletes_in_one_request(
    proxy: Proxy, catalog: frazil.Catalog, neighbours: int
) -> None:
    catalog.load_table("shop.orders").append(ROWS)
    proxy.clear()
    catalog.drop_table("shop.orders", purge=True)
    requests = asked(proxy)
    assert requests.count(("GET", "root")) == 2
    assert len([method for method, _ in requests if method == "POST"]) == 1
    assert [name for _, name in requests].count("other0.json") == 1
    # The tombstone and the name that is given up.
    assert [each for each in requests if each[0] == "PUT"] == [
        ("PUT", "head.json"),
        ("PUT", "orders.json"),
    ]

"""Requests that an operation sends to an object store, with the catalog in a SQL database.

Each costs a round trip, so their number decides. Every request is seen by a proxy before a real
server. Requests for leaves wait there for each other: those that came one after the other would
wait in vain.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import frazil
from tests.support.object_server import Bucket, new_bucket
from tests.support.request_proxy import Proxy, Request, request_proxy

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])
LEAVES = 8
TREE = {"write.root.max-data-entries": "4", "write.leaf.target-entries": "5"}


def rows(first: int, last: int) -> pa.Table:
    return pa.table({"id": range(first, last), "s": ["x"] * (last - first)}, schema=SCHEMA)


class Shop:
    """A table behind the proxy. `cold` opens it as a new process would."""

    def __init__(self, proxy: Proxy, folder: Path) -> None:
        self.proxy = proxy
        self._database = f"sqlite:///{folder}/catalog.db"
        self._place: dict[str, Any] = {
            "warehouse": proxy.bucket.warehouse,
            **proxy.bucket.properties,
        }
        self.catalog = frazil.connect(self._database, **self._place)
        self._opened = [self.catalog]

    def cold(self, name: str = "s.small") -> frazil.Table:
        self._opened.append(frazil.connect(self._database, **self._place))
        table = self._opened[-1].load_table(name)
        self.proxy.clear()
        return table

    def requests(self) -> list[str]:
        """Kinds of requests so far: the method and what it was about."""
        return [
            f"{'LIST' if it.is_listing else it.method} {_what(it)}" for it in self.proxy.requests
        ]

    def close(self) -> None:
        for catalog in self._opened:
            catalog.close()


def _what(request: Request) -> str:
    if request.query.startswith("delete"):
        return "many"
    if "/data/" in request.path:
        return "data"
    return request.name.partition("-")[0]


@pytest.fixture
def shop(object_server: Bucket, tmp_path: Path) -> Iterator[Shop]:
    with request_proxy(new_bucket(object_server)) as proxy:
        shop = Shop(proxy, tmp_path)
        table = shop.catalog.create_table("s.small", SCHEMA)
        table.append(rows(0, 10))
        table.append(rows(10, 20))
        yield shop
        shop.close()


@pytest.fixture(scope="module")
def tree(object_server: Bucket, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Forty files in eight leaves, and nothing in the root."""
    with request_proxy(new_bucket(object_server)) as proxy:
        shop = Shop(proxy, tmp_path_factory.mktemp("tree"))
        table = shop.catalog.create_table("s.deep", SCHEMA, properties=TREE)
        with table.transaction() as tx:
            for number in range(LEAVES * 5):
                tx.append(rows(10 * number, 10 * number + 10))
        table.rewrite_manifests()
        yield shop
        shop.close()


def test_opening_a_table_asks_the_store_for_nothing(shop: Shop) -> None:
    shop.cold()
    assert shop.requests() == []


def test_a_small_append_puts_the_rows_and_the_root(shop: Shop) -> None:
    table = shop.cold()
    table.append(rows(20, 30))
    assert sorted(shop.requests()) == ["GET root", "PUT data", "PUT root"]
    shop.proxy.clear()
    table.append(rows(30, 40))
    assert shop.requests() == ["PUT data", "PUT root"]
    assert all(request.headers["if-none-match"] == "*" for request in shop.proxy.requests)


READS: dict[str, tuple[Callable[[frazil.Table], object], list[str]]] = {
    "plan": (lambda table: list(table.scan("id = 5").tasks()), ["GET root"]),
    "scan": (lambda table: table.scan("id = 5").to_pylist(), ["GET root", "GET data"]),
    "count": (lambda table: table.scan().count(), ["GET root"]),
}


@pytest.mark.parametrize("what", READS)
def test_reading_asks_for_what_it_needs_once(shop: Shop, what: str) -> None:
    work, expected = READS[what]
    work(shop.cold())
    assert shop.requests() == expected


def test_sql_reads_the_root_and_the_file(shop: Shop) -> None:
    shop.cold()
    catalog = shop._opened[-1]
    assert catalog.sql("SELECT s FROM s.small WHERE id = 5").to_arrow().to_pylist() == [{"s": "x"}]
    assert shop.requests() == ["GET root", "GET data"]


CHANGES: dict[str, tuple[Callable[[frazil.Table], object], int]] = {
    "delete": (lambda table: table.delete("id = 5"), 4),
    "update": (lambda table: table.update({"s": "y"}, "id = 5"), 5),
    "upsert": (lambda table: table.upsert([{"id": 5, "s": "z"}], on=["id"]), 5),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_of_one_row_stays_within_its_requests(shop: Shop, what: str) -> None:
    work, budget = CHANGES[what]
    work(shop.cold())
    assert len(shop.requests()) <= budget
    assert not [each for each in shop.requests() if each.startswith(("HEAD", "LIST"))]
    assert shop.requests().count("GET root") == 1  # the plan and the commit share it


def test_compaction_reads_each_file_once(shop: Shop) -> None:
    shop.cold().compact(rewrite_all=True)
    assert shop.requests().count("GET data") == 2
    assert shop.requests().count("PUT data") == 1
    assert len(shop.requests()) <= 5


def test_purging_reads_the_roots_and_deletes_in_one_request(shop: Shop) -> None:
    shop.cold()
    shop._opened[-1].drop_table("s.small", purge=True)
    assert shop.requests().count("GET root") == 2
    assert shop.requests().count("POST many") == 1
    assert not [each for each in shop.requests() if each.startswith(("DELETE", "PUT"))]


def test_expiry_deletes_in_one_request(shop: Shop) -> None:
    table = shop.cold()
    for number in range(2, 6):
        table.append(rows(10 * number, 10 * number + 10))
    table.compact(rewrite_all=True)
    table = shop.cold()
    expired = table.expire_snapshots("0 seconds", keep_last=1)
    assert sum(map(len, expired.files.values())) == 12  # six roots and six files
    assert shop.requests().count("POST many") == 1
    assert set(shop.requests()) == {"GET root", "POST many"}


def test_orphan_removal_lists_and_deletes_in_bulk(shop: Shop) -> None:
    table = shop.cold()
    for number in range(20):
        table._handle.storage.write_new(f"{table.location}/data/lost-{number}.parquet", b"x")
    shop.proxy.clear()
    table.remove_orphan_files("0 seconds")
    assert shop.requests().count("POST many") == 1
    assert not [each for each in shop.requests() if each.startswith("DELETE")]


def test_a_selective_plan_takes_two_round_trips(tree: Shop) -> None:
    tasks = list(tree.cold("s.deep").scan("id = 5").tasks())
    assert len(tasks) == 1
    assert tree.requests() == ["GET root", "GET leaf"]


def test_leaves_are_read_side_by_side(tree: Shop) -> None:
    table = tree.cold("s.deep")
    tree.proxy.together = {"/leaf-": threading.Barrier(LEAVES)}
    tasks = list(table.scan("id >= 0").tasks())
    tree.proxy.together = {}
    assert len(tasks) == LEAVES * 5
    assert tree.requests() == ["GET root", *["GET leaf"] * LEAVES]


def test_leaves_are_written_side_by_side(tree: Shop) -> None:
    table = tree.catalog.create_table("s.wide", SCHEMA, properties=TREE)
    tree.proxy.together = {"/leaf-": threading.Barrier(LEAVES)}
    with table.transaction() as tx:
        for number in range(LEAVES * 5):
            tx.append(rows(10 * number, 10 * number + 10))
        tree.proxy.clear()
    tree.proxy.together = {}
    assert tree.requests().count("PUT leaf") == LEAVES
    assert tree.requests()[-1] == "PUT root"


def test_a_large_file_is_read_without_asking_for_its_size(shop: Shop) -> None:
    schema = pa.schema([("id", pa.int64()), ("noise", pa.int64())])
    properties = {"write.parquet.row-group-limit": "100000"}
    table = shop.catalog.create_table("s.large", schema, properties=properties)
    noise = np.random.default_rng(7).integers(0, 2**62, 400_000)
    table.append(pa.table({"id": np.arange(400_000), "noise": noise}, schema=schema))
    assert shop.cold("s.large").scan("id = 123456").to_pylist() == [
        {"id": 123456, "noise": noise[123456]}
    ]
    assert not [each for each in shop.requests() if each.startswith(("HEAD", "LIST"))]
    # The root, the footer, and the two columns of one row group.
    assert len(shop.requests()) <= 4


def test_columns_that_lie_apart_are_fetched_side_by_side(shop: Shop) -> None:
    names = [f"c{number}" for number in range(6)]
    schema = pa.schema([(name, pa.int64()) for name in names])
    table = shop.catalog.create_table("s.columns", schema)
    random = np.random.default_rng(7)
    values = {name: random.integers(0, 2**62, 200_000) for name in names}  # 1.6 MB each
    table.append(pa.table(values, schema=schema))
    table = shop.cold("s.columns")
    both = threading.Barrier(2)

    def hold(request: Request) -> None:
        so_far = [each for each in shop.proxy.requests if "/data/" in each.path]
        if "/data/" in request.path and len(so_far) > 1:  # the first is for the footer
            both.wait(timeout=20)

    shop.proxy.fault = hold
    read = table.scan(columns=["c0", "c5"]).to_arrow()
    assert read.column("c5").to_pylist() == values["c5"].tolist()
    assert shop.requests() == ["GET root", *["GET data"] * 3]

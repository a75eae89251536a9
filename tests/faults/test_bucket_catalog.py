"""Commits to a catalog in a bucket through a proxy that cuts, delays and fails requests, before and
after they take effect: nothing is lost, and nothing is there twice."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pytest

import frazil
from frazil.errors import CommitUnknown
from tests.support.object_server import Bucket
from tests.support.request_proxy import Fault, Proxy, Request, request_proxy

CUT = Fault()
CUT_AFTER = Fault(after=True)
CONFLICT = Fault(status=409, code="ConditionalRequestConflict")
TOO_MANY = Fault(status=429, code="TooManyRequests")
SLOW_DOWN = Fault(status=503, code="SlowDown")
SLOW_DOWN_AFTER = Fault(status=503, code="SlowDown", after=True)
FAULTS = [CUT, CUT_AFTER, CONFLICT, TOO_MANY, SLOW_DOWN, SLOW_DOWN_AFTER]
IDS = ["cut", "cut after", "409", "429", "503", "503 after"]


def row(number: int) -> pa.Table:
    return pa.table({"id": pa.array([number], pa.int64())})


@pytest.fixture
def proxy(bucket: Bucket) -> Iterator[Proxy]:
    with request_proxy(bucket) as proxy:
        yield proxy


def connected(bucket: Bucket) -> frazil.Catalog:
    return frazil.connect(bucket.warehouse, **bucket.properties)


def ids(bucket: Bucket) -> list[int]:
    table = connected(bucket).load_table("shop.orders")
    return sorted(table.scan().to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("fault", FAULTS, ids=IDS)
def test_an_append_lands_once_whatever_happens_to_the_put_of_the_head(
    bucket: Bucket, proxy: Proxy, fault: Fault
) -> None:
    table = connected(proxy.bucket).create_table("shop.orders", row(1))
    proxy.fail_next(fault, times=2, method="PUT", part="head.json")
    table.append(row(2))
    table.append(row(3))
    assert ids(bucket) == [1, 2, 3]


@pytest.mark.parametrize("fault", FAULTS, ids=IDS)
def test_a_property_is_set_whatever_happens_to_the_put_of_the_head(
    bucket: Bucket, proxy: Proxy, fault: Fault
) -> None:
    table = connected(proxy.bucket).create_table("shop.orders", row(1))
    proxy.fail_next(fault, times=2, method="PUT", part="head.json")
    table.set_properties({"owner": "sales"})
    again = connected(bucket).load_table("shop.orders")
    assert again.properties["owner"] == "sales"


@pytest.mark.parametrize("fault", FAULTS, ids=IDS)
@pytest.mark.parametrize("part", ["names/shop/sales", "names/shop/orders", "head.json"])
def test_a_table_is_renamed_whatever_happens_to_its_requests(
    bucket: Bucket, proxy: Proxy, fault: Fault, part: str
) -> None:
    catalog = connected(proxy.bucket)
    catalog.create_table("shop.orders", row(1))
    proxy.fail_next(fault, times=2, method="PUT", part=part)
    catalog.rename_table("shop.orders", "shop.sales")
    assert connected(bucket).list_tables() == ["shop.sales"]
    catalog.create_table("shop.orders", row(2))
    assert ids(bucket) == [2]


@pytest.mark.parametrize("fault", FAULTS, ids=IDS)
@pytest.mark.parametrize("part", ["names/", "head.json", "namespaces/", "catalog.json"])
def test_a_table_is_created_and_dropped_whatever_happens_to_its_requests(
    bucket: Bucket, proxy: Proxy, fault: Fault, part: str
) -> None:
    catalog = connected(proxy.bucket)
    proxy.fail_next(fault, times=2, method="PUT", part=part)
    catalog.create_table("shop.orders", row(1))
    assert ids(bucket) == [1]
    proxy.fail_next(fault, times=2, method="PUT", part=part)
    catalog.drop_table("shop.orders")
    assert connected(bucket).list_tables() == []


def test_a_store_that_is_gone_leaves_a_doubt_and_deletes_nothing(
    bucket: Bucket, proxy: Proxy
) -> None:
    quick = {"s3.retry.num-retries": "0", **proxy.bucket.properties}
    table = frazil.connect(proxy.bucket.warehouse, **quick).create_table("shop.orders", row(1))
    landed_then_gone = [Fault(after=True)]

    def fault(request: Request) -> Fault | None:
        if request.name != "head.json":
            return None
        if request.method == "PUT" and landed_then_gone:
            return landed_then_gone.pop()
        return None if landed_then_gone else CUT

    proxy.fault = fault
    with pytest.raises(CommitUnknown):
        table.append(row(2))
    proxy.fault = lambda request: None
    assert ids(bucket) == [1, 2]


def test_eight_writers_through_a_bad_line_lose_nothing_and_repeat_nothing(
    bucket: Bucket, proxy: Proxy
) -> None:
    properties = {"commit.retry.num-retries": "1000"}
    schema = pa.schema([("id", pa.int64())])
    connected(bucket).create_table("shop.orders", schema, properties=properties)
    chance = random.Random(11)
    lock = threading.Lock()

    def fault(request: Request) -> Fault | None:
        with lock:
            is_spoiled = request.method == "PUT" and chance.random() < 0.2
            return chance.choice(FAULTS) if is_spoiled else None

    proxy.fault = fault
    failures: list[BaseException] = []

    def work(writer: int) -> None:
        try:
            table = connected(proxy.bucket).load_table("shop.orders")
            for number in range(5):
                table.append(row(writer * 100 + number))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(writer,)) for writer in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    proxy.fault = lambda request: None
    assert failures == []
    counts = Counter(ids(bucket))
    assert counts == {writer * 100 + number: 1 for writer in range(8) for number in range(5)}
    head = connected(bucket)._pointers.load("shop.orders")
    assert [each.sequence_number for each in head.snapshots()] == list(range(1, 41))

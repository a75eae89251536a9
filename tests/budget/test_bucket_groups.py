"""Appends of several writers of one process share the swap of a bucket's head."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.catalog.objects.object_head import ObjectHead
from frazil.commit.result import CommitResult
from frazil.errors import CommitUnknown
from tests.support.object_server import Bucket
from tests.support.request_proxy import Proxy, request_proxy

_LIMIT_S = 60.0
NAME = "shop.orders"


class Shop:
    """A table behind the proxy, whose turn the test holds until the writers have come."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        self.catalog = frazil.connect(proxy.bucket.warehouse, **proxy.bucket.properties)
        self.table = self.catalog.create_table(NAME, pa.schema([("id", pa.int64())]))
        self.table.append([{"id": 0}])
        self.results: dict[int, CommitResult | Exception] = {}
        head = self.table._handle.head
        assert isinstance(head, ObjectHead)
        self.head = head
        self._threads: list[threading.Thread] = []

    def start(self, number: int, **options: Any) -> None:
        """A writer that appends one row; back when its offer waits."""
        table = self.catalog.load_table(NAME)
        before = len(self.head._queue._slots)

        def work() -> None:
            try:
                self.results[number] = table.append([{"id": number}], **options)
            except Exception as error:
                self.results[number] = error

        self._threads.append(threading.Thread(target=work))
        self._threads[-1].start()
        end = time.monotonic() + _LIMIT_S
        while len(self.head._queue._slots) == before:
            assert time.monotonic() < end, "no offer"
            time.sleep(0.002)

    def finish(self) -> None:
        for thread in self._threads:
            thread.join(_LIMIT_S)
            assert not thread.is_alive()

    def ids(self) -> list[int]:
        other = frazil.connect(self.proxy.bucket.warehouse, **self.proxy.bucket.properties)
        return sorted(row["id"] for row in other.load_table(NAME).scan().to_pylist())

    def puts(self) -> Mapping[str, int]:
        names = [one.name.partition("-")[0] for one in self.proxy.requests if one.method == "PUT"]
        return {name: names.count(name) for name in ("root", "head.json")}


@pytest.fixture
def shop(bucket: Bucket) -> Iterator[Shop]:
    with request_proxy(bucket) as proxy:
        yield Shop(proxy)


def test_eight_appends_that_wait_land_in_one_swap(shop: Shop) -> None:
    with shop.head.turn():
        for number in range(1, 9):
            shop.start(number)
        shop.proxy.clear()
    shop.finish()
    assert shop.puts() == {"root": 1, "head.json": 1}
    # The next root is built on what this process wrote: nobody asks for the head.
    assert shop.proxy.methods().count("GET") == 0
    results = [one for one in shop.results.values() if isinstance(one, CommitResult)]
    assert len({one.snapshot_id for one in results}) == 1
    assert {(one.shared_by, one.rows_added) for one in results} == {(8, 1)}
    assert shop.ids() == list(range(9))


def test_appends_with_other_summaries_land_by_themselves(shop: Shop) -> None:
    with shop.head.turn():
        shop.start(1, summary={"job": "a"})
        shop.start(2, summary={"job": "b"})
        shop.start(3, summary={"job": "a"})
        shop.proxy.clear()
    shop.finish()
    assert shop.puts() == {"root": 2, "head.json": 2}
    assert shop.ids() == [0, 1, 2, 3]
    jobs = [snapshot.summary.get("job") for snapshot in shop.table.snapshots()]
    assert sorted(job for job in jobs if job) == ["a", "b"]


def test_a_change_that_waits_comes_in_turn(shop: Shop) -> None:
    with shop.head.turn():
        shop.start(1)
        shop.start(2)
        deleting = threading.Thread(target=lambda: shop.table.delete("id = 0"))
        deleting.start()
    shop.finish()
    deleting.join(_LIMIT_S)
    assert shop.ids() == [1, 2]


def test_a_group_that_loses_to_another_process_is_built_again(shop: Shop) -> None:
    other = frazil.connect(shop.proxy.bucket.warehouse, **shop.proxy.bucket.properties)
    with shop.head.turn():
        shop.start(1)
        shop.start(2)
        other.load_table(NAME).append([{"id": 100}])
    shop.finish()
    results = [one for one in shop.results.values() if isinstance(one, CommitResult)]
    assert [one.shared_by for one in results] == [2, 2]
    assert shop.ids() == [0, 1, 2, 100]


def test_a_swap_in_doubt_is_in_doubt_for_all_of_the_group(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def doubtful(self: ObjectHead, base: object, draft: object) -> object:
        raise CommitUnknown("the store does not answer")

    with shop.head.turn():
        shop.start(1)
        shop.start(2)
        monkeypatch.setattr(ObjectHead, "_swapped", doubtful)
    shop.finish()
    assert [type(one) for one in shop.results.values()] == [CommitUnknown, CommitUnknown]
    monkeypatch.undo()
    assert shop.ids() == [0]


def test_a_group_that_fails_does_not_fail_its_members(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    from frazil.errors import InvalidInput

    swapped = ObjectHead._swapped
    refused: list[int] = []

    def once(self: ObjectHead, base: Any, draft: Any) -> Any:
        (snapshot,) = draft.added_snapshots
        if "frazil.group.size" in snapshot.summary:
            refused.append(int(snapshot.summary["frazil.group.size"]))
            raise InvalidInput("not together")
        return swapped(self, base, draft)

    monkeypatch.setattr(ObjectHead, "_swapped", once)
    with shop.head.turn():
        for number in (1, 2, 3):
            shop.start(number)
    shop.finish()
    assert refused == [3, 2]
    assert all(isinstance(one, CommitResult) for one in shop.results.values())
    assert shop.ids() == [0, 1, 2, 3]


def test_writers_that_begin_at_once_lose_nothing(shop: Shop) -> None:
    start = threading.Barrier(8)

    def write(writer: int) -> None:
        table = shop.catalog.load_table(NAME)
        start.wait(_LIMIT_S)
        for number in range(5):
            table.append([{"id": 10 * writer + number}])

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(1, 9)]
    shop.proxy.clear()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_LIMIT_S)
    assert shop.puts()["head.json"] <= 40  # no swap was lost
    expected = [0, *(10 * writer + number for writer in range(1, 9) for number in range(5))]
    assert shop.ids() == expected

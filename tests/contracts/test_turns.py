"""Writers that compete for a table take turns: the one that waits longest comes first."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.catalog.sql.sql_catalog import SqlCatalog
from frazil.catalog.sql.sql_head import SqlHead
from frazil.catalog.sql.turns import Turns
from frazil.commit.head import Landed, Lost
from tests.support.catalogs import append, orders

_LIMIT_S = 60.0


@pytest.fixture
def shop(sql_catalog: SqlCatalog) -> SqlCatalog:
    sql_catalog.namespaces.create("shop")
    metadata = orders(sql_catalog.location_for("shop.orders"))
    sql_catalog.create_table("shop.orders", metadata)
    return sql_catalog


def _head(catalog: SqlCatalog) -> SqlHead:
    head = catalog.load("shop.orders")
    assert isinstance(head, SqlHead)
    return head


def _until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + _LIMIT_S
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.002)


def _waiting(catalog: SqlCatalog) -> int:
    """How many writers stand in the queue, the holder included."""
    if catalog.database.kind == "sqlite":
        return int(catalog.database.rows("SELECT count(*) FROM frazil_queue")[0][0])
    statement = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 705210048"
    return int(catalog.database.rows(statement)[0][0])


def test_turns_come_in_the_order_of_asking(shop: SqlCatalog) -> None:
    order: list[int] = []

    def work(number: int) -> None:
        with _head(shop).turn():
            order.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    with _head(shop).turn():
        for number, thread in enumerate(threads):
            thread.start()
            _until(lambda wanted=number + 2: _waiting(shop) == wanted)  # type: ignore[misc]
        assert order == []
    for thread in threads:
        thread.join(_LIMIT_S)
    assert order == [0, 1, 2, 3]
    assert _waiting(shop) == 0


def test_a_writer_outside_a_turn_does_not_overtake_one_that_has_it(shop: SqlCatalog) -> None:
    quick, patient = _head(shop), _head(shop)
    base = quick.load()
    with patient.turn():
        mine = patient.load()
        assert isinstance(quick.swap(base, append(base, 1)), Lost)
        assert isinstance(patient.swap(mine, append(mine, 2)), Landed)
    base = quick.load()
    assert isinstance(quick.swap(base, append(base, 1)), Landed)
    assert [each.snapshot_id for each in quick.snapshots()] == [2, 1]


def test_a_swap_that_lost_in_a_turn_may_be_tried_again_in_it(shop: SqlCatalog) -> None:
    head = _head(shop)
    stale = head.load()
    assert isinstance(head.swap(stale, append(stale, 1)), Landed)
    with head.turn():
        assert isinstance(head.swap(stale, append(stale, 2)), Lost)
        base = head.load()
        assert isinstance(head.swap(base, append(base, 2)), Landed)
    assert _waiting(shop) == 0


def test_tables_have_queues_of_their_own(shop: SqlCatalog) -> None:
    shop.create_table("shop.other", orders(shop.location_for("shop.other")))
    other = shop.load("shop.other")
    with _head(shop).turn():
        base = other.load()
        assert isinstance(other.swap(base, append(base, 1)), Landed)


def test_a_holder_that_takes_too_long_is_passed_over(shop: SqlCatalog) -> None:
    head = _head(shop)
    table_id = head._table_id
    slow, next_one = (Turns(shop.database, table_id, longest_s=0.2) for _ in range(2))
    reached: list[str] = []

    def work() -> None:
        with next_one.turn():
            reached.append("next")

    thread = threading.Thread(target=work)
    with slow.turn():
        thread.start()
        _until(lambda: bool(reached))
    thread.join(_LIMIT_S)
    base = head.load()
    assert isinstance(head.swap(base, append(base, 1)), Landed)


def _hold(uri: str, warehouse: str, holds: Callable[[], None]) -> None:
    catalog = SqlCatalog(uri, warehouse=warehouse)
    with _head(catalog).turn():
        holds()
        time.sleep(600)


@pytest.fixture
def held(shop: SqlCatalog, database_uri: str, tmp_path: Path) -> Iterator[int]:
    """The id of another process that holds the turn."""
    context = multiprocessing.get_context("spawn")
    event = context.Event()
    arguments = (database_uri, str(tmp_path / "warehouse"), event.set)
    process = context.Process(target=_hold, args=arguments)
    process.start()
    assert process.pid is not None
    assert event.wait(_LIMIT_S)
    yield process.pid
    process.kill()
    process.join()


def test_a_holder_that_was_killed_does_not_block_others(shop: SqlCatalog, held: int) -> None:
    head = _head(shop)
    base = head.load()
    assert isinstance(head.swap(base, append(base, 1)), Lost)  # somebody has the turn
    os.kill(held, signal.SIGKILL)
    os.waitpid(held, 0)
    with head.turn():
        base = head.load()
        assert isinstance(head.swap(base, append(base, 2)), Landed)
    assert _waiting(shop) == 0


def test_a_catalog_of_an_older_version_gets_a_queue(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    old = SqlCatalog(uri, warehouse=str(tmp_path))
    old.namespaces.create("shop")
    old.create_table("shop.orders", orders(old.location_for("shop.orders")))
    with old.database.transaction() as transaction:
        transaction.run("DROP TABLE frazil_queue")
        transaction.run("UPDATE frazil_layout SET layout_version = 3")
    head = _head(SqlCatalog(uri, warehouse=str(tmp_path)))
    with head.turn():
        base = head.load()
        assert isinstance(head.swap(base, append(base, 1)), Landed)


WRITERS, COMMITS = 4, 80
SCHEMA = pa.schema([("id", pa.int64())])


def _compete(
    uri: str, warehouse: str, left: Callable[[], bool], start: Callable[[], int]
) -> list[int]:
    """How often each commit was tried."""
    table = frazil.connect(uri, warehouse=warehouse).load_table("shop.things")
    rows = pa.table({"id": [1]}, schema=SCHEMA)
    attempts: list[int] = []
    start()
    while left():
        attempts.append(table.append(rows).attempts)
    return attempts


def test_no_writer_lands_less_than_a_third_of_its_share(database_uri: str, tmp_path: Path) -> None:
    warehouse = str(tmp_path / "warehouse")
    catalog = frazil.connect(database_uri, warehouse=warehouse)
    catalog.create_table("shop.things", SCHEMA)
    left, lock = [COMMITS], threading.Lock()
    gate = threading.Barrier(WRITERS)
    attempts: list[list[int]] = []

    def another() -> bool:
        with lock:
            left[0] -= 1
            return left[0] >= 0

    def work() -> None:
        attempts.append(_compete(database_uri, warehouse, another, gate.wait))

    threads = [threading.Thread(target=work) for _ in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_LIMIT_S)
    landed = [len(each) for each in attempts]
    assert sum(landed) == COMMITS
    # A commit that lost its first race waits for its turn, in which no other can come before it.
    assert sum(map(sum, attempts)) <= 2 * COMMITS, attempts
    assert min(landed) * 3 >= COMMITS / WRITERS, landed
    assert catalog.load_table("shop.things").scan().count() == COMMITS

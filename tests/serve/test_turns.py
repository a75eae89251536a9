"""Turns of clients: many that wait hold nothing, and one that misbehaves keeps nobody waiting."""

from __future__ import annotations

import json
import queue
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.catalog.sql.sql_head import SqlHead
from frazil.errors import NotFound, Overloaded
from frazil.serve.app import build
from frazil.serve.limits import MAX_TURN_EXPIRIES, QUICK_THREADS
from frazil.serve.native.native_tables import tables_of
from frazil.serve.native.turn_keeper import Turn, TurnKeeper
from frazil.serve.running import Running
from frazil.serve.service import Service
from frazil.table import Catalog

SCHEMA = pa.schema([("id", pa.int64())])
LIMIT_S = 120.0


@pytest.fixture
def head(catalog: Catalog) -> SqlHead:
    table = catalog.create_table("shop.orders", SCHEMA)
    head = table._handle.head
    assert isinstance(head, SqlHead)
    return head


@pytest.fixture
def address(server: Running, head: SqlHead) -> str:
    return f"{server.uri}/v1/frazil"


def post(address: str, operation: str, timeout_s: float = LIMIT_S, **body: str) -> Any:
    """An answer of the native API, whatever its status."""
    request = urllib.request.Request(f"{address}/{operation}", json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return json.loads(error.read())


def take(address: str, head: SqlHead, writer: str) -> str | None:
    """A turn, None when there is none to be had."""
    turn: str | None = post(address, "take-turn", key=head.key, writer=writer).get("turn")
    return turn


def test_clients_that_wait_for_a_turn_hold_no_thread(catalog: Catalog, head: SqlHead) -> None:
    """Twice as many wait as requests are answered at once; other requests are answered."""
    service = Service(catalog)
    keeper = tables_of(service).turns = TurnKeeper(first_s=LIMIT_S, max_s=LIMIT_S)
    waiting = 2 * QUICK_THREADS
    with Running(build(service)) as server, ThreadPoolExecutor(waiting) as pool:
        address = f"{server.uri}/v1/frazil"
        held = take(address, head, "holder")
        others = [pool.submit(take, address, head, f"w{number}") for number in range(waiting)]
        until = time.monotonic() + LIMIT_S
        while keeper.waiting < waiting or service.quick.busy:
            assert time.monotonic() < until, "threads are held"
            time.sleep(0.01)
        assert "state" in post(address, "load-head", key=head.key)
        assert not any(other.done() for other in others)
        for _ in others:
            assert held is not None
            post(address, "end-turn", turn=held)
            done, rest = wait_for(others, timeout=LIMIT_S, return_when="FIRST_COMPLETED")
            (given,) = done
            held, others = given.result(), list(rest)


def test_remote_deleters_all_get_through(server: Running, catalog: Catalog) -> None:
    deleters = 40
    table = catalog.create_table(
        "shop.orders",
        SCHEMA,
        properties={
            "commit.retry.num-retries": "1000",
            "write.delete.isolation-level": "snapshot",
        },
    )
    table.append(pa.table({"id": list(range(deleters + 1))}))

    def delete(number: int) -> int:
        with frazil.connect(server.uri) as remote:
            return remote["shop.orders"].delete(f"id = {number}").attempts

    with ThreadPoolExecutor(deleters) as pool:
        attempts = list(pool.map(delete, range(deleters), timeout=LIMIT_S))
    assert table.refresh().scan().to_pylist() == [{"id": deleters}]
    # One that lost its first race waits for its turn, in which no other comes before it.
    assert sum(attempts) <= 3 * deleters, attempts


def test_a_client_that_takes_many_turns_and_uses_none_delays_others_by_few(
    address: str, head: SqlHead, server: Running
) -> None:
    with ThreadPoolExecutor(40) as pool:
        hoarded = [pool.submit(take, address, head, "hoarder") for _ in range(40)]
        wait_for(hoarded, timeout=LIMIT_S, return_when="FIRST_COMPLETED")
        given = sum(other.done() for other in hoarded)
        honest = take(address, head, "honest")
        later = sum(other.done() for other in hoarded)
        assert honest is not None
        assert later - given <= 1, "others of the hoarder came first"
        post(address, "end-turn", turn=honest)
        turns = [other.result(LIMIT_S) for other in hoarded]
    assert sum(turn is not None for turn in turns) <= MAX_TURN_EXPIRIES


def test_a_client_that_leaves_while_it_waits_gives_its_place_up(
    catalog: Catalog, head: SqlHead
) -> None:
    service = Service(catalog)
    tables_of(service).turns = TurnKeeper(first_s=LIMIT_S, max_s=LIMIT_S)
    with Running(build(service)) as server:
        address = f"{server.uri}/v1/frazil"
        held = take(address, head, "holder")
        with pytest.raises(TimeoutError):
            post(address, "take-turn", 0.5, key=head.key, writer="left")
        assert held is not None
        post(address, "end-turn", turn=held)
        assert take(address, head, "next") is not None


def test_work_that_comes_as_the_turn_ends_is_done_or_refused(head: SqlHead) -> None:
    """Neither is an answer that never comes."""
    keeper = TurnKeeper(first_s=0.002, max_s=0.002, rest_s=0)
    ends: list[str] = []

    def use(turn_id: str) -> None:
        while True:
            try:
                keeper.within(turn_id, lambda: None)
            except NotFound:
                ends.append(turn_id)
                return

    for number in range(200):
        turn_id = keeper.take(head, f"w{number}").granted.result(LIMIT_S)
        assert turn_id is not None
        users = [threading.Thread(target=use, args=(turn_id,)) for _ in range(3)]
        for user in users:
            user.start()
        for user in users:
            user.join(LIMIT_S)
            assert not user.is_alive(), "it waits for ever"
    assert len(ends) == 600


def test_turns_are_limited_by_owner_and_altogether(head: SqlHead) -> None:
    keeper = TurnKeeper(max_turns=5, max_per_owner=3)
    mine = [keeper.take(head, "me") for _ in range(3)]
    with pytest.raises(Overloaded) as own:
        keeper.take(head, "me")
    assert own.value.is_own
    others = [keeper.take(head, "you") for _ in range(2)]
    with pytest.raises(Overloaded) as full:
        keeper.take(head, "them")
    assert not full.value.is_own
    for turn in (*mine, *others):
        turn.end()
    assert keeper.take(head, "me").granted.result(LIMIT_S) is not None


def test_owners_take_turns_in_rotation(head: SqlHead) -> None:
    keeper = TurnKeeper(first_s=LIMIT_S, max_s=LIMIT_S)
    first = keeper.take(head, "a")
    first.granted.result(LIMIT_S)
    turns = [keeper.take(head, owner) for owner in "aaabc"]
    order: queue.SimpleQueue[Turn] = queue.SimpleQueue()
    for turn in turns:
        turn.granted.add_done_callback(lambda _, turn=turn: order.put(turn))  # type: ignore[misc]
    first.end()
    owners = ""
    for _ in turns:
        held = order.get(timeout=LIMIT_S)
        owners += held.owner
        held.end()
    assert owners == "abcaa"


def test_with_tokens_a_turn_is_its_owners(catalog: Catalog, head: SqlHead) -> None:
    keeper = TurnKeeper()
    turn_id = keeper.take(head, "etl").granted.result(LIMIT_S)
    assert turn_id is not None
    keeper.end(turn_id, owner="somebody")
    with pytest.raises(NotFound):
        keeper.within(turn_id, lambda: 1, owner="somebody")
    assert keeper.within(turn_id, lambda: 1, owner="etl") == 1
    keeper.end(turn_id, owner="etl")


def test_turns_last_as_long_as_those_need_who_use_them(head: SqlHead) -> None:
    """One that takes turns and does nothing makes none longer: others wait for it but shortly."""
    keeper = TurnKeeper(first_s=0.01, max_s=LIMIT_S)

    def lapsed(owner: str) -> str:
        turn = keeper.take(head, owner)
        turn_id = turn.granted.result(LIMIT_S)
        assert turn_id is not None
        following = keeper.take(head, "next")
        following.granted.result(LIMIT_S)  # the other one is over, and forgotten
        following.end()
        return turn_id

    for _ in range(2):
        lapsed("hoarder")
    assert keeper.turn_s < 1.0
    late = lapsed("slow")
    with pytest.raises(NotFound):
        keeper.within(late, lambda: 1, owner="somebody")
    assert keeper.turn_s < 1.0
    time.sleep(0.3)
    with pytest.raises(NotFound):
        keeper.within(late, lambda: 1, owner="slow")
    assert keeper.turn_s > 1.0
    assert keeper.take(head, "slow").granted.result(LIMIT_S) is not None, "no turn was wasted"

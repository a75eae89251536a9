"""What the server does when it is asked for too much: it says so, and serves the others."""

from __future__ import annotations

import gc
import json
import socket
import struct
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

import frazil
from frazil.cancellation import Cancellation, Cancelled, check, under
from frazil.errors import Overloaded
from frazil.legacy.publish.publish_manifests import ManifestPublisher
from frazil.serve import exchange, limits
from frazil.serve.access.admission import Bodies, Lane
from frazil.serve.access.connections import Connections, _Writable, bounded
from frazil.serve.access.principals import Principal, Rule
from frazil.serve.app import build
from frazil.serve.exchange import Request, Response
from frazil.serve.explorer import display_values
from frazil.serve.native.group import Groups
from frazil.serve.running import Running
from frazil.serve.service import Service
from frazil.serve.settings import Settings
from frazil.table import Catalog
from tests.serve.test_namespaces_and_tables import error_of

LIMIT_S = 60.0
PLAN = "/v1/namespaces/shop/tables/orders/plan"
ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture
def shop(catalog: Catalog) -> Catalog:
    catalog.create_namespace("shop")
    catalog.create_table("shop.orders", ROWS.schema).append(ROWS)
    return catalog


def until(happened: Callable[[], object]) -> None:
    end = time.monotonic() + LIMIT_S
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


class Holding:
    """Work that goes on until it is let go, or cancelled."""

    def __init__(self) -> None:
        self.began = threading.Semaphore(0)
        self.go_on = threading.Event()
        self.cancelled = threading.Event()

    def __call__(self, service: Service, call: Request) -> Response:
        self.began.release()
        while not self.go_on.wait(0.01):
            try:
                check()
            except Cancelled:
                self.cancelled.set()
                raise
        return Response(body={})


@pytest.fixture
def holding(monkeypatch: pytest.MonkeyPatch) -> Iterator[Holding]:
    """Plans that take as long as the test wants."""
    held = Holding()
    monkeypatch.setattr(
        "frazil.serve.rest.plans._planned", lambda service, call, *_: held(service, call)
    )
    yield held
    held.go_on.set()


# Filters and bodies that would cost too much


def test_a_filter_of_very_many_values_is_refused(shop: Catalog) -> None:
    client = TestClient(build(Service(shop)), base_url="http://127.0.0.1:8181")
    many = list(range(limits.MAX_FILTER_PARTS + 1))
    answer = client.post(PLAN, json={"filter": {"type": "in", "term": "id", "values": many}})
    assert error_of(answer) == (400, "BadRequestException")
    fine = {"type": "in", "term": "id", "values": many[:-3]}
    assert client.post(PLAN, json={"filter": fine}).status_code == 200
    assert client.post(PLAN, json={"filter": {"type": "not", "child": fine}}).status_code == 200


def test_a_filter_of_very_many_conditions_is_refused(shop: Catalog) -> None:
    client = TestClient(build(Service(shop)), base_url="http://127.0.0.1:8181")
    tree: Any = {"type": "not-null", "term": "id"}
    for _ in range(13):
        tree = {"type": "or", "left": tree, "right": tree}
    assert error_of(client.post(PLAN, json={"filter": tree})) == (400, "BadRequestException")


@pytest.mark.parametrize(
    ("method", "path", "key"),
    [
        ("POST", PLAN, "filter"),
        ("POST", "/v1/namespaces/shop/tables", "schema"),
        ("POST", "/v1/namespaces/shop/tables/orders", "updates"),
        ("POST", "/v1/namespaces/shop/tables/orders/metrics", "x"),
        ("POST", "/v1/frazil/create-view", "metadata"),
        ("POST", "/v1/namespaces", "properties"),
    ],
)
@pytest.mark.parametrize("depth", [700, 5_000, 100_000])
def test_deep_json_is_a_bad_request(
    method: str, path: str, key: str, depth: int, shop: Catalog
) -> None:
    client = TestClient(build(Service(shop)), base_url="http://127.0.0.1:8181")
    for opened, closed in (("[", "]"), ('{"a":', "}")):
        inner = opened * depth + "1" + closed * depth
        body = f'{{"name": "deep", "{key}": {inner}}}'
        assert error_of(client.request(method, path, content=body))[0] == 400


def test_brackets_in_texts_are_not_depth(shop: Catalog) -> None:
    client = TestClient(build(Service(shop)), base_url="http://127.0.0.1:8181")
    text = "[" * 300 + '"' + "{" * 300
    body = json.dumps({"namespace": ["deep"], "properties": {"note": text}})
    assert client.post("/v1/namespaces", content=body).status_code == 200
    assert shop._pointers.namespaces.properties(("deep",)) == {"note": text}


def test_a_question_has_a_smaller_limit_than_a_commit(shop: Catalog) -> None:
    client = TestClient(build(Service(shop)), base_url="http://127.0.0.1:8181")
    long = json.dumps({"filter": "x" * limits.MAX_QUESTION_BYTES})
    assert error_of(client.post(PLAN, content=long)) == (413, "RequestTooLargeException")
    commit = b'{"requirements": [], "updates": []}' + b" " * limits.MAX_QUESTION_BYTES
    answer = client.post("/v1/namespaces/shop/tables/orders", content=commit)
    assert answer.status_code == 200


# Places


def test_a_full_server_says_when_to_come_again(shop: Catalog, holding: Holding) -> None:
    service = Service(shop, Settings(max_queries=2))
    service.queries = Lane("query", threads=2, max_waiting=3)
    with (
        TestClient(build(service), base_url="http://127.0.0.1:8181") as client,
        ThreadPoolExecutor(8) as pool,
    ):
        asked = [pool.submit(client.post, PLAN, json={}) for _ in range(5)]
        until(lambda: service.queries.busy == 5)
        refused = client.post(PLAN, json={})
        assert error_of(refused) == (503, "ServiceUnavailableException")
        assert int(refused.headers["Retry-After"]) > 0
        # What is no query is served as ever.
        assert client.get("/v1/namespaces/shop/tables/orders").status_code == 200
        holding.go_on.set()
        assert [each.result(LIMIT_S).status_code for each in asked] == [200] * 5
        assert client.post(PLAN, json={}).status_code == 200


def test_a_principal_has_a_limit_of_its_own(shop: Catalog, holding: Holding) -> None:
    class Tokens:
        def principal(self, token: str) -> Principal:
            return Principal(name=token, rules=(Rule.parse("write:*"),))

    service = Service(shop, Settings(max_queries_per_principal=2), Tokens())
    with (
        TestClient(build(service), base_url="http://127.0.0.1:8181") as client,
        ThreadPoolExecutor(8) as pool,
    ):

        def plan(name: str) -> Any:
            return client.post(PLAN, json={}, headers={"Authorization": f"Bearer {name}"})

        asked = [pool.submit(plan, "greedy") for _ in range(2)]
        until(lambda: service.queries.busy == 2)
        refused = plan("greedy")
        assert error_of(refused) == (429, "TooManyRequestsException")
        assert int(refused.headers["Retry-After"]) > 0
        other = pool.submit(plan, "modest")
        holding.go_on.set()
        assert other.result(LIMIT_S).status_code == 200
        assert [each.result(LIMIT_S).status_code for each in asked] == [200, 200]


def test_too_many_appends_are_told_to_wait(shop: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a client that waits gets its append in."""
    with Running(build(Service(shop))) as server, frazil.connect(server.uri) as remote:
        table = remote["shop.orders"]
        append, refusals = Groups.append, iter(range(3))

        def busy(*arguments: Any) -> Any:
            if next(refusals, None) is not None:
                raise Overloaded("too many queued appends")
            return append(*arguments)

        monkeypatch.setattr(Groups, "append", busy)
        table.append(ROWS)
        assert table.scan().count() == 6


def test_bodies_share_a_bound() -> None:
    bodies = Bodies(100)
    bodies.take(60)
    with pytest.raises(Exception, match="too many large"):
        bodies.take(41)
    bodies.take(40)
    bodies.give_back(100)
    assert bodies.held == 0


def test_bodies_are_given_back(shop: Catalog) -> None:
    service = Service(shop, Settings(max_request_bytes=1_000))
    client = TestClient(build(service), base_url="http://127.0.0.1:8181")
    for path, body in (
        ("/v1/namespaces", b'{"namespace": ["a"]}'),
        ("/v1/namespaces", b" " * 2_000),
        ("/v1/namespaces", b"{"),
        ("/v1/nowhere", b"{}"),
        ("/v1/frazil/append", b"x" * 900),
        ("/v1/frazil/append", b"x" * 2_000),
    ):
        client.post(path, content=body)
    until(lambda: service.bodies.held == 0 and service.quick.busy == 0)


def test_an_unknown_sender_sends_no_body(shop: Catalog) -> None:
    """The answer comes before the body is read."""

    class Nobody:
        def principal(self, token: str) -> None:
            return None

    service = Service(shop, access=Nobody())
    with Running(build(service)) as server, connected(server) as connection:
        connection.sendall(
            b"POST /v1/namespaces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 60000000\r\n\r\n{"
        )
        assert connection.recv(4_096).startswith(b"HTTP/1.1 401 ")
        assert service.bodies.held == 0


# Connections


def connected(server: Running) -> socket.socket:
    parts = urlsplit(server.uri)
    assert parts.hostname is not None
    return socket.create_connection((parts.hostname, parts.port or 0), timeout=LIMIT_S)


def is_closed(connection: socket.socket) -> bool:
    """Whether the server closes the connection; waits for it."""
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    return True


WATCHED: list[Connections] = []
"""The connections of the server that was started last."""


@pytest.fixture
def impatient(shop: Catalog, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """A server with small limits on connections."""

    def small(max_connections: int) -> Any:
        protocol: Any = bounded(
            max_connections, max_header_s=0.5, max_unread_s=0.5, max_unread_bytes=4 << 20
        )
        WATCHED[:] = [protocol.watched]
        return protocol

    monkeypatch.setattr("frazil.serve.running.bounded", small)
    with Running(build(Service(shop)), max_connections=8) as server:
        yield server


@pytest.mark.parametrize("said", [b"", b"GET /v1/config HTTP/1.1\r\nHost:"])
def test_headers_that_do_not_arrive_end_the_connection(impatient: Running, said: bytes) -> None:
    with connected(impatient) as connection:
        connection.sendall(said)
        assert is_closed(connection)


def test_the_connection_that_wastes_most_time_makes_room(impatient: Running) -> None:
    idle = [connected(impatient) for _ in range(12)]
    with connected(impatient) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 200 ")
    assert all(is_closed(each) for each in idle)
    for each in idle:
        each.close()


def test_a_client_that_does_not_read_is_cut_off(impatient: Running, shop: Catalog) -> None:
    table = shop["shop.orders"]
    table.set_properties({f"note.{number}": "x" * 5_000 for number in range(2_000)})
    with connected(impatient) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.sendall(
            b"GET /v1/namespaces/shop/tables/orders HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 3
        )
        until(lambda: WATCHED[0].all)
        until(lambda: not WATCHED[0].all)  # before the client has read anything
        assert is_closed(connection)


# Work that nobody waits for


def test_a_plan_that_nobody_waits_for_is_cancelled(shop: Catalog, holding: Holding) -> None:
    service = Service(shop)
    with Running(build(service)) as server:
        with connected(server) as connection:
            connection.sendall(
                f"POST {PLAN} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{{}}".encode()
            )
            assert holding.began.acquire(timeout=LIMIT_S)
        assert holding.cancelled.wait(LIMIT_S)
        until(lambda: service.queries.busy == 0)


def test_a_query_that_takes_too_long_is_cancelled(shop: Catalog, holding: Holding) -> None:
    client = TestClient(
        build(Service(shop, Settings(query_timeout_s=0.1))), base_url="http://127.0.0.1:8181"
    )
    assert error_of(client.post(PLAN, json={})) == (504, "GatewayTimeoutException")
    assert holding.cancelled.wait(LIMIT_S)


def test_a_statement_that_nobody_waits_for_is_interrupted(shop: Catalog) -> None:
    service = Service(shop)
    sql = "select count(*) from range(100000000000) a, range(1000000000) b"
    body = json.dumps({"sql": sql}).encode()
    with Running(build(service)) as server:
        with connected(server) as connection:
            token = service.guard.session_token(None)
            connection.sendall(
                b"POST /explorer/api/sql HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                b"Content-Type: application/json\r\n"
                + f"X-Frazil-Session: {token}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            until(lambda: service.statements.busy == 1)
            time.sleep(0.5)
        until(lambda: service.statements.busy == 0)


def test_a_scan_stops_at_its_next_file(shop: Catalog) -> None:
    table = shop["shop.orders"]
    for _ in range(4):
        table.append(ROWS)
    cancellation = Cancellation()
    with under(cancellation):
        batches = iter(table.scan().to_batches())
        next(batches)
        cancellation.cancel()
        with pytest.raises(Cancelled):
            list(shop["shop.orders"].scan().to_batches())


def test_a_cancellation_calls_back_once() -> None:
    called: list[str] = []
    cancellation = Cancellation()
    with cancellation.calling(lambda: called.append("inside")):
        pass
    cancellation.on_cancel(lambda: called.append("kept"))
    cancellation.cancel()
    cancellation.cancel()
    cancellation.on_cancel(lambda: called.append("late"))
    assert called == ["kept", "late"]


# Publication


def test_what_many_load_at_once_is_published_once(
    shop: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And those that wait for it hold no thread."""
    service = Service(shop)
    clients, published = 2 * limits.QUICK_THREADS, []
    go_on = threading.Event()
    rows = ManifestPublisher.rows

    def slow(publisher: ManifestPublisher) -> Any:
        published.append(publisher)
        assert go_on.wait(LIMIT_S)
        return rows(publisher)

    monkeypatch.setattr(ManifestPublisher, "rows", slow)
    with (
        TestClient(build(service), base_url="http://127.0.0.1:8181") as client,
        ThreadPoolExecutor(clients) as pool,
    ):
        load = "/v1/namespaces/shop/tables/orders"
        asked = [pool.submit(client.get, load) for _ in range(clients)]
        until(lambda: service.quick.busy == 1 and published)
        assert client.get("/v1/namespaces").status_code == 200
        go_on.set()
        answers = [each.result(LIMIT_S) for each in asked]
    assert [answer.status_code for answer in answers] == [200] * clients
    assert len({answer.json()["metadata-location"] for answer in answers}) == 1
    assert len(published) == 1


def test_a_body_of_very_many_values_is_refused(shop: Catalog) -> None:
    """They take twenty times their bytes once they are read."""
    client = TestClient(build(Service(shop)), base_url="http://127.0.0.1:8181")
    many = ",".join(['"a"'] * (limits.MAX_JSON_VALUES + 1))
    for path, body in (
        ("/v1/namespaces/shop/tables/orders", f'{{"requirements": [], "updates": [{many}]}}'),
        ("/v1/namespaces/shop/register", f'{{"name": "x", "more": [{many}]}}'),
    ):
        answer = client.post(path, content=body)
        assert error_of(answer) == (400, "BadRequestException")
        assert "values" in answer.json()["error"]["message"]
    commas = {"note": "," * (limits.MAX_JSON_VALUES + 1)}
    assert exchange.decoded(json.dumps(commas).encode(), dict) == commas


@pytest.mark.parametrize("requests", [1, 3])
def test_a_client_that_is_gone_is_no_error(
    requests: int, shop: Catalog, holding: Holding, caplog: pytest.LogCaptureFixture
) -> None:
    """Whichever of its requests was being answered."""
    service = Service(shop)
    plan = f"POST {PLAN} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{{}}".encode()
    with Running(build(service)) as server:
        with connected(server) as connection:
            connection.sendall(plan * requests)
            assert holding.began.acquire(timeout=LIMIT_S)
            reset = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        assert holding.cancelled.wait(LIMIT_S)
        until(lambda: service.queries.busy == 0)
    assert not [record.getMessage() for record in caplog.records]


def test_closed_transports_take_nothing() -> None:
    """uvloop raises between the end of a connection and the word of it."""

    class Closed:
        def is_closing(self) -> bool:
            return True

        def write(self, data: bytes) -> None:
            raise RuntimeError("the handler is closed")

    _Writable(Closed()).write(b"an answer")


def test_long_values_are_shown_in_part_and_read_in_part() -> None:
    """What a page shows of a list of a million numbers is not a million objects of Python."""
    numbers = pa.array([list(range(500_000))] * 2 + [None, [1, None]])
    texts = pa.array(["x" * 2_000_000, None, "short", "y" * 300])
    table = pa.table(
        {
            "list": numbers,
            "text": texts,
            "struct": pa.StructArray.from_arrays([numbers, texts], ["a", "b"]),
            "map": pa.array([[(str(n), n) for n in range(300)]] * 4, pa.map_("string", "int64")),
            "bytes": texts.cast("binary"),
        }
    )
    expected = [
        [display_values.text(value) for value in table.column(at).to_pylist()] for at in range(3)
    ]
    gc.collect()
    tracemalloc.start()
    shown = [display_values.texts(table.column(at)) for at in range(3)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert shown == expected
    assert peak < 8 << 20, peak
    assert display_values.texts(table["bytes"])[2] == b"short".hex()

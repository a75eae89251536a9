"""`frazil.connect("http://…")`: a whole catalog through the server, and answers that are lost."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil import serve
from frazil.catalog.remote.remote_catalog import RemoteCatalog
from frazil.catalog.remote.remote_http import Refused, Requests, Unanswered
from frazil.catalog.sql.sql_head import SqlHead
from frazil.cli import command_line
from frazil.cli.command_line import main
from frazil.commit.head import Landed, Lost, Unknown
from frazil.errors import CatalogError, CommitConflict, InvalidInput, NotFound
from frazil.serve.access.principals import Principal, Rule, TokenFile
from frazil.serve.running import Running
from frazil.serve.settings import Settings
from frazil.table import Catalog
from tests.support.catalogs import append, orders

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


def rows(*ids: int) -> list[dict[str, Any]]:
    return [{"id": each, "name": f"n{each}"} for each in ids]


def ids(catalog: Catalog) -> list[int]:
    return sorted(catalog["shop.orders"].scan().to_arrow()["id"].to_pylist())


def test_a_table_is_used_through_the_server_as_it_is_without(
    remote: Catalog, catalog: Catalog
) -> None:
    table = remote.create_table("shop.orders", SCHEMA)
    table.append(rows(1, 2, 3))
    table.tag("first")
    table.delete("id = 2")
    table.update({"name": "new"}, "id = 3")
    table.upsert(rows(3, 4), on="id")
    with table.evolve_schema() as change:
        change.add_column("price", "double")
    table.branch("audit", create=True).append(rows(9))
    assert ids(catalog) == [1, 3, 4]
    assert sorted(table.scan(as_of="first").to_arrow()["id"].to_pylist()) == [1, 2, 3]
    assert catalog["shop.orders"].branch("audit").scan().count() == 4
    assert remote.sql("SELECT count(*) FROM shop.orders").to_arrow().column(0).to_pylist() == [3]
    table.expire_snapshots(older_than="0 seconds", keep_last=1)
    assert len(catalog["shop.orders"].snapshots()) == 3  # both tips and the tag
    assert not table.check(deep=True).problems
    assert ids(catalog) == [1, 3, 4]
    remote.rename_table("shop.orders", "shop.sales")
    table.append(rows(7))  # its head follows the table
    assert catalog["shop.sales"].scan().count() == 4
    remote.drop_table("shop.sales", purge=True)
    assert catalog.list_tables() == []


def test_several_tables_change_together_through_the_server(
    remote: Catalog, catalog: Catalog
) -> None:
    remote.create_table("shop.orders", SCHEMA)
    remote.create_table("shop.sales", SCHEMA)
    session = remote.session()
    for text in (
        "BEGIN",
        "INSERT INTO shop.orders VALUES (1, 'a')",
        "INSERT INTO shop.sales VALUES (2, 'b')",
    ):
        session.sql(text)
    assert catalog["shop.orders"].scan().count() == 0
    session.sql("COMMIT")
    session.close()
    assert ids(catalog) == [1]
    assert catalog["shop.sales"].scan().count() == 1


def test_a_conflict_is_told_with_its_reasons(remote: Catalog, catalog: Catalog) -> None:
    remote.create_table("shop.orders", SCHEMA).append(rows(1, 2))
    tx = remote["shop.orders"].transaction()
    tx.delete("id = 1")
    catalog["shop.orders"].append(rows(1))
    with pytest.raises(CommitConflict) as refused:
        tx.commit()
    assert refused.value.conflicts


def test_a_turn_is_held_for_the_client(remote: Catalog, catalog: Catalog) -> None:
    remote.create_table("shop.orders", SCHEMA)
    mine = remote._pointers.load("shop.orders")
    other = catalog._pointers.load("shop.orders")
    with mine.turn():  # type: ignore[attr-defined]
        base = other.load()
        assert isinstance(other.swap(base, append(base, 1)), Lost)
        base = mine.load()
        assert isinstance(mine.swap(base, append(base, 2)), Landed)
    base = other.load()
    assert isinstance(other.swap(base, append(base, 3)), Landed)


def test_the_command_line_takes_the_address(
    server: Running, remote: Catalog, capfd: pytest.CaptureFixture[str]
) -> None:
    remote.create_table("shop.orders", SCHEMA).append(rows(1))
    command_line.load_commands()
    assert main(["tables", "--catalog", server.uri]) == 0
    assert "shop.orders" in capfd.readouterr().out


def test_a_pickled_catalog_opens_elsewhere(server: Running, remote: Catalog) -> None:
    remote.create_table("shop.orders", SCHEMA).append(rows(1))
    again = pickle.loads(pickle.dumps(remote._pointers))
    assert again.load("shop.orders").state == remote._pointers.load("shop.orders").state
    table = pickle.loads(pickle.dumps(remote._pointers.load("shop.orders")))
    assert table.load().tip() is not None
    assert dict(remote._origin or {}) == {"uri": server.uri, "name": "default"}


# Access


@pytest.fixture
def guarded(catalog: Catalog) -> Iterator[Running]:
    catalog.create_table("shop.orders", SCHEMA).append(rows(1))
    catalog.create_table("till.sales", SCHEMA)
    known = {
        _hash("hunter2"): Principal(name="etl", rules=(Rule(namespace=("shop",), right="write"),)),
        _hash("peek"): Principal(name="eye", rules=(Rule(namespace=("shop",), right="read"),)),
    }
    with serve.start(catalog, access=TokenFile(known)) as running:
        yield running


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def test_a_token_opens_what_it_may(guarded: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FRAZIL_TOKEN", raising=False)
    with pytest.raises(Refused, match="FRAZIL_TOKEN"):
        frazil.connect(guarded.uri)
    etl = frazil.connect(guarded.uri, token="hunter2")
    etl["shop.orders"].append(rows(2))
    assert etl.list_namespaces() == ["shop"]
    for forbidden in (
        lambda: etl["till.sales"],
        lambda: etl.create_namespace("other"),
        lambda: etl.rename_table("shop.orders", "till.orders"),
    ):
        with pytest.raises(Refused, match="may not"):
            forbidden()
    monkeypatch.setenv("FRAZIL_TOKEN", "peek")
    eye = frazil.connect(guarded.uri)
    assert eye["shop.orders"].scan().count() == 2
    with pytest.raises(Refused, match="may not write"):
        eye["shop.orders"].append(rows(3))
    with pytest.raises(Refused, match="may not write"):
        eye["shop.orders"].delete("true")
    assert eye["shop.orders"].scan().count() == 2


def test_a_key_of_a_table_is_no_way_round_the_rules(guarded: Running, catalog: Catalog) -> None:
    secret = catalog._pointers.load("till.sales")
    assert isinstance(secret, SqlHead)
    requests = Requests(guarded.uri, token="hunter2")
    for operation in ("load-head", "history", "export", "take-turn"):
        with pytest.raises(Refused, match="may not"):
            requests.read(operation, {"key": secret.key})


def test_the_token_is_nowhere_to_be_seen(guarded: Running) -> None:
    etl = frazil.connect(guarded.uri, token="hunter2")
    head = etl._pointers.load("shop.orders")
    shown = [repr(each) for each in (etl, etl._pointers, head, etl._pointers._requests)]  # type: ignore[attr-defined]
    assert not any("hunter2" in text for text in (*shown, str(etl._origin)))
    requests = etl._pointers._requests  # type: ignore[attr-defined]
    assert b"hunter2" not in pickle.dumps(requests)


def test_a_token_is_for_a_server_and_an_address_holds_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="token is for a server"):
        frazil.connect(tmp_path, token="hunter2")
    with pytest.raises(InvalidInput) as refused:
        frazil.connect("http://me:hunter2@127.0.0.1:1")
    assert "hunter2" not in str(refused.value)


def test_a_draft_does_not_lead_out_of_the_warehouse(
    remote: Catalog, catalog: Catalog, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    pointers = remote._pointers
    remote.create_namespace("shop")
    with pytest.raises(Refused, match="outside"):
        pointers.create_table("shop.orders", orders(str(outside)))
    with pytest.raises(Refused, match="outside"):
        pointers.register("shop.orders", f"{outside}/x.metadata.json")
    with pytest.raises(Refused, match="outside"):
        remote.create_namespace("far", {"location": str(outside)})
    table = remote.create_table("shop.orders", SCHEMA)
    with pytest.raises(Refused, match="outside"):
        table.set_properties({"write.data.path": str(outside)})
    with pytest.raises(Refused, match="outside"):
        table.set_properties({"frazil.added-files.path": f'["{outside}"]'})
    assert not outside.exists()


def test_a_read_only_server_refuses_every_change(catalog: Catalog) -> None:
    catalog.create_table("shop.orders", SCHEMA)
    settings = Settings(is_read_only=True)
    with serve.start(catalog, settings=settings) as server, pytest.raises(Refused, match="only"):
        frazil.connect(server.uri)["shop.orders"].append(rows(1))


def test_bodies_are_read_strictly(server: Running, catalog: Catalog) -> None:
    def posted(operation: str, body: bytes) -> int:
        request = urllib.request.Request(f"{server.uri}/v1/frazil/{operation}", data=body)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=30)
        return refused.value.code

    assert posted("load-table", b'{"name": ["a", "b"], "more": 1}') == 400
    assert posted("load-table", b'{"name": "a.b"}') == 400
    assert posted("load-table", b"\xff") == 400
    assert posted("load-table", json.dumps({"name": ["a", "b"]}).encode()) == 404
    assert posted("load-head", b'{"key": "1 OR 1=1"}') == 404
    assert posted("append", b"\x00\x00\xff\xff{}") == 400
    assert posted("append", b"") == 400


def test_an_address_without_a_server_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        uri = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(CatalogError, match="Is frazil serve running"):
        frazil.connect(uri)


# Answers that are lost


class Cut:
    """Cuts the connection after the server has carried a request out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, operation: str, times: int = 1) -> None:
        answer = Requests._answer
        self.left = times

        def cut(requests: Requests, method: str, path: str, *rest: Any) -> Any:
            done = answer(requests, method, path, *rest)
            if path.endswith(f"/{operation}") and self.left:
                self.left -= 1
                raise Unanswered("the connection was cut")
            return done

        monkeypatch.setattr(Requests, "_answer", cut)


def test_a_lost_answer_to_an_append_lands_it_once(
    remote: Catalog, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = remote.create_table("shop.orders", SCHEMA)
    Cut(monkeypatch, "append", times=2)
    table.append(rows(1))
    assert ids(catalog) == [1]
    assert len(table.snapshots()) == 1


@pytest.mark.parametrize("kept", [0, 1, 100], ids=["headers", "a byte", "a part"])
def test_an_answer_that_is_cut_short_is_lost(kept: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                body = b'{"state": ' + b" " * 200 + b"null}"
                head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                connection.sendall(head + body[:kept])

        thread = threading.Thread(target=answer)
        thread.start()
        requests = Requests(f"http://127.0.0.1:{listening.getsockname()[1]}")
        with pytest.raises(Unanswered, match="did not answer"):
            requests.once("load-head", b"{}")
        thread.join(10)


def test_a_lost_answer_to_a_swap_is_resolved_by_its_snapshot(
    remote: Catalog, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = remote.create_table("shop.orders", SCHEMA)
    table.append(rows(1, 2))
    head = remote._pointers.load("shop.orders")
    cut = Cut(monkeypatch, "swap")
    table.delete("id = 1")
    assert cut.left == 0
    assert ids(catalog) == [2]
    assert len(table.snapshots()) == 2
    cut.left = 1
    base = head.load()
    assert isinstance(head.swap(base, append(base, 5)), Unknown)
    assert head.landed(5) is not None
    assert head.landed(6) is None
    # The same request once more, as a proxy might send it, is answered as the first was.
    assert isinstance(head.swap(base, append(base, 5)), Landed)


@pytest.mark.parametrize("operation", ["create-table", "create-namespace", "drop", "rename"])
def test_a_lost_answer_to_a_change_of_names_is_asked_for_again(
    remote: Catalog, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    cut = Cut(monkeypatch, operation)
    table = remote.create_table("shop.orders", SCHEMA)
    table.append(rows(1))
    remote.rename_table("shop.orders", "shop.sales")
    assert catalog["shop.sales"].scan().count() == 1
    remote.drop_table("shop.sales")
    assert catalog.list_tables() == []
    assert cut.left == 0


_SERVER = """
import os, signal, sys
import frazil
from frazil import serve
from frazil.catalog.sql.sql_head import SqlHead

swap = SqlHead.swap
def dying(head, base, draft):
    outcome = swap(head, base, draft)
    if os.path.exists(sys.argv[3]):
        os.remove(sys.argv[3])
        os.kill(os.getpid(), signal.SIGKILL)
    return outcome
SqlHead.swap = dying
catalog = frazil.connect(sys.argv[1])
serve.run(catalog, port=int(sys.argv[2]), ready=lambda uri: print(uri, flush=True))
"""


def test_a_server_that_is_killed_between_swap_and_answer_loses_and_doubles_nothing(
    catalog: Catalog, tmp_path: Path
) -> None:
    catalog.create_table("shop.orders", SCHEMA)
    trap = tmp_path / "trap"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def started() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", _SERVER, str(tmp_path / "warehouse"), str(port), str(trap)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://")
        return process

    process = started()
    try:
        table = frazil.connect(f"http://127.0.0.1:{port}")["shop.orders"]
        table.append(rows(1))
        trap.touch()
        landed: list[Any] = []
        thread = threading.Thread(target=lambda: landed.append(table.append(rows(2))))
        thread.start()
        assert process.wait(60) == -signal.SIGKILL
        process = started()
        thread.join(90)
        assert len(landed) == 1
        assert landed[0].snapshot_id == catalog["shop.orders"].snapshots()[-1].snapshot_id
        assert ids(catalog) == [1, 2]
        table.append(rows(3))
        assert ids(catalog) == [1, 2, 3]
        assert not catalog["shop.orders"].check(deep=True).problems
    finally:
        process.kill()
        process.wait()


def test_a_table_that_is_gone_is_not_found(remote: Catalog, catalog: Catalog) -> None:
    table = remote.create_table("shop.orders", SCHEMA)
    catalog.drop_table("shop.orders")
    with pytest.raises(NotFound):
        table.append(rows(1))
    with pytest.raises(NotFound):
        table.refresh()
    assert isinstance(remote._pointers, RemoteCatalog)

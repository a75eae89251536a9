"""What strangers learn and keep from working: names of others, pages of other sites, views that are
none, a provider of keys that is away, folders that others could have prepared."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from joserfc.jwk import KeySet
from starlette.testclient import TestClient

import frazil
from frazil import serve
from frazil.serve.access.principals import Principal, Rule, TokenFile, WebTokens
from frazil.serve.app import build, endpoints
from frazil.serve.explorer import endpoints as explorer
from frazil.serve.service import Service
from frazil.serve.settings import Settings
from frazil.table import Catalog
from tests.serve.test_access import KEY, signed
from tests.serve.test_views import version

HERE = "http://127.0.0.1:8181"
API = "/explorer/api"
SCHEMA = pa.schema({"id": pa.int64()})

# Names that were made to resolve to this machine


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8181", "127.0.0.1.evil.example", ""]
)
def test_a_server_without_tokens_answers_under_no_strange_name(catalog: Catalog, host: str) -> None:
    catalog.create_table("shop.orders", SCHEMA)
    client = TestClient(build(Service(catalog, Settings(shows_v4=True))), base_url=HERE)
    filled = {"namespace": "shop", "table": "orders", "view": "v", "plan-id": "p", "action": "x"}
    for endpoint in (*endpoints(), *explorer.ENDPOINTS):
        path = endpoint.template.replace("{prefix}/", "")
        for name, value in filled.items():
            path = path.replace(f"{{{name}}}", value)
        answer = client.request(endpoint.method, path, headers={"Host": host})
        assert answer.status_code == 403, (endpoint.method, path)
        assert "orders" not in answer.text


def test_names_that_a_server_has_are_its_own(catalog: Catalog) -> None:
    settings = Settings(names=("Lake.example",))
    client = TestClient(build(Service(catalog, settings)), base_url=HERE)
    for host, status in (
        ("lake.example:8181", 200),
        ("localhost", 200),
        ("[::1]:8181", 200),
        ("10.0.0.7", 200),
        ("other.example", 403),
    ):
        answer = client.get("/v1/namespaces", headers={"Host": host})
        assert answer.status_code == status, host
    with serve.start(catalog, host="localhost") as server, frazil.connect(server.uri) as remote:
        remote.create_table("shop.orders", SCHEMA).append([{"id": 1}])
        assert remote["shop.orders"].scan().count() == 1


# Names of others


@pytest.fixture
def shared(catalog: Catalog) -> TestClient:
    """Owners of one namespace each, and one who reads a namespace inside another."""
    rules = {"shop": "write:shop", "bank": "write:bank", "inner": "read:bank.open"}
    owners = {
        hashlib.sha256(name.encode()).hexdigest(): Principal(name=name, rules=(Rule.parse(rule),))
        for name, rule in rules.items()
    }
    catalog.create_namespace("bank", {"purpose": "vault"})
    for name in ("shop.orders", "bank.vault", "bank.open.rates"):
        catalog.create_table(name, SCHEMA).append([{"id": 1}])
    return TestClient(build(Service(catalog, access=TokenFile(owners))), base_url=HERE)


def bearer(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {name}"}


def sql(client: TestClient, who: str, text: str) -> str:
    about = client.get(f"{API}/session", headers=bearer(who)).json()
    headers = {**bearer(who), "X-Frazil-Session": about["token"]}
    return str(client.post(f"{API}/sql", json={"sql": text}, headers=headers).text)


def native(client: TestClient, who: str, operation: str, **body: Any) -> Any:
    return client.post(f"/v1/frazil/{operation}", json=body, headers=bearer(who))


@pytest.mark.parametrize("who", ["shop", "inner"])
def test_nothing_is_said_of_the_namespaces_of_others(shared: TestClient, who: str) -> None:
    said = [
        sql(shared, who, "DESCRIBE NAMESPACE bank"),
        sql(shared, who, "DESCRIBE bank.vault"),
        sql(shared, who, "SELECT * FROM bank.vaul"),
        sql(shared, who, "SELECT * FROM bank.vault"),
        sql(shared, who, "USE bank; SELECT * FROM vault"),
        sql(shared, who, "SHOW TABLES IN bank"),
        native(shared, who, "pulses").text,
        native(shared, who, "list-tables", namespace=["bank"]).text,
        native(shared, who, "namespace-properties", namespace=["bank"]).text,
        shared.get(f"{API}/catalog", headers=bearer(who)).text,
        shared.get(f"{API}/changes?since=", headers=bearer(who)).text,
        shared.get("/v1/namespaces?parent=bank", headers=bearer(who)).text,
        shared.get("/v1/namespaces/bank/tables", headers=bearer(who)).text,
    ]
    for text in said:
        told = json.loads(text)
        message = json.dumps(told.get("error", {})) if isinstance(told, dict) else ""
        # An error may repeat what was asked for; nothing else may hold the name.
        rest = text.replace(message, "") if not told.get("rows") else text
        assert "purpose" not in text
        assert "vault" not in rest.replace("bank.vault", "")


def test_a_guessed_key_tells_no_name(shared: TestClient, catalog: Catalog) -> None:
    key = catalog["bank.vault"]._handle.head.key  # type: ignore[attr-defined]
    for operation in ("load-head", "history", "take-turn", "neighbourhood", "export"):
        answer = native(shared, "shop", operation, key=key)
        assert answer.status_code == 403, (operation, answer.text)
        assert "bank" not in answer.text


def test_whether_a_namespace_is_there_is_not_said(shared: TestClient) -> None:
    answers = [
        shared.get(f"/v1/namespaces?parent={name}", headers=bearer("shop"))
        for name in ("bank", "nothing")
    ]
    assert {answer.status_code for answer in answers} == {404}


def test_changes_of_others_change_no_mark(shared: TestClient, catalog: Catalog) -> None:
    before = shared.get(f"{API}/changes?since=", headers=bearer("shop")).json()["mark"]
    catalog["bank.vault"].append([{"id": 2}])
    assert shared.get(f"{API}/changes?since=", headers=bearer("shop")).json()["mark"] == before
    catalog["shop.orders"].append([{"id": 2}])
    assert shared.get(f"{API}/changes?since=", headers=bearer("shop")).json()["mark"] != before


def test_neighbours_are_told_as_far_as_they_matter(shared: TestClient, catalog: Catalog) -> None:
    key = native(shared, "shop", "load-table", name=["shop", "orders"]).json()["key"]
    around = native(shared, "shop", "neighbourhood", key=key)
    assert around.json()["tables"] == []
    assert "vault" not in around.text
    assert around.json()["database"] is None
    inside = f"{catalog['shop.orders'].location}/data/inside"
    catalog.create_table("bank.hidden", SCHEMA, location=inside)
    around = native(shared, "shop", "neighbourhood", key=key)
    (place,) = around.json()["tables"]
    assert place["location"].endswith("/orders/data/inside")
    assert place["name"] == "a table of another namespace"
    assert "hidden" not in around.text


def test_whose_a_place_is_is_not_said(shared: TestClient, catalog: Catalog) -> None:
    inside = f"{catalog.warehouse}/shop/hidden"
    catalog.create_table("bank.hidden_name", SCHEMA, location=inside)
    schema = {
        "type": "struct",
        "fields": [{"id": 1, "name": "i", "type": "int", "required": False}],
    }
    body = {"name": "x", "schema": schema, "location": inside}
    answer = shared.post("/v1/namespaces/shop/tables", json=body, headers=bearer("shop"))
    assert answer.status_code in (400, 403)
    assert "hidden_name" not in answer.text


# Views


def test_a_view_of_the_native_client_is_checked(catalog: Catalog, tmp_path: Path) -> None:
    catalog.create_namespace("shop")
    client = TestClient(build(Service(catalog)), base_url=HERE)
    good: dict[str, Any] = {
        "view-uuid": "6a1f7c9e-32f1-4b52-9d6f-0d7a5a5f0b11",
        "format-version": 1,
        "location": f"{catalog.warehouse}/shop/v",
        "current-version-id": 1,
        "versions": [{**version(), "version-id": 1, "schema-id": 0}],
        "version-log": [{"timestamp-ms": 1, "version-id": 1}],
        "schemas": [
            {
                "type": "struct",
                "schema-id": 0,
                "fields": [{"id": 1, "name": "id", "type": "long", "required": False}],
            }
        ],
        "properties": {},
    }
    bad: list[tuple[dict[str, Any], int]] = [
        ({"view-uuid": "../../../../elsewhere"}, 400),
        ({"view-uuid": 7}, 400),
        ({"location": f"file://{tmp_path}/elsewhere"}, 403),
        ({"location": 7}, 400),
        ({"properties": {"write.metadata.path": f"file://{tmp_path}/elsewhere"}}, 403),
        ({"properties": {"a": 1}}, 400),
        ({"properties": "x"}, 400),
        ({"versions": []}, 400),
        ({"versions": "x"}, 400),
        ({"current-version-id": 9}, 400),
        ({"schemas": []}, 400),
        ({"schemas": [{"fields": 1}]}, 400),
        ({"format-version": 9}, 400),
        ({"version-log": [1]}, 400),
    ]

    def create(metadata: dict[str, Any]) -> Any:
        body = {"name": ["shop", "v"], "metadata": metadata}
        return client.post("/v1/frazil/create-view", json=body)

    for change, status in bad:
        answer = create({**good, **change})
        assert answer.status_code == status, (change, answer.text)
    assert create(good).status_code == 200
    for change, status in bad:
        body = {"name": ["shop", "v"], "version": 0, "metadata": {**good, **change}}
        answer = client.post("/v1/frazil/replace-view", json=body)
        assert answer.status_code == status, (change, answer.text)
    shown = client.get("/v1/namespaces/shop/views/v")
    assert shown.status_code == 200, shown.text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["warehouse"]


# A provider of keys that is away


class Provider:
    """Keys that can be away, counted."""

    def __init__(self) -> None:
        self.asked = 0
        self.answer: bytes | None = json.dumps(KeySet([KEY]).as_dict(private=False)).encode()
        self.now = 1_000.0

    def fetch(self, _: str) -> bytes:
        self.asked += 1
        if self.answer is None:
            raise OSError("no route to host")
        return self.answer

    def tokens(self) -> WebTokens:
        return WebTokens(
            "https://login.example/keys", fetch=self.fetch, now=lambda: self.now, audience="frazil"
        )


@pytest.mark.parametrize("away", [None, b"<html>", b'{"keys":[]}', b'{"keys":7}', b"[]", b"{}"])
def test_who_is_signed_in_stays_so_while_the_provider_is_away(away: bytes | None) -> None:
    provider = Provider()
    access = provider.tokens()
    assert access.principal(signed(exp=9_000)) is not None
    provider.answer = away
    provider.now += 400
    for _ in range(50):
        assert access.principal(signed(exp=9_000)) is not None
    assert provider.asked == 2, "a provider that is away is left alone for a while"
    for _ in range(100):
        provider.now += 10
        assert access.principal(signed(exp=9_000)) is not None
    assert provider.asked < 30
    provider.answer = json.dumps(KeySet([KEY]).as_dict(private=False)).encode()
    provider.now += 100
    assert access.principal(signed(exp=9_000)) is not None
    asked = provider.asked
    provider.now += 100
    assert access.principal(signed(exp=9_000)) is not None
    assert provider.asked == asked, "its keys are good again"


def test_nobody_waits_while_keys_are_asked_for_again() -> None:
    provider = Provider()
    access = provider.tokens()
    assert access.principal(signed(exp=9_000)) is not None
    is_asked, goes_on = threading.Event(), threading.Event()
    original = provider.fetch

    def slow(address: str) -> bytes:
        is_asked.set()
        assert goes_on.wait(30)
        return original(address)

    access._fetch = slow
    provider.now += 400
    first = threading.Thread(target=access.principal, args=(signed(exp=9_000),))
    first.start()
    assert is_asked.wait(30)
    assert access.principal(signed(exp=9_000)) is not None  # the other one still waits
    assert first.is_alive()
    goes_on.set()
    first.join()


# Folders


def test_rows_are_spilled_where_nobody_else_looks() -> None:
    program = (
        "from frazil.rows.duckdb.duckdb_connection import connect\n"
        "print(connect().execute(\"SELECT current_setting('temp_directory')\").fetchone()[0])\n"
        "import os; print(os.getpid()); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        folder, number = process.stdout.readline().strip(), process.stdout.readline().strip()
        about = os.stat(folder)
        assert stat.S_IMODE(about.st_mode) == 0o700
        assert about.st_uid == os.getuid()
        assert number not in Path(folder).name
        process.stdin.write("\n")
        process.stdin.close()
        process.wait(60)
    assert not Path(folder).exists()

"""Attacks on the fence around a table: by somebody who writes one namespace, and the files in its
folder, and wants what lies elsewhere."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient

from frazil.catalog.names import Identifier, namespace_location
from frazil.serve.access.principals import Principal, Rule, TokenFile
from frazil.serve.app import build
from frazil.serve.service import Service
from frazil.serve.settings import Settings
from frazil.table import Catalog, Table
from tests.serve.test_namespaces_and_tables import SCHEMA

HERE = "http://127.0.0.1:8181"
SHOP = {"Authorization": "Bearer shop"}
API = "/explorer/api"
SECRET = 424242


def local(path: str) -> Path:
    return Path(path.removeprefix("file://"))


def data_of(table: Table) -> Path:
    (path,) = local(table.location).glob("data/**/*.parquet")
    return path


@pytest.fixture
def bank(catalog: Catalog) -> Table:
    made = catalog.create_table("bank.accounts", pa.schema({"id": pa.int64()}))
    made.append([{"id": SECRET}])
    return made


@pytest.fixture
def orders(catalog: Catalog) -> Table:
    made = catalog.create_table("shop.orders", pa.schema({"id": pa.int64()}))
    made.append([{"id": 1}])
    return made


@pytest.fixture
def client(catalog: Catalog, bank: Table, orders: Table) -> TestClient:
    """A server whose senders each write one namespace."""
    owners = {
        hashlib.sha256(name.encode()).hexdigest(): Principal(
            name=name, rules=(Rule.parse(f"write:{name}"),)
        )
        for name in ("shop", "bank", "shop%2Eeu", "shop.eu")
    }
    return TestClient(build(Service(catalog, access=TokenFile(owners))), base_url=HERE)


def session(client: TestClient) -> dict[str, str]:
    about = client.get(f"{API}/session", headers=SHOP).json()
    return {**SHOP, "X-Frazil-Session": about["token"]}


def looks(client: TestClient, table: str = "orders", *, column: str = "id") -> list[str]:
    """Everything that the explorer and the planner say of a table of the shop."""
    place = f"{API}/tables/shop/{table}"
    said = [
        client.get(f"{place}/{page}", headers=SHOP).text
        for page in ("rows", "rows?where=id+>+0", "leaf", "tree", "overview", "diff", "health")
    ]
    said += [
        client.get(f"/v1/namespaces/shop/tables/{table}", headers=SHOP).text,
        client.get(f"/v1/v2/namespaces/shop/tables/{table}", headers=SHOP).text,
        client.post(f"/v1/namespaces/shop/tables/{table}/plan", json={}, headers=SHOP).text,
    ]
    for text in (f"SELECT * FROM shop.{table}", f"SELECT sum({column}) FROM shop.{table}"):
        answer = client.post(f"{API}/sql", json={"sql": text}, headers=session(client))
        said.append(answer.text)
    return said


# A table whose metadata leads elsewhere when it is used


def stolen_root(orders: Table, bank: Table) -> bytes:
    """The root of a table of the shop that lists the bank's file, as an attacker writes it."""
    made = pq.read_table(next(local(orders.location).glob("metadata/root-*.parquet")))
    at = made.schema.get_field_index("location")
    column = pa.array([f"file://{data_of(bank)}"], made.schema.field(at).type)
    changed = made.set_column(at, made.schema.field(at), column)
    sink = pa.BufferOutputStream()
    pq.write_table(changed, sink)
    return bytes(sink.getvalue())


def test_a_root_that_comes_later_leads_nowhere(
    client: TestClient, catalog: Catalog, orders: Table, bank: Table
) -> None:
    """Nothing is listed while the root is not there, so registering cannot refuse it."""
    head: Any = orders._handle.head
    place = local(orders.location).parent / "later"
    document = json.loads(local(head.export()).read_text())
    document["table-uuid"] = "6a1f7c9e-32f1-4b52-9d6f-0d7a5a5f0b11"
    (place / "metadata").mkdir(parents=True)
    path = place / "metadata" / "v1.metadata.json"
    path.write_text(json.dumps({**document, "location": f"file://{place}"}))
    body = {"name": ["shop", "later"], "metadata-location": f"file://{path}", "location": None}
    answer = client.post("/v1/frazil/register", json=body, headers=SHOP)
    if answer.status_code == 200:
        name = document["snapshots"][0]["root-manifest"]
        (place / name).write_bytes(stolen_root(orders, bank))
        for text in looks(client, "later"):
            assert str(SECRET) not in text
    assert bank.scan().to_pylist() == [{"id": SECRET}]


def test_a_root_that_was_changed_leads_nowhere(
    client: TestClient, orders: Table, bank: Table
) -> None:
    root = next(local(orders.location).glob("metadata/root-*.parquet"))
    content = stolen_root(orders, bank)
    root.write_bytes(content)
    for text in looks(client):
        assert str(SECRET) not in text


def test_a_link_in_the_place_of_a_file_is_not_followed(
    client: TestClient, orders: Table, bank: Table
) -> None:
    mine = data_of(orders)
    mine.unlink()
    mine.symlink_to(data_of(bank))
    for text in looks(client):
        assert str(SECRET) not in text
    folder = mine.parent
    mine.unlink()
    folder.rmdir()
    shutil.copytree(data_of(bank).parent, folder.with_name("theirs"))
    folder.symlink_to(data_of(bank).parent)
    (data_of(bank).parent / mine.name).write_bytes(data_of(bank).read_bytes())
    for text in looks(client):
        assert str(SECRET) not in text


def test_a_pipe_in_the_place_of_a_file_stops_nobody(
    client: TestClient, orders: Table, bank: Table
) -> None:
    root = next(local(orders.location).glob("metadata/root-*.parquet"))
    root.unlink()
    os.mkfifo(root)
    assert all(looks(client))


def test_an_action_copies_nothing_from_elsewhere(
    client: TestClient, orders: Table, bank: Table
) -> None:
    """A compaction by the server would write the bank's rows into a file of the shop."""
    root = next(local(orders.location).glob("metadata/root-*.parquet"))
    root.write_bytes(stolen_root(orders, bank))
    place = f"{API}/tables/shop/orders/actions/compact"
    for _ in range(2):
        first = client.post(place, json={"params": {}, "confirm": None}, headers=session(client))
        confirm = first.json().get("confirm") if first.status_code == 200 else None
        client.post(place, json={"params": {}, "confirm": confirm}, headers=session(client))
    for path in local(orders.location).glob("data/**/*.parquet"):
        assert SECRET not in pq.read_table(path)["id"].to_pylist()


def test_what_others_have_read_is_not_shown(
    client: TestClient, catalog: Catalog, orders: Table, bank: Table
) -> None:
    """Manifests are remembered by their place; a root that names the bank's leaf must not get it
    from memory."""
    bank.set_properties({"write.root.max-data-entries": "1", "write.leaf.target-entries": "1"})
    for number in range(3):
        bank.append([{"id": SECRET + number}])
    leaves = list(local(bank.location).glob("metadata/*leaf*"))
    owner = {"Authorization": "Bearer bank"}
    assert client.get(f"{API}/tables/bank/accounts/tree", headers=owner).status_code == 200
    root = next(local(orders.location).glob("metadata/root-*.parquet"))
    theirs = max(local(bank.location).glob("metadata/root-*.parquet"), key=lambda p: p.name)
    stolen = pq.read_table(theirs)
    at = stolen.schema.get_field_index("location")
    names = [
        name if "://" in name else f"{bank.location}/{name}"
        for name in stolen["location"].to_pylist()
    ]
    changed = stolen.set_column(
        at, stolen.schema.field(at), pa.array(names, stolen.schema.field(at).type)
    )
    pq.write_table(changed, root)
    assert leaves
    for text in looks(client):
        assert data_of_name(bank) not in text


def data_of_name(table: Table) -> str:
    """A file that only a leaf names."""
    names = sorted(path.name for path in local(table.location).glob("data/**/*.parquet"))
    return names[0]


# Places that a request names


def test_a_clone_s_source_is_a_place_like_any_other(client: TestClient, bank: Table) -> None:
    places = dict.fromkeys(
        ("frazil.clone.source-location", "paimon.location", "write.data.path"), bank.location
    )
    places["frazil.added-files.path"] = f'["{bank.location}/data"]'
    for key, place in places.items():
        update = {"action": "set-properties", "updates": {key: place}}
        answer = client.post(
            "/v1/namespaces/shop/tables/orders", json={"updates": [update]}, headers=SHOP
        )
        assert answer.status_code == 403, (key, answer.text)


def test_namespaces_share_no_folder(client: TestClient, catalog: Catalog) -> None:
    spaces = [
        ("shop", "eu"),
        ("shop.eu",),
        ("a/b",),
        ("a_b",),
        ("a~b",),
        ("a", "b"),
        ("a.b",),
        ("..",),
        ("_.._",),
    ]
    folders = {namespace_location("/w", space) for space in spaces}
    assert len(folders) == len(spaces)
    assert all(folder.count("/") == 2 for folder in folders)
    assert namespace_location("/w", ("shop", "eu")) == "/w/shop.eu"  # as ever
    catalog.create_namespace(("shop.eu",))
    catalog.create_namespace(("shop", "eu"))
    mine = catalog.create_table(("shop", "eu", "t"), pa.schema({"id": pa.int64()}))
    theirs = catalog.create_table(
        Identifier(namespace=("shop.eu",), name="t"), pa.schema({"id": pa.int64()})
    )
    assert local(mine.location).parent != local(theirs.location).parent
    body = {"name": "x", "schema": SCHEMA, "location": f"{theirs.location}/x"}
    answer = client.post("/v1/namespaces/shop%1Feu/tables", json=body, headers=SHOP)
    assert answer.status_code == 403, answer.text


def test_tables_of_others_in_the_own_folder_are_out_of_reach(
    client: TestClient, catalog: Catalog
) -> None:
    """Tables from before stay where they are, and that may be a folder of another namespace."""
    catalog.create_namespace(("shop.eu",))
    old = catalog.create_table(
        Identifier(namespace=("shop.eu",), name="old"),
        pa.schema({"id": pa.int64()}),
        location=f"{catalog.warehouse}/shop/old",
    )
    old.append([{"id": SECRET}])
    stolen = f"file://{data_of(old)}"
    tries: list[tuple[str, dict[str, Any]]] = [
        (
            "/v1/namespaces/shop/tables",
            {"name": "x", "schema": SCHEMA, "location": f"{old.location}/x"},
        ),
        ("/v1/namespaces/shop/register", {"name": "x", "metadata-location": stolen}),
        ("/v1/namespaces/shop/register-view", {"name": "x", "metadata-location": stolen}),
        (
            "/v1/namespaces/shop/tables/orders",
            {
                "updates": [
                    {"action": "set-properties", "updates": {"write.data.path": old.location}}
                ]
            },
        ),
    ]
    for path, body in tries:
        answer = client.post(path, json=body, headers=SHOP)
        assert answer.status_code == 403, (path, answer.text)
    beside = {"name": "x", "schema": SCHEMA, "location": f"{catalog.warehouse}/shop/older"}
    assert client.post("/v1/namespaces/shop/tables", json=beside, headers=SHOP).status_code == 200


def test_a_drop_with_its_files_follows_no_link(
    client: TestClient, catalog: Catalog, orders: Table, bank: Table
) -> None:
    theirs = data_of(bank)
    folder = local(orders.location) / "data"
    shutil.rmtree(folder)
    folder.symlink_to(theirs.parent)
    url = "/v1/namespaces/shop/tables/orders?purgeRequested=true"
    client.delete(url, headers=SHOP)
    assert theirs.exists()
    assert bank.scan().to_pylist() == [{"id": SECRET}]


def test_sql_of_the_server_opens_nothing_else(
    catalog: Catalog, orders: Table, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.parquet"
    pq.write_table(pa.table({"id": [SECRET]}), secret)
    (tmp_path / "out").mkdir()
    service = Service(catalog, Settings(sql_writes=True))
    with TestClient(build(service), base_url=HERE) as client:
        token = {"X-Frazil-Session": client.get(f"{API}/session").json()["token"]}

        def run(text: str) -> Any:
            return client.post(f"{API}/sql", json={"sql": text}, headers=token).json()

        before = sorted(tmp_path.rglob("*"))
        head: Any = orders._handle.head
        copy = tmp_path / "copy.metadata.json"
        copy.write_text(local(head.export()).read_text())
        for text in (
            f"SELECT * FROM '{secret}'",
            f"SELECT * FROM read_parquet('{secret}')",
            f"SELECT * FROM parquet_schema('{secret}')",
            f"SELECT * FROM read_text('{secret}')",
            f"SELECT * FROM glob('{tmp_path}/*')",
            f"SELECT * FROM shop.orders WHERE id IN (SELECT id FROM read_parquet('{secret}'))",
            f"INSERT INTO shop.orders SELECT id FROM read_parquet('{secret}')",
            f"INSERT INTO shop.orders SELECT id FROM '{secret}'",
            f"CREATE TABLE shop.stolen AS SELECT * FROM read_parquet('{secret}')",
            f"DELETE FROM shop.orders WHERE id IN (SELECT id - {SECRET - 1} FROM '{secret}')",
            f"COPY (SELECT 1) TO '{tmp_path}/out/x.csv'",
            f"EXPORT DATABASE '{tmp_path}/out'",
            f"ATTACH '{tmp_path}/out/x.db' AS x",
            "INSTALL httpfs",
            "LOAD httpfs",
            "SELECT * FROM read_csv('http://127.0.0.1:1/x')",
            f"SELECT 1 AS a$b$; COPY (SELECT 1) TO '{tmp_path}/out/y.csv'; --$b$",
            "SET disabled_filesystems = ''",
            f"CALL system.add_files('shop.orders', '`parquet`.`{secret}`')",
            f"CALL system.register_table(table => 'shop.copy', metadata_file => '{copy}')",
            f"CREATE VIEW shop.v AS SELECT * FROM read_parquet('{secret}')",
            "SELECT * FROM shop.v",
        ):
            answer = run(text)
            assert not answer.get("ok") or str(SECRET) not in json.dumps(answer), text
            assert "pytest" not in json.dumps(answer.get("rows", [])), text
        copy.unlink()
        after = [path for path in sorted(tmp_path.rglob("*")) if "warehouse" not in path.parts]
        assert after == [path for path in before if "warehouse" not in path.parts]
        assert run("SELECT count(*) AS n FROM shop.orders")["rows"] == [["1"]]
        assert run("INSERT INTO shop.orders VALUES (5)")["ok"]
        assert run("UPDATE shop.orders SET id = 6 WHERE id = 5")["ok"]
        assert run("SELECT sum(id) AS n FROM shop.orders")["rows"] == [["7"]]
        for where in (
            f"id IN (SELECT id FROM read_parquet('{secret}'))",
            f"EXISTS (FROM '{secret}')",
            f"id = (SELECT max(id) FROM '{secret}')",
            "id = getenv('HOME')",
        ):
            answer = client.get(f"{API}/tables/shop/orders/rows", params={"where": where}).json()
            assert answer["rows"] == [], where
            assert answer["error"], where

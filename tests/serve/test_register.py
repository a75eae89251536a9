"""Registering a table: what was checked is what is entered, and a table that is to be overwritten
stays until the new one is there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from frazil.catalog.sql import sql_rows
from frazil.errors import CatalogError
from frazil.serve.view.published_view import Facade
from frazil.table import Catalog, Table

SHOP = "/v1/namespaces/shop"
ORDERS = f"{SHOP}/tables/orders"


def local(path: str) -> Path:
    return Path(path.removeprefix("file://"))


@pytest.fixture
def table(catalog: Catalog) -> Table:
    made = catalog.create_table("shop.orders", pa.schema([("id", pa.int64())]))
    made.append([{"id": 1}])
    return made


def published(table: Table, version: int = 2) -> str:
    """Metadata of v2 or v3 that names the table's files, with a uuid of its own."""
    shown = Facade().show(table._handle, version)
    document = json.loads(shown.document)
    document["table-uuid"] = "6a1f7c9e-32f1-4b52-9d6f-0d7a5a5f0b11"
    document["location"] = f"{table.location}-copy"
    path = local(f"{table.location}-copy/metadata/v1.metadata.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return f"file://{path}"


def register(client: TestClient, where: str, **more: Any) -> Any:
    body = {"name": "orders", "metadata-location": where, **more}
    return client.post(f"{SHOP}/register", json=body)


def _no_file(where: str) -> None:
    local(where).unlink()


def _no_json(where: str) -> None:
    local(where).write_text("{")


def _no_manifest(where: str) -> None:
    """The list names a manifest that is not there, so that the table cannot be upgraded."""
    for path in local(where).parent.parent.with_name("orders").rglob("*-m*.avro"):
        path.unlink()
    for path in local(where).parent.parent.with_name("orders").rglob("metadata/published/*.avro"):
        if not path.name.startswith("snap-"):
            path.unlink()


def _encrypted(where: str) -> None:
    document = json.loads(local(where).read_text())
    document["properties"]["encryption.key-id"] = "k"
    local(where).write_text(json.dumps(document))


def _no_column(where: str) -> None:
    document = json.loads(local(where).read_text())
    part = {"source-id": 77, "field-id": 1000, "name": "x", "transform": "identity"}
    document["partition-specs"] = [{"spec-id": 0, "fields": [part]}]
    local(where).write_text(json.dumps(document))


@pytest.mark.parametrize("spoil", [_no_file, _no_json, _no_manifest, _encrypted, _no_column])
def test_a_register_that_fails_keeps_the_table(
    client: TestClient, catalog: Catalog, table: Table, spoil: Any
) -> None:
    where = published(table)
    kept = shutil.copytree(local(table.location), local(table.location).with_name("kept"))
    spoil(where)
    answer = register(client, where, overwrite=True)
    assert 400 <= answer.status_code < 500, answer.text
    shutil.copytree(kept, local(table.location), dirs_exist_ok=True)
    assert catalog["shop.orders"].metadata.table_uuid == table.metadata.table_uuid
    assert catalog["shop.orders"].scan().to_pylist() == [{"id": 1}]


def test_a_register_that_fails_in_the_database_keeps_the_table(
    client: TestClient, catalog: Catalog, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = published(table)

    def fails(*_: object, **__: object) -> None:
        raise CatalogError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(sql_rows, "insert_table", fails)
        assert register(client, where, overwrite=True).status_code == 503
    assert catalog["shop.orders"].scan().to_pylist() == [{"id": 1}]


def test_a_register_overwrites_at_once(client: TestClient, catalog: Catalog, table: Table) -> None:
    where = published(table)
    table.append([{"id": 2}])
    assert register(client, where).status_code == 409
    answer = register(client, where, overwrite=True)
    assert answer.status_code == 200, answer.text
    assert answer.json()["metadata"]["format-version"] == 2
    found = catalog["shop.orders"]
    assert str(found.metadata.table_uuid) == "6a1f7c9e-32f1-4b52-9d6f-0d7a5a5f0b11"
    assert found.scan().to_pylist() == [{"id": 1}]
    found.append([{"id": 3}])
    assert sorted(row["id"] for row in found.scan().to_pylist()) == [1, 3]


def test_a_table_is_registered_over_itself(
    client: TestClient, catalog: Catalog, table: Table
) -> None:
    head: Any = table._handle.head
    answer = register(client, head.export(), overwrite=True)
    assert answer.status_code == 200, answer.text
    assert catalog["shop.orders"].scan().to_pylist() == [{"id": 1}]


def test_a_place_that_is_taken_is_not_a_table_that_exists(
    client: TestClient, catalog: Catalog, table: Table
) -> None:
    """Clients take 409 for a table that exists; CREATE TABLE IF NOT EXISTS would be content."""
    client.post("/v1/namespaces", json={"namespace": ["bank"]})
    schema = {
        "type": "struct",
        "fields": [{"id": 1, "name": "id", "type": "long", "required": False}],
    }
    body = {"name": "other", "schema": schema, "location": table.location}
    created = client.post(f"{SHOP}/tables", json=body)
    updates = [
        {"action": "assign-uuid", "uuid": "6a1f7c9e-32f1-4b52-9d6f-0d7a5a5f0b11"},
        {"action": "add-schema", "schema": schema},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "set-location", "location": table.location},
    ]
    staged = {"requirements": [{"type": "assert-create"}], "updates": updates}
    committed = client.post(f"{SHOP}/tables/other", json=staged)
    head: Any = table._handle.head
    named = {"name": "other", "metadata-location": head.export()}
    registered = client.post(f"{SHOP}/register", json=named)
    for answer in (created, committed, registered):
        assert answer.status_code == 400, answer.text
        assert "location is in use" in answer.text
    assert catalog.list_tables("shop") == ["shop.orders"]
    assert catalog["shop.orders"].scan().to_pylist() == [{"id": 1}]

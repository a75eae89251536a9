"""Tables as they are, from `/v2`: a draft of Iceberg's, on servers that are told to follow it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from frazil.serve.app import build
from frazil.serve.service import Service
from frazil.serve.settings import Settings
from frazil.storage import local_path
from frazil.table import Catalog
from tests.serve.test_namespaces_and_tables import SCHEMA, error_of

NATIVE = "/v1/namespaces/shop/tables/orders"
CLIENTS = "/v1/namespaces/shop/tables"
UNSUPPORTED = (400, "UnsupportedTableFormatVersionError")


@pytest.fixture
def draft(catalog: Catalog) -> Iterator[TestClient]:
    service = Service(catalog, Settings(shows_v4=True))
    with TestClient(build(service), base_url="http://127.0.0.1:8181") as client:
        yield client


def test_a_table_is_loaded_as_it_is_with_its_root(draft: TestClient, catalog: Catalog) -> None:
    table = catalog.create_table("shop.orders", pa.table({"id": [1, 2]}))
    answer = draft.get("/v2/namespaces/shop/tables/orders")
    assert answer.status_code == 200, answer.text
    shown = answer.json()
    assert shown["table-location"] == table.location
    assert shown["metadata"]["format-version"] == 4
    (snapshot,) = shown["metadata"]["snapshots"]
    assert "manifest-list" not in snapshot
    assert Path(local_path(f"{table.location}/{snapshot['root-manifest']}")).is_file()
    same = draft.get(
        "/v2/namespaces/shop/tables/orders", headers={"If-None-Match": answer.headers["etag"]}
    )
    assert same.status_code == 304
    table.append(pa.table({"id": [3]}))
    newer = draft.get(
        "/v2/namespaces/shop/tables/orders", headers={"If-None-Match": answer.headers["etag"]}
    )
    assert len(newer.json()["metadata"]["snapshots"]) == 2
    missing = draft.get("/v2/namespaces/shop/tables/other")
    assert error_of(missing) == (404, "NoSuchTableException")


def test_v1_refuses_such_a_table_unless_an_older_version_is_asked_for(
    draft: TestClient, catalog: Catalog
) -> None:
    table = catalog.create_table("shop.orders", pa.table({"id": [1, 2]}))
    update = {"updates": [{"action": "set-properties", "updates": {"owner": "me"}}]}
    assert error_of(draft.get(NATIVE)) == UNSUPPORTED
    assert error_of(draft.post(NATIVE, json=update)) == UNSUPPORTED
    named = {"identifier": {"namespace": ["shop"], "name": "orders"}, **update}
    both = draft.post("/v1/transactions/commit", json={"table-changes": [named]})
    assert error_of(both) == UNSUPPORTED
    assert "owner" not in table.properties
    for prefix, version in (("v2", 2), ("v3", 3)):
        shown = draft.get(NATIVE.replace("/v1/", f"/v1/{prefix}/")).json()
        assert shown["metadata"]["format-version"] == version
    table.set_properties({"serve.format-version": "3"})
    assert draft.get(NATIVE).json()["metadata"]["format-version"] == 3
    assert draft.post(NATIVE, json=update).status_code == 200
    assert table.properties["owner"] == "me"


def test_a_table_that_a_client_of_v1_makes_is_loaded_by_it(draft: TestClient) -> None:
    made = draft.post("/v1/namespaces", json={"namespace": ["shop"]})
    assert made.status_code == 200
    created = draft.post(CLIENTS, json={"name": "orders", "schema": SCHEMA})
    assert created.json()["metadata"]["format-version"] == 3
    assert draft.get(NATIVE).json()["metadata"] == created.json()["metadata"]
    assert draft.get("/v2/namespaces/shop/tables/orders").status_code == 200


def test_registering_a_table_that_v1_would_not_show_enters_nothing(
    draft: TestClient, catalog: Catalog
) -> None:
    table = catalog.create_table("shop.orders", pa.table({"id": [1]}))
    location = table._handle.head.export()  # type: ignore[attr-defined]
    catalog.drop_table("shop.orders")
    body = {"name": "orders", "metadata-location": location}
    assert error_of(draft.post("/v1/namespaces/shop/register", json=body)) == UNSUPPORTED
    assert not catalog.table_exists("shop.orders")


def test_the_draft_is_off_unless_it_is_asked_for(
    client: TestClient, draft: TestClient, catalog: Catalog
) -> None:
    catalog.create_table("shop.orders", pa.table({"id": [1]}))
    assert client.get("/v2/namespaces/shop/tables/orders").status_code == 404
    assert client.get(NATIVE).json()["metadata"]["format-version"] == 3
    endpoint = "GET /v2/{prefix}/namespaces/{namespace}/tables/{table}"
    assert endpoint not in client.get("/v1/config").json()["endpoints"]
    assert endpoint in json.loads(draft.get("/v1/config").text)["endpoints"]

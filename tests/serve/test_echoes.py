"""What the server adds to an answer is the server's own: it is not stored when it comes back."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from frazil.serve.app import build
from frazil.serve.service import Service
from frazil.serve.settings import Settings
from frazil.table import Catalog
from tests.serve.test_namespaces_and_tables import SCHEMA, make

TABLES = "/v1/namespaces/shop/tables"
ORDERS = f"{TABLES}/orders"


def staged(client: TestClient, **properties: str) -> dict[str, Any]:
    client.post("/v1/namespaces", json={"namespace": ["shop"]})
    body = {"name": "orders", "schema": SCHEMA, "stage-create": True, "properties": properties}
    answer = client.post(TABLES, json=body)
    assert answer.status_code == 200, answer.text
    metadata: dict[str, Any] = answer.json()["metadata"]
    return metadata


def completed(client: TestClient, metadata: dict[str, Any], **more: str) -> Any:
    """The commit that Java's `createTransaction` sends: everything that it was shown."""
    updates = [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": metadata["format-version"]},
        {"action": "add-schema", "schema": metadata["schemas"][0], "last-column-id": 2},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": metadata["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": metadata["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
        {"action": "set-properties", "updates": {**metadata["properties"], **more}},
    ]
    body = {"requirements": [{"type": "assert-create"}], "updates": updates}
    return client.post(ORDERS, json=body)


def test_a_staged_table_keeps_its_own_properties_alone(
    client: TestClient, catalog: Catalog
) -> None:
    shown = staged(client, owner="me")
    assert shown["properties"]["gc.enabled"] == "false"
    assert completed(client, shown).status_code == 200
    table = catalog["shop.orders"]
    assert {k: v for k, v in table.properties.items() if not k.startswith("serve.")} == {
        "owner": "me"
    }
    assert client.delete(f"{ORDERS}?purgeRequested=true").status_code == 204


def test_what_a_client_changes_of_them_is_stored(client: TestClient, catalog: Catalog) -> None:
    shown = staged(client)
    mode = {"write.delete.mode": "copy-on-write"}
    assert completed(client, shown, **mode).status_code == 200
    assert catalog["shop.orders"].properties["write.delete.mode"] == "copy-on-write"
    back = {"action": "set-properties", "updates": {"write.delete.mode": "merge-on-read"}}
    assert client.post(ORDERS, json={"updates": [back]}).status_code == 200
    assert catalog["shop.orders"].properties["write.delete.mode"] == "merge-on-read"


def test_properties_sent_back_to_a_table_that_exists_are_not_stored(
    client: TestClient, catalog: Catalog
) -> None:
    shown = make(client)["metadata"]["properties"]
    update = {"action": "set-properties", "updates": {**shown, "owner": "me"}}
    assert client.post(ORDERS, json={"updates": [update]}).status_code == 200
    assert catalog["shop.orders"].properties == {"owner": "me"}


def test_clients_that_may_collect_say_themselves_when_not_to(catalog: Catalog) -> None:
    service = Service(catalog, Settings(allow_client_gc=True))
    with TestClient(build(service), base_url="http://127.0.0.1:8181") as client:
        shown = staged(client)
        assert "gc.enabled" not in shown["properties"]
        assert completed(client, shown, **{"gc.enabled": "false"}).status_code == 200
    assert catalog["shop.orders"].properties["gc.enabled"] == "false"


@pytest.mark.parametrize("first", [False, True])
def test_a_server_started_with_another_setting_says_so(catalog: Catalog, first: bool) -> None:
    """What a server published under one setting is not what a server under the other answers."""
    catalog.create_table("shop.orders", [{"id": 1}])
    for lets_collect in (first, not first, first):
        served = Service(catalog, Settings(allow_client_gc=lets_collect))
        with TestClient(build(served), base_url="http://127.0.0.1:8181") as client:
            shown = client.get(ORDERS).json()
        expected = {} if lets_collect else {"gc.enabled": "false"}
        for metadata in (shown["metadata"], json.loads(_read(shown["metadata-location"]))):
            properties = metadata["properties"].items()
            assert {k: v for k, v in properties if k == "gc.enabled"} == expected


def _read(location: str) -> bytes:
    return Path(location.removeprefix("file://")).read_bytes()


def test_a_namespace_says_where_its_tables_go(client: TestClient, catalog: Catalog) -> None:
    client.post("/v1/namespaces", json={"namespace": ["shop"]})
    place = client.get("/v1/namespaces/shop").json()["properties"]["location"]
    assert place == f"{catalog.warehouse}/shop"
    made = make(client)["metadata"]
    assert made["location"].startswith(f"{place}/orders")
    update = {"updates": {"location": place, "owner": "me"}}
    assert client.post("/v1/namespaces/shop/properties", json=update).status_code == 200
    assert catalog.namespace_properties("shop") == {"owner": "me"}
    own = {"location": f"{catalog.warehouse}/elsewhere"}
    assert client.post("/v1/namespaces/shop/properties", json={"updates": own}).status_code == 200
    assert client.get("/v1/namespaces/shop").json()["properties"]["location"] == own["location"]


def test_a_create_that_fails_leaves_no_table(
    client: TestClient, service: Service, catalog: Catalog, monkeypatch: Any
) -> None:
    client.post("/v1/namespaces", json={"namespace": ["shop"]})

    def fails(*_: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(service.facade, "show", fails)
        body = {"name": "orders", "schema": SCHEMA}
        assert client.post(TABLES, json=body).status_code == 500
        assert not catalog.table_exists("shop.orders")
    assert make(client)["metadata"]["table-uuid"] != str(uuid.UUID(int=0))


def test_an_empty_value_is_one_that_was_not_given(client: TestClient, catalog: Catalog) -> None:
    """Trino sends the codec so when a table names none."""
    empty = {"write.parquet.compression-codec": "", "comment": ""}
    shown = staged(client, **empty)
    assert "write.parquet.compression-codec" not in shown["properties"]
    assert completed(client, shown, **empty).status_code == 200
    assert catalog["shop.orders"].properties["comment"] == ""
    assert "write.parquet.compression-codec" not in catalog["shop.orders"].properties
    wrong = {"action": "set-properties", "updates": {"write.parquet.compression-codec": "x"}}
    assert client.post(ORDERS, json={"updates": [wrong]}).status_code == 400

"""Namespaces and tables over HTTP, by the REST specification."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from frazil.serve.app import build
from frazil.serve.service import Service
from frazil.serve.settings import Settings
from frazil.table import Catalog

SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {"id": 2, "name": "day", "type": "date", "required": False},
    ],
}
BY_DAY = {
    "spec-id": 0,
    "fields": [{"source-id": 2, "field-id": 1000, "transform": "identity", "name": "day"}],
}


def make(client: TestClient, **more: Any) -> dict[str, Any]:
    client.post("/v1/namespaces", json={"namespace": ["shop"]})
    answer = client.post(
        "/v1/namespaces/shop/tables", json={"name": "orders", "schema": SCHEMA, **more}
    )
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def error_of(answer: Any) -> tuple[int, str]:
    error = answer.json()["error"]
    assert error["code"] == answer.status_code
    assert error["message"]
    return answer.status_code, error["type"]


def test_config_lists_endpoints_as_the_specification_spells_them(client: TestClient) -> None:
    config = client.get("/v1/config?warehouse=any").json()
    assert config["overrides"] == {}
    assert config["idempotency-key-lifetime"] == "PT30M"
    for endpoint in (
        "GET /v1/{prefix}/namespaces",
        "POST /v1/{prefix}/namespaces/{namespace}/tables",
        "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
        "POST /v1/{prefix}/tables/rename",
    ):
        assert endpoint in config["endpoints"]
    assert "GET /v1/config" not in config["endpoints"]


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_a_warehouse_that_is_a_version_is_its_prefix(client: TestClient, version: str) -> None:
    """Clients that know no prefix choose a view by the name of the warehouse."""
    asked = client.get(f"/v1/config?warehouse={version}", headers={"User-Agent": "PyIceberg/0.12"})
    assert asked.json()["overrides"] == {"prefix": version}


def test_pyiceberg_which_cannot_write_v3_is_sent_to_the_prefix_of_v2(client: TestClient) -> None:
    asked = client.get("/v1/config", headers={"User-Agent": "PyIceberg/0.12.0"})
    assert asked.json()["defaults"]["prefix"] == "v2"
    assert "prefix" not in client.get("/v1/config").json()["defaults"]


def test_a_namespace_lives(client: TestClient) -> None:
    body = {"namespace": ["eu", "shop"], "properties": {"owner": "sales"}}
    assert client.post("/v1/namespaces", json=body).json() == body
    assert error_of(client.post("/v1/namespaces", json=body)) == (409, "AlreadyExistsException")
    assert client.get("/v1/namespaces").json()["namespaces"] == [["eu"]]
    assert client.get("/v1/namespaces?parent=eu").json()["namespaces"] == [["eu", "shop"]]
    loaded = client.get("/v1/namespaces/eu%1Fshop").json()
    assert (loaded["namespace"], loaded["properties"]["owner"]) == (["eu", "shop"], "sales")
    assert client.head("/v1/namespaces/eu%1Fshop").status_code == 204
    changed = client.post(
        "/v1/namespaces/eu%1Fshop/properties",
        json={"removals": ["owner", "nothing"], "updates": {"a": "b"}},
    )
    assert changed.json() == {"updated": ["a"], "removed": ["owner"], "missing": ["nothing"]}
    assert client.delete("/v1/namespaces/eu%1Fshop").status_code == 204
    assert client.head("/v1/namespaces/eu%1Fshop").status_code == 404
    assert error_of(client.get("/v1/namespaces/eu%1Fshop")) == (404, "NoSuchNamespaceException")


def test_a_property_set_and_removed_at_once_is_refused(client: TestClient) -> None:
    client.post("/v1/namespaces", json={"namespace": ["shop"]})
    both = {"removals": ["a"], "updates": {"a": "b"}}
    answer = client.post("/v1/namespaces/shop/properties", json=both)
    assert error_of(answer) == (422, "UnprocessableEntityException")


def test_a_namespace_that_holds_a_table_stays(client: TestClient) -> None:
    make(client)
    answer = client.delete("/v1/namespaces/shop")
    assert error_of(answer) == (409, "NamespaceNotEmptyException")


def test_listings_come_in_pages(client: TestClient) -> None:
    for name in "abcde":
        client.post("/v1/namespaces", json={"namespace": [name]})
    first = client.get("/v1/namespaces?pageSize=2&pageToken=").json()
    assert first["namespaces"] == [["a"], ["b"]]
    token = first["next-page-token"]
    second = client.get(f"/v1/namespaces?pageSize=2&pageToken={token}").json()
    assert second["namespaces"] == [["c"], ["d"]]
    last = client.get(f"/v1/namespaces?pageSize=2&pageToken={second['next-page-token']}").json()
    assert (last["namespaces"], last["next-page-token"]) == ([["e"]], None)
    for asked in ("pageSize=x", "pageSize=²", f"pageSize={'9' * 5000}", "pageSize=1&pageToken=²"):
        assert error_of(client.get(f"/v1/namespaces?{asked}"))[0] == 400, asked


def test_a_created_table_is_shown_as_v3(client: TestClient) -> None:
    made = make(client, **{"partition-spec": BY_DAY, "properties": {"owner": "me"}})
    metadata = made["metadata"]
    assert metadata["format-version"] == 3
    assert metadata["current-snapshot-id"] == -1
    assert metadata["schemas"][0]["fields"][0]["name"] == "id"
    assert metadata["partition-specs"][0]["fields"][0]["transform"] == "identity"
    assert metadata["properties"]["owner"] == "me"
    assert metadata["properties"]["gc.enabled"] == "false"
    assert client.get("/v1/namespaces/shop/tables").json()["identifiers"] == [
        {"namespace": ["shop"], "name": "orders"}
    ]


def test_a_table_is_shown_as_the_version_it_was_created_with(client: TestClient) -> None:
    made = make(client, properties={"format-version": "2"})
    assert made["metadata"]["format-version"] == 2
    assert "format-version" not in made["metadata"]["properties"]
    asked = client.get("/v1/v3/namespaces/shop/tables/orders").json()
    assert asked["metadata"]["format-version"] == 3


def test_clients_of_version_1_are_not_told_to_delete_beside_files(client: TestClient) -> None:
    modes = {f"write.{change}.mode" for change in ("delete", "update", "merge")}
    for version, told in (("1", set()), ("2", modes), ("3", modes)):
        made = make(client, properties={"format-version": version})["metadata"]
        assert made["format-version"] == int(version)
        assert made["properties"].keys() & modes == told
        client.delete("/v1/namespaces/shop/tables/orders")


def test_a_staged_table_does_not_exist(client: TestClient) -> None:
    made = make(client, **{"stage-create": True})
    assert made["metadata"]["table-uuid"]
    assert "metadata-location" not in made
    assert client.head("/v1/namespaces/shop/tables/orders").status_code == 404


def test_a_table_without_its_namespace_is_refused(client: TestClient) -> None:
    answer = client.post("/v1/namespaces/no/tables", json={"name": "t", "schema": SCHEMA})
    assert error_of(answer) == (404, "NoSuchNamespaceException")


def test_a_name_that_is_taken_is_refused(client: TestClient) -> None:
    make(client)
    answer = client.post("/v1/namespaces/shop/tables", json={"name": "orders", "schema": SCHEMA})
    assert error_of(answer) == (409, "AlreadyExistsException")


def test_a_table_the_client_has_is_not_sent_again(client: TestClient, catalog: Catalog) -> None:
    make(client)
    where = "/v1/namespaces/shop/tables/orders"
    first = client.get(where)
    tag = first.headers["ETag"]
    assert client.get(where, headers={"If-None-Match": tag}).status_code == 304
    catalog["shop.orders"].append(pa.table({"id": [1]}))
    later = client.get(where, headers={"If-None-Match": tag})
    assert later.status_code == 200
    assert later.json()["metadata-location"] != first.json()["metadata-location"]


def test_the_metadata_location_exists_and_holds_what_is_shown(
    client: TestClient, catalog: Catalog
) -> None:
    made = make(client)
    storage = catalog._pointers.storage(made["metadata"]["location"])
    where = made["metadata-location"]
    assert storage.read(where)
    catalog["shop.orders"].append(pa.table({"id": [1]}))
    later = client.get("/v1/namespaces/shop/tables/orders").json()["metadata"]
    assert [entry["metadata-file"] for entry in later["metadata-log"]] == [where]


def test_renaming_and_dropping(client: TestClient) -> None:
    make(client)
    names = {
        "source": {"namespace": ["shop"], "name": "orders"},
        "destination": {"namespace": ["shop"], "name": "sales"},
    }
    assert client.post("/v1/tables/rename", json=names).status_code == 204
    assert error_of(client.post("/v1/tables/rename", json=names)) == (404, "NoSuchTableException")
    assert client.head("/v1/namespaces/shop/tables/sales").status_code == 204
    gone = client.delete("/v1/namespaces/shop/tables/sales?purgeRequested=True")
    assert gone.status_code == 204
    again = client.delete("/v1/namespaces/shop/tables/sales")
    assert error_of(again) == (404, "NoSuchTableException")


def test_a_table_goes_to_a_namespace_that_exists(client: TestClient) -> None:
    make(client)
    names = {
        "source": {"namespace": ["shop"], "name": "orders"},
        "destination": {"namespace": ["no"], "name": "orders"},
    }
    answer = client.post("/v1/tables/rename", json=names)
    assert error_of(answer) == (404, "NoSuchNamespaceException")


@pytest.mark.parametrize("name", ["a/b", "a.b", "ä ö", "a%2Fb", "a?b#c", "{table}", "é" * 200])
def test_names_may_hold_any_character(client: TestClient, name: str) -> None:
    space = quote(name, safe="")
    client.post("/v1/namespaces", json={"namespace": [name]})
    made = client.post(f"/v1/namespaces/{space}/tables", json={"name": name, "schema": SCHEMA})
    assert made.status_code == 200
    assert client.get("/v1/namespaces").json()["namespaces"] == [[name]]
    listed = client.get(f"/v1/namespaces/{space}/tables").json()["identifiers"]
    assert listed == [{"namespace": [name], "name": name}]
    assert client.head(f"/v1/namespaces/{space}/tables/{space}").status_code == 204


def test_a_dropped_table_can_be_registered_again(client: TestClient, catalog: Catalog) -> None:
    make(client)
    catalog["shop.orders"].append(pa.table({"id": [1, 2]}))
    where = client.get("/v1/namespaces/shop/tables/orders").json()["metadata-location"]
    client.delete("/v1/namespaces/shop/tables/orders")
    body = {"name": "back", "metadata-location": where}
    found = client.post("/v1/namespaces/shop/register", json=body)
    assert found.status_code == 200, found.text
    assert sorted(catalog["shop.back"].scan().to_arrow()["id"].to_pylist()) == [1, 2]
    again = client.post("/v1/namespaces/shop/register", json=body)
    assert error_of(again) == (409, "AlreadyExistsException")


@pytest.mark.parametrize("place", ["file:///etc/x", "/etc/x", "file:///w/../etc/x"])
def test_a_location_outside_the_warehouse_is_refused(
    client: TestClient, catalog: Catalog, place: str
) -> None:
    place = place.replace("file:///w", catalog.warehouse or "")
    client.post("/v1/namespaces", json={"namespace": ["shop"]})
    body = {"name": "t", "schema": SCHEMA, "location": place}
    answer = client.post("/v1/namespaces/shop/tables", json=body)
    assert error_of(answer) == (403, "ForbiddenException")
    register = {"name": "t", "metadata-location": f"{place}/v1.metadata.json"}
    answer = client.post("/v1/namespaces/shop/register", json=register)
    assert error_of(answer) == (403, "ForbiddenException")


def test_what_is_not_json_is_refused(client: TestClient) -> None:
    assert error_of(client.post("/v1/namespaces", content=b"{")) == (400, "BadRequestException")
    assert error_of(client.post("/v1/namespaces", json={})) == (400, "BadRequestException")


def test_an_unknown_path_and_method_are_told_apart(client: TestClient) -> None:
    assert error_of(client.get("/v1/nothing"))[0] == 404
    assert error_of(client.delete("/v1/namespaces"))[0] == 405


def test_a_read_only_server_refuses_changes(catalog: Catalog) -> None:
    with TestClient(
        build(Service(catalog, Settings(is_read_only=True))), base_url="http://127.0.0.1:8181"
    ) as client:
        answer = client.post("/v1/namespaces", json={"namespace": ["shop"]})
        assert error_of(answer) == (403, "ForbiddenException")
        assert client.get("/v1/namespaces").status_code == 200
        offered = client.get("/v1/config").json()["endpoints"]
        deleting = [each for each in offered if each.startswith("DELETE")]
        assert deleting == [
            "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan/{plan-id}"
        ]


def test_a_body_over_the_limit_is_refused(catalog: Catalog) -> None:
    with TestClient(
        build(Service(catalog, Settings(max_request_bytes=100))), base_url="http://127.0.0.1:8181"
    ) as client:
        answer = client.post("/v1/namespaces", json={"namespace": ["x" * 100]})
        assert error_of(answer)[0] == 413


def test_metrics_reports_are_taken(client: TestClient) -> None:
    make(client)
    answer = client.post("/v1/namespaces/shop/tables/orders/metrics", json={"report-type": "scan"})
    assert answer.status_code == 204

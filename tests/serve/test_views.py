"""Views over HTTP, by the REST and view specifications."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from frazil.errors import Unsupported
from frazil.table import Catalog

SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "type": "long", "required": False}],
}
WHERE = "/v1/namespaces/shop/views"


def version(sql: str = "select 1", dialect: str = "spark", **more: Any) -> dict[str, Any]:
    return {
        "version-id": 1,
        "schema-id": 0,
        "timestamp-ms": 5,
        "summary": {"engine": "spark"},
        "default-namespace": ["shop"],
        "representations": [{"type": "sql", "sql": sql, "dialect": dialect}],
        **more,
    }


@pytest.fixture
def shop(client: TestClient) -> TestClient:
    """A namespace with one view."""
    client.post("/v1/namespaces", json={"namespace": ["shop"]})
    body = {"name": "v", "schema": SCHEMA, "view-version": version(), "properties": {"a": "b"}}
    assert client.post(WHERE, json=body).status_code == 200
    return client


def kind(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["type"]


def test_a_view_is_created_and_loaded(shop: TestClient) -> None:
    loaded = shop.get(f"{WHERE}/v").json()
    metadata = loaded["metadata"]
    assert metadata["format-version"] == 1
    assert metadata["current-version-id"] == 1
    assert metadata["versions"] == [version()]
    assert metadata["version-log"] == [{"timestamp-ms": 5, "version-id": 1}]
    assert metadata["properties"] == {"a": "b"}
    assert loaded["metadata-location"].startswith(metadata["location"])
    assert shop.get(WHERE).json()["identifiers"] == [{"namespace": ["shop"], "name": "v"}]
    assert shop.head(f"{WHERE}/v").status_code == 204
    assert shop.head(f"{WHERE}/no").status_code == 404


def test_a_new_version_follows_and_the_same_one_is_reused(shop: TestClient) -> None:
    uuid = shop.get(f"{WHERE}/v").json()["metadata"]["view-uuid"]

    def replace(sql: str) -> Any:
        return shop.post(
            f"{WHERE}/v",
            json={
                "requirements": [{"type": "assert-view-uuid", "uuid": uuid}],
                "updates": [
                    {"action": "add-view-version", "view-version": version(sql)},
                    {"action": "set-current-view-version", "view-version-id": -1},
                ],
            },
        )

    second = replace("select 2").json()["metadata"]
    assert second["current-version-id"] == 2
    assert [each["version-id"] for each in second["versions"]] == [1, 2]
    back = replace("select 1").json()["metadata"]
    assert back["current-version-id"] == 1
    assert [each["version-id"] for each in back["version-log"]] == [1, 2, 1]


def test_another_views_uuid_is_a_conflict(shop: TestClient) -> None:
    body = {"requirements": [{"type": "assert-view-uuid", "uuid": "x"}], "updates": []}
    assert kind(shop.post(f"{WHERE}/v", json=body)) == (409, "CommitFailedException")


def test_a_dialect_is_not_lost_by_accident(shop: TestClient) -> None:
    updates = [
        {"action": "add-view-version", "view-version": version(dialect="trino")},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]
    assert kind(shop.post(f"{WHERE}/v", json={"updates": updates})) == (
        400,
        "IllegalArgumentException",
    )
    allowed = {"action": "set-properties", "updates": {"replace.drop-dialect.allowed": "true"}}
    assert shop.post(f"{WHERE}/v", json={"updates": [allowed, *updates]}).status_code == 200


def test_old_versions_are_forgotten(shop: TestClient) -> None:
    keep = {"action": "set-properties", "updates": {"version.history.num-entries": "2"}}
    for number in range(3):
        added = {"action": "add-view-version", "view-version": version(f"select {number + 5}")}
        now = {"action": "set-current-view-version", "view-version-id": -1}
        answer = shop.post(f"{WHERE}/v", json={"updates": [keep, added, now]})
    metadata = answer.json()["metadata"]
    assert [each["version-id"] for each in metadata["versions"]] == [3, 4]
    assert [each["version-id"] for each in metadata["version-log"]] == [3, 4]


def test_tables_and_views_share_their_names(shop: TestClient) -> None:
    table = {"name": "t", "schema": SCHEMA}
    assert shop.post("/v1/namespaces/shop/tables", json=table).status_code == 200
    view = {"name": "t", "schema": SCHEMA, "view-version": version()}
    assert kind(shop.post(WHERE, json=view)) == (409, "AlreadyExistsException")
    again = {**table, "name": "v"}
    made = shop.post("/v1/namespaces/shop/tables", json=again)
    assert kind(made) == (409, "AlreadyExistsException")
    names = {
        "source": {"namespace": ["shop"], "name": "v"},
        "destination": {"namespace": ["shop"], "name": "t"},
    }
    assert kind(shop.post("/v1/views/rename", json=names)) == (409, "AlreadyExistsException")


def test_a_view_is_renamed_dropped_and_registered_again(shop: TestClient) -> None:
    names = {
        "source": {"namespace": ["shop"], "name": "v"},
        "destination": {"namespace": ["shop"], "name": "w"},
    }
    assert shop.post("/v1/views/rename", json=names).status_code == 204
    where = shop.get(f"{WHERE}/w").json()["metadata-location"]
    assert shop.delete(f"{WHERE}/w").status_code == 204
    assert kind(shop.delete(f"{WHERE}/w")) == (404, "NoSuchViewException")
    body = {"name": "x", "metadata-location": where}
    back = shop.post("/v1/namespaces/shop/register-view", json=body)
    assert back.json()["metadata"]["versions"] == [version()]


@pytest.mark.parametrize(
    "bad",
    [
        {"schema-id": 7},
        {"representations": [{"type": "sql", "sql": "x", "dialect": d} for d in ("a", "A")]},
        {"representations": [7]},
        {"representations": [{"type": "sql", "sql": "x", "dialect": 7}]},
        {"representations": [{"type": "sql", "dialect": "spark"}]},
        {"representations": "x"},
        {"representations": None},
        {"timestamp-ms": "x"},
        {"timestamp-ms": None},
        {"version-id": 2**70},
        {"default-namespace": 7},
        {"summary": 7},
    ],
)
def test_a_version_that_makes_no_sense_is_refused(shop: TestClient, bad: dict[str, Any]) -> None:
    before = shop.get(f"{WHERE}/v").json()
    update = {"action": "add-view-version", "view-version": version(**bad)}
    assert kind(shop.post(f"{WHERE}/v", json={"updates": [update]}))[0] == 400
    if "schema-id" not in bad:  # that of a new view is the schema it comes with
        body = {"name": "w", "schema": SCHEMA, "view-version": version(**bad), "properties": {}}
        assert kind(shop.post(WHERE, json=body))[0] == 400
        assert shop.head(f"{WHERE}/w").status_code == 404
    assert shop.get(f"{WHERE}/v").json() == before


@pytest.mark.parametrize("count", ["0", "-1", "²", "9" * 5000, "ten"])
def test_a_count_of_versions_is_a_number(shop: TestClient, count: str) -> None:
    updates = {"action": "set-properties", "updates": {"version.history.num-entries": count}}
    assert kind(shop.post(f"{WHERE}/v", json={"updates": [updates]}))[0] == 400


@pytest.mark.parametrize(
    ("type", "more"),
    [
        ("decimal(50,2)", {}),
        ({"type": "list", "element-id": 2, "element": "int"}, {"initial-default": []}),
    ],
)
def test_a_schema_that_cannot_be_is_refused(shop: TestClient, type: Any, more: Any) -> None:
    column = {"id": 1, "name": "x", "type": type, "required": False, **more}
    schema = {**SCHEMA, "fields": [column]}
    body = {"name": "w", "schema": schema, "view-version": version(), "properties": {}}
    assert kind(shop.post(WHERE, json=body))[0] == 400
    assert shop.head(f"{WHERE}/w").status_code == 404


def of_trino(client: TestClient, catalog: Catalog, sql: str) -> list[Any]:
    """What a view of Trino holds here, over a table with the number 7."""
    pytest.importorskip("sqlglot")
    catalog.create_table("shop.sevens", pa.table({"id": [7]}))
    body = {"name": "q", "schema": SCHEMA, "view-version": version(sql, "trino"), "properties": {}}
    assert client.post(WHERE, json=body).status_code == 200
    return [row["id"] for row in catalog.sql("SELECT id FROM shop.q").to_pylist()]


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("SELECT id % 4 AS id FROM sevens", 3),
        ("SELECT 7 / 2 AS id", 3),
        ("SELECT -7 / 2 AS id", -3),
        ("SELECT CAST(id AS BIGINT) / 2 AS id FROM shop.sevens", 3),
        ("SELECT CAST(id AS DOUBLE) / 2 AS id FROM shop.sevens", 3.5),
        ("SELECT avg(id) / 2 AS id FROM sevens", 3.5),
    ],
)
def test_a_view_of_trino_divides_as_it_does_there(
    shop: TestClient, catalog: Catalog, sql: str, value: float
) -> None:
    assert of_trino(shop, catalog, sql) == [value]


def test_a_quotient_that_could_be_another_one_is_refused(
    shop: TestClient, catalog: Catalog
) -> None:
    with pytest.raises(Unsupported, match="its dialects: trino"):
        of_trino(shop, catalog, "SELECT id / 2 AS id FROM sevens")

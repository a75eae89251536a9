"""What a client commits is judged as what the library commits: nothing lands that could not be
read, written or opened afterwards."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

import frazil
from frazil.commit.head import Draft
from frazil.errors import InvalidInput
from frazil.serve.app import build
from frazil.serve.service import Service
from frazil.table import Catalog, Table

TABLES = "/v1/namespaces/shop/tables"
ORDERS = f"{TABLES}/orders"


@pytest.fixture
def table(catalog: Catalog) -> Table:
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("small", pa.int32())])
    made = catalog.create_table("shop.orders", schema, partition_by=["day"])
    made.append([{"id": 1, "day": None, "small": 7}])
    return made


def field(number: int, name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"id": number, "name": name, "type": kind, "required": False, **more}


ID, DAY, SMALL = field(1, "id", "long"), field(2, "day", "date"), field(3, "small", "int")


def columns(*fields: dict[str, Any]) -> list[dict[str, Any]]:
    schema = {"type": "struct", "schema-id": 9, "fields": list(fields)}
    return [
        {"action": "add-schema", "schema": schema},
        {"action": "set-current-schema", "schema-id": -1},
    ]


def spec(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"action": "add-spec", "spec": {"spec-id": 9, "fields": list(fields)}}


def part(source: int, number: int, name: str, transform: str) -> dict[str, Any]:
    return {"source-id": source, "field-id": number, "name": name, "transform": transform}


def order(source: int) -> list[dict[str, Any]]:
    by = {
        "source-id": source,
        "transform": "identity",
        "direction": "asc",
        "null-order": "nulls-first",
    }
    return [
        {"action": "add-sort-order", "sort-order": {"order-id": 9, "fields": [by]}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
    ]


def properties(**values: str) -> list[dict[str, Any]]:
    named = {key.replace("_", ".").replace("..", "-"): value for key, value in values.items()}
    return [{"action": "set-properties", "updates": named}]


DEFAULT = {"action": "set-default-spec", "spec-id": -1}
OPTIONAL = {"element-required": False}
REFUSED: dict[str, list[dict[str, Any]]] = {
    "a version that is none": properties(serve_format__version="abc"),
    "a version in Arabic digits": properties(serve_format__version="٣"),
    "a count that is none": properties(commit_retry_num__retries="many"),
    "a boolean that is none": properties(gc_enabled="maybe"),
    "a mode that is none": properties(write_delete_mode="sometimes"),
    "a format that is not written": properties(write_format_default="csv"),
    "a secret": properties(s3_secret__access__key="x"),
    "a zero byte": properties(a="b\0c"),
    "long to string": columns(field(1, "id", "string"), DAY, SMALL),
    "long to int": columns(field(1, "id", "int"), DAY, SMALL),
    "int to float": columns(ID, DAY, field(3, "small", "float")),
    "a number to a struct": columns(
        ID, DAY, field(3, "small", {"type": "struct", "fields": [field(4, "x", "int")]})
    ),
    "a name twice": columns(ID, DAY, SMALL, field(4, "id", "long")),
    "an id twice": columns(ID, DAY, SMALL, field(1, "other", "long")),
    "no columns": columns(),
    "a partition's column dropped": columns(ID, SMALL),
    "an empty name": columns(ID, DAY, SMALL, field(4, "", "long")),
    "a type that is none": columns(ID, DAY, SMALL, field(4, "x", "quaternion")),
    "more digits than there are": columns(ID, DAY, SMALL, field(4, "x", "decimal(50,2)")),
    "more decimals than digits": columns(ID, DAY, SMALL, field(4, "x", "decimal(2,5)")),
    "a value of no bytes": columns(ID, DAY, SMALL, field(4, "x", "fixed[0]")),
    "a value of any size": columns(ID, DAY, SMALL, field(4, "x", "fixed[99999999999999]")),
    "elements that cannot be": columns(
        ID,
        DAY,
        SMALL,
        field(4, "x", {"type": "list", "element-id": 5, "element": "fixed[0]", **OPTIONAL}),
    ),
    "nothing that is required": columns(ID, DAY, SMALL, field(4, "x", "unknown", required=True)),
    "an id below 0": columns(ID, DAY, SMALL, field(-1, "x", "long")),
    "the id of row ids": columns(ID, DAY, SMALL, field(2_147_483_540, "x", "long")),
    "an id over 32 bits": columns(ID, DAY, SMALL, field(2**31, "x", "long")),
    "an id over 64 bits": columns(ID, DAY, SMALL, field(2**70, "x", "long")),
    "a default of another type": columns(
        ID, DAY, SMALL, field(4, "x", "long", **{"initial-default": "x"})
    ),
    "a default that is too large": columns(
        ID, DAY, SMALL, field(4, "x", "long", **{"write-default": 2**70})
    ),
    "a default of a list": columns(
        ID,
        DAY,
        SMALL,
        field(
            4,
            "x",
            {"type": "list", "element-id": 5, "element": "long", **OPTIONAL},
            **{"initial-default": []},
        ),
    ),
    "a spec on a missing column": [spec(part(77, 1001, "x", "identity"))],
    "a default spec on a missing column": [spec(part(77, 1001, "x", "identity")), DEFAULT],
    "a transform that cannot be": [spec(part(1, 1001, "id_day", "day")), DEFAULT],
    "a partition field's id for another": [spec(part(1, 1000, "id", "identity")), DEFAULT],
    "a name of a column for another": [spec(part(1, 1001, "small", "bucket[4]")), DEFAULT],
    "an order on a missing column": order(77),
    "a schema that is not there": [{"action": "set-current-schema", "schema-id": 77}],
    "a spec that is not there": [{"action": "set-default-spec", "spec-id": 77}],
    "an order that is not there": [{"action": "set-default-sort-order", "sort-order-id": 77}],
    "a branch of nothing": [
        {"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": 77}
    ],
    "main of nothing": [
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 77}
    ],
    "an order of texts": [
        {"action": "add-sort-order", "sort-order": {"order-id": 9, "fields": ["id"]}}
    ],
    "a branch of no 64 bits": [
        {"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": 2**70}
    ],
    "a snapshot of no 64 bits": [
        {
            "action": "add-snapshot",
            "snapshot": {
                "snapshot-id": 2**70,
                "sequence-number": 2,
                "timestamp-ms": 1,
                "manifest-list": "x.avro",
                "summary": {"operation": "append"},
            },
        }
    ],
    "a ref of no kind": [
        {"action": "set-snapshot-ref", "ref-name": "b", "type": "twig", "snapshot-id": 77}
    ],
}


@pytest.mark.parametrize("updates", REFUSED.values(), ids=REFUSED.keys())
def test_a_commit_that_spoils_the_table_is_refused(
    client: TestClient, catalog: Catalog, table: Table, updates: list[dict[str, Any]]
) -> None:
    before = catalog["shop.orders"].metadata
    for path, body in (
        (ORDERS, {"updates": updates}),
        (
            "/v1/transactions/commit",
            {
                "table-changes": [
                    {"identifier": {"namespace": ["shop"], "name": "orders"}, "updates": updates}
                ]
            },
        ),
    ):
        answer = client.post(path, json=body)
        assert answer.status_code == 400, answer.text
    assert catalog["shop.orders"].metadata == before
    assert client.get(ORDERS).status_code == 200
    assert catalog["shop.orders"].scan().to_pylist() == [{"id": 1, "day": None, "small": 7}]


ACCEPTED: dict[str, list[dict[str, Any]]] = {
    "int to long": columns(ID, DAY, field(3, "small", "long")),
    "another name": columns(field(1, "number", "long"), DAY, SMALL),
    "a column more": columns(ID, DAY, SMALL, field(4, "x", "string")),
    "a column of nothing": columns(ID, DAY, SMALL, field(4, "x", "unknown")),
    "the highest id": columns(ID, DAY, SMALL, field(2_147_483_447, "x", "long")),
    "a default": columns(
        ID, DAY, SMALL, field(4, "x", "date", **{"initial-default": "2020-02-29"})
    ),
    "a column less": columns(ID, DAY),
    "a spec on a column": [spec(part(1, 1001, "id_bucket", "bucket[4]")), DEFAULT],
    "a field that version 1 drops": [spec(part(2, 1000, "day", "void")), DEFAULT],
    "a field that version 1 drops beside a new one": [
        spec(part(2, 1000, "day", "void"), part(1, 1001, "id_bucket", "bucket[4]")),
        DEFAULT,
    ],
    "an order": order(1),
    "a version": properties(serve_format__version="2"),
    "what others read": properties(write_others_option="perhaps"),
}


@pytest.mark.parametrize("updates", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_the_library_would_do_is_done(
    client: TestClient, catalog: Catalog, table: Table, updates: list[dict[str, Any]]
) -> None:
    answer = client.post(ORDERS, json={"updates": updates})
    assert answer.status_code == 200, answer.text
    found = catalog["shop.orders"]
    assert found.scan().count() == 1
    found.append(found.scan().to_arrow())
    assert not found.check(deep=True).problems


def test_a_table_is_not_created_spoiled(client: TestClient, catalog: Catalog) -> None:
    client.post("/v1/namespaces", json={"namespace": ["shop"]})
    schema = {"type": "struct", "schema-id": 0, "fields": [ID, DAY]}
    bad: list[dict[str, Any]] = [
        {"properties": {"serve.format-version": "abc"}},
        {"properties": {"commit.retry.num-retries": "many"}},
        {"partition-spec": {"spec-id": 0, "fields": [part(77, 1000, "x", "identity")]}},
        {"partition-spec": {"spec-id": 0, "fields": [part(1, 1000, "x", "day")]}},
        {"schema": {**schema, "fields": [ID, ID]}},
        {"schema": {**schema, "fields": [field(1, "x", "decimal(50,2)")]}},
        {"schema": {**schema, "fields": [field(1, "x", "decimal(2,5)")]}},
        {"schema": {**schema, "fields": [field(1, "x", "long", **{"write-default": "x"})]}},
    ]
    for wrong in bad:
        for staged in (False, True):
            body = {"name": "t", "schema": schema, "stage-create": staged, **wrong}
            answer = client.post(TABLES, json=body)
            assert answer.status_code == 400, (wrong, answer.text)
    updates = [
        {"action": "assign-uuid", "uuid": "6a1f7c9e-32f1-4b52-9d6f-0d7a5a5f0b11"},
        *columns(ID, DAY),
        spec(part(77, 1000, "x", "identity")),
        DEFAULT,
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
    ]
    body = {"requirements": [{"type": "assert-create"}], "updates": updates}
    answer = client.post(f"{TABLES}/t", json=body)
    assert answer.status_code == 400, answer.text
    assert catalog.list_tables() == []


def test_a_draft_of_the_native_client_is_judged_alike(catalog: Catalog, table: Table) -> None:
    """A client that was changed sends whatever it likes: here, another type for a column."""
    with TestClient(build(Service(catalog)), base_url="http://127.0.0.1:8181") as client:
        loaded = client.post("/v1/frazil/load-table", json={"name": ["shop", "orders"]}).json()
        state = loaded["state"]
        definition = json.loads(state["definition"])
        definition["schemas"][0]["fields"][0]["type"] = "string"
        for rejected in (
            definition,
            {**json.loads(state["definition"]), "properties": {"serve.format-version": "abc"}},
        ):
            draft = {
                "base-version": state["version"],
                "last-sequence-number": state["last-sequence-number"],
                "last-updated-ms": state["last-updated-ms"],
                "next-row-id": state["next-row-id"],
                "refs": state["refs"],
                "added": [],
                "removed": [],
                "definition": json.dumps(rejected),
            }
            swap = {"key": loaded["key"], "known": {}, "draft": draft}
            answer = client.post("/v1/frazil/swap", json={"swaps": [swap]})
            assert answer.status_code == 400, answer.text
    assert catalog["shop.orders"].scan().to_pylist() == [{"id": 1, "day": None, "small": 7}]


def test_the_library_has_the_same_rules(table: Table) -> None:
    with pytest.raises(InvalidInput, match=r"serve\.format-version"):
        table.set_properties({"serve.format-version": "abc"})
    with pytest.raises(InvalidInput, match="cannot"), table.evolve_schema() as change:
        change.update_column("id", "string")


def test_a_version_that_was_stored_before_is_shown_as_3(catalog: Catalog, table: Table) -> None:
    """A table from elsewhere may carry any value; it is opened all the same."""
    table._handle.head.swap(
        table._handle.state,
        Draft(metadata=table.metadata.with_properties({"a": "b"}, now_ms=1)),
    )
    opened_catalog: Any = catalog._pointers
    with opened_catalog.find().database.transaction() as transaction:
        transaction.run(
            "UPDATE frazil_definitions SET definition = "
            """replace(definition, '"a":"b"', '"serve.format-version":"abc"')"""
        )
    with (
        frazil.connect(str(catalog.warehouse)) as opened,
        TestClient(build(Service(opened)), base_url="http://127.0.0.1:8181") as client,
    ):
        assert opened["shop.orders"].properties["serve.format-version"] == "abc"
        assert client.get(ORDERS).json()["metadata"]["format-version"] == 3

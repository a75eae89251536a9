"""Answers that never arrive: what landed stays, lands once, and is never taken for a refusal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitStateUnknownException
from starlette.testclient import TestClient

from frazil.errors import CatalogError, CommitUnknown
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType
from frazil.legacy.publish import write_manifests
from frazil.legacy.publish.write_manifests import ListRow
from frazil.serve.app import build
from frazil.serve.rest import commits
from frazil.serve.running import Running
from frazil.serve.service import Service
from frazil.serve.view.replay import Replay
from frazil.table import Catalog
from tests.serve.test_namespaces_and_tables import SCHEMA, error_of, make

ORDERS = "/v1/namespaces/shop/tables/orders"


class Recorder:
    """Keeps the last commit that a real client sent, to send it again."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bodies: list[bytes] = []
        original = commits.commit_table

        def recording(service: Any, call: Any) -> Any:
            self.bodies.append(call.body)
            return original(service, call)

        self._endpoints = commits.ENDPOINTS
        changed = tuple(
            each if each.handler is not original else replace(each, handler=recording, again=None)
            for each in commits.ENDPOINTS
        )
        monkeypatch.setattr(commits, "ENDPOINTS", changed)


def test_a_repeated_commit_lands_once(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recorder = Recorder(monkeypatch)
    service = Service(catalog)
    with (
        TestClient(build(service), base_url="http://127.0.0.1:8181") as client,
        Running(build(service)) as server,
    ):
        remote = RestCatalog("x", uri=server.uri)
        remote.create_namespace("shop")
        table = remote.create_table("shop.orders", schema=pa.schema([("id", pa.int64())]))
        table.append(pa.table({"id": [1, 2]}))
        catalog["shop.orders"].append(pa.table({"id": [3]}))  # the base has moved meanwhile
        again = client.post(f"/v1/v2{ORDERS[3:]}", content=recorder.bodies[-1])
        assert again.status_code == 200
        assert len(again.json()["metadata"]["snapshots"]) == 2
    assert sorted(catalog["shop.orders"].scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_a_commit_in_doubt_is_never_a_refusal(
    catalog: Catalog, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = RestCatalog("x", uri=server.uri)
    remote.create_namespace("shop")
    table = remote.create_table("shop.orders", schema=pa.schema([("id", pa.int64())]))

    def doubtful(*_: Any) -> None:
        raise CommitUnknown("the connection was lost")

    monkeypatch.setattr(commits, "commit_tables", doubtful)
    with pytest.raises(CommitStateUnknownException):
        table.append(pa.table({"id": [1]}))


def test_a_commit_that_landed_and_cannot_be_shown_is_in_doubt(
    catalog: Catalog, service: Service, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(client)

    def broken(*_: Any) -> None:
        raise CatalogError("gone")

    monkeypatch.setattr(service.facade, "show", broken)
    body = {"updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
    answer = client.post(ORDERS, json=body)
    assert error_of(answer) == (500, "CommitStateUnknownException")
    assert catalog["shop.orders"].metadata.properties["a"] == "b"


def test_a_request_with_a_key_is_answered_once(client: TestClient) -> None:
    key = {"Idempotency-Key": "018f-1"}
    space = {"namespace": ["shop"]}
    first = client.post("/v1/namespaces", json=space, headers=key)
    assert client.post("/v1/namespaces", json=space, headers=key).json() == first.json()
    assert client.post("/v1/namespaces", json=space).status_code == 409
    other = client.post("/v1/namespaces", json={"namespace": ["b"]}, headers=key)
    assert error_of(other) == (422, "UnprocessableEntityException")
    key = {"Idempotency-Key": "018f-2"}
    body = {"name": "t", "schema": SCHEMA}
    made = client.post("/v1/namespaces/shop/tables", json=body, headers=key).json()
    again = client.post("/v1/namespaces/shop/tables", json=body, headers=key).json()
    assert again["metadata"]["table-uuid"] == made["metadata"]["table-uuid"]
    key = {"Idempotency-Key": "018f-3"}
    for _ in range(2):
        gone = client.delete("/v1/namespaces/shop/tables/t", headers=key)
        assert gone.status_code == 204


@pytest.mark.parametrize(
    ("update", "status"),
    [
        ({"action": "dance"}, 400),
        ({"action": "set-current-schema", "schema-id": -1}, 400),
        ({"action": "upgrade-format-version", "format-version": 1}, 400),
        ({"action": "upgrade-format-version", "format-version": 9}, 400),
        ({"action": "set-location", "location": "file:///etc"}, 403),
        ({"action": "set-properties", "updates": {"write.data.path": "file:///etc"}}, 403),
    ],
)
def test_updates_that_cannot_be_are_refused(
    client: TestClient, update: dict[str, Any], status: int
) -> None:
    make(client)
    assert client.post(ORDERS, json={"updates": [update]}).status_code == status


def test_requirements_that_are_unknown_or_fail(client: TestClient) -> None:
    make(client)
    unknown = {"requirements": [{"type": "assert-mood"}], "updates": []}
    assert error_of(client.post(ORDERS, json=unknown))[0] == 400
    for requirement in (
        {"type": "assert-create"},
        {"type": "assert-table-uuid", "uuid": "x"},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 5},
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 9},
        {"type": "assert-current-schema-id", "current-schema-id": 9},
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 9},
        {"type": "assert-default-spec-id", "default-spec-id": 9},
        {"type": "assert-default-sort-order-id", "default-sort-order-id": 9},
    ):
        answer = client.post(ORDERS, json={"requirements": [requirement], "updates": []})
        assert answer.status_code == 409, requirement


def test_a_manifest_list_outside_the_table_is_not_read(client: TestClient) -> None:
    make(client)
    snapshot = {
        "snapshot-id": 5,
        "timestamp-ms": 1,
        "sequence-number": 1,
        "manifest-list": "file:///etc/passwd",
        "summary": {"operation": "append"},
    }
    updates = [
        {"action": "add-snapshot", "snapshot": snapshot},
        {
            "action": "set-snapshot-ref",
            "ref-name": "main",
            "type": "branch",
            "snapshot-id": 5,
        },
    ]
    assert error_of(client.post(ORDERS, json={"updates": updates})) == (403, "ForbiddenException")


def test_answers_are_forgotten_after_their_lifetime(client: TestClient, service: Service) -> None:
    clock = [1_000.0]
    service.replay = Replay(service.catalog._pointers.notes, now=lambda: clock[0])
    client.post("/v1/namespaces", json={"namespace": ["a"]}, headers={"Idempotency-Key": "k1"})
    assert len(service.catalog._pointers.notes.below("request:")) == 1
    clock[0] += 31 * 60
    client.post("/v1/namespaces", json={"namespace": ["b"]}, headers={"Idempotency-Key": "k2"})
    assert list(service.catalog._pointers.notes.below("request:")) == ["request:k2"]


@pytest.mark.parametrize("hides_in", ["manifest", "position deletes", "dots"])
def test_a_list_that_leads_out_of_the_warehouse_is_not_followed(
    catalog: Catalog, client: TestClient, tmp_path: Path, hides_in: str
) -> None:
    """A list in its place whose manifest, or whose manifest's delete file, lies elsewhere."""
    make(client)
    table = catalog["shop.orders"]
    secret = tmp_path / "secret.parquet"
    secret.write_bytes(b"not for you")
    outside = f"file://{secret}"
    if hides_in == "dots":
        outside = f"{table.location}/../../../secret.parquet"
    row = ListRow(
        path=outside,
        length=11,
        spec_id=0,
        is_deletes=False,
        sequence_number=1,
        min_sequence_number=1,
        added_snapshot_id=5,
        files=(1, 0, 0),
        rows=(1, 0, 0),
    )
    if hides_in == "position deletes":
        entry = {
            "tracking.status": 1,
            "tracking.snapshot_id": 5,
            "tracking.sequence_number": 1,
            "tracking.file_sequence_number": 1,
            "content_type": int(ContentType.POSITION_DELETES),
            "location": outside,
            "file_format": "parquet",
            "record_count": 1,
            "file_size_in_bytes": 11,
            "spec_id": 0,
        }
        manifest = write_manifests.encode_manifest(
            EntryBatch.from_rows([entry]),
            format_version=2,
            is_deletes=True,
            spec=table.metadata.spec(),
            metadata=table.metadata,
            location=table.location,
        )
        place = f"{table.location}/metadata/m.avro"
        table._handle.storage.write_new(place, manifest)
        row = replace(row, path=place, length=len(manifest), is_deletes=True)
    listed = write_manifests.encode_list(
        [row], format_version=2, snapshot_id=5, parent_snapshot_id=None, sequence_number=1
    )
    where = f"{table.location}/metadata/snap-5.avro"
    table._handle.storage.write_new(where, listed)
    snapshot = {
        "snapshot-id": 5,
        "timestamp-ms": 1,
        "sequence-number": 1,
        "manifest-list": where,
        "summary": {"operation": "append"},
    }
    ref = {"ref-name": "main", "type": "branch", "snapshot-id": 5}
    updates = [
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", **ref},
    ]
    with table._handle.storage.recording() as calls:
        answer = client.post(ORDERS, json={"updates": updates})
    assert answer.status_code in (400, 403), answer.text
    assert "not for you" not in answer.text
    assert not [call for call in calls if "secret" in call.path]
    assert catalog["shop.orders"].current_snapshot() is None

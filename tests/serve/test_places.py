"""Attempts to make the server read, write or adopt files that are none of its tables'."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from frazil.serve.access.principals import Principal, Rule, TokenFile
from frazil.serve.app import build
from frazil.serve.service import Service
from frazil.serve.settings import Settings
from frazil.table import Catalog
from tests.serve.test_equality_deletes import rows
from tests.serve.test_namespaces_and_tables import SCHEMA, make
from tests.serve.test_views import version
from tests.support.raw_client import RawClient

ORDERS = "/v1/namespaces/shop/tables/orders"
TABLES = "/v1/namespaces/shop/tables"
VIEW = {"name": "v", "schema": SCHEMA, "view-version": version(), "properties": {}}


def folder(catalog: Catalog) -> Path:
    return Path(catalog["shop.orders"].location.removeprefix("file://"))


@pytest.fixture
def raw(client: TestClient, catalog: Catalog) -> RawClient:
    """A writer on an empty table."""
    make(client, properties={"format-version": "2"})
    return RawClient(http=client, folder=folder(catalog) / "metadata")


def spellings(outside: Path, inside: Path) -> list[str]:
    """A file outside, in every spelling that could pass for one inside."""
    link = inside / "link"
    link.symlink_to(outside)
    shelf = inside / "shelf"
    shelf.symlink_to(outside.parent)
    up = "/".join([".."] * len(inside.parts))
    return [
        f"file://{outside}",
        f"FILE:{outside}",
        str(outside),
        f"file://{inside}/{up}{outside}",
        f"file://{inside}/./{up}/{outside}",
        f"file://{link}",
        f"file://{shelf}/{outside.name}",
        f"file://localhost{outside}",
        f"s3://bucket{outside}",
        f"http://127.0.0.1:1{outside}",
        f"{inside}/%2e%2e/x\0{outside}",
        "",
    ]


def test_no_spelling_of_a_manifest_list_or_data_file_leads_out(
    raw: RawClient, catalog: Catalog, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.parquet"
    secret.write_bytes(b"not for you")
    for path in spellings(secret, raw.folder):
        storage = catalog["shop.orders"]._handle.storage
        with storage.recording() as calls:
            listed = raw.post(raw.updates(raw.data(rows(1)), lists=path))
            adopted = raw.post(raw.updates(raw.data(rows(1), path=path)))
        for answer in (listed, adopted):
            assert answer.status_code in (400, 403), (path, answer.text)
            assert "not for you" not in answer.text
        assert not [call for call in calls if call.path.endswith(secret.name)], path
    assert catalog["shop.orders"].current_snapshot() is None
    ok = raw.post(raw.updates(raw.data(rows(1))))
    assert ok.status_code == 200, ok.text


def test_a_file_without_a_scheme_is_read_where_it_is(raw: RawClient, catalog: Catalog) -> None:
    place = raw.data(rows(7)).data_file.file_path.removeprefix("file://")
    assert raw.post(raw.updates(raw.data(rows(7), path=place))).status_code == 200
    assert catalog["shop.orders"].scan().to_pylist() == [{"id": 7, "day": None}]


@pytest.mark.parametrize("kind", ["statistics", "partition-statistics"])
def test_statistics_lie_in_the_table(raw: RawClient, tmp_path: Path, kind: str) -> None:
    assert raw.post(raw.updates(raw.data(rows(1)))).status_code == 200
    number = raw.load()["current-snapshot-id"]
    for path, status in ((f"file://{tmp_path}/x", 403), (f"file://{raw.folder}/x", 200), (7, 400)):
        stated = {
            "snapshot-id": number,
            "statistics-path": path,
            "file-size-in-bytes": 1,
            "file-footer-size-in-bytes": 1,
            "blob-metadata": [],
        }
        update = {"action": f"set-{kind}", kind: stated}
        assert raw.post({"updates": [update]}).status_code == status, path


@pytest.mark.parametrize(
    "properties",
    [
        {"write.metadata.path": "file:///etc"},
        {"write.data.path": "/"},
        {"write.object-storage.path": "s3://elsewhere/x"},
        {"serve.location": "file:///etc"},
        {"write.data.path": "../../../.."},
        {"frazil.added-files.path": '["file:///etc"]'},
    ],
)
def test_properties_send_no_table_elsewhere(
    raw: RawClient, client: TestClient, properties: dict[str, str]
) -> None:
    made = client.post(TABLES, json={"name": "t", "schema": SCHEMA, "properties": properties})
    assert made.status_code in (400, 403), made.text
    staged = {"name": "t", "schema": SCHEMA, "properties": properties, "stage-create": True}
    assert client.post(TABLES, json=staged).status_code in (400, 403)
    update = {"action": "set-properties", "updates": properties}
    assert raw.post({"updates": [update]}).status_code in (400, 403)


def test_a_namespace_sends_its_tables_nowhere_else(client: TestClient, catalog: Catalog) -> None:
    bad = {"location": "file:///etc/frazil"}
    answer = client.post("/v1/namespaces", json={"namespace": ["n"], "properties": bad})
    assert answer.status_code == 403
    client.post("/v1/namespaces", json={"namespace": ["n"]})
    answer = client.post("/v1/namespaces/n/properties", json={"updates": bad})
    assert answer.status_code == 403
    good = {"location": f"{catalog.warehouse}/elsewhere"}
    assert client.post("/v1/namespaces/n/properties", json={"updates": good}).status_code == 200


def _moved(document: dict[str, Any], outside: Path) -> dict[str, Any]:
    return {**document, "location": f"file://{outside}"}


def _with_folder(document: dict[str, Any], outside: Path) -> dict[str, Any]:
    return {**document, "properties": {"write.data.path": f"file://{outside}"}}


def _with_list(document: dict[str, Any], outside: Path) -> dict[str, Any]:
    snapshots = [{**document["snapshots"][0], "manifest-list": f"file://{outside}/l.avro"}]
    return {**document, "snapshots": snapshots}


@pytest.mark.parametrize("changed", [_moved, _with_folder, _with_list])
def test_metadata_that_leads_elsewhere_is_not_registered(
    raw: RawClient,
    client: TestClient,
    catalog: Catalog,
    tmp_path: Path,
    changed: Callable[[dict[str, Any], Path], dict[str, Any]],
) -> None:
    assert raw.post(raw.updates(raw.data(rows(1)))).status_code == 200
    document = {**raw.load(), "table-uuid": "6a1f7c9e-32f1-4b52-9d6f-0d7a5a5f0b11"}
    document["location"] = f"{catalog.warehouse}/shop/copy"
    place = Path(str(catalog.warehouse).removeprefix("file://"), "shop", "copy", "v1.metadata.json")
    place.parent.mkdir(parents=True)
    for content, status in ((changed(document, tmp_path), 403), (document, 200)):
        place.write_text(json.dumps(content))
        body = {"name": "copy", "metadata-location": f"file://{place}"}
        answer = client.post("/v1/namespaces/shop/register", json=body)
        assert answer.status_code == status, answer.text
    assert sorted(each.name for each in tmp_path.iterdir()) == ["warehouse"]


def test_a_view_is_written_nowhere_else(
    client: TestClient, catalog: Catalog, tmp_path: Path
) -> None:
    client.post("/v1/namespaces", json={"namespace": ["shop"]})
    views = "/v1/namespaces/shop/views"
    elsewhere = f"file://{tmp_path}/elsewhere"
    for bad in ({"location": elsewhere}, {"properties": {"write.metadata.path": elsewhere}}):
        assert client.post(views, json=VIEW | bad).status_code == 403, bad
    made = client.post(views, json=VIEW)
    assert made.status_code == 200, made.text
    for update in (
        {"action": "set-location", "location": elsewhere},
        {"action": "set-properties", "updates": {"write.metadata.path": elsewhere}},
    ):
        assert client.post(f"{views}/v", json={"updates": [update]}).status_code == 403
    document = made.json()["metadata"]
    for bad, status in (
        ({"location": elsewhere}, 403),
        ({"properties": {"write.metadata.path": elsewhere}}, 403),
        ({"view-uuid": "../../../../../../elsewhere"}, 400),
    ):
        path = Path(str(catalog.warehouse).removeprefix("file://"), "shop", "posted.json")
        path.write_text(json.dumps(document | bad))
        body = {"name": "w", "metadata-location": f"file://{path}"}
        answer = client.post("/v1/namespaces/shop/register-view", json=body)
        assert answer.status_code == status, answer.text
    assert sorted(each.name for each in tmp_path.iterdir()) == ["warehouse"]


def test_places_that_the_server_was_told_of_are_used(catalog: Catalog, tmp_path: Path) -> None:
    settings = Settings(allowed=(f"file://{tmp_path}/lake",))
    with TestClient(build(Service(catalog, settings)), base_url="http://127.0.0.1:8181") as client:
        make(client, location=f"file://{tmp_path}/lake/orders", properties={"format-version": "2"})
        raw = RawClient(http=client, folder=tmp_path / "lake" / "landing")
        assert raw.post(raw.updates(raw.data(rows(1, 2)))).status_code == 200
    assert catalog["shop.orders"].scan().to_arrow().num_rows == 2


# Senders who may write some namespaces


@pytest.fixture
def shared(catalog: Catalog) -> TestClient:
    """A catalog of two owners, each of whom may write a namespace."""
    owners = {
        hashlib.sha256(name.encode()).hexdigest(): Principal(
            name=name, rules=(Rule.parse(f"write:{name}"),)
        )
        for name in ("shop", "bank")
    }
    for name in owners.values():
        catalog.create_namespace(name.name)
    catalog.create_table("bank.accounts", pa.schema({"id": pa.int64()})).append([{"id": 1}])
    return TestClient(
        build(Service(catalog, access=TokenFile(owners))), base_url="http://127.0.0.1:8181"
    )


def test_files_of_another_owner_are_not_adopted(shared: TestClient, catalog: Catalog) -> None:
    mine = {"Authorization": "Bearer shop"}
    body = {"name": "orders", "schema": SCHEMA, "properties": {"format-version": "2"}}
    assert shared.post(TABLES, json=body, headers=mine).status_code == 200
    raw = RawClient(http=shared, folder=folder(catalog) / "metadata", headers=mine)
    theirs = catalog["bank.accounts"]
    place = Path(theirs.location.removeprefix("file://"))
    (stolen,) = place.glob("data/**/*.parquet")
    answer = raw.post(raw.updates(raw.data(rows(1), path=f"file://{stolen}")))
    assert answer.status_code == 403, answer.text
    own = raw.post(raw.updates(raw.data(rows(1))))
    assert own.status_code == 200, own.text


def test_places_of_another_owner_are_not_taken(shared: TestClient, catalog: Catalog) -> None:
    mine = {"Authorization": "Bearer shop"}
    bank = f"{catalog.warehouse}/bank"
    tries: list[tuple[str, dict[str, Any]]] = [
        (TABLES, {"name": "t", "schema": SCHEMA, "location": f"{bank}/mine"}),
        (TABLES, {"name": "t", "schema": SCHEMA, "properties": {"write.data.path": bank}}),
        ("/v1/namespaces/shop/properties", {"updates": {"location": bank}}),
        ("/v1/namespaces/shop/views", VIEW | {"location": f"{bank}/v"}),
        (
            "/v1/namespaces/shop/register",
            {"name": "t", "metadata-location": f"{bank}/accounts/metadata/v1.metadata.json"},
        ),
    ]
    for path, body in tries:
        answer = shared.post(path, json=body, headers=mine)
        assert answer.status_code == 403, (path, answer.text)
    name = {"namespace": ["shop", "eu"], "properties": {"location": f"{catalog.warehouse}/x"}}
    assert shared.post("/v1/namespaces", json=name, headers=mine).status_code == 403

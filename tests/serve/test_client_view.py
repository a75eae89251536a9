"""What a client sees of a table is right: deletes, snapshots, parents, plans."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable
from starlette.testclient import TestClient

from frazil.errors import NotFound
from frazil.serve.plan.planning import Cancelled
from frazil.serve.rest import plans
from frazil.serve.service import Service
from frazil.table import Catalog, Table
from tests.serve.test_equality_deletes import rows
from tests.serve.test_namespaces_and_tables import make
from tests.serve.test_places import folder
from tests.support.raw_client import RawClient

ORDERS = "/v1/namespaces/shop/tables/orders"


def load(client: TestClient, path: str = ORDERS) -> dict[str, Any]:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_table_of_version_1_is_shown_with_its_deletes(
    client: TestClient, catalog: Catalog
) -> None:
    """Version 1 knows no deletes: a reader of it would bring the rows back."""
    make(client, properties={"format-version": "1"})
    assert load(client)["metadata"]["format-version"] == 1
    table = catalog["shop.orders"]
    table.append([{"id": number, "day": None} for number in range(10)])
    assert load(client)["metadata"]["format-version"] == 1
    table.delete("id = 3")
    shown = load(client)
    assert shown["metadata"]["format-version"] == 2
    seen = StaticTable.from_metadata(shown["metadata-location"]).scan().to_arrow()
    assert sorted(seen["id"].to_pylist()) == [0, 1, 2, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("prefix", ["", "/v2"])
def test_the_first_load_shows_every_snapshot(
    client: TestClient, catalog: Catalog, prefix: str
) -> None:
    table = catalog.create_table("shop.orders", pa.schema([("id", pa.int64())]))
    for number in range(33):
        table.append([{"id": number}])
    table.branch("audit", create=True).append([{"id": 99}])
    path = f"/v1{prefix}/namespaces/shop/tables/orders"
    shown = load(client, path)
    own = {int(snapshot.snapshot_id): snapshot for snapshot in table.snapshots()}
    assert len(own) == 34
    assert {each["snapshot-id"] for each in shown["metadata"]["snapshots"]} == own.keys()
    assert len(shown["metadata"]["snapshot-log"]) == 33
    oldest = min(own.values(), key=lambda snapshot: snapshot.sequence_number)
    peer = StaticTable.from_metadata(shown["metadata-location"])
    seen = peer.scan(snapshot_id=int(oldest.snapshot_id)).to_arrow()
    assert seen["id"].to_pylist() == [0]
    again = load(client, path)
    assert again["metadata-location"] == shown["metadata-location"], "nothing is left to do"


def test_a_version_that_is_cleaned_up_while_it_is_shown_is_not_a_table_that_is_gone(
    client: TestClient, service: Service, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table("shop.orders", pa.schema([("id", pa.int64())]))
    table.append([{"id": 1}])
    show = service.facade.show
    versions: list[int] = []

    def cleaned_up_first(handle: Any, version: int | None = None) -> Any:
        versions.append(handle.state.version)
        if len(versions) == 1:
            table.append([{"id": 2}])
            raise NotFound("metadata/published/00001.metadata.json: it was deleted")
        return show(handle, version)

    monkeypatch.setattr(service.facade, "show", cleaned_up_first)
    assert len(load(client)["metadata"]["snapshots"]) == 2
    assert versions == [versions[0], versions[0] + 1]


def replacement(raw: RawClient, *numbers: int) -> dict[str, Any]:
    """CREATE OR REPLACE TABLE … AS SELECT, as Java sends it."""
    known = raw.load()
    body = raw.updates(
        raw.data(rows(*numbers)), base={**known, "current-snapshot-id": None, "snapshots": []}
    )
    gone = {"action": "remove-snapshot-ref", "ref-name": "main"}
    return {"requirements": body["requirements"][:1], "updates": [gone, *body["updates"]]}


def test_a_replaced_table_starts_without_a_parent(client: TestClient, catalog: Catalog) -> None:
    make(client, properties={"format-version": "2"})
    raw = RawClient(http=client, folder=folder(catalog) / "metadata")
    for number in (1, 2):
        assert raw.post(raw.updates(raw.data(rows(number)))).status_code == 200
    answer = raw.post(replacement(raw, 7, 8))
    assert answer.status_code == 200, answer.text
    metadata = answer.json()["metadata"]
    current = next(
        each
        for each in metadata["snapshots"]
        if each["snapshot-id"] == metadata["current-snapshot-id"]
    )
    assert current.get("parent-snapshot-id") is None
    assert current["summary"]["operation"] == "append"
    assert len(metadata["snapshots"]) == 3
    table = catalog["shop.orders"]
    assert sorted(row["id"] for row in table.scan().to_pylist()) == [7, 8]
    assert raw.post(raw.updates(raw.data(rows(9)))).status_code == 200
    assert sorted(row["id"] for row in catalog["shop.orders"].scan().to_pylist()) == [7, 8, 9]
    assert not catalog["shop.orders"].check(deep=True).problems


def test_a_plan_is_cancelled_for_its_own_table_only(
    client: TestClient, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "MAX_PLAN_FILES", 1)
    monkeypatch.setattr(plans, "MIN_PLAN_FILES", 1)
    for name in ("orders", "other"):
        table: Table = catalog.create_table(f"shop.{name}", pa.schema([("id", pa.int64())]))
        for number in range(3):
            table.append([{"id": number}])
    planned = client.post(f"{ORDERS}/plan", json={}).json()
    other = "/v1/namespaces/shop/tables/other"
    assert client.delete(f"{other}/plan/{planned['plan-id']}").status_code == 204
    token = planned["plan-tasks"][0]
    assert client.post(f"{ORDERS}/tasks", json={"plan-task": token}).status_code == 200
    assert client.delete(f"{ORDERS}/plan/{planned['plan-id']}").status_code == 204
    assert client.post(f"{ORDERS}/tasks", json={"plan-task": token}).status_code == 404


def test_what_is_no_plan_is_not_remembered(
    client: TestClient, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of plans that somebody makes up would push out those that were cancelled."""
    catalog.create_table("shop.orders", pa.schema([("id", pa.int64())]))
    kept: list[str] = []
    monkeypatch.setattr(Cancelled, "add", lambda _, plan: kept.append(plan))
    for name in ("x" * 5000, "large-" + "y" * 5000, "nonsense", "large-"):
        assert client.delete(f"{ORDERS}/plan/{name}").status_code == 204
    assert kept == []

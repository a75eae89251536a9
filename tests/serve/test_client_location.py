"""What clients see as a table's location holds what they write, and nothing that they could delete
without knowing what it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from starlette.testclient import TestClient

from frazil import serve
from frazil.serve.running import Running
from frazil.table import Catalog
from tests.serve.test_echoes import ORDERS, TABLES, completed, staged
from tests.serve.test_namespaces_and_tables import SCHEMA, make

ROWS = pa.table({"id": [1, 2, 3]})


def files_below(location: str) -> set[str]:
    folder = Path(location.removeprefix("file://"))
    return {f"file://{path}" for path in folder.rglob("*") if path.is_file()}


def named_by(table: Any) -> set[str]:
    """What an engine keeps that removes orphans: all that the metadata it sees names."""
    names = {str(path) for path in table.inspect.all_files()["file_path"].to_pylist()}
    for snapshot in table.metadata.snapshots:
        names.add(snapshot.manifest_list)
        names |= {manifest.manifest_path for manifest in snapshot.manifests(table.io)}
    return names


def test_removing_orphans_as_engines_do_takes_nothing_of_the_table(
    server: Running, catalog: Catalog
) -> None:
    """Trino lists the location and ignores `gc.enabled`."""
    catalog.create_table(
        "shop.orders", ROWS.schema, properties={"write.root.max-data-entries": "2"}
    )
    peer = RestCatalog("c", uri=server.uri)
    for number in range(6):
        catalog["shop.orders"].append(ROWS)
        if number % 2:
            peer.load_table("shop.orders").append(ROWS)
    catalog["shop.orders"].delete("id = 2")
    catalog["shop.orders"].branch("audit", create=True).append(ROWS)
    seen = peer.load_table("shop.orders")
    shown = files_below(seen.location())
    assert shown, "clients write there"
    for name in shown - named_by(seen):
        Path(name.removeprefix("file://")).unlink()
    table = catalog["shop.orders"]
    assert not table.check(deep=True).problems
    assert table.scan().count() == 18
    assert table.branch("audit").scan().count() == 21
    peer.load_table("shop.orders").append(ROWS)
    assert table.scan().count() == 21


def test_files_of_clients_are_the_tables_own(server: Running, catalog: Catalog) -> None:
    table = catalog.create_table("shop.orders", ROWS.schema)
    peer = RestCatalog("c", uri=server.uri).load_table("shop.orders")
    peer.append(ROWS)
    before = files_below(peer.location())
    table.refresh().overwrite(ROWS)
    table.expire_snapshots(keep_last=1, older_than=_later())
    removed = table.remove_orphan_files(older_than=_later())
    assert removed
    assert not files_below(peer.location()) & before
    assert table.scan().count() == 3


def test_a_location_that_a_client_asks_for_is_what_it_sees(
    client: TestClient, catalog: Catalog
) -> None:
    place = f"{catalog.warehouse}/shop/orders-of-trino"
    for body in ({"location": place}, {"location": place, "stage-create": True}):
        answer = make(client, **body)
        assert answer["metadata"]["location"] == place
        if not body.get("stage-create"):
            assert not catalog["shop.orders"].location.startswith(f"{place}/")
            assert catalog["shop.orders"].location != place
            taken = client.post(TABLES, json={"name": "other", "schema": SCHEMA, "location": place})
            assert taken.status_code == 400, taken.text
            client.delete(ORDERS)
            catalog.create_namespace("spare")
    usual = f"{catalog.warehouse}/shop/orders"
    assert make(client, location=usual)["metadata"]["location"] == usual
    assert catalog["shop.orders"].location != usual


@pytest.mark.parametrize("inside", ["", "/clients", "/clients/data", "/data", "/metadata/x"])
def test_no_clients_of_another_table_see_a_folder_of_a_table(
    client: TestClient, catalog: Catalog, inside: str
) -> None:
    """They would remove its files, or the tree itself, as orphans of theirs."""
    make(client)
    catalog["shop.orders"].append(ROWS)
    place = f"{catalog['shop.orders'].location}{inside}"
    other = {"name": "other", "schema": SCHEMA}
    assert client.post(TABLES, json=other).status_code == 200
    stated = {"serve.location": place}
    updates: list[dict[str, Any]] = [
        {"action": "set-location", "location": place},
        {"action": "set-properties", "updates": stated},
    ]
    answers = [client.post(f"{TABLES}/other", json={"updates": [update]}) for update in updates]
    for more in ({"location": place}, {"properties": stated}):
        for is_staged in (False, True):
            body = {**other, "name": "third", "stage-create": is_staged, **more}
            answers.append(client.post(TABLES, json=body))
    for answer in answers:
        assert answer.status_code == 400, answer.text
        assert "in use" in answer.text
    assert catalog.list_tables("shop") == ["shop.orders", "shop.other"]
    seen = client.get(f"{TABLES}/other").json()["metadata"]["location"]
    assert seen == f"{catalog['shop.other'].location}/clients"
    update = {"action": "set-location", "location": f"{seen}-2"}
    assert client.post(f"{TABLES}/other", json={"updates": [update]}).status_code == 200


def test_a_staged_table_lies_where_it_was_shown(client: TestClient, catalog: Catalog) -> None:
    shown = staged(client)
    assert completed(client, shown).status_code == 200
    table = catalog["shop.orders"]
    assert shown["location"] == f"{table.location}/clients"
    assert "serve.location" not in table.properties
    again = client.get(ORDERS).json()
    assert again["metadata"]["location"] == shown["location"]
    client.delete(ORDERS)
    registered = client.post(
        "/v1/namespaces/shop/register",
        json={"name": "orders", "metadata-location": again["metadata-location"]},
    )
    assert registered.status_code == 200, registered.text
    assert registered.json()["metadata"]["location"] == shown["location"]


def test_a_location_that_holds_the_tree_is_a_problem_of_health(
    client: TestClient, catalog: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    make(client)
    table = catalog["shop.orders"]
    assert table.analyze().is_healthy
    table.set_properties({"serve.location": table.location})
    (advice,) = table.analyze().advice
    assert "serve.location" in advice.run
    with serve.start(catalog):
        assert "shop.orders" in caplog.text
    caplog.clear()
    table.set_properties({"serve.location": "elsewhere"})
    assert table.analyze().is_healthy
    with serve.start(catalog):
        assert not caplog.text
    assert client.get(ORDERS).json()["metadata"]["location"] == f"{table.location}/elsewhere"


def test_clickhouse_finds_metadata_below_the_location_again_and_again(
    client: TestClient, catalog: Catalog
) -> None:
    """It looks nowhere else, and everybody may delete what lies there."""
    make(client)
    agent = {"User-Agent": "ClickHouse/26.9.2.1"}
    table = catalog["shop.orders"]
    for _ in range(2):
        shown = client.get(ORDERS, headers=agent).json()
        place = shown["metadata"]["location"]
        assert shown["metadata-location"].startswith(f"{place}/metadata/")
        (copy,) = files_below(place)
        assert copy == shown["metadata-location"]
        assert json.loads(Path(copy.removeprefix("file://")).read_text()) == shown["metadata"]
        assert client.get(ORDERS).json()["metadata"] == shown["metadata"]
        removed = table.remove_orphan_files(older_than=_later())
        assert [file.path for file in removed.files] == [copy]
    assert not table.check(deep=True).problems


def _later() -> Any:
    from datetime import UTC, datetime, timedelta

    return datetime.now(UTC) + timedelta(days=1)

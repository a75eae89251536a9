"""Notes of a table hold paths. A stranger who could write one would choose what the server reads,
shows and deletes, so no client adds notes, and a path that leads elsewhere is not followed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from frazil.serve.view.published_view import head_of
from frazil.table import Catalog, Table

ORDERS = "/v1/namespaces/shop/tables/orders"
SECRET = "the password is swordfish"


@pytest.fixture
def table(catalog: Catalog) -> Table:
    made = catalog.create_table("shop.orders", pa.schema([("id", pa.int64())]))
    made.append([{"id": 1}])
    return made


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret.json"
    path.write_text(json.dumps({"text": SECRET}))
    return path


def ask(client: TestClient, operation: str, **body: Any) -> Any:
    return client.post(f"/v1/frazil/{operation}", json=body)


def key_of(client: TestClient) -> str:
    key: str = ask(client, "load-table", name=["shop", "orders"]).json()["key"]
    return key


def poisoned(table: Table, path: str) -> dict[str, str]:
    """Every kind of note, each with a path of somebody's choice."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    number, version = int(snapshot.snapshot_id), table._handle.state.version
    row = {"path": path, "length": 1, "spec_id": 0, "is_deletes": False, "sequence_number": 1}
    row |= {"min_sequence_number": 1, "added_snapshot_id": number, "first_row_id": 0}
    notes = {}
    for shown in (2, 3):
        notes[f"json:{shown}:{version:012d}"] = json.dumps([path, 0])
        notes[f"list:{shown}:{number}"] = path
        uses = {"list": path, "leaves": [], "own": [path], "positions": []}
        notes[f"uses:{shown}:{number}"] = json.dumps(uses)
        notes[f"uses:{shown}:77"] = json.dumps(uses)  # a snapshot that is gone
    return notes


def test_no_client_adds_notes(client: TestClient, table: Table, secret: Path) -> None:
    key = key_of(client)
    answer = ask(client, "add-notes", key=key, notes=poisoned(table, f"file://{secret}"))
    assert answer.status_code == 404
    assert head_of(table._handle).notes.below("json:") == {}
    for operation, body in (
        ("notes-below", {"prefix": "request:"}),
        ("read-notes", {"names": ["request:1"]}),
        ("remove-notes", {"names": ["request:1"]}),
    ):
        assert ask(client, operation, key=None, **body).status_code == 400, operation
    assert ask(client, "notes-below", key=key, prefix="").status_code == 400


def spellings(table: Table, secret: Path) -> list[str]:
    inside = f"{table.location}/metadata/published"
    Path(inside.removeprefix("file://")).mkdir(parents=True)
    return [
        f"file://{secret}",
        str(secret),
        f"{inside}/../../../../../secret.json",
        f"{inside}/a/../../../../../../secret.json",
        f"{table.location}/metadata/publishedx/secret.json",
        f"{inside}/",
        f"{inside}/..",
    ]


def test_a_note_that_leads_elsewhere_is_not_followed(
    client: TestClient, table: Table, secret: Path
) -> None:
    for path in spellings(table, secret):
        notes = head_of(table._handle).notes
        for prefix in ("json:", "list:", "uses:"):
            notes.remove(list(notes.below(prefix)))
        notes.add(poisoned(table, path))
        for prefix in ("", "/v2", "/v3"):
            loaded = client.get(f"/v1{prefix}/namespaces/shop/tables/orders")
            assert loaded.status_code == 200, (path, loaded.text)
            assert SECRET not in loaded.text
            assert loaded.json()["metadata"]["table-uuid"] == str(table.metadata.table_uuid)
            again = client.get(f"/v1{prefix}/namespaces/shop/tables/orders")
            assert again.json()["metadata-location"] == loaded.json()["metadata-location"]
        assert secret.exists(), path


def test_maintenance_deletes_nothing_that_only_a_note_names(table: Table, secret: Path) -> None:
    neighbour = Path(table.location.removeprefix("file://")).parent / "neighbour.parquet"
    neighbour.write_bytes(b"rows")
    for number, path in enumerate((f"file://{secret}", f"file://{neighbour}")):
        uses = {"list": path, "leaves": [], "own": [path], "positions": []}
        head_of(table._handle).notes.add({f"uses:3:7{number}": json.dumps(uses)})
    for _ in range(2):
        table.append([{"id": 2}])
    table.expire_snapshots(older_than="0 seconds", keep_last=1)
    table.remove_orphan_files(older_than="0 seconds")
    assert secret.exists()
    assert neighbour.exists()


def test_documents_that_are_forgotten_are_deleted_in_the_table_only(
    client: TestClient, table: Table, secret: Path
) -> None:
    notes = head_of(table._handle).notes
    notes.add({"json:3:000000000000": json.dumps([f"file://{secret}", 0])})
    table.set_properties({"write.metadata.previous-versions-max": "1"})
    for number in range(4):
        table.append([{"id": number}])
        table.refresh()
        assert client.get(ORDERS).status_code == 200
    assert secret.exists()
    assert len(list(Path(table.location.removeprefix("file://")).rglob("*.v3.metadata.json"))) == 2

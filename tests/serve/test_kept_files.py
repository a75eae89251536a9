"""Data files whose writer deletes them when the answer to its commit is lost, as DuckDB does."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from starlette.testclient import TestClient

from frazil import serve
from frazil.commit.handle import now_ms
from frazil.maintenance.removal.kept_files import folder_of
from frazil.maintenance.removal.kept_files import kept_files as kept_files_of
from frazil.serve.app import build
from frazil.serve.running import Running
from frazil.serve.service import Service
from frazil.serve.view import kept_files
from frazil.table import Catalog, Table

ROWS = pa.table({"id": [1, 2, 3]})
ORDERS = "/v1/namespaces/shop/tables/orders"
DUCKDB = "duckdb/v1.5.5(linux_amd64) python/3.11"


def data_files(table: Table) -> list[Path]:
    return sorted(Path(table.location.removeprefix("file://")).glob("clients/data/**/*.parquet"))


def copies(table: Table) -> list[Path]:
    return sorted(Path(table.location.removeprefix("file://")).glob("metadata/kept/*"))


def ids(table: Table) -> list[int]:
    found: list[int] = sorted(table.scan().to_arrow()["id"].to_pylist())
    return found


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return catalog.create_table("shop.orders", ROWS.schema)


def append(server: Running, user_agent: str = "PyIceberg/0.12") -> None:
    remote = RestCatalog("c", uri=server.uri, prefix="v2")
    remote._session.headers["User-Agent"] = user_agent
    remote.load_table("shop.orders").append(ROWS)


def test_files_that_went_after_their_commit_come_back(
    catalog: Catalog, table: Table, server: Running
) -> None:
    append(server, DUCKDB)
    (file,) = data_files(table)
    before = file.read_bytes()
    file.unlink()
    (problem,) = [str(each) for each in table.check().problems]
    assert str(file) in problem
    assert "its writer deleted it" in problem
    with serve.start(catalog) as next_server:  # the first one is gone
        RestCatalog("c", uri=next_server.uri).load_table("shop.orders")
    assert file.read_bytes() == before
    assert not table.check(deep=True).problems
    assert ids(table) == [1, 2, 3]


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_the_server_that_took_the_commit_looks_again_before_it_answers(
    catalog: Catalog, table: Table, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(catalog)
    with (
        TestClient(build(service), base_url="http://127.0.0.1:8181") as client,
        Running(build(service)) as server,
    ):
        append(server, DUCKDB)
        _at(monkeypatch, 5_000)
        for file in data_files(table):
            file.unlink()
        update = {"updates": [{"action": "set-properties", "updates": {"owner": "me"}}]}
        body = update if method == "POST" else None
        assert client.request(method, ORDERS, json=body).status_code in (200, 204)
        if method == "HEAD":  # says whether there is a table, and nothing of its files
            assert client.get(ORDERS).status_code == 200
        assert ids(table) == [1, 2, 3]


def test_copies_are_let_go_of_in_time(
    catalog: Catalog, table: Table, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(server, DUCKDB)
    names = [path.name for path in copies(table)]
    assert len(names) == 2, "a copy, and the note that names it"
    (file,) = data_files(table)
    (copy,) = (path for path in copies(table) if path.suffix != ".json")
    assert os.path.samefile(file, copy), "a second name costs no space"
    _at(monkeypatch, 540_000)
    RestCatalog("c", uri=server.uri).load_table("shop.orders")
    assert copies(table)
    _at(monkeypatch, 601_000)
    RestCatalog("c", uri=server.uri).load_table("shop.orders")
    assert not copies(table)
    assert ids(table) == [1, 2, 3]


def test_what_was_removed_on_purpose_stays_away(
    catalog: Catalog, table: Table, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(server, DUCKDB)
    table.refresh().overwrite(pa.table({"id": [9]}))
    table.expire_snapshots(keep_last=1, older_than=datetime.now(UTC) + timedelta(days=1))
    assert not data_files(table)
    with serve.start(catalog) as other:
        RestCatalog("c", uri=other.uri).load_table("shop.orders")
        assert not data_files(table)
        _at(monkeypatch, 601_000)
        RestCatalog("c", uri=other.uri).load_table("shop.orders")
    assert not copies(table)
    assert not table.check(deep=True).problems


def test_a_commit_whose_files_cannot_be_kept_is_refused(
    table: Table, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        from frazil.errors import StorageError

        raise StorageError("no space left on device")

    monkeypatch.setattr("frazil.storage.fence.FencedStorage.duplicate", full)
    with pytest.raises(Exception, match="no space left"):
        append(server, DUCKDB)
    assert ids(table) == []
    append(server)
    assert ids(table) == [1, 2, 3]


def test_an_expired_snapshot_leaves_no_copies(table: Table, server: Running) -> None:
    append(server, DUCKDB)
    table.refresh().overwrite(pa.table({"id": [9]}))
    append(server, DUCKDB)
    first, _, last = table.refresh().snapshots()
    table.expire_snapshots(snapshot_ids=[first.snapshot_id])
    assert len(copies(table)) == 2, "the copy of the last snapshot, and its note"
    assert all(copy.name.startswith(str(last.snapshot_id)) for copy in copies(table))


def test_a_copy_that_is_gone_does_not_hide_others(
    catalog: Catalog,
    table: Table,
    server: Running,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    append(server, DUCKDB)
    append(server, DUCKDB)
    first, _ = table.refresh().snapshots()
    for file in data_files(table):
        file.unlink()
    (copy,) = (path for path in copies(table) if path.name == f"{first.snapshot_id}-0")
    copy.unlink()
    with serve.start(catalog) as other:
        RestCatalog("c", uri=other.uri).load_table("shop.orders")
        assert len(data_files(table)) == 1
        assert "cannot be restored" in caplog.text
        _at(monkeypatch, 601_000)
        RestCatalog("c", uri=other.uri).load_table("shop.orders")
    assert not copies(table)


def test_a_note_is_read_once(catalog: Catalog, table: Table, server: Running) -> None:
    service = Service(catalog)
    for _ in range(3):
        append(server, DUCKDB)
        handle = table.refresh()._handle
        with handle.storage.recording() as calls:
            service.kept_files.restore(handle)
        notes = [call.path for call in calls if call.verb == "read"]
        assert len(notes) == 1, "the note that is new"


@pytest.mark.parametrize("copy", ["{id}-0/../../../other", "{id}-x", "{id}-"])
def test_a_note_that_names_other_files_is_passed_over(table: Table, copy: str) -> None:
    folder = Path(folder_of(table.location).removeprefix("file://"))
    folder.mkdir(parents=True)
    pairs = [["a", f"{folder_of(table.location)}/{copy.format(id=7)}"]]
    (folder / "7.json").write_text(json.dumps({"until": 1, "files": pairs}))
    assert kept_files_of(table._handle.storage, table.location) == []
    pairs = [["a", f"{folder_of(table.location)}/7-0"]]
    (folder / "7.json").write_text(json.dumps({"until": 1, "files": pairs}))
    assert len(kept_files_of(table._handle.storage, table.location)) == 1


def test_other_clients_keep_their_files_themselves(table: Table, server: Running) -> None:
    append(server)
    assert not copies(table)
    assert not kept_files.is_needed("Apache-HttpClient/5.5")


def test_a_file_of_another_disk_is_copied(
    catalog: Catalog, table: Table, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def across(*_: Any, **__: Any) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr("os.link", across)
    append(server, DUCKDB)
    (file,) = data_files(table)
    file.unlink()
    with serve.start(catalog) as other:
        RestCatalog("c", uri=other.uri).load_table("shop.orders")
    assert ids(table) == [1, 2, 3]


def test_a_file_without_a_copy_is_named_with_what_may_have_happened(
    table: Table, server: Running
) -> None:
    append(server)
    (file,) = data_files(table)
    file.unlink()
    (problem,) = [str(each) for each in table.check().problems]
    assert "may have deleted it when it got no answer" in problem


def _at(monkeypatch: pytest.MonkeyPatch, later_ms: int) -> None:
    """Let time pass."""
    now: Callable[[], int] = _NOW
    monkeypatch.setattr(kept_files, "now_ms", lambda: now() + later_ms)


_NOW = now_ms

"""Equality deletes that a client commits, as Flink's upserts do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from starlette.testclient import TestClient

from frazil.serve.running import Running
from frazil.table import Catalog
from tests.serve.test_namespaces_and_tables import make
from tests.support.raw_client import RawClient, with_ids


def rows(*ids: int) -> pa.Table:
    days = pa.nulls(len(ids), pa.date32())
    return with_ids(pa.table({"id": pa.array(ids, pa.int64()), "day": days}), id=1, day=2)


def keys(*ids: int) -> pa.Table:
    return with_ids(pa.table({"id": pa.array(ids, pa.int64())}), id=1)


def ids(catalog: Catalog) -> list[Any]:
    return sorted(row["id"] for row in catalog["shop.orders"].scan().to_pylist())


@pytest.fixture
def flink(client: TestClient, catalog: Catalog) -> RawClient:
    """A writer on an empty v2 table."""
    make(client, properties={"format-version": "2"})
    location = Path(catalog["shop.orders"].location.removeprefix("file://"))
    return RawClient(http=client, folder=location / "flink")


def land(flink: RawClient, *files: Any, operation: str = "append") -> None:
    answer = flink.post(flink.updates(*files, operation=operation))
    assert answer.status_code == 200, answer.text


def test_older_rows_go_and_rows_of_the_same_commit_stay(catalog: Catalog, flink: RawClient) -> None:
    land(flink, flink.data(rows(1, 2, 3)))
    land(flink, flink.data(rows(2, 4)), flink.equality_deletes(keys(2, 3)), operation="overwrite")
    assert ids(catalog) == [1, 2, 4]
    land(flink, flink.equality_deletes(keys(4)), operation="delete")
    assert ids(catalog) == [1, 2]
    table = catalog["shop.orders"]
    assert not table.check(deep=True).problems
    assert [each.operation for each in table.snapshots()] == ["append", "overwrite", "delete"]


def test_they_are_shown_to_the_next_client_and_to_native_writers(
    catalog: Catalog, flink: RawClient
) -> None:
    land(flink, flink.data(rows(1, 2)))
    land(flink, flink.equality_deletes(keys(1)), operation="delete")
    catalog["shop.orders"].append(rows(1))  # younger than the delete
    land(flink, flink.data(rows(9)))  # the list it builds on holds the deletes
    assert ids(catalog) == [1, 2, 9]
    catalog["shop.orders"].compact(rewrite_all=True)
    assert ids(catalog) == [1, 2, 9]
    assert not catalog["shop.orders"].check(deep=True).problems


def test_no_tree_holds_them_and_pyiceberg_reads_the_rows(
    catalog: Catalog, flink: RawClient, server: Running
) -> None:
    land(flink, flink.data(rows(1, 2)), flink.data(rows(3, 4)))
    land(flink, flink.equality_deletes(keys(1)), flink.data(rows(5)), operation="overwrite")
    land(flink, flink.equality_deletes(keys(2, 5)), operation="delete")
    table = catalog["shop.orders"]
    tree = table._handle.reader().tree(table.current_snapshot())
    assert tree.root.pylist("content_type") == [0] * tree.root.num_rows
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary["total-equality-deletes"] == "0"
    remote = RestCatalog("x", uri=server.uri).load_table("shop.orders")
    assert sorted(remote.scan().to_arrow()["id"].to_pylist()) == [3, 4]
    changed = table.changes().to_arrow().to_pylist()
    assert sorted(row["id"] for row in changed if row["_change_type"] == "delete") == [1, 2, 5]


def test_a_delete_file_outside_the_tables_places_is_refused(
    catalog: Catalog, flink: RawClient, tmp_path: Path
) -> None:
    land(flink, flink.data(rows(1, 2)))
    outside = flink.equality_deletes(keys(1), path=f"file://{tmp_path}/elsewhere/keys.parquet")
    answer = flink.post(flink.updates(outside, operation="delete"))
    assert answer.status_code in (400, 403), answer.text
    assert ids(catalog) == [1, 2]


def test_rows_of_another_snapshot_of_the_same_request_cannot_be_deleted(
    catalog: Catalog, flink: RawClient
) -> None:
    land(flink, flink.data(rows(1, 2)))
    known = flink.load()
    body = flink.updates(flink.data(rows(3)), base=known)
    first = body["updates"][0]["snapshot"]
    after = {
        **known,
        "current-snapshot-id": first["snapshot-id"],
        "last-sequence-number": first["sequence-number"],
        "snapshots": [*known["snapshots"], first],
    }
    body["updates"] += flink.updates(flink.equality_deletes(keys(3)), base=after)["updates"]
    answer = flink.post(body)
    assert answer.status_code == 400, answer.text
    assert "one after the other" in answer.text
    assert ids(catalog) == [1, 2]


def test_a_table_that_a_request_fills_first_takes_them(catalog: Catalog, flink: RawClient) -> None:
    land(flink, flink.data(rows(1, 2)), flink.equality_deletes(keys(1)), operation="overwrite")
    assert ids(catalog) == [1, 2]  # no row is older

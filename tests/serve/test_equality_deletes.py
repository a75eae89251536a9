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


def test_pyiceberg_which_cannot_read_them_says_so(
    catalog: Catalog, flink: RawClient, server: Running
) -> None:
    land(flink, flink.data(rows(1, 2)))
    land(flink, flink.equality_deletes(keys(1)), operation="delete")
    remote = RestCatalog("x", uri=server.uri)
    with pytest.raises(ValueError, match="equality deletes"):
        remote.load_table("shop.orders").scan().to_arrow()

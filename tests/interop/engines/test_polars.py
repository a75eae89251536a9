"""Polars, which finds tables through PyIceberg and plans and reads them by itself."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from frazil.serve.running import Running
from frazil.table import Catalog
from tests.interop.engines.engine import sound


@pytest.mark.parametrize("prefix", ["v2", "v3"])
def test_polars_reads_deleted_rows_partitions_and_older_snapshots(
    catalog: Catalog, server: Running, prefix: str
) -> None:
    rows = pa.table({"id": [1, 2, 3, 4], "country": ["de", "de", "fr", None]})
    table = catalog.create_table("shop.orders", rows, partition_by=["country"])
    first = table.current_snapshot()
    assert first is not None
    table.delete("id = 2")
    table.update({"id": 30}, "country = 'fr'")
    remote = RestCatalog("c", uri=server.uri, prefix=prefix).load_table("shop.orders")
    frame = pl.scan_iceberg(remote)
    assert ids(frame) == [1, 4, 30]
    assert ids(frame.filter(pl.col("country") == "fr")) == [30]
    assert ids(frame.filter(pl.col("country").is_null())) == [4]
    assert ids(pl.scan_iceberg(remote, snapshot_id=int(first.snapshot_id))) == [1, 2, 3, 4]
    assert sound(catalog, "shop.orders") == [(1, "de"), (4, None), (30, "fr")]


def test_polars_writes(catalog: Catalog, server: Running) -> None:
    catalog.create_table("shop.orders", pa.schema([("id", pa.int64()), ("name", pa.string())]))
    remote = RestCatalog("c", uri=server.uri).load_table("shop.orders")
    pl.DataFrame({"id": [1, 2], "name": ["a", "b"]}).write_iceberg(remote, mode="append")
    pl.DataFrame({"id": [3], "name": ["c"]}).write_iceberg(remote, mode="append")
    assert sound(catalog, "shop.orders") == [(1, "a"), (2, "b"), (3, "c")]
    pl.DataFrame({"id": [9], "name": [None]}, schema_overrides={"name": pl.String}).write_iceberg(
        remote, mode="overwrite"
    )
    assert sound(catalog, "shop.orders") == [(9, None)]
    assert ids(pl.scan_iceberg(remote.refresh())) == [9]


def ids(frame: Any) -> list[int]:
    return sorted(frame.collect()["id"].to_list())

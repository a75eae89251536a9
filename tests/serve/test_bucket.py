"""A catalog in a bucket behind a server: Iceberg clients are served, Frazil's own are not."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

import frazil
from frazil import serve
from frazil.errors import Unsupported
from tests.support.object_server import Bucket


def test_iceberg_clients_read_and_write_tables_in_a_bucket(bucket: Bucket) -> None:
    catalog = frazil.connect(bucket.warehouse, **bucket.properties)
    catalog.create_table("shop.orders", pa.table({"id": [1, 2, 3]}))
    with serve.start(frazil.connect(bucket.warehouse, **bucket.properties)) as running:
        client = load_catalog("shop", type="rest", uri=running.uri, **bucket.properties)
        assert client.list_tables("shop") == [("shop", "orders")]
        table = client.load_table("shop.orders")
        assert table.scan().to_arrow().num_rows == 3
        table.append(pa.table({"id": [4]}))
        with pytest.raises(Unsupported, match="connect to the bucket"):
            frazil.connect(running.uri, **bucket.properties)
    assert sorted(catalog["shop.orders"].scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]

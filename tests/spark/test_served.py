"""Spark on a catalog behind a server: the driver and the executors know only its address."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import frazil
import frazil.spark
from frazil import serve

pytestmark = pytest.mark.spark


def test_executors_write_and_read_through_a_server(spark: Any, catalog: frazil.Catalog) -> None:
    with serve.start(catalog) as server, frazil.connect(server.uri) as remote:
        table = remote.create_table("shop.orders", pa.schema({"id": pa.int64(), "n": pa.int64()}))
        frame = spark.range(0, 100, 1, 4).selectExpr("id", "id % 10 AS n")
        frazil.spark.append(table, frame)
        read = frazil.spark.table(remote["shop.orders"])
        assert sorted(row.id for row in read.where("n = 3").collect()) == list(range(3, 100, 10))
        frazil.spark.delete(remote["shop.orders"], "n = 3")
        source = spark.createDataFrame([(5, 0), (200, 1)], "id long, n long")
        frazil.spark.merge(remote["shop.orders"], source, on=["id"]).upsert().execute()
    expected = {i: i % 10 for i in range(100) if i % 10 != 3} | {5: 0, 200: 1}
    native = catalog["shop.orders"]
    assert {row["id"]: row["n"] for row in native.scan().to_pylist()} == expected
    assert not native.check(deep=True).problems

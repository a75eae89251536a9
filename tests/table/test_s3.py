"""Tables on object storage, through PyIceberg's FileIO against a real S3 API."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import frazil
from frazil.errors import FrazilError, NotFound
from frazil.storage import storage_for
from tests.support.s3 import S3, SECRET
from tests.table.conftest import ORDERS, orders

WIDE = pa.schema([pa.field("id", pa.int64()), pa.field("noise", pa.int64())])


@pytest.fixture
def remote(s3: S3, tmp_path: Path) -> frazil.Catalog:
    database = f"sqlite:///{tmp_path}/catalog.db"
    return frazil.connect(database, warehouse=s3.warehouse, **s3.properties)


def test_a_table_on_s3_takes_every_kind_of_change(remote: frazil.Catalog) -> None:
    table = remote.create_table("shop.orders", ORDERS, partition_by=["day(order_date)"])
    table.append(orders(0, 60))
    table.delete("country = 'US' and order_id < 10")
    table.update({"country": "FR"}, where="order_id = 30")
    table.upsert(orders(58, 62, country="IT"), on=["order_id"])

    rows = {row["order_id"]: row["country"] for row in table.scan().to_pylist()}

    assert len(rows) == 57  # 60, less 1 3 5 7 9, plus 60 and 61
    assert rows[30] == "FR"
    assert {rows[58], rows[59], rows[60], rows[61]} == {"IT"}
    assert not any(id % 2 and id < 10 for id in rows)


def test_a_small_append_on_s3_puts_one_metadata_object(remote: frazil.Catalog) -> None:
    table = remote.create_table("shop.small", ORDERS)
    table.append(orders(0, 3))
    with table._handle.storage.recording() as calls:
        table.append(orders(3, 6))
    writes = [call.path for call in calls if call.verb == "write"]
    assert sum("/metadata/" in path for path in writes) == 1
    assert sum("/data/" in path for path in writes) == 1
    assert not [call for call in calls if call.verb in ("list", "head", "read")]


def test_duckdb_reads_on_s3_only_the_row_group_it_needs(remote: frazil.Catalog) -> None:
    rows, per_group = 600_000, 50_000
    properties = {"write.parquet.row-group-limit": str(per_group)}
    table = remote.create_table("shop.wide", WIDE, properties=properties)
    random = np.random.default_rng(7)
    noise = random.integers(0, 2**62, rows)
    table.append(pa.table({"id": np.arange(rows), "noise": noise}, schema=WIDE))
    table.delete("id = 0")
    (size,) = table.inspect.files["file_size_in_bytes"].to_pylist()
    relation = table.scan().to_duckdb()
    with table._handle.storage.recording() as calls:
        assert relation.limit(1).fetchall() == [(1, noise[1])]
    assert 0 < sum(call.bytes for call in calls) < 2 * size * per_group / rows
    with table._handle.storage.recording() as calls:
        found = relation.filter("id = 123456").fetchall()
    assert found == [(123456, noise[123456])]
    assert 0 < sum(call.bytes for call in calls) < 2 * size * per_group / rows


def test_another_connection_reads_the_table(remote: frazil.Catalog, s3: S3, tmp_path: Path) -> None:
    remote.create_table("shop.again", ORDERS).append(orders(0, 5))
    again = frazil.connect(f"sqlite:///{tmp_path}/catalog.db", **s3.properties)
    assert again.load_table("shop.again").scan().count() == 5


def test_a_missing_object_is_named(s3: S3) -> None:
    storage = storage_for(s3.warehouse, s3.properties)
    with pytest.raises(NotFound, match=r"s3://.*/nothing\.parquet"):
        storage.read(f"{s3.warehouse}/nothing.parquet")


def test_purging_removes_every_object_of_the_table(remote: frazil.Catalog, s3: S3) -> None:
    table = remote.create_table("shop.gone", ORDERS)
    table.append(orders(0, 5))
    location = table.location
    remote.drop_table("shop.gone", purge=True)
    assert list(storage_for(s3.warehouse, s3.properties).list(location)) == []


def test_credentials_never_show(
    remote: frazil.Catalog, s3: S3, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="frazil")
    table = remote.create_table("shop.secret", ORDERS)
    done = table.append(orders(0, 5))
    assert done is not None
    assert done.snapshot is not None
    shown = [
        repr(remote),
        repr(table),
        repr(table._handle),
        repr(table._handle.storage),
        str(table.scan().explain()),
        repr(table.metadata),
        str(done.snapshot.summary),
        caplog.text,
        table._handle.storage.read(table.export()).decode(),
    ]
    with pytest.raises(FrazilError) as caught:
        table._handle.storage.read(f"{s3.warehouse}/nothing")
    shown.append(str(caught.value))
    assert not [text for text in shown if SECRET in text]

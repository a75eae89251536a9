"""Tables of a catalog in a bucket: maintenance keeps the objects that the catalog needs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.catalog.storages import ReadOnlyStorage
from frazil.errors import InvalidInput, NotFound, Unsupported
from tests.support.gcs_server import gcs_server
from tests.support.object_server import Bucket

ROW = pa.table({"id": pa.array([1], pa.int64())})
LATER = datetime.now(UTC) + timedelta(days=1)


@pytest.fixture
def catalog(bucket: Bucket) -> frazil.Catalog:
    return frazil.connect(bucket.warehouse, **bucket.properties)


def objects(catalog: frazil.Catalog, location: str) -> list[str]:
    listed = catalog._pointers.storage(location).list(location)
    return sorted(file.path.removeprefix(f"{location}/") for file in listed)


def test_orphan_removal_leaves_what_the_catalog_needs(
    catalog: frazil.Catalog, bucket: Bucket
) -> None:
    table = catalog.create_table("shop.orders", ROW.schema, properties={"comment": "x" * 40_000})
    for _ in range(70):
        table.append(ROW)
    catalog._pointers.load("shop.orders").notes.add({"x:a": "1"})
    removed = table.remove_orphan_files(older_than=LATER)
    assert removed.failed == ()
    again = frazil.connect(bucket.warehouse, **bucket.properties)
    head = again._pointers.load("shop.orders")
    assert len(list(head.snapshots())) == 70
    assert head.notes.get(["x:a"]) == {"x:a": "1"}
    assert again["shop.orders"].scan().count() == 70
    names = {path.partition("-")[0] for path in objects(again, table.location)}
    assert {"metadata/head.json", "metadata/history", "metadata/part"} <= names


def test_expired_snapshots_leave_the_bucket(catalog: frazil.Catalog, bucket: Bucket) -> None:
    table = catalog.create_table("shop.orders", ROW.schema)
    for _ in range(70):
        table.append(ROW)
    table.expire_snapshots(older_than=LATER, keep_last=3)
    again = frazil.connect(bucket.warehouse, **bucket.properties)
    assert len(list(again._pointers.load("shop.orders").snapshots())) == 3
    assert again["shop.orders"].scan().count() == 70
    assert not again["shop.orders"].check().problems


def test_a_purged_table_leaves_its_tombstone(catalog: frazil.Catalog) -> None:
    table = catalog.create_table("shop.orders", ROW)
    place = table.location
    catalog.drop_table("shop.orders", purge=True)
    assert objects(catalog, place) == ["metadata/head.json"]
    with pytest.raises(NotFound):
        table.append(ROW)
    catalog.create_table("shop.orders", ROW)
    assert catalog["shop.orders"].location != place


def test_a_dropped_table_is_recovered_where_it_was(catalog: frazil.Catalog) -> None:
    table = catalog.create_table("shop.orders", ROW)
    table.append(ROW)
    catalog.drop_table("shop.orders")
    rescued, _ = catalog.recover_table("shop.again", table.location)
    rescued.append(ROW)
    assert catalog["shop.again"].scan().count() == 3


def test_a_transaction_over_several_tables_is_refused_and_changes_nothing(
    catalog: frazil.Catalog,
) -> None:
    for name in ("shop.orders", "shop.sales"):
        catalog.create_table(name, ROW)
    with pytest.raises(Unsupported, match="SQL database"):
        catalog.sql(
            "BEGIN; INSERT INTO shop.orders VALUES (2); INSERT INTO shop.sales VALUES (2); COMMIT"
        )
    assert catalog["shop.orders"].scan().count() == 1
    catalog.sql(
        "BEGIN; INSERT INTO shop.orders VALUES (2); INSERT INTO shop.orders VALUES (3); COMMIT"
    )
    assert catalog["shop.orders"].scan().count() == 3


def test_a_clone_and_a_view_live_in_the_bucket(catalog: frazil.Catalog) -> None:
    catalog.create_table("shop.orders", ROW).clone(catalog, "shop.copy")
    catalog.sql("CREATE VIEW shop.big AS SELECT id FROM shop.orders WHERE id > 0")
    assert catalog.sql("SELECT count(*) AS n FROM shop.big").to_arrow().to_pylist() == [{"n": 1}]
    assert catalog.list_tables() == ["shop.copy", "shop.orders"]


def test_the_options_of_connect_are_checked(bucket: Bucket, tmp_path: object) -> None:
    with pytest.raises(InvalidInput, match="the address itself"):
        frazil.connect(bucket.warehouse, warehouse="elsewhere", **bucket.properties)
    with pytest.raises(InvalidInput, match="a bucket"):
        frazil.connect(str(tmp_path), read_only=True)


def test_a_store_that_compares_generations_holds_a_catalog() -> None:
    with gcs_server() as bucket:
        catalog = frazil.connect(bucket.warehouse, **bucket.properties)
        table = catalog.create_table("shop.orders", ROW)
        other = frazil.connect(bucket.warehouse, **bucket.properties)["shop.orders"]
        other.append(ROW)
        table.append(ROW)  # built on a head that is old, and then on the new one
        catalog.rename_table("shop.orders", "shop.sales")
        assert catalog.list_tables() == ["shop.sales"]
        assert catalog["shop.sales"].scan().count() == 3
        catalog.drop_table("shop.sales", purge=True)
        assert catalog.list_tables() == []


def test_an_object_is_copied_to_another_bucket_a_part_at_a_time(bucket: Bucket) -> None:
    bucket.client().create_bucket(Bucket="other-bucket")
    catalog = frazil.connect(bucket.warehouse, **bucket.properties)
    storage: Any = catalog._pointers.storage(bucket.warehouse)
    data = bytes(range(256)) * 40_000
    storage.write_new(f"{bucket.warehouse}/whole", data)
    with storage.recording() as calls:
        storage.copy(f"{bucket.warehouse}/whole", "s3://other-bucket/copy")
    assert max(call.bytes for call in calls if call.verb == "read") < len(data)
    assert storage.read("s3://other-bucket/copy") == data


def test_a_storage_opened_for_reading_copies_nothing(bucket: Bucket) -> None:
    catalog = frazil.connect(bucket.warehouse, **bucket.properties)
    storage: Any = ReadOnlyStorage(catalog._pointers.storage(bucket.warehouse))
    with pytest.raises(Unsupported, match="read_only"):
        storage.copy(f"{bucket.warehouse}/a", f"{bucket.warehouse}/b")

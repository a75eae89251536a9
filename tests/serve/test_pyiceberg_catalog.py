"""Every operation of PyIceberg's catalog and table API on a served catalog."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    ForbiddenError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, StructType

from frazil.serve.running import Running
from frazil.table import Catalog
from tests.serve.test_pyiceberg import check, ids, remote, rows, table

__all__ = ["remote", "table"]

BY_COUNTRY = PartitionSpec(
    PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="country")
)
NUMBERED = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "country", StringType(), required=False),
)


# Namespaces


def test_namespaces_are_nested_described_and_dropped(remote: RestCatalog) -> None:
    remote.create_namespace(("shop", "eu"), {"owner": "ann", "note": "x"})
    remote.create_namespace_if_not_exists(("shop", "eu"))
    with pytest.raises(NamespaceAlreadyExistsError):
        remote.create_namespace(("shop", "eu"))
    assert remote.list_namespaces("shop") == [("shop", "eu")]
    assert remote.namespace_exists(("shop", "eu"))
    assert not remote.namespace_exists(("shop", "us"))
    summary = remote.update_namespace_properties(("shop", "eu"), {"note", "gone"}, {"owner": "bob"})
    assert (summary.updated, summary.removed, summary.missing) == (["owner"], ["note"], ["gone"])
    described = remote.load_namespace_properties(("shop", "eu"))
    assert described.pop("location").endswith("/shop.eu")
    assert described == {"owner": "bob"}
    with pytest.raises(NamespaceNotEmptyError):
        remote.drop_namespace("shop")
    remote.drop_namespace(("shop", "eu"))
    with pytest.raises(NoSuchNamespaceError):
        remote.load_namespace_properties(("shop", "eu"))
    with pytest.raises(NoSuchNamespaceError):
        remote.drop_namespace("nowhere")


def test_listings_come_in_pages(remote: RestCatalog, server: Running) -> None:
    for name in "abcde":
        remote.create_table(f"shop.{name}", NUMBERED)
    paged = RestCatalog("x", uri=server.uri, **{"rest-page-size": "2"})
    assert [name for _, name in paged.list_tables("shop")] == list("abcde")
    assert remote.list_views("shop") == []
    assert not remote.view_exists("shop.v")


# Tables


def test_tables_are_made_found_renamed_and_dropped(catalog: Catalog, remote: RestCatalog) -> None:
    remote.create_namespace(("shop", "eu"))
    made = remote.create_table(
        (*("shop", "eu"), "orders"),
        NUMBERED,
        partition_spec=BY_COUNTRY,
        sort_order=SortOrder(SortField(source_id=1, transform=IdentityTransform())),
        properties={"owner": "ann"},
    )
    assert made.properties["owner"] == "ann"
    assert [field.name for field in made.spec().fields] == ["country"]
    assert made.sort_order().fields[0].source_id == 1
    with pytest.raises(TableAlreadyExistsError):
        remote.create_table("shop.eu.orders", NUMBERED)
    assert remote.create_table_if_not_exists("shop.eu.orders", NUMBERED).name() == made.name()
    assert remote.list_tables(("shop", "eu")) == [("shop", "eu", "orders")]
    made.append(rows(1))
    moved = remote.rename_table("shop.eu.orders", "shop.bought")
    assert ids(moved) == [1]
    assert remote.table_exists("shop.bought")
    assert not remote.table_exists("shop.eu.orders")
    with pytest.raises(NoSuchTableError):
        remote.rename_table("shop.gone", "shop.x")
    with pytest.raises(NoSuchNamespaceError):
        remote.rename_table("shop.bought", "nowhere.x")
    check(catalog, moved, 1, name="shop.bought")
    remote.drop_table("shop.bought")
    with pytest.raises(NoSuchTableError):
        remote.load_table("shop.bought")
    with pytest.raises(NoSuchTableError):
        remote.drop_table("shop.bought")


def test_a_dropped_table_is_registered_again(catalog: Catalog, remote: RestCatalog) -> None:
    made = remote.create_table("shop.orders", NUMBERED)
    made.append(rows(1, 2))
    location = remote.load_table("shop.orders").metadata_location
    with pytest.raises(TableAlreadyExistsError):
        remote.register_table("shop.orders", location)
    remote.drop_table("shop.orders")
    again = remote.register_table("shop.orders", location)
    again.append(rows(3))
    check(catalog, again, 1, 2, 3)


def test_purging_takes_the_files(catalog: Catalog, table: IcebergTable) -> None:
    table.append(rows(1))
    place = Path(table.location().removeprefix("file://"))
    table.catalog.purge_table("shop.orders")
    assert not table.catalog.table_exists("shop.orders")
    assert not list(place.rglob("*.parquet"))


def test_a_transaction_makes_a_table_with_rows_and_properties(
    catalog: Catalog, remote: RestCatalog
) -> None:
    with remote.create_table_transaction("shop.orders", NUMBERED) as transaction:
        with transaction.update_schema() as schema:
            schema.add_column("price", DoubleType())
        transaction.set_properties(owner="ann")
        transaction.append(pa.table({"id": [1], "country": ["de"], "price": [2.5]}))
    made = remote.load_table("shop.orders")
    assert (made.properties["owner"], made.scan().to_arrow()["price"].to_pylist()) == ("ann", [2.5])
    check(catalog, made, 1)
    lost = remote.create_table_transaction("shop.orders2", NUMBERED)
    remote.create_table("shop.orders2", NUMBERED)
    with pytest.raises((CommitFailedException, TableAlreadyExistsError)):
        lost.commit_transaction()


# Schemas, specs, orders


def test_columns_are_added_renamed_moved_widened_and_dropped(
    catalog: Catalog, table: IcebergTable
) -> None:
    table.append(rows(1))
    with table.update_schema() as schema:
        schema.add_column("price", DoubleType(), doc="in euros")
        schema.add_column("place", StructType(NestedField(10, "city", StringType())))
        schema.rename_column("country", "land")
        schema.move_first("price")
    with table.update_schema() as schema:
        schema.add_column(("place", "street"), StringType())
    names = [field.name for field in catalog["shop.orders"].schema.fields]
    assert names == ["price", "id", "land", "place"]
    table.append(
        pa.table(
            {
                "price": [1.5],
                "id": [2],
                "land": ["fr"],
                "place": [{"city": "Lyon", "street": "Rue"}],
            }
        )
    )
    with table.update_schema(allow_incompatible_changes=True) as schema:
        schema.delete_column("price")
    found = sorted(catalog["shop.orders"].scan().to_pylist(), key=lambda row: row["id"])
    assert found == [
        {"id": 1, "land": "de", "place": None},
        {"id": 2, "land": "fr", "place": {"city": "Lyon", "street": "Rue"}},
    ]
    check(catalog, table, 1, 2)
    stale = table.catalog.load_table("shop.orders")
    with table.update_schema() as schema:
        schema.add_column("first", StringType())
    with pytest.raises(CommitFailedException), stale.update_schema() as schema:
        schema.add_column("second", StringType())


def test_partitions_evolve_and_are_replaced(catalog: Catalog, table: IcebergTable) -> None:
    table.append(rows(1, country="de"))
    with table.update_spec() as spec:
        spec.add_identity("country")
    table.append(pa.concat_tables([rows(2, country="de"), rows(3, country="fr")]))
    table.dynamic_partition_overwrite(rows(4, country="fr"))
    check(catalog, table, 1, 2, 4)
    with table.update_spec() as spec:
        spec.remove_field("country")
    table.append(rows(5))
    check(catalog, table, 1, 2, 4, 5)
    assert len({file["spec_id"] for file in table.inspect.files().to_pylist()}) == 2
    with table.update_sort_order() as order:
        order.asc("id", IdentityTransform())
    assert catalog["shop.orders"].metadata.sort_orders[-1].fields[0].source_id == 1


def test_a_transform_of_time_is_written(catalog: Catalog, remote: RestCatalog) -> None:
    pytest.importorskip("pyiceberg_core")
    when = pa.array([0, 86_400_000_000], pa.timestamp("us"))
    data = pa.table({"id": pa.array([1, 2], pa.int64()), "at": when})
    made = remote.create_table("shop.orders", data.schema)
    with made.update_spec() as spec:
        spec.add_field("at", DayTransform(), "day")
    made.append(data)
    assert len(made.inspect.files()) == 2
    check(catalog, made, 1, 2)


# Rows


def test_rows_are_overwritten_deleted_and_upserted(catalog: Catalog, table: IcebergTable) -> None:
    table.append(rows(1, 2, 3))
    table.overwrite(rows(7, 8), overwrite_filter="id < 3")
    check(catalog, table, 3, 7, 8)
    table.delete("id = 7")
    done = table.upsert(rows(8, 9, country="fr"), join_cols=["id"])
    assert (done.rows_updated, done.rows_inserted) == (1, 1)
    check(catalog, table, 3, 8, 9)
    found = {row["id"]: row["country"] for row in catalog["shop.orders"].scan().to_pylist()}
    assert found == {3: "de", 8: "fr", 9: "fr"}
    table.overwrite(rows(1))
    check(catalog, table, 1)


def test_files_are_added_where_they_may_lie(
    catalog: Catalog, table: IcebergTable, tmp_path: Path
) -> None:
    inside = Path(table.location().removeprefix("file://"), "landing", "a.parquet")
    inside.parent.mkdir(parents=True)
    for place in (inside, tmp_path / "outside.parquet"):
        pq.write_table(rows(1, 2), place)
    with pytest.raises(ForbiddenError, match="outside"):
        table.add_files([f"file://{tmp_path}/outside.parquet"])
    table = table.catalog.load_table("shop.orders")
    table.add_files([f"file://{inside}"])
    check(catalog, table, 1, 2)


def test_a_file_of_another_table_is_not_added(
    catalog: Catalog, remote: RestCatalog, table: IcebergTable
) -> None:
    other = remote.create_table("shop.other", table.schema())
    other.append(rows(1, 2))
    [path] = other.inspect.files()["file_path"].to_pylist()
    with pytest.raises(BadRequestError, match=r"file of table shop\.other"):
        table.add_files([path])
    assert catalog["shop.orders"].scan().count() == 0


# History


def test_branches_tags_time_travel_and_rollback(catalog: Catalog, table: IcebergTable) -> None:
    table.append(rows(1))
    first = table.current_snapshot()
    assert first is not None
    table.manage_snapshots().create_tag(first.snapshot_id, "start").create_branch(
        first.snapshot_id, "audit"
    ).commit()
    table.append(rows(2))
    table.append(rows(3), branch="audit")
    assert table.scan().use_ref("audit").to_arrow()["id"].to_pylist() in ([1, 3], [3, 1])
    assert table.scan().use_ref("start").to_arrow()["id"].to_pylist() == [1]
    assert table.scan(snapshot_id=first.snapshot_id).to_arrow()["id"].to_pylist() == [1]
    assert sorted(catalog["shop.orders"].branch("audit").scan().to_arrow()["id"].to_pylist()) == [
        1,
        3,
    ]
    table.manage_snapshots().remove_branch("audit").remove_tag("start").commit()
    assert sorted(catalog["shop.orders"].metadata.refs) == ["main"]
    table.manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit()
    check(catalog, table, 1)


def test_inspection_tells_what_is_there(table: IcebergTable) -> None:
    table.append(rows(1, 2))
    table.append(rows(3))
    table.delete("id = 1")
    found = table.inspect
    assert [each["operation"] for each in found.snapshots().to_pylist()][:2] == ["append", "append"]
    assert sum(each["record_count"] for each in found.files().to_pylist()) == 2
    assert {each["status"] for each in found.entries().to_pylist()} <= {0, 1, 2}
    assert found.partitions().to_pylist()[0]["record_count"] == 2
    assert len(found.manifests()) >= 1
    assert [each["name"] for each in found.refs().to_pylist()] == ["main"]
    assert len(found.history()) == 3
    assert len(found.metadata_log_entries()) >= 1
    assert len(found.all_data_files()) >= 3


def test_what_cannot_be_is_refused_with_a_reason(remote: RestCatalog) -> None:
    with pytest.raises(NoSuchNamespaceError):
        remote.create_table("nowhere.t", NUMBERED)
    with pytest.raises(ForbiddenError, match="outside"):
        remote.create_table("shop.t", NUMBERED, location="file:///etc/frazil")
    with pytest.raises((BadRequestError, ForbiddenError)):
        remote.register_table("shop.t", "file:///etc/passwd")

"""PyIceberg, unchanged and unconfigured, on a served catalog: what it writes lands in the tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationException,
)
from pyiceberg.table import Table as IcebergTable
from pyiceberg.types import LongType

from frazil import serve
from frazil.format.entries.batch import EntryBatch
from frazil.legacy.read import manifest_list
from frazil.serve.running import Running
from frazil.table import Catalog

SCHEMA = pa.schema([("id", pa.int64()), ("country", pa.string())])


def rows(*ids: int, country: str = "de") -> pa.Table:
    return pa.table({"id": list(ids), "country": [country] * len(ids)}, schema=SCHEMA)


@pytest.fixture
def remote(server: Running) -> RestCatalog:
    """PyIceberg, given nothing but the address."""
    found = RestCatalog("frazil", uri=server.uri)
    found.create_namespace("shop")
    return found


@pytest.fixture
def table(remote: RestCatalog) -> IcebergTable:
    """An empty table that PyIceberg made."""
    made: IcebergTable = remote.create_table("shop.orders", schema=SCHEMA)
    return made


def ids(table: Any) -> list[int]:
    found: list[int] = sorted(table.scan().to_arrow()["id"].to_pylist())
    return found


def check(catalog: Catalog, table: IcebergTable, *expected: int, name: str = "shop.orders") -> None:
    """The client's rows, the native rows and the expected ones are the same; the tree is sound."""
    native = catalog[name]
    assert ids(table.refresh()) == sorted(expected)
    assert ids(native) == sorted(expected)
    report = native.check(deep=True)
    assert not report.problems, str(report)


def test_every_write_lands_as_snapshots_of_the_tree(catalog: Catalog, table: IcebergTable) -> None:
    table.append(rows(1, 2, 3))
    table.append(rows(4, 5))
    check(catalog, table, 1, 2, 3, 4, 5)
    table.delete("id = 2")
    check(catalog, table, 1, 3, 4, 5)
    table.overwrite(rows(7), overwrite_filter="id = 3")
    check(catalog, table, 1, 4, 5, 7)
    table.upsert(rows(7, 8, country="fr"), join_cols=["id"])
    check(catalog, table, 1, 4, 5, 7, 8)
    assert table.scan("id = 7").to_arrow()["country"].to_pylist() == ["fr"]
    table.overwrite(rows(9))
    check(catalog, table, 9)


def test_a_commit_reads_the_list_that_was_posted_and_no_other(
    catalog: Catalog, table: IcebergTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    entries_of = manifest_list.entries_of

    def noted(data: bytes, *, path: str, **more: Any) -> EntryBatch:
        read.append(path)
        return entries_of(data, path=path, **more)

    table.append(rows(1))
    monkeypatch.setattr(manifest_list, "entries_of", noted)
    table.append(rows(2))
    assert len(read) == 1
    table.delete("id = 1")  # a manifest of the base goes: what it held has to be known
    assert len(read) == 3
    check(catalog, table, 2)


def test_a_snapshot_became_current_at_its_own_time(catalog: Catalog, table: IcebergTable) -> None:
    table.append(rows(1))
    table.append(rows(2))
    first, second = table.refresh().metadata.snapshots
    logged = [(each.snapshot_id, each.timestamp_ms) for each in table.metadata.snapshot_log]
    assert logged == [(each.snapshot_id, each.timestamp_ms) for each in (first, second)]


def test_snapshots_of_one_commit_stay_apart(catalog: Catalog, table: IcebergTable) -> None:
    table.append(rows(1, 2))
    with table.transaction() as transaction:
        transaction.append(rows(3))
        transaction.delete("id = 1")
        transaction.append(rows(4))
    check(catalog, table, 2, 3, 4)
    native = catalog["shop.orders"]
    shown = [snapshot.snapshot_id for snapshot in table.snapshots()]
    assert shown == [int(each.snapshot_id) for each in native._handle.head.snapshots()]
    assert len(shown) == 4
    counts = [
        len(table.scan(snapshot_id=each.snapshot_id).to_arrow()) for each in table.snapshots()
    ]
    assert counts == [2, 3, 2, 3]


def test_native_commits_are_seen_and_taken_into_account(
    catalog: Catalog, table: IcebergTable
) -> None:
    table.append(rows(1, 2))
    catalog["shop.orders"].append(rows(3))
    table.append(rows(4))  # on a base that moved: refused, refreshed, repeated
    check(catalog, table, 1, 2, 3, 4)
    catalog["shop.orders"].delete("id = 4")
    table.refresh()
    table.delete("id = 1")
    check(catalog, table, 2, 3)


def test_a_delete_on_a_base_that_moved_is_not_committed(
    catalog: Catalog, table: IcebergTable
) -> None:
    table.append(rows(1, 2, 3))
    table.refresh()
    transaction = table.transaction()
    transaction.delete("id = 1")
    catalog["shop.orders"].delete("id = 2")
    with pytest.raises(ValidationException):  # told by the statuses of what was published
        transaction.commit_transaction()
    check(catalog, table, 1, 3)


def test_schema_properties_branches_and_tags(catalog: Catalog, table: IcebergTable) -> None:
    table.append(rows(1))
    with table.update_schema() as schema:
        schema.add_column("price", LongType())
        schema.rename_column("country", "land")
    with table.transaction() as transaction:
        transaction.set_properties({"owner": "me", "gone": "soon"})
    with table.transaction() as transaction:
        transaction.remove_properties("gone")
    first = table.current_snapshot()
    assert first is not None
    table.manage_snapshots().create_tag(first.snapshot_id, "first").commit()
    table.manage_snapshots().create_branch(first.snapshot_id, "audit").commit()
    more = pa.table({"id": [2], "land": ["fr"], "price": [5]})
    table.append(more, branch="audit")
    native = catalog["shop.orders"]
    assert [field.name for field in native.schema.fields] == ["id", "land", "price"]
    assert native.metadata.properties["owner"] == "me"
    assert "gone" not in native.metadata.properties
    assert ids(native) == [1]
    assert ids(native.branch("audit", create=True)) == [1, 2]
    assert ids(table.refresh()) == [1]
    assert len(table.scan(snapshot_id=first.snapshot_id).to_arrow()) == 1


def test_partitions_are_written_and_pruned(catalog: Catalog, table: IcebergTable) -> None:
    with table.update_spec() as spec:
        spec.add_identity("country")
    table.append(pa.concat_tables([rows(1, country="de"), rows(2, 3, country="fr")]))
    check(catalog, table, 1, 2, 3)
    french = catalog["shop.orders"].scan("country = 'fr'").to_arrow()
    assert sorted(french["id"].to_pylist()) == [2, 3]
    table.delete("country = 'de'")
    check(catalog, table, 2, 3)


def test_a_table_is_created_with_its_first_rows_or_not_at_all(
    catalog: Catalog, remote: RestCatalog
) -> None:
    transaction = remote.create_table_transaction("shop.new", schema=SCHEMA)
    with transaction:
        transaction.append(rows(1, 2))
        assert not catalog.table_exists("shop.new")
    check(catalog, remote.load_table("shop.new"), 1, 2, name="shop.new")
    with pytest.raises(TableAlreadyExistsError):
        remote.create_table("shop.new", schema=SCHEMA)
    late = remote.create_table_transaction("shop.late", schema=SCHEMA)
    remote.create_table("shop.late", schema=SCHEMA)
    with pytest.raises(CommitFailedException):
        late.commit_transaction()


def test_expired_snapshots_are_gone_everywhere(catalog: Catalog, table: IcebergTable) -> None:
    table.append(rows(1))
    old = table.current_snapshot()
    assert old is not None
    table.append(rows(2))
    table.maintenance.expire_snapshots().by_id(old.snapshot_id).commit()
    check(catalog, table, 1, 2)
    assert len(list(catalog["shop.orders"]._handle.head.snapshots())) == 1


def test_two_servers_on_one_catalog_show_the_same(
    catalog: Catalog, table: IcebergTable, tmp_path: Path
) -> None:
    table.append(rows(1))
    with serve.start(catalog) as other:
        second = RestCatalog("second", uri=other.uri).load_table("shop.orders")
        second.append(rows(2))
        table.append(rows(3))
        assert second.refresh().metadata_location == table.metadata_location
    check(catalog, table, 1, 2, 3)


def test_a_dropped_table_is_gone(
    catalog: Catalog, remote: RestCatalog, table: IcebergTable
) -> None:
    table.append(rows(1))
    remote.rename_table("shop.orders", "shop.sales")
    assert remote.list_tables("shop") == [("shop", "sales")]
    remote.purge_table("shop.sales")
    with pytest.raises(NoSuchTableError):
        remote.load_table("shop.sales")
    assert not catalog.table_exists("shop.sales")

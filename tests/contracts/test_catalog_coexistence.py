"""PyIceberg's SqlCatalog and ours on one database: each sees what it can use, nothing breaks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog as PyIcebergCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField, StringType
from sqlalchemy.exc import OperationalError, ProgrammingError

from frazil.catalog.sql.sql_catalog import SqlCatalog
from frazil.commit.head import Landed, Lost
from frazil.errors import AlreadyExists, CommitConflict, InvalidInput, NotFound, Unsupported
from frazil.iceberg.pyiceberg_values import pyiceberg_schema
from tests.support.catalogs import append_and_land, orders

PEOPLE = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "name", StringType(), required=False),
)
ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "name": pa.array(["a", "b"])})


@pytest.fixture
def theirs(database_uri: str, tmp_path: Path) -> Iterator[PyIcebergCatalog]:
    uri = database_uri.replace("postgresql://", "postgresql+psycopg://")
    catalog = PyIcebergCatalog("default", uri=uri, warehouse=f"file://{tmp_path}/theirs")
    yield catalog
    catalog.engine.dispose()


@pytest.fixture
def ours(theirs: PyIcebergCatalog, database_uri: str, tmp_path: Path) -> Iterator[SqlCatalog]:
    catalog = SqlCatalog(database_uri, warehouse=str(tmp_path / "ours"))
    yield catalog
    catalog.close()


def their_table(theirs: PyIcebergCatalog, name: str, version: str = "2") -> Table:
    table = theirs.create_table(f"shop.{name}", PEOPLE, properties={"format-version": version})
    table.append(ROWS)
    return table


@pytest.mark.parametrize("version", ["1", "2"])
def test_their_tables_are_listed_and_loaded_here(
    theirs: PyIcebergCatalog, ours: SqlCatalog, version: str
) -> None:
    theirs.create_namespace("shop", {"owner": "sales"})
    table = their_table(theirs, "people", version)
    assert ours.namespaces.properties("shop") == {"owner": "sales"}
    assert [str(each) for each in ours.list_tables("shop")] == ["shop.people"]
    state = ours.load("shop.people").state
    assert state.metadata.format_version == int(version)
    assert state.metadata.table_uuid == table.metadata.table_uuid
    assert pyiceberg_schema(state.metadata.schema()) == table.schema()
    tip, theirs_tip = state.tip(), table.current_snapshot()
    assert tip is not None
    assert theirs_tip is not None
    assert tip.snapshot_id == theirs_tip.snapshot_id
    assert tip.manifest_list == theirs_tip.manifest_list
    assert tip.summary["added-records"] == "2"


def test_their_commits_are_seen_by_a_head_of_ours(
    theirs: PyIcebergCatalog, ours: SqlCatalog
) -> None:
    theirs.create_namespace("shop")
    table = their_table(theirs, "people")
    head = ours.load("shop.people")
    table.append(ROWS)
    assert len(head.load().metadata.refs) == 1
    assert len(head.history().snapshots) == 2
    assert [each.snapshot_id for each in head.snapshots()] == [
        each.snapshot_id for each in table.metadata.snapshots
    ]
    assert head.export() == table.metadata_location
    with pytest.raises(Unsupported, match="upgrade"):
        head.swap(head.state, None)  # type: ignore[arg-type]


def test_our_tables_do_not_disturb_them(theirs: PyIcebergCatalog, ours: SqlCatalog) -> None:
    theirs.create_namespace("shop")
    table = their_table(theirs, "people")
    ours.create_table("shop.orders", orders(ours.location_for("shop.orders")))
    append_and_land(ours.load("shop.orders"), 1)
    assert theirs.list_tables("shop") == [("shop", "people")]
    assert theirs.load_table("shop.people").metadata == table.metadata
    assert theirs.load_table("shop.people").scan().to_arrow().num_rows == 2
    with pytest.raises(NoSuchTableError):
        theirs.load_table("shop.orders")
    with pytest.raises(NoSuchTableError):
        theirs.drop_table("shop.orders")
    with pytest.raises(TableAlreadyExistsError):
        theirs.create_table("shop.orders", PEOPLE)
    with pytest.raises(AlreadyExists):
        ours.create_table("shop.people", orders(ours.location_for("shop.people")))
    assert ours.load("shop.orders").state.version == 1


def test_our_namespaces_are_theirs_too(theirs: PyIcebergCatalog, ours: SqlCatalog) -> None:
    ours.namespaces.create("eu.shop", {"owner": "sales"})
    ours.namespaces.create("plain")
    assert sorted(theirs.list_namespaces()) == [("eu",), ("plain",)]
    assert theirs.load_namespace_properties("eu.shop") == {"owner": "sales"}
    theirs.drop_namespace("plain")
    assert ours.namespaces.children() == [("eu",)]


def test_a_table_of_theirs_is_upgraded_in_place(theirs: PyIcebergCatalog, ours: SqlCatalog) -> None:
    theirs.create_namespace("shop")
    table = their_table(theirs, "people")
    table.append(ROWS)
    legacy = ours.load("shop.people")
    base = legacy.load()
    upgraded = base.metadata.upgraded(now_ms=base.metadata.last_updated_ms + 1)
    outcome = ours.upgrade("shop.people", base, upgraded)
    assert isinstance(outcome, Landed)
    head = ours.load("shop.people")
    assert head.state == outcome.states[0]
    assert head.state.metadata == upgraded
    assert head.state.metadata.format_version == 4
    history = head.history()
    assert [each.manifest_list for each in history.snapshots] == [
        each.manifest_list for each in table.metadata.snapshots
    ]
    assert table.metadata_location in [entry.metadata_file for entry in history.metadata_log]
    assert head.state.metadata_location != table.metadata_location
    append_and_land(head, 5)
    assert theirs.list_tables("shop") == []
    with pytest.raises(CommitConflict, match="upgraded"):
        legacy.load()


def test_an_upgrade_loses_against_a_commit_of_theirs(
    theirs: PyIcebergCatalog, ours: SqlCatalog
) -> None:
    theirs.create_namespace("shop")
    table = their_table(theirs, "people")
    base = ours.load("shop.people").state
    table.append(ROWS)
    upgraded = base.metadata.upgraded(now_ms=base.metadata.last_updated_ms + 1)
    assert isinstance(ours.upgrade("shop.people", base, upgraded), Lost)
    assert ours.load("shop.people").state.metadata.format_version == 2
    assert theirs.load_table("shop.people").scan().to_arrow().num_rows == 4
    folder = Path(table.location().removeprefix("file://")) / "metadata"
    assert len(list(folder.glob("*.metadata.json"))) == 3


def test_a_commit_of_theirs_fails_after_the_upgrade(
    theirs: PyIcebergCatalog, ours: SqlCatalog
) -> None:
    theirs.create_namespace("shop")
    table = their_table(theirs, "people")
    base = ours.load("shop.people").state
    ours.upgrade("shop.people", base, base.metadata.upgraded(now_ms=base.metadata.last_updated_ms))
    with pytest.raises((NoSuchTableError, CommitFailedException)):
        table.append(ROWS)
    assert len(ours.load("shop.people").history().snapshots) == 1


def test_an_upgrade_needs_version_4_metadata(theirs: PyIcebergCatalog, ours: SqlCatalog) -> None:
    theirs.create_namespace("shop")
    their_table(theirs, "people")
    base = ours.load("shop.people").state
    with pytest.raises(InvalidInput):
        ours.upgrade("shop.people", base, base.metadata)


def test_a_table_of_theirs_is_renamed_dropped_and_registered_here(
    theirs: PyIcebergCatalog, ours: SqlCatalog
) -> None:
    theirs.create_namespace("shop")
    table = their_table(theirs, "people")
    ours.rename("shop.people", "shop.persons")
    assert theirs.list_tables("shop") == [("shop", "persons")]
    purged = ours.purge("shop.persons")
    assert purged.metadata.table_uuid == table.metadata.table_uuid
    assert len(purged.history.snapshots) == 1
    assert theirs.list_tables("shop") == []
    found = ours.register("shop.people", table.metadata_location)
    assert found.state.metadata.format_version == 2
    assert theirs.load_table("shop.people").scan().to_arrow().num_rows == 2


def test_an_old_database_without_types_is_read_and_typed_when_a_v4_table_comes(
    theirs: PyIcebergCatalog, database_uri: str, tmp_path: Path
) -> None:
    theirs.create_namespace("shop")
    table = their_table(theirs, "people")
    with theirs.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE iceberg_tables DROP COLUMN iceberg_type")
    theirs.engine.dispose()
    ours = SqlCatalog(database_uri, warehouse=str(tmp_path / "ours"))
    assert [str(each) for each in ours.list_tables("shop")] == ["shop.people"]
    assert ours.load("shop.people").state.metadata.table_uuid == table.metadata.table_uuid
    with (
        theirs.engine.connect() as connection,
        pytest.raises((OperationalError, ProgrammingError)),
    ):
        connection.exec_driver_sql("SELECT iceberg_type FROM iceberg_tables")
    ours.create_table("shop.orders", orders(ours.location_for("shop.orders")))
    uri = str(theirs.engine.url.render_as_string(hide_password=False))
    again = PyIcebergCatalog("default", uri=uri, warehouse=f"file://{tmp_path}/theirs")
    assert again.list_tables("shop") == [("shop", "people")]
    assert again.load_table("shop.people").scan().to_arrow().num_rows == 2
    again.engine.dispose()
    ours.close()


def test_a_view_is_neither_listed_nor_loaded_and_keeps_its_name(
    theirs: PyIcebergCatalog, ours: SqlCatalog
) -> None:
    theirs.create_namespace("shop")
    with theirs.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO iceberg_tables VALUES ('default', 'shop', 'v', '/v.json', NULL, 'VIEW')"
        )
    assert ours.list_tables("shop") == []
    with pytest.raises(NotFound, match=r"shop\.v"):
        ours.load("shop.v")
    with pytest.raises(AlreadyExists):
        ours.create_table("shop.v", orders(ours.location_for("shop.v")))
    with pytest.raises(NotFound, match=r"shop\.v"):
        ours.drop("shop.v")
    with pytest.raises(NotFound, match=r"shop\.v"):
        ours.rename("shop.v", "shop.w")

"""Tables of v1, v2, v3 and interim v4, opened where their writers left them: the same rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog as PyIcebergSqlCatalog

from frazil import FormatError, Table, connect
from frazil.table import Catalog
from tests.interop.peers import tables
from tests.interop.peers.tables import PeerTable, local_path
from tests.support.values import canonical_rows

pytestmark = [pytest.mark.java, pytest.mark.peers]

Tables = dict[str, PeerTable]

UNREADABLE = {
    "java_orc_v2": FormatError,  # a time that Arrow's ORC reader cannot hold
}
READABLE = [name for name in tables.NAMES if name not in UNREADABLE]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return connect(tmp_path_factory.mktemp("warehouse"))


@pytest.mark.parametrize("name", READABLE)
def test_every_snapshot_has_the_rows_its_writer_reads(
    catalog: Catalog, peer_tables: Tables, name: str
) -> None:
    peer = peer_tables[name]
    table = catalog.open_iceberg(peer.metadata_location)
    assert canonical_rows(table.scan().to_arrow()) == canonical_rows(peer.rows())
    for snapshot in peer.snapshots:
        rows = table.scan(as_of=snapshot.id).to_arrow()
        assert canonical_rows(rows) == canonical_rows(peer.rows(snapshot.id))


@pytest.mark.parametrize("name", READABLE)
def test_branches_and_tags_are_those_of_the_writer(
    catalog: Catalog, peer_tables: Tables, name: str
) -> None:
    peer = peer_tables[name]
    table = catalog.open_iceberg(peer.metadata_location)
    assert {key: ref.snapshot_id for key, ref in table.metadata.refs.items()} == peer.refs
    assert [snapshot.snapshot_id for snapshot in table.snapshots()] == [
        snapshot.id for snapshot in peer.snapshots
    ]


@pytest.mark.parametrize("name", ["v3_cow", "v3_mor", "v3_rewritten", "v4_mor"])
def test_row_ids_are_those_that_java_gives(
    catalog: Catalog, peer_tables: Tables, name: str
) -> None:
    peer = peer_tables[name]
    table = catalog.open_iceberg(peer.metadata_location)
    names = [field.name for field in table.schema.fields]
    lineage = ["_row_id", "_last_updated_sequence_number"]
    rows = table.scan(columns=[*names, *lineage]).to_arrow()
    assert canonical_rows(rows) == canonical_rows(peer.rows(row_lineage=True))


@pytest.mark.parametrize(("name", "error"), UNREADABLE.items())
def test_data_files_that_cannot_be_read_are_named(
    catalog: Catalog, peer_tables: Tables, name: str, error: type[Exception]
) -> None:
    table = catalog.open_iceberg(peer_tables[name].metadata_location)
    with pytest.raises(error, match=r"\.(avro|orc): "):
        table.scan().to_arrow()


def _filtered(table: Table, peer: PeerTable, where: str) -> None:
    rows = peer.rows()
    expected = [row for row in rows.to_pylist() if row["id"] in (3, 4)]
    assert table.scan(where=where).to_arrow().num_rows == len(expected)


@pytest.mark.parametrize("name", ["v1_partitioned", "v2_mor", "v3_evolved", "v4_mor"])
def test_manifests_are_pruned_by_partitions_that_are_buckets(
    catalog: Catalog, peer_tables: Tables, name: str
) -> None:
    peer = peer_tables[name]
    table = catalog.open_iceberg(peer.metadata_location)
    _filtered(table, peer, "id = 3 or id = 4")
    report = table.scan(where="id = 3").explain()
    assert report.files < len(table.scan().tasks())


def test_a_hadoop_table_is_found_by_its_folder(catalog: Catalog, peer_tables: Tables) -> None:
    peer = peer_tables["java_positions_v2"]
    for source in (peer.location, str(local_path(peer.location)), local_path(peer.location)):
        table = catalog.open_iceberg(source)
        assert canonical_rows(table.scan().to_arrow()) == canonical_rows(peer.rows())


def test_a_table_is_found_by_the_newest_metadata_in_its_folder(
    catalog: Catalog, peer_tables: Tables
) -> None:
    peer = peer_tables["v3_mor"]
    table = catalog.open_iceberg(peer.location)
    assert canonical_rows(table.scan().to_arrow()) == canonical_rows(peer.rows())


def test_tables_are_opened_through_pyicebergs_catalog(
    catalog: Catalog, peer_tables: Tables
) -> None:
    peer = peer_tables["pyiceberg_v2_partitioned"]
    assert peer.identifier is not None
    theirs = PyIcebergSqlCatalog(peer.catalog_name or "", uri=f"sqlite:///{peer.catalog_db}")
    for table in (
        catalog.open_iceberg(theirs, peer.identifier),
        catalog.open_iceberg(theirs.load_table(peer.identifier)),
    ):
        assert table.name == peer.identifier
        assert canonical_rows(table.scan().to_arrow()) == canonical_rows(peer.rows())
        assert table.refresh().current_snapshot() is not None


def test_changes_of_old_snapshots_add_up_to_their_rows(
    catalog: Catalog, peer_tables: Tables, tmp_path: Path
) -> None:
    for name in ("v2_mor", "v2_cow", "v3_mor", "v4_mor"):
        peer = peer_tables[name]
        table = catalog.open_iceberg(peer.metadata_location)
        columns = [field.name for field in table.schema.fields]
        live: dict[tuple[object, ...], int] = {}
        for change in table.changes().to_pylist():
            row = tuple(change[column] for column in columns)
            step = 1 if change["_change_type"] in ("insert", "update_postimage") else -1
            live[row] = live.get(row, 0) + step
        assert all(count >= 0 for count in live.values())
        found = sorted((row for row, count in live.items() for _ in range(count)), key=repr)
        expected = [tuple(row[c] for c in columns) for row in peer.rows().to_pylist()]
        assert found == sorted(expected, key=repr), name

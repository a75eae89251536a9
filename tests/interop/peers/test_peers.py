"""The peer tables are what they say, and peers agree on them: the ground other tests stand on."""

from __future__ import annotations

import pytest

from tests.interop.peers import readers, tables
from tests.interop.peers.tables import PeerTable
from tests.support.java import JavaOracle
from tests.support.values import canonical_rows

pytestmark = [pytest.mark.java, pytest.mark.peers]

Tables = dict[str, PeerTable]

FOR_DUCKDB = [name for name in tables.NAMES if name not in readers.BEYOND_DUCKDB]
FOR_PYICEBERG = [name for name in tables.NAMES if name not in readers.BEYOND_PYICEBERG]


def test_every_named_table_is_there(peer_tables: Tables) -> None:
    assert set(peer_tables) == set(tables.NAMES)


def test_all_format_versions_and_writers_are_covered(peer_tables: Tables) -> None:
    made = {(table.writer, table.format_version) for table in peer_tables.values()}
    assert made == {
        *(("spark", version) for version in (1, 2, 3, 4)),
        *(("java", version) for version in (2, 3)),
        *(("pyiceberg", version) for version in (1, 2)),
    }


def test_spark_counts_the_rows_that_the_java_api_reads(peer_tables: Tables) -> None:
    counted = {
        name: table.row_count for name, table in peer_tables.items() if table.row_count is not None
    }
    assert counted == {name: peer_tables[name].rows().num_rows for name in counted}
    assert len(counted) == len(tables.SPARK_NAMES) - 1


def test_rows_deleted_by_equality_are_those_of_older_files(peer_tables: Tables) -> None:
    rows = peer_tables["java_equality_v2"].rows().select(["id", "name", "quantity"]).to_pylist()
    assert sorted(tuple(row.values()) for row in rows) == [
        (0, "n0", 0),
        (1, "n1", 10),
        (3, "n0", 30),
        (6, "n0", 60),
        (9, "n0", None),
        (12, "again", None),
    ]


def test_row_ids_survive_updates_that_rewrite_files(peer_tables: Tables) -> None:
    table = peer_tables["v3_cow"]
    second, *_, last = table.snapshots[1:]
    before = table.rows(second.id, row_lineage=True).to_pylist()
    after = table.rows(last.id, row_lineage=True).to_pylist()
    row_ids = {row["id"]: row["_row_id"] for row in before}
    kept = [row for row in after if row["id"] in row_ids]
    assert len(kept) > 10
    assert all(row["_row_id"] == row_ids[row["id"]] for row in kept)


@pytest.mark.parametrize("name", tables.PYICEBERG_NAMES)
def test_java_reads_the_rows_pyiceberg_wrote(
    java: JavaOracle, peer_tables: Tables, name: str
) -> None:
    table = peer_tables[name]
    for snapshot in table.snapshots:
        seen = readers.read_with_java(java, table.metadata_location, snapshot_id=snapshot.id)
        assert canonical_rows(seen) == canonical_rows(table.rows(snapshot.id))


@pytest.mark.parametrize("name", FOR_DUCKDB)
def test_duckdb_reads_the_rows_the_writer_reads(peer_tables: Tables, name: str) -> None:
    table = peer_tables[name]
    seen = readers.read_with_duckdb(table.metadata_location)
    assert canonical_rows(seen) == canonical_rows(table.rows())


@pytest.mark.parametrize("name", FOR_PYICEBERG)
def test_pyiceberg_reads_the_rows_the_writer_reads(peer_tables: Tables, name: str) -> None:
    table = peer_tables[name]
    seen = readers.read_with_pyiceberg(table.metadata_location)
    assert canonical_rows(seen) == canonical_rows(table.rows())

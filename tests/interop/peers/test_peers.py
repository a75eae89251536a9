"""The peer tables are what they say, and peers agree on them: the ground other tests stand on."""

from __future__ import annotations

import pytest

from tests.interop.peers import readers, tables
from tests.interop.peers.tables import PeerTable
from tests.support.java import JavaOracle
from tests.support.values import canonical_rows

pytestmark = [pytest.mark.java, pytest.mark.peers]

Tables = dict[str, PeerTable]

NOT_BY_DUCKDB = {
    "v4_cow": "interim v4",
}


def test_every_named_table_is_there(peer_tables: Tables) -> None:
    assert set(peer_tables) == set(tables.NAMES)


def test_all_format_versions_and_writers_are_covered(peer_tables: Tables) -> None:
    made = {(table.writer, table.format_version) for table in peer_tables.values()}
    assert made == {
        *(("spark", version) for version in (1, 2, 3, 4)),
        *(("java", version) for version in (2, 3)),
        *(("pyiceberg", version) for version in (1, 2)),
    }


@pytest.mark.parametrize("name", tables.PYICEBERG_NAMES)
def test_java_reads_the_rows_pyiceberg_wrote(
    java: JavaOracle, peer_tables: Tables, name: str
) -> None:
    table = peer_tables[name]
    for snapshot in table.snapshots:
        seen = readers.read_with_java(java, table.metadata_location, snapshot_id=snapshot.id)
        assert canonical_rows(seen) == canonical_rows(table.rows(snapshot.id))


@pytest.mark.parametrize("name", [n for n in tables.NAMES if n not in NOT_BY_DUCKDB])
def test_duckdb_reads_the_rows_the_writer_reads(peer_tables: Tables, name: str) -> None:
    table = peer_tables[name]
    if table.current_snapshot_id is None:
        assert readers.read_with_duckdb(table.metadata_location).num_rows == 0
        return
    seen = readers.read_with_duckdb(table.metadata_location)
    assert canonical_rows(seen) == canonical_rows(table.rows())


@pytest.mark.parametrize("name", tables.NAMES)
def test_pyiceberg_reads_the_rows_the_writer_reads(peer_tables: Tables, name: str) -> None:
    table = peer_tables[name]
    seen = readers.read_with_pyiceberg(table.metadata_location)
    if table.current_snapshot_id is None:
        assert seen.num_rows == 0
        return
    assert canonical_rows(seen) == canonical_rows(table.rows())

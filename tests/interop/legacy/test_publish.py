"""What Frazil publishes, read by PyIceberg, DuckDB and Iceberg Java: the rows Frazil reads."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil import Table, Unsupported
from tests.interop.legacy.test_read import READABLE
from tests.interop.peers import readers
from tests.interop.peers.tables import PeerTable
from tests.support.java import JavaOracle
from tests.support.legacy_tables import delete_row
from tests.support.upgrading import entered
from tests.support.values import canonical_rows

pytestmark = [pytest.mark.java, pytest.mark.peers]

Tables = dict[str, PeerTable]

PUBLISHED_ANYWAY = {"does not know format version 4", "requires manifest lists"}
"""What readers lack of old tables, and what publishing gives them."""
BEYOND_PYICEBERG = {
    **{n: why for n, why in readers.BEYOND_PYICEBERG.items() if why not in PUBLISHED_ANYWAY},
    "v4_types": "reads a null map as an empty one",
}
BEYOND_DUCKDB = {
    **{n: why for n, why in readers.BEYOND_DUCKDB.items() if why not in PUBLISHED_ANYWAY},
    "java_types_v2": "is not published as v2",
}


def _check(java: JavaOracle, table: Table, peer: PeerTable, version: int) -> None:
    rows = canonical_rows(table.scan().to_arrow())
    location = table.publish(format_version=version).metadata_location
    assert canonical_rows(readers.read_with_java(java, location)) == rows
    if peer.name not in BEYOND_PYICEBERG:
        assert canonical_rows(readers.read_with_pyiceberg(location)) == rows
    # DuckDB 1.5.5 misreads deletion vectors that hold runs, whoever wrote them.
    if version == 2 and peer.name not in BEYOND_DUCKDB:
        assert canonical_rows(readers.read_with_duckdb(location)) == rows


def _commit(table: Table) -> None:
    table.append(table.scan(limit=3).to_arrow())
    delete_row(table, of_file=0)
    delete_row(table, of_file=-1)


@pytest.mark.parametrize("name", READABLE)
def test_peers_read_what_is_published_after_upgrade_and_commits(
    java: JavaOracle, peer_tables: Tables, tmp_path: Path, name: str
) -> None:
    peer = peer_tables[name]
    table = entered(peer, tmp_path)
    table.upgrade()
    versions = [3, 2] if _fits_v2(table) else [3]
    for version in versions:
        _check(java, table, peer, version)
    if not table.scan().count():
        return
    _commit(table)
    for version in versions:
        _check(java, table, peer, version)
    table.rewrite_manifests()
    for version in versions:
        _check(java, table, peer, version)


def _fits_v2(table: Table) -> bool:
    try:
        table.schema.check_format_version_compatibility(2)
    except Exception:  # PyIceberg raises plain errors
        with pytest.raises(Unsupported, match="cannot be published as v2"):
            table.publish(format_version=2)
        return False
    return True


@pytest.mark.parametrize("name", ["v3_mor", "v2_evolved", "v1_appends"])
def test_row_ids_published_as_v3_are_frazils(
    java: JavaOracle, peer_tables: Tables, tmp_path: Path, name: str
) -> None:
    table = entered(peer_tables[name], tmp_path)
    table.upgrade()
    _commit(table)
    columns = [field.name for field in table.schema.fields] + ["_row_id"]
    mine = table.scan(columns=columns).to_arrow()
    location = table.publish(format_version=3).metadata_location
    theirs = readers.read_with_java(java, location, row_lineage=True)
    assert canonical_rows(theirs.select(columns)) == canonical_rows(mine)


def test_java_reads_a_published_table_through_a_filter(
    java: JavaOracle, peer_tables: Tables, tmp_path: Path
) -> None:
    table = entered(peer_tables["v3_evolved"], tmp_path)
    table.upgrade()
    _commit(table)
    location = table.publish(format_version=3).metadata_location
    for value in (3, 10, 21):
        seen = readers.read_with_java(
            java, location, filter={"type": "eq", "term": "id", "value": value}
        )
        mine = table.scan(where=f"id = {value}").to_arrow()
        assert {row["id"] for row in mine.to_pylist()} <= {row["id"] for row in seen.to_pylist()}


def test_every_commit_is_published_when_the_table_asks(
    java: JavaOracle, peer_tables: Tables, tmp_path: Path
) -> None:
    table = entered(peer_tables["v2_mor"], tmp_path)
    table.upgrade()
    table.set_properties({"publish.format-version": "2"})
    for of_file in (0, 1):
        delete_row(table, of_file=of_file)
        rows = canonical_rows(table.scan().to_arrow())
        hint = (tmp_path / "table" / "metadata" / "version-hint.text").read_text()
        location = f"{table.location}/metadata/v{hint}.metadata.json"
        assert canonical_rows(readers.read_with_java(java, location)) == rows
        assert canonical_rows(readers.read_with_duckdb(location)) == rows


@pytest.mark.parametrize("version", [2, 3])
def test_partitions_of_several_columns_are_read_by_everybody(
    java: JavaOracle, tmp_path: Path, version: int
) -> None:
    rows = pa.table({"a": list(range(40)), "b": [f"text {i % 7}" for i in range(40)]})
    with frazil.connect(tmp_path / "warehouse") as catalog:
        table = catalog.create_table("s.t", rows.schema, partition_by=["bucket[4](b, a)", "b"])
        table.append(rows)
        location = table.publish(format_version=version).metadata_location
    expected = sorted(rows["a"].to_pylist())
    assert sorted(readers.read_with_java(java, location)["a"].to_pylist()) == expected
    assert sorted(readers.read_with_pyiceberg(location)["a"].to_pylist()) == expected

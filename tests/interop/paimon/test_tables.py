"""Every table of every peer: adopted rows are the peer's own rows, at every snapshot."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from frazil.errors import Unsupported
from frazil.paimon import PaimonTable, adopt, dry_run
from frazil.paimon.read import overview
from frazil.storage import local_path
from tests.interop.paimon.peers import PeerTables
from tests.interop.paimon.reading import fingerprint, handle_of, rows_of
from tests.support.memory_catalog import MemoryCatalog

pytestmark = [pytest.mark.java, pytest.mark.peers]

PARTITION_TYPES = [
    *("tinyint", "smallint", "bigint", "float", "double", "decimal", "bigdecimal", "char"),
    *("timestamp", "micros", "ltz"),
]
JAVA_TABLES = [
    *("append_types", "append_nested", "append_partitions", "append_bucketed", "append_evolved"),
    *("append_orc", "append_dv32", "append_dv64", "append_external", "append_rowtracking"),
    *("append_orc_manifests", "pk_compacted", "pk_disjoint", "pk_dv32", "pk_dv64"),
    *("pk_first_row", "pk_first_row_level0", "pk_postpone", "append_indexed"),
    "append_indexed_beside",
    *(f"append_by_{name}{form}" for name in PARTITION_TYPES for form in ("", "_named")),
]
PYPAIMON_TABLES = [
    *("py_append", "py_types", "py_orc", "py_rowtracking", "py_vectors", "py_evolved"),
]
REFUSED = {
    "append_avro": "format 'avro' is not read",
    "append_odd_types": r"column 't9'.*INT96.*column 'tm'",
    "append_recast": "column 'v' changed from STRING to INT",
    "pk_level0": "key range overlaps.*merge_paimon",
    "pk_level0_types": "key range overlaps.*merge_paimon",
    "pk_sequence": "key range overlaps.*merge_paimon",
    "pk_partial": "merge engine partial-update.*full compaction",
    "pk_aggregate": "merge engine aggregation.*full compaction",
    "pk_aggregates": "merge engine aggregation.*full compaction",
    "pk_grouped": "merge engine partial-update.*full compaction",
    "pk_changelog": "key range overlaps.*merge_paimon",
    "py_avro": "format 'avro' is not read",
    "py_reused": "has no field ids.*the name x",
    "py_data_evolution": "some columns of its rows only",
    "py_pk": "key range overlaps",
    "py_pk_kinds": "holds delete rows that its entry does not count",
}


def peer_of(name: str, java: PeerTables, python: PeerTables) -> PeerTables:
    return python if name.startswith("py_") else java


def test_every_table_of_the_peers_is_accounted_for(
    java_paimon: PeerTables, pypaimon: PeerTables
) -> None:
    known = {*JAVA_TABLES, *PYPAIMON_TABLES, *REFUSED}
    assert {*java_paimon.names, *pypaimon.names} == known


@pytest.mark.parametrize("name", [*JAVA_TABLES, *PYPAIMON_TABLES])
def test_adopted_rows_are_the_peers_rows_at_every_snapshot(
    name: str, java_paimon: PeerTables, pypaimon: PeerTables, catalog: MemoryCatalog
) -> None:
    peer = peer_of(name, java_paimon, pypaimon)
    before = fingerprint(Path(peer.table(name)))
    adopted = adopt(catalog, f"db.{name}", peer.table(name), history=True)
    assert adopted.snapshots
    handle = handle_of(catalog, f"db.{name}")
    for taken in adopted.snapshots:
        expected = peer.rows(name, taken.paimon_snapshot_id, taken.branch)
        found = rows_of(handle, handle.snapshot(taken.snapshot_id))
        assert found == expected, (taken.branch, taken.paimon_snapshot_id)
    assert fingerprint(Path(peer.table(name))) == before


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_taken_is_refused_by_name_and_leaves_nothing(
    name: str,
    java_paimon: PeerTables,
    pypaimon: PeerTables,
    catalog: MemoryCatalog,
    tmp_path: Path,
) -> None:
    peer = peer_of(name, java_paimon, pypaimon)
    with pytest.raises(Unsupported, match=f"(?s){REFUSED[name]}"):
        adopt(catalog, f"db.{name}", peer.table(name), history=True)
    assert not catalog.table_exists(f"db.{name}")
    assert fingerprint(tmp_path / "warehouse") == {}
    report = dry_run(peer.table(name))
    assert not report.can_be_adopted


def data_of(location: str) -> pa.Table:
    path = local_path(location)
    return orc.read_table(path) if path.endswith(".orc") else pq.read_table(path)


@pytest.mark.parametrize(
    "name",
    ["append_types", "append_partitions", "pk_dv32", "pk_compacted", "py_types", "append_orc"],
)
def test_statistics_enclose_the_data(
    name: str, java_paimon: PeerTables, pypaimon: PeerTables
) -> None:
    peer = peer_of(name, java_paimon, pypaimon)
    table = PaimonTable.open(peer.table(name))
    files = overview.files(table)
    checked = 0
    for row in files.to_pylist():
        data = data_of(row["location"])
        for column in table.schema().fields:
            nulls = row.get(f"{column.name}.null_value_count")
            values = data[column.name]
            if nulls is not None:
                assert nulls == values.null_count
            for bound, inside in (
                ("lower_bound", pc.less_equal),
                ("upper_bound", pc.greater_equal),
            ):
                value = row.get(f"{column.name}.{bound}")
                if value is not None:
                    kind = files.schema.field(f"{column.name}.{bound}").type
                    held = inside(pa.scalar(value, kind), values.cast(kind))
                    assert pc.all(held).as_py() is not False
                    checked += 1
    assert checked >= 4

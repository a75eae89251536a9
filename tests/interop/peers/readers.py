"""Other engines reading an Iceberg table, given its metadata file: what we publish, they must read.

Each function answers with an Arrow table; compare with `tests.support.values.canonical_rows`.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.table import StaticTable

from frazil.iceberg.partitioning import PartitionSpec, spec_document
from frazil.iceberg.pyiceberg_values import AnySchema, from_pyiceberg
from frazil.iceberg.schema import load_schema, schema_document
from tests.support.java import JavaOracle
from tests.support.values import rows_from_json
from tests.support.venvs import DUCKDB_ICEBERG

LINEAGE_COLUMNS = ("_row_id", "_last_updated_sequence_number")
_DUCKDB_SCRIPT = Path(__file__).with_name("duckdb_read.py")

_INTERIM_V4 = dict.fromkeys(
    ("v3_to_v4", "v4_cow", "v4_evolved", "v4_mor", "v4_types"), "does not know format version 4"
)

BEYOND_PYICEBERG = {
    **_INTERIM_V4,
    "v1_without_manifest_lists": "requires manifest lists",
    "v1_types": "reads a null map as an empty one",
    "v3_types": "reads a null map as an empty one",
    "java_types_v2": "reads a null list of structs as an empty one",
    "java_types_v3": "reads a null list of structs as an empty one",
    "java_equality_v2": "does not read equality deletes",
    "java_equality_v3": "does not read equality deletes",
    "java_equality_partitioned_v2": "does not read equality deletes",
    "java_equality_partitioned_v3": "does not read equality deletes",
    "java_positions_v2": "does not read Avro position deletes",
    "java_avro_v2": "does not read Avro data files",
    "java_orc_v2": "reads ORC timestamps as nanoseconds, which overflow",
}
"""Peer tables that PyIceberg cannot read, or reads otherwise than their writer, and why."""

BEYOND_DUCKDB = {
    **_INTERIM_V4,
    "v1_without_manifest_lists": "requires manifest lists",
    "java_equality_partitioned_v2": "fails on an equality delete of null",
    "java_positions_v2": "does not read Avro position deletes",
    "java_avro_v2": "does not read Avro data files",
    "java_orc_v2": "does not read ORC data files",
    "java_types_v3": "does not know timestamptz_ns",
}
"""Peer tables that DuckDB's iceberg extension cannot read, and why."""


class PeerFailure(Exception):
    """An engine could not read the table; the message is its own."""


def read_with_java(
    java: JavaOracle,
    metadata_location: str,
    *,
    snapshot_id: int | None = None,
    row_lineage: bool = False,
    filter: dict[str, Any] | None = None,
) -> pa.Table:
    """Rows as Iceberg Java's scan and generic reader give them; `filter` in Iceberg's JSON form."""
    answer = java.call(
        "table.rows",
        metadata_location=metadata_location,
        snapshot_id=snapshot_id,
        row_lineage=row_lineage,
        filter=filter,
    )
    return rows_from_json(load_schema(answer["schema"]), answer["rows"])


def read_manifest_with_java(
    java: JavaOracle,
    path: Path,
    *,
    schema: AnySchema,
    specs: Sequence[PartitionSpec],
    table_location: str,
    snapshot_id: int,
    sequence_number: int,
    first_row_id: int | None,
    filter: dict[str, Any] | None = None,
    live_only: bool = False,
) -> list[dict[str, Any]]:
    """Entries of a v4 root or leaf as Iceberg Java's own v4 reader gives them, inherited values in.

    `table_location` needs a scheme. Snapshot id, sequence number and first row id are those of the
    snapshot for a root, of the leaf's entry in the root for a leaf.
    """
    entries: list[dict[str, Any]] = java.call(
        "manifest.read",
        path=str(path),
        length=path.stat().st_size,
        schema=schema_document(from_pyiceberg(schema)),
        specs=[spec_document(spec) for spec in specs],
        table_location=table_location,
        snapshot_id=snapshot_id,
        sequence_number=sequence_number,
        first_row_id=first_row_id,
        filter=filter,
        live_only=live_only,
    )
    return entries


def read_with_pyiceberg(metadata_location: str, *, snapshot_id: int | None = None) -> pa.Table:
    """Rows as PyIceberg's scan gives them."""
    table = StaticTable.from_metadata(metadata_location)
    return table.scan(snapshot_id=snapshot_id).to_arrow()


def read_with_duckdb(metadata_location: str, *, snapshot_id: int | None = None) -> pa.Table:
    """Rows as DuckDB's iceberg extension gives them, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.arrow"
        request = {
            "source": metadata_location,
            "target": str(rows),
            "snapshot_id": snapshot_id,
        }
        _ask_duckdb(json.dumps(request))
        with pa.OSFile(str(rows)) as file:
            return pa.ipc.open_file(file).read_all()


def _ask_duckdb(request: str) -> None:
    process = _duckdb()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(request + "\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        _duckdb.cache_clear()  # some errors end the whole process
        raise PeerFailure(f"DuckDB ended with status {process.wait()}")
    error = json.loads(answer)
    if error is not None:
        raise PeerFailure(error)


@cache
def _duckdb() -> subprocess.Popen[str]:
    """The one DuckDB process; it ends when our end of its input closes."""
    command = [str(DUCKDB_ICEBERG.ready().python), str(_DUCKDB_SCRIPT)]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )

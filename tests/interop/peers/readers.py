"""Other engines reading an Iceberg table, given its metadata file: what we publish, they must read.

Each function answers with an Arrow table; compare with `tests.support.values.canonical_rows`.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable

from tests.support.java import JavaOracle
from tests.support.values import rows_from_json
from tests.support.venvs import DUCKDB_ICEBERG

LINEAGE_COLUMNS = ("_row_id", "_last_updated_sequence_number")
_DUCKDB_SCRIPT = Path(__file__).with_name("duckdb_read.py")


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
    return rows_from_json(Schema.model_validate(answer["schema"]), answer["rows"])


def read_with_pyiceberg(metadata_location: str, *, snapshot_id: int | None = None) -> pa.Table:
    """Rows as PyIceberg's scan gives them."""
    table = StaticTable.from_metadata(metadata_location)
    return table.scan(snapshot_id=snapshot_id).to_arrow()


def read_with_duckdb(metadata_location: str, *, snapshot_id: int | None = None) -> pa.Table:
    """Rows as DuckDB's iceberg extension gives them, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.arrow"
        command = [str(DUCKDB_ICEBERG.ready().python), str(_DUCKDB_SCRIPT)]
        command += [metadata_location, str(rows)]
        if snapshot_id is not None:
            command.append(str(snapshot_id))
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise PeerFailure(done.stderr)
        with pa.OSFile(str(rows)) as file:
            return pa.ipc.open_file(file).read_all()

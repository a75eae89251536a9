"""Reads an Iceberg table with DuckDB. Runs in its own virtual environment.

python duckdb_read.py <metadata.json> <rows.arrow> [snapshot id]
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa


def connect() -> Any:
    """DuckDB with the extensions that the packages bring; nothing is downloaded."""
    off = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    connection = duckdb.connect(config=off)
    for name in ("avro", "iceberg"):
        package = Path(next(iter(import_module(f"duckdb_extension_{name}").__path__)))
        version = f"v{duckdb.__version__}"
        connection.execute(f"LOAD '{package}/extensions/{version}/{name}.duckdb_extension'")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET arrow_lossless_conversion = true")
    return connection


def read(connection: Any, source: str, target: str, snapshot_id: int | None) -> None:
    """Write the rows of one table as an Arrow file."""
    at = "" if snapshot_id is None else f", snapshot_from_id = {snapshot_id}"
    rows = connection.execute(f"SELECT * FROM iceberg_scan($source{at})", {"source": source})
    table = rows.to_arrow_table()
    with pa.OSFile(target, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def main() -> None:
    """Answer requests until the input ends."""
    connection = connect()
    for line in sys.stdin:
        try:
            read(connection, **json.loads(line))
            error = None
        except duckdb.Error as failure:
            error = str(failure)
        print(json.dumps(error), flush=True)


if __name__ == "__main__":
    main()

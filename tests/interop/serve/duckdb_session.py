"""DuckDB on a REST catalog. Runs in its own virtual environment.

    python duckdb_session.py <uri>

Runs the statements it is given, one per line, and prints the rows of `shop.orders` as JSON.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb


def connect(uri: str) -> Any:
    """DuckDB with the extensions that the packages bring, and the server attached."""
    off = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    connection = duckdb.connect(config=off)
    for name in ("avro", "httpfs", "iceberg"):
        package = Path(next(iter(import_module(f"duckdb_extension_{name}").__path__)))
        version = f"v{duckdb.__version__}"
        connection.execute(f"LOAD '{package}/extensions/{version}/{name}.duckdb_extension'")
    options = f"TYPE iceberg, ENDPOINT '{uri}', AUTHORIZATION_TYPE 'none'"
    connection.execute(f"ATTACH 'any' AS lake ({options})")
    return connection


def main() -> None:
    """Run the input."""
    connection = connect(sys.argv[1])
    for statement in sys.stdin:
        if statement.strip():
            connection.execute(statement)
    rows = connection.execute("SELECT * FROM lake.shop.orders ORDER BY ALL").fetchall()
    print(json.dumps(rows))


if __name__ == "__main__":
    main()

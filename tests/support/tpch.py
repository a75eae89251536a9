"""TPC-H: its eight tables made by DuckDB's extension, and its 22 queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from frazil.sql.session import Session
from frazil.table.catalog import Catalog

TABLES = (
    "customer",
    "lineitem",
    "nation",
    "orders",
    "part",
    "partsupp",
    "region",
    "supplier",
)
PARTITIONED = {"lineitem": "years(l_shipdate)", "orders": "years(o_orderdate)"}
APPENDS = 4


def tpch(scale: float) -> duckdb.DuckDBPyConnection:
    """A database with the tables at a scale."""
    connection = duckdb.connect()
    load(connection)
    connection.execute(f"CALL dbgen(sf={scale})")
    return connection


def opened(folder: str) -> duckdb.DuckDBPyConnection:
    """A database whose tables are the Parquet files of a folder."""
    connection = duckdb.connect()
    for name in TABLES:
        connection.execute(f"CREATE VIEW {name} AS FROM '{folder}/{name}.parquet'")
    return connection


def load(connection: duckdb.DuckDBPyConnection) -> None:
    """Load the extension from its package."""
    import duckdb_extension_tpch

    (folder,) = duckdb_extension_tpch.__path__
    path = Path(folder) / "extensions" / f"v{duckdb.__version__}" / "tpch.duckdb_extension"
    connection.execute(f"LOAD '{path}'")


def queries(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """The 22 queries."""
    found = connection.execute("SELECT query FROM tpch_queries() ORDER BY query_nr").fetchall()
    return [str(text) for (text,) in found]


def fill(catalog: Catalog, connection: duckdb.DuckDBPyConnection) -> Session:
    """The tables in a catalog, the large ones partitioned by year and appended in parts."""
    session = catalog.session()
    for name in TABLES:
        rows = connection.execute(f"SELECT * FROM {name}").to_arrow_table()
        by = f"PARTITIONED BY ({PARTITIONED[name]}) " if name in PARTITIONED else ""
        parts = APPENDS if name in PARTITIONED else 1
        size = -(-rows.num_rows // parts)
        first = {"given": rows.slice(0, size)}
        session.sql(f"CREATE TABLE tpch.{name} {by}AS SELECT * FROM given", tables=first)
        for part in range(1, parts):
            more = {"given": rows.slice(part * size, size)}
            session.sql(f"INSERT INTO tpch.{name} SELECT * FROM given", tables=more)
    session.sql("USE tpch")
    return session


def comparable(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows in one order, floats as far as the order of adding them up does not matter."""
    shown = [
        tuple(f"{value:.6g}" if isinstance(value, float) else str(value) for value in row)
        for row in rows
    ]
    return sorted(shown)

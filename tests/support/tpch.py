"""TPC-H: its eight tables made by tpchgen-cli, and its 22 queries."""

from __future__ import annotations

import subprocess
import sysconfig
import tempfile
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


def generate(scale: float, folder: Path) -> None:
    """The tables at a scale as Parquet files in a folder."""
    program = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
    options = ["parquet", "--scale-factor", str(scale), "--output-dir", str(folder)]
    subprocess.run([str(program), *options], check=True, capture_output=True)


def tpch(scale: float) -> duckdb.DuckDBPyConnection:
    """A database with the tables at a scale."""
    connection = duckdb.connect()
    with tempfile.TemporaryDirectory() as folder:
        generate(scale, Path(folder))
        for name in TABLES:
            connection.execute(f"CREATE TABLE {name} AS FROM '{folder}/{name}.parquet'")
    return connection


def opened(folder: str) -> duckdb.DuckDBPyConnection:
    """A database whose tables are the Parquet files of a folder."""
    connection = duckdb.connect()
    for name in TABLES:
        connection.execute(f"CREATE VIEW {name} AS FROM '{folder}/{name}.parquet'")
    return connection


def queries() -> list[str]:
    """The 22 queries."""
    texts = Path(__file__).with_name("tpch_queries.sql").read_text().split(";\n")
    return [text.strip() for text in texts if text.strip()]


def fill(catalog: Catalog, connection: duckdb.DuckDBPyConnection) -> Session:
    """The tables in a catalog, the large ones partitioned by year and appended in parts."""
    session = catalog.session()
    for name in TABLES:
        rows = connection.sql(f"SELECT * FROM {name}").to_arrow_table()
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

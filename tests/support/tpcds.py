"""TPC-DS: its tables and 99 queries, and changes of them.

Data and queries come from DuckDB's extension, whose packages end at an older DuckDB, so that it
runs in an environment of its own.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pyarrow.parquet as pq

from frazil.sql.session import Session
from frazil.table.catalog import Catalog
from tests.support.venvs import Venv

APPENDS = 8
TPCDS = Venv(name="tpcds", packages=("duckdb==1.5.5", "duckdb-extension-tpcds==1.5.5"))
GENERATE = """
import json, sys, duckdb, duckdb_extension_tpcds
from pathlib import Path
scale, folder = sys.argv[1:]
connection = duckdb.connect()
(extension,) = Path(duckdb_extension_tpcds.__file__).parent.rglob("*.duckdb_extension")
connection.execute(f"LOAD '{extension}'")
connection.execute(f"CALL dsdgen(sf={float(scale)})")
for (name,) in connection.execute("SHOW TABLES").fetchall():
    connection.execute(f"COPY {name} TO '{folder}/{name}.parquet'")
queries = [text for _, text in connection.execute("FROM tpcds_queries()").fetchall()]
open(f"{folder}/queries.json", "w").write(json.dumps(queries))
"""
CHANGES = (
    "DELETE FROM store_sales WHERE ss_ticket_number % 50 = 7",
    "UPDATE store_sales SET ss_quantity = ss_quantity + 1 WHERE ss_item_sk % 40 = 3",
    "DELETE FROM catalog_returns WHERE cr_item_sk % 30 = 1",
    "UPDATE web_sales SET ws_net_profit = -ws_net_profit WHERE ws_order_number % 20 = 2",
    "UPDATE customer SET c_birth_year = NULL WHERE c_customer_sk % 10 = 4",
    "DELETE FROM inventory WHERE inv_warehouse_sk = 1 AND inv_item_sk % 5 = 0",
)


def generate(scale: str, folder: Path) -> list[str]:
    """Write the tables at a scale as Parquet files into a folder; returns the queries."""
    command = [str(TPCDS.ready().python), "-c", GENERATE, scale, str(folder)]
    subprocess.run(command, check=True, timeout=1_800)
    texts: list[str] = json.loads((folder / "queries.json").read_text())
    return texts


def loaded(catalog: Catalog, folder: Path) -> Session:
    """A session whose namespace has the tables of a folder, each of several appends."""
    catalog.create_namespace("ds")
    session = Session(catalog)
    session.sql("USE ds")
    for file in sorted(folder.glob("*.parquet")):
        rows = pq.read_table(file)
        table = catalog.create_table(f"ds.{file.stem}", rows.schema)
        size = max(1, -(-rows.num_rows // APPENDS))
        for start in range(0, rows.num_rows, size):
            table.append(rows.slice(start, size))
    return session

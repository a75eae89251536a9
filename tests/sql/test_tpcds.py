"""TPC-DS through `catalog.sql`: each of the 99 queries has the rows of DuckDB on plain Parquet.

`make search` runs it, for minutes. Data and queries come from DuckDB's extension, whose packages
end at an older DuckDB, so that it runs in an environment of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import frazil
from frazil.sql.session import Session
from tests.support.tpch import comparable
from tests.support.venvs import Venv

SCALE = os.environ.get("FRAZIL_TPCDS_SCALE")
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
pytestmark = pytest.mark.skipif(SCALE is None, reason="FRAZIL_TPCDS_SCALE is not set: make search")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tpcds")
    assert SCALE is not None
    command = [str(TPCDS.ready().python), "-c", GENERATE, SCALE, str(folder)]
    subprocess.run(command, check=True, timeout=1_800)
    return folder


@pytest.fixture(scope="module")
def model(folder: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for file in folder.glob("*.parquet"):
        connection.execute(f"CREATE TABLE {file.stem} AS FROM '{file}'")
    return connection


@pytest.fixture(scope="module")
def session(folder: Path, model: duckdb.DuckDBPyConnection) -> Iterator[Session]:
    with frazil.connect(folder / "warehouse") as catalog:
        catalog.create_namespace("ds")
        session = Session(catalog)
        session.sql("USE ds")
        for file in sorted(folder.glob("*.parquet")):
            rows = model.sql(f"FROM '{file}'").to_arrow_table()
            table = catalog.create_table(f"ds.{file.stem}", rows.schema)
            size = max(1, -(-rows.num_rows // APPENDS))
            for start in range(0, rows.num_rows, size):
                table.append(rows.slice(start, size))
        yield session


def differing(session: Session, model: duckdb.DuckDBPyConnection, queries: list[str]) -> list[str]:
    """The queries whose rows are others, by number."""
    problems = []
    for number, text in enumerate(queries, start=1):
        expected = comparable(model.execute(text).fetchall())
        try:
            result = session.sql(text).to_arrow()
        except frazil.FrazilError as error:
            problems.append(f"{number}: {error}")
            continue
        columns = [column.to_pylist() for column in result.columns]
        if comparable(list(zip(*columns, strict=True))) != expected:
            problems.append(f"{number}: other rows")
    return problems


@pytest.mark.timeout(3_600)
def test_all_queries_equal_duckdb_before_and_after_changes(
    folder: Path, model: duckdb.DuckDBPyConnection, session: Session
) -> None:
    queries = json.loads((folder / "queries.json").read_text())
    assert len(queries) == 99
    assert not differing(session, model, queries)
    for statement in CHANGES:
        model.execute(statement)
        session.sql(statement)
    for (name,) in model.execute("SHOW TABLES").fetchall():
        (expected,) = model.execute(f"SELECT count(*) FROM {name}").fetchall()
        assert session.sql(f"SELECT count(*) AS n FROM {name}").to_pylist() == [{"n": expected[0]}]
    assert not differing(session, model, queries)
    for table in ("store_sales", "web_sales", "customer"):
        session.sql(f"CALL system.rewrite_data_files('ds.{table}')")
    assert not differing(session, model, queries)

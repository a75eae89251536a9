"""DuckDB with its iceberg extension reads and writes served tables."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil import serve
from frazil.serve.running import Running
from frazil.table import Catalog
from tests.support.mortal import Mortal
from tests.support.project import ROOT
from tests.support.venvs import Venv

pytestmark = pytest.mark.peers
SCRIPT = ROOT / "tests" / "interop" / "serve" / "duckdb_session.py"
DUCKDB_REST = Venv(
    name="duckdb-rest",
    packages=(
        "duckdb==1.5.5",
        "duckdb-extension-iceberg==1.5.5",
        "duckdb-extension-avro==1.5.5",
        "duckdb-extension-httpfs==1.5.5",
    ),
)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with frazil.connect(tmp_path / "warehouse") as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture
def server(catalog: Catalog) -> Iterator[Running]:
    with serve.start(catalog) as running:
        yield running


def duckdb(server: Running, *statements: str) -> list[list[Any]]:
    done = started(server.uri, *statements)
    assert done.returncode == 0, done.stderr[-3000:]
    rows: list[list[Any]] = json.loads(done.stdout)
    return rows


def started(uri: str, *statements: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(DUCKDB_REST.ready().python), str(SCRIPT), uri],
        input="\n".join(statements) + "\n",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def check(catalog: Catalog, rows: list[list[Any]], *expected: int) -> None:
    native = catalog["shop.orders"]
    assert [row[0] for row in rows] == sorted(expected)
    assert sorted(native.scan().to_arrow()["id"].to_pylist()) == sorted(expected)
    report = native.check(deep=True)
    assert not report.problems, str(report)


def test_a_native_table_is_read_and_written(catalog: Catalog, server: Running) -> None:
    schema = pa.schema([("id", pa.int64()), ("country", pa.string())])
    table = catalog.create_table("shop.orders", schema)
    table.append(pa.table({"id": [1, 2, 3], "country": ["de", "fr", "it"]}))
    table.delete("id = 2")
    check(catalog, duckdb(server), 1, 3)
    rows = duckdb(
        server,
        "INSERT INTO lake.shop.orders VALUES (4, 'de'), (5, 'fr')",
        "DELETE FROM lake.shop.orders WHERE id = 3",
        "UPDATE lake.shop.orders SET id = 50 WHERE id = 5",
    )
    check(catalog, rows, 1, 4, 50)
    catalog["shop.orders"].append(pa.table({"id": [6], "country": ["es"]}))
    check(catalog, duckdb(server), 1, 4, 6, 50)


def test_a_table_is_created_and_filled(catalog: Catalog, server: Running) -> None:
    rows = duckdb(
        server,
        "CREATE TABLE lake.shop.orders (id BIGINT, country VARCHAR)",
        "INSERT INTO lake.shop.orders SELECT i, 'de' FROM range(3) t(i)",
    )
    check(catalog, rows, 0, 1, 2)


def test_queries_make_tables_and_transactions_span_them(catalog: Catalog, server: Running) -> None:
    rows = duckdb(
        server,
        "CREATE TABLE lake.shop.orders AS SELECT i AS id FROM range(3) t(i)",
        "CREATE TABLE lake.shop.other AS SELECT 7::BIGINT AS id",
        "MERGE INTO lake.shop.orders t USING (SELECT 2::BIGINT AS id UNION SELECT 9) s "
        "ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id)",
        "BEGIN",
        "INSERT INTO lake.shop.orders VALUES (10)",
        "INSERT INTO lake.shop.other VALUES (11)",
        "COMMIT",
    )
    check(catalog, rows, 0, 1, 9, 10)
    assert sorted(catalog["shop.other"].scan().to_arrow()["id"].to_pylist()) == [7, 11]
    assert not catalog["shop.other"].check(deep=True).problems


def test_rows_stay_when_the_server_dies_before_it_answers(tmp_path: Path) -> None:
    """DuckDB deletes its files then, although they are the table's."""
    with frazil.connect(tmp_path / "lake") as catalog:
        table = catalog.create_table("shop.orders", pa.table({"id": [1]}))
        with Mortal(tmp_path / "lake") as server:
            server.live("dies")
            lost = started(server.uri, "INSERT INTO lake.shop.orders VALUES (2)")
            assert lost.returncode != 0
            assert server.end() != 0
            assert [one.operation for one in table.refresh().snapshots()] == ["append", "append"]
            (problem,) = table.check().problems
            assert "its writer deleted it" in str(problem)
            server.live("lives")
            seen = started(server.uri, "SELECT 1")
        assert json.loads(seen.stdout) == [[1], [2]]
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]
        assert not table.check(deep=True).problems

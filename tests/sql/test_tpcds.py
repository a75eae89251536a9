"""TPC-DS through `catalog.sql`: each of the 99 queries has the rows of DuckDB on plain Parquet.

`make search` runs it, for minutes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import frazil
from frazil.sql.session import Session
from tests.support.tpcds import CHANGES, generate, loaded
from tests.support.tpch import comparable

SCALE = os.environ.get("FRAZIL_TPCDS_SCALE")
pytestmark = pytest.mark.skipif(SCALE is None, reason="FRAZIL_TPCDS_SCALE is not set: make search")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tpcds")


@pytest.fixture(scope="module")
def queries(folder: Path) -> list[str]:
    assert SCALE is not None
    return generate(SCALE, folder)


@pytest.fixture(scope="module")
def model(folder: Path, queries: list[str]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for file in folder.glob("*.parquet"):
        connection.execute(f"CREATE TABLE {file.stem} AS FROM '{file}'")
    return connection


@pytest.fixture(scope="module")
def session(folder: Path, queries: list[str]) -> Iterator[Session]:
    with frazil.connect(folder / "warehouse") as catalog:
        yield loaded(catalog, folder)


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
    queries: list[str], model: duckdb.DuckDBPyConnection, session: Session
) -> None:
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

"""TPC-H through `catalog.sql` gives what DuckDB gives on the same rows, changed rows included."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import frazil
from frazil.sql.session import Session
from tests.support.tpch import TABLES, comparable, fill, queries, tpch

SCALE = 0.1
CHANGES = (
    "DELETE FROM lineitem WHERE (l_orderkey + l_linenumber) % 200 = 7",
    "UPDATE lineitem SET l_quantity = l_quantity + 1, l_discount = l_discount / 2 "
    "WHERE (l_orderkey * 3 + l_linenumber) % 200 = 11",
    "DELETE FROM orders WHERE o_orderkey % 200 = 3",
    "UPDATE orders SET o_orderpriority = '1-URGENT', o_totalprice = o_totalprice * 2 "
    "WHERE o_orderkey % 200 = 5",
    "UPDATE customer SET c_acctbal = -c_acctbal WHERE c_custkey % 100 = 1",
)


@pytest.fixture(scope="module")
def model() -> duckdb.DuckDBPyConnection:
    return tpch(SCALE)


@pytest.fixture(scope="module")
def session(
    model: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Session]:
    with frazil.connect(tmp_path_factory.mktemp("tpch")) as catalog:
        yield fill(catalog, model)


def rows(session: Session, text: str) -> list[tuple[object, ...]]:
    found = session.sql(text).to_arrow()
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def test_all_queries_equal_duckdb_on_parquet(
    model: duckdb.DuckDBPyConnection, session: Session, tmp_path: Path
) -> None:
    plain = duckdb.connect()
    for name in TABLES:
        model.execute(f"COPY {name} TO '{tmp_path}/{name}.parquet'")
        plain.execute(f"CREATE VIEW {name} AS FROM '{tmp_path}/{name}.parquet'")
    for number, text in enumerate(queries(), start=1):
        expected = comparable(plain.execute(text).fetchall())
        assert comparable(rows(session, text)) == expected, f"query {number}"


def test_all_queries_are_equal_after_rows_were_changed(
    model: duckdb.DuckDBPyConnection, session: Session
) -> None:
    for statement in CHANGES:
        model.execute(statement)
        session.sql(statement)
    for name in TABLES:
        counted = f"SELECT count(*) AS n FROM {name}"
        assert rows(session, counted) == model.execute(counted).fetchall(), name
    for number, text in enumerate(queries(), start=1):
        expected = comparable(model.execute(text).fetchall())
        assert comparable(rows(session, text)) == expected, f"query {number}"

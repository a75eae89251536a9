"""Engines without settings share the process's database and nothing else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import frazil
from frazil.rows.duckdb import duckdb_connection
from frazil.rows.duckdb.duckdb_engine import DuckDbEngine


def _setting(engine: DuckDbEngine, name: str) -> str:
    ((value,),) = engine.connection.execute(f"SELECT current_setting('{name}')").fetchall()
    return str(value)


def test_temporary_tables_and_variables_belong_to_one_engine() -> None:
    one, other = DuckDbEngine(), DuckDbEngine()
    one.connection.execute("CREATE TEMP TABLE mine AS SELECT 1 AS x")
    one.connection.execute("SET VARIABLE v = 7")
    with pytest.raises(duckdb.CatalogException):
        other.connection.execute("SELECT * FROM mine")
    assert other.connection.execute("SELECT getvariable('v')").fetchall() == [(None,)]


def test_settings_of_one_engine_are_not_those_of_others() -> None:
    assert DuckDbEngine(threads=1).connection.execute(
        "SELECT current_setting('threads')"
    ).fetchall() == [(1,)]
    plain = duckdb.connect()
    assert _setting(DuckDbEngine(), "threads") == _setting(DuckDbEngine(plain), "threads")
    assert _setting(DuckDbEngine(), "TimeZone") == "UTC"


def test_data_that_was_read_is_not_kept() -> None:
    assert _setting(DuckDbEngine(), "enable_external_file_cache").lower() == "false"


def test_a_database_that_became_unusable_is_opened_again() -> None:
    assert DuckDbEngine().connection.execute("SELECT 1").fetchall() == [(1,)]
    database = duckdb_connection._shared._database
    assert database is not None
    database.close()
    assert DuckDbEngine().connection.execute("SELECT 2").fetchall() == [(2,)]


def test_changes_in_threads_do_not_meet(tmp_path: Path) -> None:
    catalog = frazil.connect(str(tmp_path))
    numbers = range(4)
    for number in numbers:
        rows = pa.table({"id": range(10), "v": [number] * 10})
        catalog.create_table(f"shop.t{number}", rows.schema).append(rows)

    def work(number: int) -> int:
        table = catalog.load_table(f"shop.t{number}")
        arriving = pa.table({"id": range(5, 15), "v": [100 + number] * 10})
        return table.upsert(arriving, on=["id"]).rows_updated

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, numbers)) == [5, 5, 5, 5]
    for number in numbers:
        found = catalog.load_table(f"shop.t{number}").scan().to_arrow()
        got = dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))
        assert got == {id: number if id < 5 else 100 + number for id in range(15)}

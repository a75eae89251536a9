"""Native writers, Spark, PyIceberg and DuckDB append to one table at once, two of each.

Runs for a few seconds, or for FRAZIL_SOAK_SECONDS. The rows at the end are exactly those whose
append was acknowledged.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException

import frazil
from frazil import serve
from tests.interop.serve.spark_client import Spark, SparkFailed
from tests.interop.serve.test_duckdb import DUCKDB_REST
from tests.support.project import ROOT

pytestmark = [pytest.mark.java, pytest.mark.peers, pytest.mark.xdist_group("served-spark")]
SECONDS = float(os.environ.get("FRAZIL_SOAK_SECONDS", "8"))
SCHEMA = pa.schema([("id", pa.int64()), ("writer", pa.string())])
DUCKDB = ROOT / "tests" / "interop" / "serve" / "duckdb_writer.py"

Writer = Callable[[int], list[int]]
"""Appends rows with ids from a number on until its time is up; the ids that were acknowledged."""


def one_by_one(append: Callable[[int], object], *conflicts: type[Exception]) -> Writer:
    def run(number: int) -> list[int]:
        landed = []
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            try:
                append(number)
                landed.append(number)
            except conflicts:  # gave up: nothing of it may be there
                pass
            number += 1
        return landed

    return run


def rows(number: int, writer: str) -> pa.Table:
    return pa.table({"id": [number], "writer": [writer]}, schema=SCHEMA)


def native(warehouse: Path) -> Writer:
    table = frazil.connect(warehouse).load_table("shop.orders")
    return one_by_one(lambda number: table.append(rows(number, "native")))


def pyiceberg(uri: str) -> Writer:
    table = RestCatalog("c", uri=uri).load_table("shop.orders")
    return one_by_one(
        lambda number: table.refresh().append(rows(number, "pyiceberg")), CommitFailedException
    )


def spark(session: Spark) -> Writer:
    return one_by_one(
        lambda number: session.sql(f"INSERT INTO shop.orders VALUES ({number}, 'spark')"),
        SparkFailed,
    )


def duckdb(uri: str) -> Writer:
    def run(number: int) -> list[int]:
        done = subprocess.run(
            [str(DUCKDB_REST.ready().python), str(DUCKDB), uri, str(number), str(SECONDS)],
            capture_output=True,
            text=True,
            timeout=SECONDS + 240,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        landed: list[int] = json.loads(done.stdout)
        return landed

    return run


@pytest.mark.timeout(int(SECONDS * 4) + 500)
def test_every_acknowledged_row_is_there_once(tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    catalog = frazil.connect(warehouse)
    table = catalog.create_table(
        "shop.orders", SCHEMA, properties={"commit.retry.num-retries": "1000"}
    )
    with serve.start(catalog) as first, serve.start(catalog) as second:
        sessions = [Spark(first.uri), Spark(second.uri)]
        writers = [native(warehouse), native(warehouse)]
        writers += [spark(session) for session in sessions]
        for server in (first, second):
            writers += [pyiceberg(server.uri), duckdb(server.uri)]
        with ThreadPoolExecutor(len(writers)) as pool:
            starts = [1_000_000 * at for at in range(len(writers))]
            landed = list(pool.map(lambda run, start: run(start), writers, starts))
        for session in sessions:
            session.close()
    acknowledged = sorted(number for ids in landed for number in ids)
    assert all(landed[:2]), "a native writer starved"
    assert sum(map(bool, landed[2:])) >= 3, "clients starved"
    found = sorted(table.refresh().scan().to_arrow()["id"].to_pylist())
    assert found == acknowledged
    assert not table.check(deep=True).problems

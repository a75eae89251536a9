"""Unmodified Flink reads and writes tables through the server: appends, upserts, overwrites.

Flink is large, so this runs with `make soak` only.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil import serve
from tests.support.java import maven_jar
from tests.support.project import ROOT
from tests.support.venvs import Venv

pytestmark = [
    pytest.mark.java,
    pytest.mark.peers,
    pytest.mark.skipif("FRAZIL_SOAK_SECONDS" not in os.environ, reason="runs with make soak"),
]
FLINK = Venv(name="flink", packages=("apache-flink==1.20.1",))
ICEBERG = "org.apache.iceberg:iceberg-flink-runtime-1.20:1.10.0"
HADOOP = (
    "org.apache.hadoop:hadoop-client-api:3.3.6",
    "org.apache.hadoop:hadoop-client-runtime:3.3.6",
    "commons-logging:commons-logging:1.2",
)
CLIENT = ROOT / "tests" / "interop" / "serve" / "flink_client.py"

Run = Callable[[str], list[list[Any]]]


@pytest.fixture
def catalog(tmp_path: Path) -> frazil.Catalog:
    return frazil.connect(tmp_path / "warehouse")


@pytest.fixture
def flink(catalog: frazil.Catalog) -> Iterator[Run]:
    """Flink with the server as its catalog."""
    library = FLINK.ready().site_packages / "pyflink" / "lib"
    for jar in map(maven_jar, HADOOP):
        shutil.copy(jar, library)
    command = [str(FLINK.python), str(CLIENT), str(maven_jar(ICEBERG))]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with (
        serve.start(catalog) as server,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        answers, questions = process.stdout, process.stdin

        def run(statement: str) -> list[list[Any]]:
            print(json.dumps(statement), file=questions, flush=True)
            for line in answers:
                if line.startswith("["):
                    found: list[list[Any]] = json.loads(line)
                    return found
            raise AssertionError(f"Flink stopped at {statement}")

        run(
            "CREATE CATALOG frazil WITH ('type' = 'iceberg', 'catalog-type' = 'rest', "
            f"'uri' = '{server.uri}')"
        )
        run("USE CATALOG frazil")
        yield run
        process.stdin.close()
        process.wait(60)


def rows(catalog: frazil.Catalog, name: str) -> list[tuple[Any, ...]]:
    found = catalog[name].scan().to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


@pytest.mark.timeout(900)
def test_flink_reads_and_writes(catalog: frazil.Catalog, flink: Run) -> None:
    orders = catalog.create_table(
        "shop.orders", pa.schema([("id", pa.int64()), ("name", pa.string())])
    )
    orders.append([{"id": each, "name": f"n{each}"} for each in range(10)])
    orders.delete("id = 4")
    assert flink("SHOW TABLES IN shop") == [["orders"]]
    assert flink("SELECT count(*), sum(id) FROM shop.orders") == [[9, 41]]
    flink("INSERT INTO shop.orders VALUES (100, 'flink'), (101, 'flink')")
    assert flink("SELECT id FROM shop.orders WHERE id > 99 ORDER BY id") == [[100], [101]]
    assert len(rows(catalog, "shop.orders")) == 11
    flink("INSERT OVERWRITE shop.orders SELECT id + 1000, name FROM shop.orders WHERE id < 3")
    assert rows(catalog, "shop.orders") == [(1000, "n0"), (1001, "n1"), (1002, "n2")]
    assert [each.operation for each in catalog["shop.orders"].snapshots()] == [
        "append",
        "delete",
        "append",
        "overwrite",
    ]
    assert not catalog["shop.orders"].check(deep=True).problems


@pytest.mark.timeout(900)
def test_flink_upserts_by_equality_deletes(catalog: frazil.Catalog, flink: Run) -> None:
    flink("CREATE DATABASE shop")
    flink(
        "CREATE TABLE shop.stock (id BIGINT NOT NULL, name STRING, "
        "PRIMARY KEY (id) NOT ENFORCED) "
        "WITH ('format-version' = '2', 'write.upsert.enabled' = 'true')"
    )
    flink("INSERT INTO shop.stock VALUES (1, 'a'), (2, 'b')")
    flink("INSERT INTO shop.stock VALUES (2, 'B'), (3, 'c')")
    expected = [(1, "a"), (2, "B"), (3, "c")]
    assert [tuple(row) for row in flink("SELECT * FROM shop.stock ORDER BY id")] == expected
    assert rows(catalog, "shop.stock") == expected
    catalog["shop.stock"].delete("id = 1")
    assert flink("SELECT id FROM shop.stock ORDER BY id") == [[2], [3]]
    assert not catalog["shop.stock"].check(deep=True).problems

"""Two server processes on one PostgreSQL catalog: each answers for what the other did."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException

import frazil
from frazil.table import Catalog
from tests.serve.test_namespaces_and_tables import SCHEMA
from tests.serve.test_pyiceberg import check, rows
from tests.serve.test_views import version
from tests.support.postgres import postgres_uri as postgres_uri
from tests.support.project import ROOT

_SERVER = """
import sys, frazil
from frazil import serve
serve.run(frazil.connect(sys.argv[1], warehouse=sys.argv[2]), port=0,
          ready=lambda uri: print(uri, flush=True))
"""


@pytest.fixture(scope="module")
def database(postgres_uri: str) -> str:
    """A schema of its own in the database."""
    name = f"two_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(postgres_uri, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    return f"{postgres_uri}&options=-csearch_path%3D{name}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The warehouse."""
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="module")
def catalog(database: str, folder: Path) -> Iterator[Catalog]:
    """The catalog itself, to look behind the servers."""
    with frazil.connect(database, warehouse=str(folder)) as opened:
        yield opened


@pytest.fixture(scope="module")
def servers(catalog: Catalog, database: str, folder: Path) -> Iterator[list[str]]:
    """The addresses of two processes."""
    command = [sys.executable, "-c", _SERVER, database, str(folder)]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(2)
    ]
    try:
        found = []
        for process in started:
            assert process.stdout is not None
            found.append(process.stdout.readline().strip())
        yield found
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(30)


def _assert_named(uuid_of: dict[str, Any], name: str, value: str) -> dict[str, Any]:
    return {
        "identifier": {"namespace": ["mall"], "name": name},
        "requirements": [{"type": "assert-table-uuid", "uuid": uuid_of[name]}],
        "updates": [{"action": "set-properties", "updates": {"owner": value}}],
    }


def test_what_one_server_did_the_other_knows(catalog: Catalog, servers: list[str]) -> None:
    one, other = (RestCatalog(f"c{index}", uri=uri) for index, uri in enumerate(servers))
    one.create_namespace("shop")
    made = one.create_table("shop.orders", rows(1).schema)
    made.append(rows(1))
    stale = one.load_table("shop.orders")
    seen = other.load_table("shop.orders")
    seen.append(rows(2))
    stale.append(rows(3))  # told of the conflict, loaded again, repeated
    check(catalog, made, 1, 2, 3)
    with ThreadPoolExecutor(2) as pool:
        tables = [one.load_table("shop.orders"), other.load_table("shop.orders")]
        done = [pool.submit(_append, table, 10 * (n + 1)) for n, table in enumerate(tables)]
        landed = [number for future in done for number in future.result()]
    check(catalog, made, 1, 2, 3, *landed)
    assert landed


def _append(table: Any, first: int) -> list[int]:
    landed = []
    for number in range(first, first + 3):
        try:
            table.append(rows(number))
            landed.append(number)
        except CommitFailedException:
            table.refresh()
    return landed


def test_repeated_requests_views_and_transactions_go_to_either(servers: list[str]) -> None:
    with httpx.Client(base_url=servers[0]) as one, httpx.Client(base_url=servers[1]) as other:
        key = {"Idempotency-Key": str(uuid.uuid4())}
        body = {"namespace": ["mall"], "properties": {"owner": "ann"}}
        first = one.post("/v1/namespaces", json=body, headers=key)
        again = other.post("/v1/namespaces", json=body, headers=key)
        assert (first.status_code, again.status_code) == (200, 200)
        assert again.json() == first.json()
        assert other.post("/v1/namespaces", json=body).status_code == 409

        view = {"name": "v", "schema": SCHEMA, "view-version": version(), "properties": {}}
        made = one.post("/v1/namespaces/mall/views", json=view)
        assert made.status_code == 200, made.text
        loaded = other.get("/v1/namespaces/mall/views/v").json()
        assert loaded["metadata"] == made.json()["metadata"]

        ids = {}
        for name, server in (("orders", one), ("items", other)):
            answer = server.post(
                "/v1/namespaces/mall/tables", json={"name": name, "schema": SCHEMA}
            )
            ids[name] = answer.json()["metadata"]["table-uuid"]
        both = {"table-changes": [_assert_named(ids, name, "ann") for name in ids]}
        assert one.post("/v1/transactions/commit", json=both).status_code == 204
        wrong = {**ids, "items": str(uuid.uuid4())}
        neither = {"table-changes": [_assert_named(wrong, name, "bob") for name in ids]}
        assert other.post("/v1/transactions/commit", json=neither).status_code == 409
        for name in ids:
            found = other.get(f"/v1/namespaces/mall/tables/{name}").json()["metadata"]
            assert found["properties"]["owner"] == "ann", name

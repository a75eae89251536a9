"""What a request to the server may cost: files and bytes written and read, and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from starlette.testclient import TestClient

import frazil
from frazil import serve
from frazil.serve.app import build
from frazil.serve.limits import MAX_PLAN_FILES
from frazil.serve.service import Service
from frazil.storage import StorageCall
from frazil.table import Catalog
from tests.support.orders import served_orders
from tests.support.project import ROOT

FILES, PER_DAY = 20_000, 200
SCHEMA = pa.schema([pa.field("order_id", pa.int64(), False), ("order_date", pa.date32())])
PLAN = "/v1/namespaces/shop/tables/orders/plan"


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    """20,000 files of 100 days, in leaves of 1,000."""
    with frazil.connect(tmp_path_factory.mktemp("served")) as opened:
        served_orders(opened, FILES, files_per_day=PER_DAY)
        yield opened


def _read(calls: list[StorageCall]) -> dict[str, int]:
    """Bytes by file."""
    found: dict[str, int] = {}
    for call in calls:
        if call.verb == "read":
            found[call.path] = found.get(call.path, 0) + call.bytes
    return found


def test_the_first_page_of_a_selective_plan_reads_what_a_native_plan_reads(
    catalog: Catalog,
) -> None:
    table = catalog["shop.orders"]
    client = TestClient(build(Service(catalog)), base_url="http://127.0.0.1:8181")
    day = {"type": "eq", "term": "order_date", "value": "2024-01-15"}
    client.post(PLAN, json={"filter": day})
    catalog._cache.clear()
    with table._handle.storage.recording() as native:
        found = table.scan(where="order_date = '2024-01-15'").plan()
    catalog._cache.clear()
    with table._handle.storage.recording() as served:
        answer = client.post(PLAN, json={"filter": day}).json()
    assert found.files.num_rows == len(answer["file-scan-tasks"]) == PER_DAY
    assert answer["plan-tasks"] == []
    assert _read(served).keys() == _read(native).keys()
    assert len(_read(native)) <= 3  # the root, and the leaves of one day
    # A client is told where a file may be split and how it is sorted.
    assert sum(_read(served).values()) <= 1.1 * sum(_read(native).values())


def test_a_page_of_a_plan_of_everything_opens_few_leaves(catalog: Catalog) -> None:
    client = TestClient(build(Service(catalog)), base_url="http://127.0.0.1:8181")
    catalog._cache.clear()
    with catalog["shop.orders"]._handle.storage.recording() as calls:
        answer = client.post(PLAN, json={}).json()
    assert len(answer["file-scan-tasks"]) == MAX_PLAN_FILES
    assert answer["plan-tasks"]
    assert len(_read(calls)) <= 1 + 6  # of 20 leaves, those of 4,000 files and two in advance


def test_a_client_commit_writes_four_files_however_large_the_table(tmp_path: Path) -> None:
    """A root, and for clients a manifest, a list and a metadata file."""
    written: dict[int, tuple[int, int]] = {}
    for files in (10, 10_000):
        place = tmp_path / str(files)
        with frazil.connect(place) as opened, serve.start(opened) as server:
            table = served_orders(opened, files, files_per_day=PER_DAY)
            client = RestCatalog("x", uri=server.uri).load_table("shop.orders")
            rows = pa.table({"order_id": [1], "order_date": [date(2024, 1, 1)]}, SCHEMA)
            for _ in range(3):
                client.append(rows)
            with table._handle.storage.recording() as calls:
                client.append(rows)
            writes = [call for call in calls if call.verb == "write"]
            assert len(writes) == 4, [call.path for call in writes]
            written[files] = len(writes), sum(call.bytes for call in writes)
            assert table.refresh().scan().plan().files.num_rows == files + 4
    assert written[10_000][1] < 2 * written[10][1]


def test_a_plan_of_many_files_takes_bounded_memory(tmp_path: Path) -> None:
    """Measured where nothing else is: in a server of its own process."""
    with frazil.connect(tmp_path / "warehouse") as opened:
        served_orders(opened, 100_000, files_per_day=PER_DAY)
    command = [sys.executable, "-m", "tests.support.plan_memory", str(tmp_path / "warehouse")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["files"] == 100_000
    assert found["largest_part_files"] <= MAX_PLAN_FILES
    assert found["largest_part_bytes"] < 8_000_000
    assert found["grown_mb"] < 150, found

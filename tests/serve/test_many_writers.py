"""Native writers and PyIceberg through two servers on one table, all at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException

from frazil import serve
from frazil.serve.service import Service
from frazil.table import Catalog

SCHEMA = pa.schema([("id", pa.int64())])
EACH = 6


def test_every_acknowledged_row_is_there_once(catalog: Catalog) -> None:
    acknowledged: list[int] = []
    lock = threading.Lock()
    failures: list[BaseException] = []

    def writer(start: int, append: Callable[[pa.Table], object]) -> Callable[[], None]:
        def run() -> None:
            try:
                for number in range(start, start + EACH):
                    try:
                        append(pa.table({"id": [number]}, schema=SCHEMA))
                    except CommitFailedException:  # gave up: nothing of it may be there
                        continue
                    with lock:
                        acknowledged.append(number)
            except BaseException as error:
                failures.append(error)

        return run

    with serve.start(catalog) as first, serve.start(catalog) as second:
        table = catalog.create_table("shop.orders", SCHEMA)
        table.append(pa.table({"id": [-1]}, schema=SCHEMA))
        remote = [
            RestCatalog(f"c{i}", uri=server.uri).load_table("shop.orders")
            for i, server in enumerate((first, second))
        ]
        threads = [
            threading.Thread(target=writer(100, catalog["shop.orders"].append)),
            threading.Thread(target=writer(200, catalog["shop.orders"].append)),
            threading.Thread(target=writer(300, remote[0].append)),
            threading.Thread(target=writer(400, remote[1].append)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    assert not failures
    assert len(acknowledged) >= 3 * EACH  # native writers and at least one more never give up
    found = sorted(catalog["shop.orders"].scan().to_arrow()["id"].to_pylist())
    assert found == sorted([-1, *acknowledged])
    assert not catalog["shop.orders"].check(deep=True).problems


def test_several_tables_land_together_or_not_at_all(
    catalog: Catalog, service: Service, client: object
) -> None:
    from starlette.testclient import TestClient

    assert isinstance(client, TestClient)
    tables = [catalog.create_table(f"shop.{name}", SCHEMA) for name in "ab"]

    def change(name: str, uuid: str) -> dict[str, object]:
        return {
            "identifier": {"namespace": ["shop"], "name": name},
            "requirements": [{"type": "assert-table-uuid", "uuid": uuid}],
            "updates": [{"action": "set-properties", "updates": {"seen": "yes"}}],
        }

    first, second = (str(table.metadata.table_uuid) for table in tables)
    wrong = {"table-changes": [change("a", first), change("b", first)]}
    assert client.post("/v1/transactions/commit", json=wrong).status_code == 409
    assert "seen" not in catalog["shop.a"].metadata.properties
    right = {"table-changes": [change("a", first), change("b", second)]}
    assert client.post("/v1/transactions/commit", json=right).status_code == 204
    for name in "ab":
        assert catalog[f"shop.{name}"].metadata.properties["seen"] == "yes"
    twice = {"table-changes": [change("a", first), change("a", first)]}
    assert client.post("/v1/transactions/commit", json=twice).status_code == 400


@pytest.mark.parametrize("files", [1, 40])
def test_a_client_append_costs_a_root_and_what_is_shown(catalog: Catalog, files: int) -> None:
    with serve.start(catalog) as server:
        table = catalog.create_table("shop.orders", SCHEMA)
        for number in range(files):
            table.append(pa.table({"id": [number]}, schema=SCHEMA))
        remote = RestCatalog("c", uri=server.uri).load_table("shop.orders")
        until = time.monotonic() + 60
        while len(remote.refresh().metadata.snapshots) < files:  # older ones are shown by and by
            assert time.monotonic() < until
            time.sleep(0.05)
        before = {f.path for f in table._handle.storage.list(table.location)}
        remote.append(pa.table({"id": [1]}, schema=SCHEMA))
        after = {f.path for f in table._handle.storage.list(table.location)}
    new = [path.removeprefix(table.location) for path in after - before]
    published = [name for name in new if name.startswith("/metadata/published/")]
    roots = [name for name in new if name.startswith("/metadata/root-")]
    assert (len(published), len(roots)) == (3, 1)  # manifest, list and JSON; one root

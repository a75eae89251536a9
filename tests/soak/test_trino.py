"""Unmodified Trino reads, writes and cleans up tables through the server.

Trino is large, so this runs with `make soak` only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil import serve
from frazil.serve.settings import Settings
from tests.soak.trino import Trino

pytestmark = [
    pytest.mark.java,
    pytest.mark.peers,
    pytest.mark.skipif("FRAZIL_SOAK_SECONDS" not in os.environ, reason="runs with make soak"),
    pytest.mark.timeout(1800),
]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[frazil.Catalog]:
    with frazil.connect(tmp_path_factory.mktemp("trino") / "warehouse") as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture(scope="module")
def trino(catalog: frazil.Catalog, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trino]:
    with serve.start(catalog, settings=Settings(allow_client_gc=True)) as server:
        started = Trino(server.uri, tmp_path_factory.mktemp("trino") / "run")
        yield started
        started.close()


def check(catalog: frazil.Catalog, trino: Trino, name: str, *expected: tuple[Any, ...]) -> None:
    """Trino's rows, native rows and the expected ones are the same; the tree is sound."""
    table = catalog[f"shop.{name}"]
    report = table.check(deep=True)
    assert not report.problems, str(report)
    native = [tuple(row.values()) for row in table.scan().to_arrow().to_pylist()]
    assert sorted(native) == sorted(expected)
    assert sorted(tuple(row) for row in trino.sql(f"SELECT * FROM {name}")) == sorted(expected)


def test_tables_of_trino(catalog: frazil.Catalog, trino: Trino) -> None:
    trino.sql(
        "CREATE TABLE orders (id BIGINT, country VARCHAR) "
        "WITH (partitioning = ARRAY['country'], format_version = 3)"
    )
    trino.sql("INSERT INTO orders VALUES (1, 'de'), (2, 'de'), (3, 'fr')")
    check(catalog, trino, "orders", (1, "de"), (2, "de"), (3, "fr"))
    trino.sql("UPDATE orders SET country = 'it' WHERE id = 2")
    trino.sql("DELETE FROM orders WHERE id = 1")
    trino.sql(
        "MERGE INTO orders t USING (VALUES (3, 'es'), (4, 'pl')) s (id, country) ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET country = s.country "
        "WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.country)"
    )
    check(catalog, trino, "orders", (2, "it"), (3, "es"), (4, "pl"))
    trino.sql("CREATE TABLE copied AS SELECT id FROM orders")
    check(catalog, trino, "copied", (2,), (3,), (4,))
    trino.sql("ALTER TABLE orders ADD COLUMN amount DOUBLE")
    trino.sql("INSERT INTO orders VALUES (5, 'de', 2.5)")
    trino.sql("ALTER TABLE orders EXECUTE optimize")
    expected = ((2, "it", None), (3, "es", None), (4, "pl", None), (5, "de", 2.5))
    report = catalog["shop.orders"].check(deep=True)
    assert not report.problems, str(report)
    native = catalog["shop.orders"].scan().to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in native) == list(expected)
    trino.sql("DROP TABLE copied")
    assert not catalog.table_exists("shop.copied")


def test_native_tables_and_what_trino_says_of_them(catalog: frazil.Catalog, trino: Trino) -> None:
    table = catalog.create_table("shop.native", pa.table({"id": [1, 2, 3]}))
    first = table.current_snapshot()
    assert first is not None
    table.delete("id = 2")
    check(catalog, trino, "native", (1,), (3,))
    older = f"SELECT count(*) FROM native FOR VERSION AS OF {int(first.snapshot_id)}"
    assert trino.sql(older) == [[3]]
    assert trino.sql('SELECT count(*) FROM "native$snapshots"') == [[2]]
    assert trino.sql('SELECT count(*) FROM "native$manifests"') != [[0]]
    assert trino.sql('SELECT count(*) FROM "native$entries"') != [[0]]


def test_trino_s_orphan_removal_takes_nothing_of_a_table(
    catalog: frazil.Catalog, trino: Trino
) -> None:
    """It lists the location, whatever `gc.enabled` says, and deletes what it does not know."""
    table = catalog.create_table(
        "shop.kept", pa.table({"id": [0]}), properties={"write.root.max-data-entries": "2"}
    )
    for number in range(1, 7):
        if number % 2:
            trino.sql(f"INSERT INTO kept VALUES ({number})")
        else:
            table.append(pa.table({"id": [number]}))
    table.delete("id = 4")
    trino.sql("DELETE FROM kept WHERE id = 5")
    table.branch("audit", create=True).append(pa.table({"id": [100]}))
    litter = Path(f"{table.location}/clients/data/litter.parquet".removeprefix("file://"))
    litter.write_bytes(b"what a crash left behind")
    before = files_of(table) - {litter}
    trino.sql("ALTER TABLE kept EXECUTE remove_orphan_files(retention_threshold => '0s')")
    assert not litter.exists(), "it was at work"
    lost = before - files_of(table)
    # Trino's own lists of manifests are known to it alone: the server reads what it wrote once.
    assert all(path.parent.parent.name == "clients" for path in lost), lost
    check(catalog, trino, "kept", (0,), (1,), (2,), (3,), (6,))
    assert sorted(table.branch("audit").scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 6, 100]
    trino.sql("INSERT INTO kept VALUES (7)")
    check(catalog, trino, "kept", (0,), (1,), (2,), (3,), (6,), (7,))


def files_of(table: frazil.Table) -> set[Path]:
    root = Path(table.location.removeprefix("file://"))
    return {path for path in root.rglob("*") if path.is_file()}

"""The version of the catalog's layout: made in one transaction, and newer ones are left alone.

Version 0.2 has the same layout, so that both can write to one catalog; its statements are written
out here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.catalog.database.database import Database, Parameters, Row
from frazil.catalog.sql.sql_catalog import SqlCatalog
from frazil.errors import CatalogError, Unsupported
from frazil.table import Catalog

ROWS = pa.table({"id": pa.array([1], pa.int64())})


@pytest.fixture
def catalog(sql_catalog: SqlCatalog) -> Catalog:
    return Catalog(sql_catalog)


@pytest.fixture
def table(catalog: Catalog) -> frazil.Table:
    return catalog.create_table("shop.orders", ROWS)


class Stopping(Database):
    """A database that fails at the last statement of a migration."""

    def send_counted(self, connection: Any, statement: str, parameters: Parameters) -> int:
        if statement.startswith("INSERT INTO frazil_layout"):
            raise self._driver.OperationalError("stopped")
        return super().send_counted(connection, statement, parameters)


def _tables(database: Database) -> list[Row]:
    if database.kind == "sqlite":
        return database.rows("SELECT name FROM sqlite_master WHERE substr(name, 1, 6) = 'frazil'")
    return database.rows(
        "SELECT table_name FROM information_schema.tables "
        "WHERE table_schema = current_schema() AND substr(table_name, 1, 6) = 'frazil'"
    )


def test_a_layout_is_made_as_a_whole_or_not_at_all(database_uri: str, tmp_path: Path) -> None:
    database = Stopping(database_uri)
    with pytest.raises(CatalogError, match="stopped"):
        SqlCatalog(database)
    assert _tables(database) == []
    database.close()
    with Catalog(SqlCatalog(database_uri, warehouse=str(tmp_path / "warehouse"))) as catalog:
        catalog.create_table("shop.orders", ROWS)


def test_a_newer_layout_shuts_out_those_that_have_the_catalog_open(
    catalog: Catalog, table: frazil.Table, sql_catalog: SqlCatalog
) -> None:
    count = len(table.snapshots())
    with sql_catalog.database.transaction() as transaction:
        transaction.run("UPDATE frazil_layout SET layout_version = 99")
    changes: list[Callable[[], object]] = [
        lambda: table.append(ROWS),
        lambda: table.set_properties({"owner": "me"}),
        lambda: catalog.create_table("shop.more", ROWS),
        lambda: catalog.rename_table("shop.orders", "shop.sold"),
        lambda: catalog.drop_table("shop.orders"),
    ]
    for change in changes:
        with pytest.raises(Unsupported, match="layout 99"):
            change()
    assert len(table.snapshots()) == count
    assert table.scan().count() == 1
    assert catalog.list_tables() == ["shop.orders"]


# An append of version 0.2, as it sends it.
_SWAP_0_2 = """
UPDATE frazil_tables SET version = :version + 1, last_sequence_number = :last_sequence_number,
       last_updated_ms = :last_updated_ms, next_row_id = :next_row_id,
       current_snapshot_id = :current_snapshot_id, refs = :refs
WHERE table_id = :table_id AND version = :version
"""
_GUARD_0_2 = {
    "sqlite": " AND NOT EXISTS (SELECT 1 FROM frazil_queue WHERE table_id = :table_id)",
    "postgresql": " AND pg_try_advisory_xact_lock(705210048, 1)",
}
_ADD_SNAPSHOT_0_2 = """
INSERT INTO frazil_snapshots (table_id, snapshot_id, version, position, record)
VALUES (:table_id, :snapshot_id, :version, :position, :record)
"""
_ADD_LOG_0_2 = """
INSERT INTO frazil_snapshot_log (table_id, version, position, snapshot_id, timestamp_ms)
VALUES (:table_id, :version, :position, :snapshot_id, :timestamp_ms)
"""
_READ_0_2 = """
SELECT f.table_id, f.version, f.last_sequence_number, f.last_updated_ms, f.next_row_id, s.record
FROM frazil_tables f
JOIN frazil_snapshots s ON s.table_id = f.table_id AND s.snapshot_id = f.current_snapshot_id
"""


def _commit_as_0_2(database: Database, snapshot_id: int) -> bool:
    """A snapshot with the rows of its parent, swapped in as 0.2 does; whether it landed."""
    ((table_id, version, sequence, updated_ms, next_row_id, record),) = database.rows(_READ_0_2)
    snapshot = json.loads(record)
    snapshot |= {
        "snapshot-id": snapshot_id,
        "parent-snapshot-id": snapshot["snapshot-id"],
        "sequence-number": sequence + 1,
    }
    with database.transaction() as transaction:
        landed = transaction.rows(
            f"{_SWAP_0_2}{_GUARD_0_2[database.kind]} RETURNING rendered_version",
            {
                "table_id": table_id,
                "version": version,
                "last_sequence_number": sequence + 1,
                "last_updated_ms": updated_ms,
                "next_row_id": next_row_id,
                "current_snapshot_id": snapshot_id,
                "refs": json.dumps({"main": {"snapshot-id": snapshot_id, "type": "branch"}}),
            },
        )
        if not landed:
            return False
        row = {"table_id": table_id, "version": version + 1, "position": 0}
        row["snapshot_id"] = snapshot_id
        transaction.run(_ADD_SNAPSHOT_0_2, {**row, "record": json.dumps(snapshot)})
        transaction.run(_ADD_LOG_0_2, {**row, "timestamp_ms": updated_ms})
    return True


def test_0_2_and_this_version_write_to_one_catalog(
    table: frazil.Table, sql_catalog: SqlCatalog
) -> None:
    assert sql_catalog.database.rows("SELECT layout_version FROM frazil_layout") == [(5,)]
    for number in (1, 2, 3):
        assert _commit_as_0_2(sql_catalog.database, 1_000 + number)
        tip = table.current_snapshot()
        assert tip is not None
        assert tip.snapshot_id == 1_000 + number
        table.append(ROWS)
    assert table.scan().count() == 4
    assert len(table.snapshots()) == 7

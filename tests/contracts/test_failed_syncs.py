"""A SQLite catalog on a disk whose syncs fail: nothing is acknowledged before one succeeds."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from frazil.catalog.database.database import Database, Parameters, Row
from frazil.catalog.sql.sql_catalog import SqlCatalog
from frazil.errors import CatalogError, CommitUnknown
from frazil.table import Catalog

ROWS = [{"id": 1}]


class UnsyncedDatabase(Database):
    """A database whose next syncs fail. What they were to save can be read all the same, as after
    SQLite has read its journal again."""

    failing = 0

    def send(self, connection: Any, statement: str, parameters: Parameters) -> list[Row]:
        if statement != "COMMIT" and "wal_checkpoint" not in statement:
            return super().send(connection, statement, parameters)
        rows = super().send(connection, statement, parameters)
        if not self.failing:
            return rows
        self.failing -= 1
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
        raise error


@pytest.fixture
def database(tmp_path: Path) -> UnsyncedDatabase:
    return UnsyncedDatabase("", path=str(tmp_path / "catalog.db"))


@pytest.fixture
def catalog(database: UnsyncedDatabase, tmp_path: Path) -> Iterator[Catalog]:
    with Catalog(SqlCatalog(database, warehouse=str(tmp_path))) as opened:
        yield opened


def test_an_append_is_not_acknowledged_while_no_sync_succeeds(
    catalog: Catalog, database: UnsyncedDatabase
) -> None:
    table = catalog.create_table("shop.orders", ROWS)
    database.failing = 1_000
    with pytest.raises(CommitUnknown):
        table.append(ROWS)
    with pytest.raises(CatalogError):
        table.scan()
    database.failing = 0
    assert table.scan().count() == 2
    table.append(ROWS)
    assert table.scan().count() == 3


def test_an_append_lands_once_when_the_next_sync_succeeds(
    catalog: Catalog, database: UnsyncedDatabase
) -> None:
    table = catalog.create_table("shop.orders", ROWS)
    for failing in (1, 2):
        database.failing = failing
        table.append(ROWS)
    assert table.scan().count() == 3
    assert len(table.snapshots()) == 3


def test_a_table_is_not_created_while_no_sync_succeeds(
    catalog: Catalog, database: UnsyncedDatabase
) -> None:
    catalog.create_namespace("shop")
    database.failing = 1_000
    with pytest.raises(CommitUnknown):
        catalog.create_table("shop.orders", ROWS)
    database.failing = 0
    assert catalog.table_exists("shop.orders")

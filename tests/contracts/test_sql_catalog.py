"""What a SQL catalog promises besides: many processes, lost replies, and costs that do not grow."""

from __future__ import annotations

import multiprocessing
import pickle
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from frazil.catalog.database.database import Database, Parameters, Row
from frazil.catalog.sql import sql_rows
from frazil.catalog.sql.sql_catalog import SqlCatalog
from frazil.commit.change import Change
from frazil.commit.handle import TableHandle
from frazil.commit.head import Draft, Landed, Lost, Unknown
from frazil.errors import CatalogError, CommitUnknown, InvalidInput, NotFound, Unsupported
from frazil.format.metadata.metadata import RefKind, SnapshotId, SnapshotRef
from tests.support.catalogs import append, append_and_land, long_history, orders


def commit_five(catalog: SqlCatalog, first: int) -> None:
    head = catalog.load("shop.orders")
    for number in range(first, first + 5):
        while True:
            base = head.load()
            if isinstance(head.swap(base, append(base, number)), Landed):
                break


def in_processes(target: Callable[..., object], arguments: Iterable[tuple[object, ...]]) -> None:
    """Run a function in forked processes at once; all must succeed."""
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=target, args=each) for each in arguments]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0] * len(workers)


@pytest.fixture
def shop(sql_catalog: SqlCatalog) -> SqlCatalog:
    sql_catalog.namespaces.create("shop")
    sql_catalog.create_table("shop.orders", orders(sql_catalog.location_for("shop.orders")))
    return sql_catalog


class LosingDatabase(Database):
    """A database whose connection breaks around the next COMMIT when told so."""

    breaks: str | None = None
    always: str | None = None

    def send(self, connection: Any, statement: str, parameters: Parameters) -> list[Row]:
        when = self.always or self.breaks
        if statement != "COMMIT" or when is None:
            return super().send(connection, statement, parameters)
        self.breaks = None
        if when == "after":
            super().send(connection, statement, parameters)
        raise self._driver.OperationalError("the reply was lost")


@pytest.fixture
def losing(database_uri: str, tmp_path: Path) -> Iterator[tuple[SqlCatalog, LosingDatabase]]:
    database = LosingDatabase(database_uri)
    catalog = SqlCatalog(database, warehouse=str(tmp_path / "warehouse"))
    catalog.namespaces.create("shop")
    catalog.create_table("shop.orders", orders(catalog.location_for("shop.orders")))
    yield catalog, database
    catalog.close()


class FullDatabase(Database):
    """A database that has no room for the next COMMITs."""

    refused = 0

    def send(self, connection: Any, statement: str, parameters: Parameters) -> list[Row]:
        if statement != "COMMIT" or not self.refused:
            return super().send(connection, statement, parameters)
        self.refused -= 1
        if self.kind == "postgresql":
            raise psycopg.errors.DiskFull("could not extend file: No space left on device")
        full = sqlite3.OperationalError("database or disk is full")
        full.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise full


# Several processes


def test_eight_processes_that_commit_at_once_all_land_once(shop: SqlCatalog) -> None:
    in_processes(commit_five, [(shop, first) for first in range(100, 900, 100)])
    head = shop.load("shop.orders")
    assert head.state.version == 40
    expected = [first + i for first in range(100, 900, 100) for i in range(5)]
    assert sorted(each.snapshot_id for each in head.snapshots()) == expected
    assert [each.sequence_number for each in head.snapshots()] == list(range(1, 41))


def test_a_forked_process_uses_connections_of_its_own(shop: SqlCatalog) -> None:
    head = shop.load("shop.orders")
    append_and_land(head, 1)
    in_processes(append_and_land, [(head, 2)])
    append_and_land(head, 3)
    assert [each.snapshot_id for each in head.snapshots()] == [1, 2, 3]


def test_a_catalog_and_a_head_can_be_sent_to_another_process(shop: SqlCatalog) -> None:
    head = shop.load("shop.orders")
    sent: SqlCatalog = pickle.loads(pickle.dumps(shop))
    assert sent.load("shop.orders").state == head.state
    other = pickle.loads(pickle.dumps(head))
    append_and_land(other, 1)
    assert head.load().version == 1
    sent.close()


def test_processes_may_create_the_layout_at_once(database_uri: str) -> None:
    in_processes(SqlCatalog, [(database_uri,)] * 6)
    assert SqlCatalog(database_uri).namespaces.children() == []


# Lost replies


def test_a_swap_whose_reply_is_lost_is_unknown_and_can_be_asked_for(
    losing: tuple[SqlCatalog, LosingDatabase],
) -> None:
    catalog, database = losing
    head = catalog.load("shop.orders")
    base = head.load()
    database.breaks = "after"
    assert isinstance(head.swap(base, append(base, 1)), Unknown)
    landed = head.landed(1)
    assert landed is not None
    assert landed.version == 1
    assert catalog.load("shop.orders").state == landed


def test_a_swap_whose_commit_is_lost_is_unknown_and_did_not_happen(
    losing: tuple[SqlCatalog, LosingDatabase],
) -> None:
    catalog, database = losing
    head = catalog.load("shop.orders")
    base = head.load()
    database.breaks = "before"
    assert isinstance(head.swap(base, append(base, 1)), Unknown)
    assert head.landed(1) is None
    assert head.load() == base
    append_and_land(head, 1)


def test_a_full_disk_refuses_a_commit_once_and_leaves_nothing(
    database_uri: str, tmp_path: Path
) -> None:
    database = FullDatabase(database_uri)
    pointers = SqlCatalog(database, warehouse=str(tmp_path / "warehouse"))
    pointers.namespaces.create("shop")
    head = pointers.create_table("shop.orders", orders(pointers.location_for("shop.orders")))
    handle = TableHandle.of("shop.orders", head, pointers.storage(head.state.metadata.location))
    folder = Path(head.state.metadata.location)
    before = sorted(folder.rglob("*.parquet"))
    database.refused = 1_000
    with pytest.raises(CatalogError, match="Nothing was committed"):
        handle.commit(Change(rewrite_leaves=()))
    assert database.refused == 999
    assert sorted(folder.rglob("*.parquet")) == before
    database.refused = 0
    assert handle.commit(Change(rewrite_leaves=())).snapshot is not None


def test_a_catalog_that_keeps_failing_is_asked_three_times(
    losing: tuple[SqlCatalog, LosingDatabase],
) -> None:
    catalog, database = losing
    head = catalog.load("shop.orders")
    handle = TableHandle.of("shop.orders", head, catalog.storage(head.state.metadata.location))
    database.always = "before"
    with pytest.raises(CommitUnknown, match="failed 3 times"):
        handle.commit(Change(rewrite_leaves=()))
    database.always = None
    assert list(head.snapshots()) == []


def test_creating_a_table_survives_a_lost_reply(
    losing: tuple[SqlCatalog, LosingDatabase],
) -> None:
    catalog, database = losing
    metadata = orders(catalog.location_for("shop.sales"))
    database.breaks = "after"
    assert catalog.create_table("shop.sales", metadata).state.metadata == metadata
    database.breaks = "before"
    with pytest.raises(CommitUnknown):
        catalog.create_table("shop.more", orders(catalog.location_for("shop.more")))
    assert not catalog.table_exists("shop.more")


def test_dropping_and_renaming_report_a_lost_reply(
    losing: tuple[SqlCatalog, LosingDatabase],
) -> None:
    catalog, database = losing
    database.breaks = "after"
    with pytest.raises(CommitUnknown, match=r"shop\.sales"):
        catalog.rename("shop.orders", "shop.sales")
    database.breaks = "before"
    with pytest.raises(CommitUnknown, match=r"shop\.sales"):
        catalog.drop("shop.sales")
    assert catalog.table_exists("shop.sales")


def test_a_connection_that_was_cut_while_idle_is_replaced(
    postgres_uri: str, tmp_path: Path
) -> None:
    with psycopg.connect(postgres_uri, autocommit=True) as admin:
        admin.execute("CREATE SCHEMA cut_while_idle")
        address = f"{postgres_uri}&options=-csearch_path%3Dcut_while_idle"
        catalog = SqlCatalog(address, warehouse=str(tmp_path))
        catalog.namespaces.create("shop")
        head = catalog.create_table("shop.orders", orders(catalog.location_for("shop.orders")))
        cut = (
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        admin.execute(cut)
        append_and_land(head, 1)
        base = head.load()
        admin.execute(cut)
        assert isinstance(head.swap(base, append(base, 2)), Landed)
        catalog.close()


# Costs


def test_loading_and_committing_cost_the_same_after_ten_thousand_snapshots(
    sql_catalog: SqlCatalog,
) -> None:
    sql_catalog.namespaces.create("shop")
    costs = []
    for name, count in (("short", 10), ("long", 10_000)):
        fresh = orders(sql_catalog.location_for(f"shop.{name}"), {"write.metadata.json-every": "0"})
        sql_catalog.create_table(f"shop.{name}", *long_history(fresh, count))
        database = sql_catalog.database
        start = (database.statements, database.rows_read)
        head = sql_catalog.load(f"shop.{name}")
        loaded = (database.statements, database.rows_read)
        outcome = head.swap(head.state, append(head.state, 1_000_000))
        assert isinstance(outcome, Landed)
        swapped = (database.statements, database.rows_read)
        costs.append(
            (
                loaded[0] - start[0],
                loaded[1] - start[1],
                swapped[0] - loaded[0],
                swapped[1] - loaded[1],
            )
        )
    # One row of the table to load; begin, compare-and-set, snapshot, log and commit to swap.
    assert costs == [(1, 1, 5, 1), (1, 1, 5, 1)]


def test_tags_cost_one_more_statement_to_load(shop: SqlCatalog) -> None:
    head = shop.load("shop.orders")
    for number in range(1, 6):
        append_and_land(head, number)
    base = head.load()
    metadata = base.metadata
    for number in (1, 2, 3):
        tag = SnapshotRef(snapshot_id=SnapshotId(number), kind=RefKind.TAG)
        metadata = metadata.with_ref(f"tag-{number}", tag, now_ms=5_000)
    assert isinstance(head.swap(base, Draft(metadata=metadata)), Landed)
    before = shop.database.statements
    state = shop.load("shop.orders").state
    assert shop.database.statements - before == 2
    assert sorted(state.snapshots) == [1, 2, 3, 5]
    before = shop.database.statements
    head.load()
    assert shop.database.statements - before == 1


def test_an_unchanged_definition_is_not_read_again(shop: SqlCatalog) -> None:
    head = shop.load("shop.orders")
    first = head.state.metadata
    append_and_land(shop.load("shop.orders"), 1)
    assert head.load().metadata.schemas is first.schemas


@pytest.mark.parametrize(
    "statement",
    [sql_rows.LOAD_BY_NAME, sql_rows.LOAD_BY_ID, sql_rows.SWAP, sql_rows.SNAPSHOT, sql_rows.AS_OF],
)
def test_no_statement_of_a_commit_or_load_scans_a_table(tmp_path: Path, statement: str) -> None:
    catalog = SqlCatalog(f"sqlite:///{tmp_path}/catalog.db")
    names = set(re.findall(r":([a-z_]+)", statement))
    plan = catalog.database.rows(f"EXPLAIN QUERY PLAN {statement}", dict.fromkeys(names, 0))
    assert plan
    assert [row[-1] for row in plan if "SCAN" in row[-1]] == []
    catalog.close()


# Secrets and bad addresses


def test_a_password_is_shown_nowhere(tmp_path: Path) -> None:
    address = f"postgresql://me:hunter2@/none?host={tmp_path}"
    database = Database(address)
    assert "hunter2" not in repr(database)
    with pytest.raises(CatalogError) as failed:
        SqlCatalog(address, properties={"s3.secret-access-key": "hunter2"})
    hidden = Database("postgresql://me@/none?password=hunter2&sslpassword=hunter2")
    assert "hunter2" not in hidden.uri
    shown = str(failed.value) + repr(failed.value.__cause__) + str(failed.value.__cause__)
    assert "hunter2" not in shown


def test_properties_with_secrets_are_not_in_the_repr_or_the_database(
    database_uri: str, tmp_path: Path
) -> None:
    secret = {"s3.secret-access-key": "hunter2", "s3.endpoint": "http://localhost:1"}
    catalog = SqlCatalog(database_uri, warehouse=str(tmp_path), properties=secret)
    catalog.namespaces.create("shop")
    head = catalog.create_table("shop.orders", orders(catalog.location_for("shop.orders")))
    assert "hunter2" not in repr(catalog) + repr(head) + repr(head.state) + repr(catalog.__dict__)
    assert "hunter2" not in Path(head.export()).read_text()
    if catalog.database.kind == "sqlite":
        catalog.close()
        assert b"hunter2" not in (tmp_path / "catalog.db").read_bytes()


@pytest.mark.parametrize(
    "address", ["mysql://localhost/x", "sqlite://", "sqlite:///:memory:", "not an address", ""]
)
def test_an_address_that_is_no_catalog_is_refused(address: str) -> None:
    with pytest.raises(InvalidInput):
        SqlCatalog(address)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_bytes(b"not a database" * 100)
    with pytest.raises(CatalogError, match=r"catalog\.db"):
        SqlCatalog(f"sqlite:///{tmp_path}/catalog.db")


def test_a_layout_of_a_newer_version_is_refused(sql_catalog: SqlCatalog, database_uri: str) -> None:
    with sql_catalog.database.transaction() as transaction:
        transaction.run("INSERT INTO frazil_layout VALUES (99)")
    with pytest.raises(Unsupported, match="99"):
        SqlCatalog(database_uri)


def test_two_catalog_names_share_a_database_and_see_only_their_own(
    shop: SqlCatalog, database_uri: str, tmp_path: Path
) -> None:
    other = SqlCatalog(database_uri, name="other", warehouse=str(tmp_path / "other"))
    assert other.namespaces.children() == []
    other.namespaces.create("shop")
    other.create_table("shop.orders", orders(other.location_for("shop.orders")))
    append_and_land(other.load("shop.orders"), 1)
    assert shop.load("shop.orders").state.version == 0
    other.drop("shop.orders")
    assert shop.table_exists("shop.orders")
    with pytest.raises(NotFound):
        other.load("shop.orders")
    other.close()


def test_a_lost_race_changes_nothing(shop: SqlCatalog) -> None:
    head = shop.load("shop.orders")
    base = head.load()
    append_and_land(head, 1)
    draft = append(base, 2)
    metadata = draft.metadata.with_properties({"owner": "loser"}, now_ms=9_000)
    assert isinstance(
        head.swap(base, Draft(metadata=metadata, added_snapshots=draft.added_snapshots)), Lost
    )
    state = shop.load("shop.orders").state
    assert state.metadata.properties == {}
    assert [entry.snapshot_id for entry in head.history().snapshot_log] == [1]

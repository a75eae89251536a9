"""A table shows what the catalog holds now, whoever changed it, and whatever the catalog is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil import serve
from frazil.catalog.database.database import Database
from frazil.serve.settings import Settings
from tests.contracts.conftest import empty_database
from tests.support.object_server import Bucket

SCHEMA = pa.schema([("id", pa.int64()), ("price", pa.float64())])


def rows(*ids: int, price: float | None = None) -> pa.Table:
    """Rows whose price is their id, or the same for all."""
    prices = [float(id) if price is None else price for id in ids]
    return pa.table({"id": list(ids), "price": prices}, schema=SCHEMA)


def prices(table: frazil.Table) -> dict[int, float]:
    return {row["id"]: row["price"] for row in table.scan().to_pylist()}


Open = Callable[[], frazil.Catalog]


@pytest.fixture(params=["sqlite", "postgresql", "s3", "served"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens the same catalog again and again, as processes do that know nothing of each other."""
    catalogs: list[frazil.Catalog] = []
    if request.param == "s3":
        bucket: Bucket = request.getfixturevalue("bucket")
        yield lambda: frazil.connect(bucket.warehouse, **bucket.properties)
        return
    kind = "postgresql" if request.param == "postgresql" else "sqlite"
    uri = empty_database(kind, tmp_path, request)

    def connect() -> frazil.Catalog:
        catalogs.append(frazil.connect(uri, warehouse=tmp_path / "warehouse"))
        return catalogs[-1]

    if request.param != "served":
        yield connect
    else:
        places = Settings(allowed=(str(tmp_path),))
        with serve.start(connect(), settings=places) as running:
            address = running.uri

            def through_server() -> frazil.Catalog:
                catalogs.append(frazil.connect(address))
                return catalogs[-1]

            yield through_server
            for catalog in catalogs[1:]:
                catalog.close()
            del catalogs[1:]
    for catalog in catalogs:
        catalog.close()


@pytest.fixture
def mine(opened: Open) -> frazil.Table:
    table = opened().create_table("shop.orders", SCHEMA)
    table.append(rows(1, 2, 3))
    return table


@pytest.fixture
def theirs(opened: Open, mine: frazil.Table) -> frazil.Table:
    return opened().load_table("shop.orders")


def test_reads_start_from_the_current_state(mine: frazil.Table, theirs: frazil.Table) -> None:
    theirs.append(rows(4))
    assert set(prices(mine)) == {1, 2, 3, 4}
    theirs.delete("id = 1")
    assert mine.scan().count() == 3
    theirs.append(rows(5))
    tip = theirs.current_snapshot()
    assert tip is not None
    assert mine.current_snapshot() == tip
    theirs.append(rows(6))
    assert len(mine.inspect.files) == len(theirs.inspect.files)
    assert mine.changes().to_arrow().num_rows == theirs.changes().to_arrow().num_rows


def test_a_scan_stays_what_it_was_when_it_was_made(
    mine: frazil.Table, theirs: frazil.Table
) -> None:
    scan = mine.scan()
    theirs.append(rows(4))
    assert scan.count() == 3
    assert scan.to_arrow().num_rows == 3


def test_sql_of_the_same_catalog_is_seen(opened: Open) -> None:
    catalog = opened()
    table = catalog.create_table("shop.orders", SCHEMA)
    catalog.sql("INSERT INTO shop.orders VALUES (1, 1.0)")
    assert prices(table) == {1: 1.0}
    table.update({"price": 2.0}, where="id = 1")
    assert catalog.sql("SELECT price FROM shop.orders").to_arrow().to_pylist() == [{"price": 2.0}]


def test_the_definition_is_live(mine: frazil.Table, theirs: frazil.Table) -> None:
    theirs.evolve_schema().add_column("note", "string").commit()
    assert [column.name for column in mine.schema.fields] == ["id", "price", "note"]
    mine.append([{"id": 4, "price": 4.0, "note": "new"}])
    theirs.set_properties({"owner": "them"})
    assert mine.properties["owner"] == "them"
    theirs.evolve_partitions().add("bucket[2](id)").commit()
    theirs.sort_by("price")
    assert len(mine.spec.fields) == 1
    assert len(mine.sort_order.fields) == 1
    mine.evolve_schema().add_column("more", "string").commit()
    mine.set_properties({"second": "me"})
    assert theirs.properties["second"] == "me"


def test_a_tag_names_the_current_snapshot(mine: frazil.Table, theirs: frazil.Table) -> None:
    theirs.append(rows(4))
    mine.tag("now")
    assert theirs.scan(as_of="now").count() == 4
    theirs.append(rows(5))
    mine.branch("audit", create=True).append(rows(6))
    assert theirs.scan(as_of="audit").count() == 6
    theirs.branch("late", create=True)
    assert mine.branch("late").scan().count() == 5


CHANGES: dict[str, tuple[Callable[[frazil.Table], object], dict[int, float]]] = {
    "update": (lambda t: t.update({"price": 20.0}, where="id = 2"), {2: 20.0}),
    "delete": (lambda t: t.delete("id = 2"), {}),
    "upsert": (lambda t: t.upsert(rows(2, price=20.0), on="id"), {2: 20.0}),
    "merge": (lambda t: t.merge(rows(2, price=20.0), on="id").upsert().execute(), {2: 20.0}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_start_from_the_current_state(
    mine: frazil.Table, theirs: frazil.Table, name: str
) -> None:
    change, row = CHANGES[name]
    theirs.update({"price": 11.0}, where="id = 2")
    change(mine)
    assert prices(theirs) == {1: 1.0, 3: 3.0} | row
    theirs.upsert(rows(2, price=12.0), on="id")
    change(mine)
    assert prices(theirs) == {1: 1.0, 3: 3.0} | row


def interrupt(table: frazil.Table, act: Callable[[], object], *, times: int = 1) -> list[int]:
    """Let others act just before this table's next swaps; returns what counts them."""
    head = table._handle.head
    swap = head.swap
    acted: list[int] = []

    def swap_after_others(base: object, draft: object) -> object:
        if len(acted) < times:
            acted.append(1)
            act()
        return swap(base, draft)  # type: ignore[arg-type]

    head.swap = swap_after_others  # type: ignore[method-assign, assignment]
    return acted


@pytest.mark.parametrize("name", CHANGES)
def test_changes_are_computed_again_when_others_changed_the_same_rows(
    mine: frazil.Table, theirs: frazil.Table, name: str
) -> None:
    change, row = CHANGES[name]
    number = iter(range(10, 20))
    acted = interrupt(
        mine, lambda: theirs.update({"price": float(next(number))}, where="id = 2"), times=2
    )
    change(mine)
    assert len(acted) == 2
    assert prices(theirs) == {1: 1.0, 3: 3.0} | row


def test_an_update_uses_the_values_that_others_left(
    mine: frazil.Table, theirs: frazil.Table
) -> None:
    interrupt(mine, lambda: theirs.update({"price": frazil.expr("price + 100")}), times=3)
    done = mine.update({"price": frazil.expr("price * 2")})
    assert done.attempts >= 4
    assert prices(theirs) == {1: 602.0, 2: 604.0, 3: 606.0}


def test_two_threads_that_count_lose_nothing(opened: Open, mine: frazil.Table) -> None:
    tables = [opened().load_table("shop.orders") for _ in range(2)]

    def work(table: frazil.Table) -> None:
        for _ in range(5):
            table.update({"price": frazil.expr("price + 1")}, where="id = 1")

    threads = [threading.Thread(target=work, args=(table,)) for table in tables]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert prices(mine)[1] == 11.0


def test_a_source_that_is_read_once_is_not_merged_twice(
    mine: frazil.Table, theirs: frazil.Table
) -> None:
    interrupt(mine, lambda: theirs.update({"price": 7.0}, where="id = 2"))
    with pytest.raises(frazil.CommitConflict, match="read only once"):
        mine.upsert(rows(2, price=20.0).to_reader(), on="id")
    assert prices(mine)[2] == 7.0
    mine.upsert(rows(2, price=20.0).to_reader(), on="id")
    assert prices(mine)[2] == 20.0


OTHERS: dict[str, Callable[[frazil.Table], object]] = {
    "append": lambda t: t.append(rows(4)),
    "update": lambda t: t.update({"price": 50.0}, where="id = 2"),
    "delete a row": lambda t: t.delete("id = 2"),
    "delete a file": lambda t: t.delete("id < 10"),
    "equality delete": lambda t: (
        t.row_delta().add_equality_deletes([{"id": 2}], on=["id"]).commit()
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_read_compute_overwrite_loses_no_commit_of_others(
    mine: frazil.Table, theirs: frazil.Table, name: str
) -> None:
    computed = mine.scan().to_arrow()
    OTHERS[name](theirs)
    after = prices(theirs)
    with pytest.raises(frazil.CommitConflict):
        mine.overwrite(computed)
    assert prices(theirs) == after
    computed = mine.scan().to_arrow()
    mine.overwrite(computed)
    assert prices(theirs) == after


def test_after_a_conflict_repeating_the_call_works(
    mine: frazil.Table, theirs: frazil.Table
) -> None:
    theirs.append(rows(4))
    with pytest.raises(frazil.CommitConflict):
        mine.overwrite(rows(9))
    mine.overwrite(rows(9))
    assert prices(theirs) == {9: 9.0}


def test_looking_at_the_schema_is_not_reading_rows(
    mine: frazil.Table, theirs: frazil.Table
) -> None:
    computed = mine.scan().to_arrow()
    theirs.append(rows(4))
    assert len(mine.schema.fields) == 2
    assert mine.current_snapshot() is not None
    mine.append(rows(5))
    with pytest.raises(frazil.CommitConflict):
        mine.overwrite(computed)
    assert set(prices(mine)) == {1, 2, 3, 4, 5}


def test_own_changes_do_not_stand_in_the_way_of_an_overwrite(
    mine: frazil.Table, theirs: frazil.Table
) -> None:
    mine.scan().to_arrow()
    mine.append(rows(4))
    mine.delete("id = 1")
    mine.set_properties({"owner": "me"})
    mine.overwrite(rows(9))
    mine.overwrite(rows(8))
    assert prices(theirs) == {8: 8.0}


def test_changes_of_other_rows_do_not_stand_in_the_way(
    mine: frazil.Table, theirs: frazil.Table
) -> None:
    mine.scan(where="id <= 3").to_arrow()
    theirs.append(rows(100))
    mine.overwrite(rows(1), where="id <= 3")
    assert set(prices(theirs)) == {1, 100}


def test_an_overwrite_in_a_transaction_is_held_against_what_was_read(
    mine: frazil.Table, theirs: frazil.Table
) -> None:
    computed = mine.scan().to_arrow()
    theirs.delete("id = 2")
    tx = mine.transaction()
    tx.append(rows(7)).overwrite(computed)
    with pytest.raises(frazil.CommitConflict):
        tx.commit()
    assert set(prices(theirs)) == {1, 3}
    theirs.append(rows(4))
    with mine.transaction() as tx:
        tx.overwrite(tx.scan().to_arrow())
    assert set(prices(theirs)) == {1, 3, 4}


def test_branches_are_read_apart(mine: frazil.Table, theirs: frazil.Table) -> None:
    audit = mine.branch("audit", create=True)
    computed = mine.scan().to_arrow()
    theirs.append(rows(4))
    audit.scan().to_arrow()
    with pytest.raises(frazil.CommitConflict):
        mine.overwrite(computed)
    audit.overwrite(rows(9))
    assert set(prices(mine)) == {1, 2, 3, 4}


def test_a_transaction_sees_one_state(mine: frazil.Table, theirs: frazil.Table) -> None:
    with mine.transaction() as tx:
        theirs.append(rows(4))
        assert tx.scan().count() == 3
        assert mine.scan().count() == 4
        tx.append(rows(5))
        assert tx.scan().count() == 4
    assert mine.scan().count() == 5


def test_a_transaction_is_not_computed_again(mine: frazil.Table, theirs: frazil.Table) -> None:
    tx = mine.transaction().update({"price": 20.0}, where="id = 2")
    theirs.update({"price": 11.0}, where="id = 2")
    with pytest.raises(frazil.CommitConflict):
        tx.commit()
    assert prices(mine)[2] == 11.0


def test_a_pinned_table_stays_where_it_is(mine: frazil.Table, theirs: frazil.Table) -> None:
    pinned = mine.pinned()
    theirs.append(rows(4))
    theirs.evolve_schema().add_column("note", "string").commit()
    assert pinned.scan().count() == 3
    assert len(pinned.schema.fields) == 2
    assert mine.scan().count() == 4
    theirs.update({"price": 11.0}, where="id = 2")
    with pytest.raises(frazil.CommitConflict):
        pinned.update({"price": 12.0}, where="id = 2")
    assert pinned.scan().count() == 3
    assert pinned.refresh().scan().count() == 4
    pinned.update({"price": 12.0}, where="id = 2")
    assert prices(mine)[2] == 12.0


def test_a_table_that_was_dropped_is_not_found(opened: Open, mine: frazil.Table) -> None:
    opened().drop_table("shop.orders")
    with pytest.raises(frazil.NotFound, match="dropped"):
        mine.scan()
    with pytest.raises(frazil.NotFound, match="dropped"):
        mine.append(rows(4))


def test_a_table_of_the_same_name_is_another_table(opened: Open, mine: frazil.Table) -> None:
    other = opened()
    other.drop_table("shop.orders")
    other.create_table("shop.orders", rows(9))
    works: list[Callable[[], object]] = [
        mine.scan,
        lambda: mine.schema,
        lambda: mine.append(rows(4)),
        lambda: mine.overwrite(rows(4)),
        lambda: mine.tag("now"),
    ]
    for work in works:
        with pytest.raises(frazil.NotFound, match="another was created under its name"):
            work()
    assert set(prices(other.load_table("shop.orders"))) == {9}


def test_a_renamed_table_is_followed(opened: Open, mine: frazil.Table) -> None:
    other = opened()
    other.rename_table("shop.orders", "shop.sold").append(rows(4))
    assert set(prices(mine)) == {1, 2, 3, 4}


def test_expired_history_is_a_conflict_once(mine: frazil.Table, theirs: frazil.Table) -> None:
    mine.scan().to_arrow()
    theirs.overwrite(rows(4))
    theirs.append(rows(5))
    theirs.expire_snapshots(older_than=4_000_000_000_000, keep_last=1)
    assert mine.delete("id = 4").rows_removed == 1
    with pytest.raises(frazil.CommitConflict, match=r"expired|gone"):
        mine.overwrite(rows(9))
    mine.overwrite(rows(9))
    assert prices(theirs) == {9: 9.0}


class Counted:
    """How many statements a database is sent."""

    def __init__(self, table: frazil.Table) -> None:
        database = table._handle.head._database  # type: ignore[attr-defined]
        assert isinstance(database, Database)
        self._database = database

    def __call__(self, work: Callable[[], object]) -> int:
        before = self._database.statements
        work()
        return self._database.statements - before


@pytest.mark.parametrize("opened", ["sqlite", "postgresql"], indirect=True)
def test_what_being_live_costs(mine: frazil.Table) -> None:
    statements = Counted(mine)
    assert statements(lambda: mine.scan().to_arrow()) == 1
    assert statements(lambda: mine.scan().count()) == 1
    assert statements(lambda: mine.scan().explain()) == 1
    assert statements(lambda: mine.schema) == 1
    assert statements(lambda: mine.properties) == 1
    assert statements(lambda: mine.current_snapshot()) == 1
    # BEGIN, the swap, the snapshot, the log, COMMIT; before them one read, which appends spare.
    assert statements(lambda: mine.append(rows(4))) == 5
    assert statements(lambda: mine.delete("id = 1")) == 6
    assert statements(lambda: mine.overwrite(rows(4))) == 6
    pinned = mine.pinned()
    assert statements(lambda: pinned.scan().to_arrow()) == 0

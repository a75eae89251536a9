"""Writers that wait in PostgreSQL's queue have their appends landed by the one whose turn it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

import frazil
from frazil.catalog.sql.offers import OfferSlot, entries_bytes
from frazil.commit.result import CommitResult
from frazil.errors import CommitUnknown
from frazil.format.entries.batch import EntryBatch
from frazil.table import Catalog, Table
from tests.contracts.conftest import empty_database

_LIMIT_S = 60.0
NAME = "shop.orders"


class Shop:
    """A table in PostgreSQL, and writers that each have a connection of their own."""

    def __init__(self, uri: str, folder: Path) -> None:
        self.uri, self.folder = uri, folder
        self.catalogs: list[Catalog] = []
        self.first = self.connect()
        self.first.create_table(NAME, pa.schema([("id", pa.int64())]))
        self.results: dict[int, CommitResult] = {}

    def connect(self) -> Catalog:
        made = frazil.connect(self.uri, warehouse=str(self.folder))
        self.catalogs.append(made)
        return made

    def writer(self) -> Table:
        """A writer that has met others before."""
        table = self.connect().load_table(NAME)
        table._handle.has_rivals = True
        return table

    def start(self, number: int, *, summary: Mapping[str, str] | None = None) -> threading.Thread:
        table = self.writer()

        def work() -> None:
            self.results[number] = table.append([{"id": number}], summary=summary)

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    def offers(self) -> int:
        return int(self.first._pointers.database.rows("SELECT count(*) FROM frazil_offers")[0][0])  # type: ignore[attr-defined]

    def until(self, happened: Callable[[], bool]) -> None:
        end = time.monotonic() + _LIMIT_S
        while not happened():
            assert time.monotonic() < end, "it did not happen"
            time.sleep(0.002)

    def ids(self) -> list[int]:
        return sorted(row["id"] for row in self.table().scan().to_pylist())

    def table(self) -> Table:
        return self.first.load_table(NAME)


@pytest.fixture
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(empty_database("postgresql", tmp_path, request), tmp_path / "warehouse")
    yield made
    for catalog in made.catalogs:
        catalog.close()


def _all_wait(shop: Shop, *starts: Callable[[], threading.Thread]) -> None:
    """Let writers queue up behind a turn, then let go of it."""
    threads = []
    with shop.table()._handle.head.turn():  # type: ignore[attr-defined]
        for number, start in enumerate(starts, start=1):
            threads.append(start())
            shop.until(lambda wanted=number: shop.offers() == wanted)  # type: ignore[misc]
    for thread in threads:
        thread.join(_LIMIT_S)


def test_appends_that_wait_share_one_snapshot(shop: Shop) -> None:
    _all_wait(shop, *(lambda n=n: shop.start(n) for n in range(4)))
    assert shop.ids() == [0, 1, 2, 3]
    assert len(shop.table().snapshots()) == 1
    assert {result.snapshot_id for result in shop.results.values()} == {
        shop.table().snapshots()[0].snapshot_id
    }
    assert [result.rows_added for result in shop.results.values()] == [1, 1, 1, 1]
    assert [result.shared_by for result in shop.results.values()] == [4, 4, 4, 4]
    row_ids = shop.table().scan(columns=["_row_id"]).to_arrow()["_row_id"].to_pylist()
    assert sorted(row_ids) == [0, 1, 2, 3]
    assert shop.table().check(deep=True).ok
    assert shop.offers() == 0


def test_summaries_are_not_shared(shop: Shop) -> None:
    batches = [{"batch": "a"}, {"batch": "b"}, {"batch": "a"}]
    _all_wait(
        shop,
        *(lambda n=n, s=s: shop.start(n, summary=s) for n, s in enumerate(batches)),
    )
    assert shop.ids() == [0, 1, 2]
    found = [each.summary for each in shop.table().snapshots()]
    assert sorted((each["batch"], each["added-records"]) for each in found) == [
        ("a", "2"),
        ("b", "1"),
    ]
    assert shop.results[0].snapshot_id == shop.results[2].snapshot_id
    assert shop.results[1].shared_by == 1
    assert shop.offers() == 0


def test_the_property_switches_it_off(shop: Shop) -> None:
    shop.table().set_properties({"commit.group": "false"})
    threads = [shop.start(number) for number in range(3)]
    for thread in threads:
        thread.join(_LIMIT_S)
    assert shop.ids() == [0, 1, 2]
    assert len(shop.table().snapshots()) == 3


def _offer_of_nobody(shop: Shop, entries: bytes, *, number: int = 77) -> None:
    table_id = int(shop.table()._handle.head.key)  # type: ignore[attr-defined]
    with psycopg.connect(shop.uri, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO frazil_offers VALUES (%s, %s, clock_timestamp(), 'main', '{}', %s)",
            [number, table_id, entries],
        )


def _entries(shop: Shop, number: int) -> bytes:
    """Entries of a file that no snapshot has: of an append that was rolled back."""
    table = shop.table()
    done = table.append([{"id": number}])
    batch = table._handle.reader().tree(done.snapshot).root
    assert done.snapshot is not None
    assert done.snapshot.parent_snapshot_id is not None
    table.rollback(done.snapshot.parent_snapshot_id)
    keys = [key for key in batch.keys if not key.startswith("tracking.")]
    last = batch.slice(batch.num_rows - 1).select(keys)
    return bytes(entries_bytes(last))


def test_an_offer_of_a_writer_that_died_is_never_landed(shop: Shop) -> None:
    shop.table().append([{"id": 1}])
    _offer_of_nobody(shop, _entries(shop, 99))
    shop.writer().append([{"id": 2}])
    assert shop.ids() == [1, 2]
    assert shop.offers() == 0


def test_an_offer_of_a_writer_that_lives_is_landed(shop: Shop) -> None:
    """The same offer as above, with its writer's lock: the test above can fail."""
    shop.table().append([{"id": 1}])
    _offer_of_nobody(shop, _entries(shop, 99))
    with psycopg.connect(shop.uri, autocommit=True) as living:
        living.execute("SELECT pg_advisory_lock(77)")
        shop.writer().append([{"id": 2}])
    assert shop.ids() == [1, 2, 99]


def test_an_offer_that_cannot_be_read_is_left_to_its_writer(shop: Shop) -> None:
    shop.table().append([{"id": 1}])
    _offer_of_nobody(shop, b"not Arrow")
    with psycopg.connect(shop.uri, autocommit=True) as living:
        living.execute("SELECT pg_advisory_lock(77)")
        shop.writer().append([{"id": 2}])
        assert shop.offers() == 1
    assert shop.ids() == [1, 2]


def test_an_offer_that_does_not_fit_does_not_fail_the_others(shop: Shop) -> None:
    shop.table().append([{"id": 1}])
    wrong = EntryBatch(pa.table({"location": pa.array([5], pa.int64())}))
    _offer_of_nobody(shop, entries_bytes(wrong).to_pybytes())
    with psycopg.connect(shop.uri, autocommit=True) as living:
        living.execute("SELECT pg_advisory_lock(77)")
        shop.writer().append([{"id": 2}])
        assert shop.offers() == 1
    assert shop.ids() == [1, 2]
    assert shop.table().check(deep=True).ok


class _Interrupted(BaseException):
    pass


def test_an_append_that_is_interrupted_while_it_waits_is_withdrawn(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = OfferSlot.wait

    def wait(slot: OfferSlot) -> bool:
        real(slot)
        raise _Interrupted

    monkeypatch.setattr(OfferSlot, "wait", wait)
    with pytest.raises(_Interrupted):
        shop.writer().append([{"id": 1}])
    monkeypatch.setattr(OfferSlot, "wait", real)
    assert shop.offers() == 0
    shop.writer().append([{"id": 2}])
    assert shop.ids() == [2]


def test_an_interruption_after_another_has_landed_it_says_so(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = OfferSlot.wait
    mine = threading.get_ident()

    def wait(slot: OfferSlot) -> bool:
        if threading.get_ident() != mine:
            return real(slot)
        slot._wait = lambda: None  # the offer is made, the turn is another's
        real(slot)
        shop.start(1).join(_LIMIT_S)
        raise _Interrupted

    monkeypatch.setattr(OfferSlot, "wait", wait)
    with pytest.raises(CommitUnknown, match="another writer has landed it"):
        shop.writer().append([{"id": 2}])
    assert shop.ids() == [1, 2]
    assert shop.results[1].shared_by == 2
    assert shop.offers() == 0


def test_without_a_turn_an_append_goes_its_own_way(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = OfferSlot.wait

    def wait(slot: OfferSlot) -> bool:
        assert real(slot)
        return False

    monkeypatch.setattr(OfferSlot, "wait", wait)
    assert shop.writer().append([{"id": 1}]).shared_by == 1
    assert shop.ids() == [1]
    assert shop.offers() == 0

"""Appends that reach the server together: one root, one swap, one snapshot, and each lands once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil import serve
from frazil.catalog.remote.remote_head import RemoteHead
from frazil.catalog.sql.offers import entries_bytes
from frazil.catalog.sql.sql_head import SqlHead
from frazil.commit.head import Draft, Outcome, State
from frazil.errors import CommitUnknown, InvalidInput
from frazil.format.entries.batch import EntryBatch
from frazil.serve.native import group_entries
from frazil.serve.running import Running
from frazil.table import Catalog, Table

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture
def remote(server: Running) -> Iterator[Catalog]:
    with frazil.connect(server.uri) as opened:
        opened.create_table("shop.orders", SCHEMA)
        yield opened


def rows(first: int, count: int = 2) -> list[dict[str, Any]]:
    return [{"id": first + n, "name": "x"} for n in range(count)]


def ids(table: Table) -> list[int]:
    table.refresh()
    return sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist())


class Gate:
    """Holds swaps of the server back until it is opened, so that appends pile up behind one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.swaps = 0
        self._reached, self._open = threading.Event(), threading.Event()
        swap = SqlHead.swap

        def held(head: SqlHead, base: State, draft: Draft) -> Outcome:
            self.swaps += 1
            self._reached.set()
            assert self._open.wait(60)
            return swap(head, base, draft)

        monkeypatch.setattr(SqlHead, "swap", held)

    def wait(self) -> None:
        assert self._reached.wait(60)

    def open(self) -> None:
        self._open.set()


class Writers:
    """Appends from clients of their own, each in a thread."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self.results: dict[int, Any] = {}
        self._threads: list[threading.Thread] = []

    def append(self, number: int, **options: Any) -> None:
        table = frazil.connect(self._uri).load_table("shop.orders")
        self.start(number, lambda: table.append(rows(number * 10), **options))

    def start(self, number: int, work: Callable[[], Any]) -> None:
        def run() -> None:
            try:
                self.results[number] = work()
            except BaseException as error:
                self.results[number] = error

        thread = threading.Thread(target=run)
        thread.start()
        self._threads.append(thread)

    def join(self) -> dict[int, Any]:
        for thread in self._threads:
            thread.join(60)
        return self.results


def _pile_up(
    server: Running, gate: Gate, service_groups: Callable[[], int], starts: list[Callable[[], None]]
) -> None:
    """Start one append, and the others once it is in its swap; open when all of them wait."""
    starts[0]()
    gate.wait()
    for start in starts[1:]:
        start()
    for _ in range(3_000):
        if service_groups() == len(starts) - 1:
            break
        time.sleep(0.01)
    assert service_groups() == len(starts) - 1
    gate.open()


@pytest.fixture
def queued(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many appends wait in the server."""
    from frazil.serve.native import group

    seen: list[Any] = []
    made = group._Table.__init__

    def remember(table: Any, *args: Any) -> None:
        made(table, *args)
        seen.append(table)

    monkeypatch.setattr(group._Table, "__init__", remember)
    return lambda: sum(len(table._waiting) for table in seen)


def test_appends_that_wait_share_one_snapshot(
    server: Running,
    remote: Catalog,
    catalog: Catalog,
    queued: Callable[[], int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate, writers = Gate(monkeypatch), Writers(server.uri)
    starts: list[Callable[[], None]] = [partial(writers.append, n) for n in range(6)]
    _pile_up(server, gate, queued, starts)
    results = writers.join()
    assert [results[0].shared_by, *(results[n].shared_by for n in range(1, 6))] == [
        1,
        5,
        5,
        5,
        5,
        5,
    ]
    assert len({results[n].snapshot_id for n in range(1, 6)}) == 1
    assert {results[n].rows_added for n in range(6)} == {2}
    assert "shared by 5 appends" in str(results[3])
    assert gate.swaps == 2
    table = catalog["shop.orders"]
    assert ids(table) == sorted(n * 10 + k for n in range(6) for k in range(2))
    shared = results[1].snapshot
    assert shared.summary["added-records"] == "10"
    assert shared.summary["added-data-files"] == "5"
    assert shared.summary["total-records"] == "12"
    assert shared.summary["frazil.group.size"] == "5"
    assert len(shared.summary["frazil.group.ids"].split()) == 5
    found = table.scan(columns=["_row_id"]).to_arrow()["_row_id"].to_pylist()
    assert sorted(found) == list(range(12))
    roots = list((Path(table.location.removeprefix("file://")) / "metadata").glob("root-*"))
    assert len(roots) == 2
    assert not table.check(deep=True).problems


def test_appends_with_other_summaries_are_snapshots_of_their_own_in_one_swap(
    server: Running,
    remote: Catalog,
    catalog: Catalog,
    queued: Callable[[], int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate, writers = Gate(monkeypatch), Writers(server.uri)
    starts = [
        lambda: writers.append(0),
        lambda: writers.append(1, summary={"batch": "7"}),
        lambda: writers.append(2, summary={"batch": "8"}),
        lambda: writers.append(3, summary={"batch": "7"}),
    ]
    _pile_up(server, gate, queued, starts)
    results = writers.join()
    assert results[1].snapshot_id == results[3].snapshot_id != results[2].snapshot_id
    assert results[1].snapshot.summary["batch"] == "7"
    assert results[2].snapshot.summary["batch"] == "8"
    assert (results[1].shared_by, results[2].shared_by) == (2, 1)
    assert gate.swaps == 2
    assert len(ids(catalog["shop.orders"])) == 8


def test_an_append_that_no_longer_fits_fails_alone(
    server: Running,
    remote: Catalog,
    catalog: Catalog,
    queued: Callable[[], int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate, writers = Gate(monkeypatch), Writers(server.uri)
    bad = frazil.connect(server.uri).load_table("shop.orders")

    def append_bad() -> Any:
        head = bad._handle.head
        assert isinstance(head, RemoteHead)
        entries = _entries(bad).with_constant("spec_id", 5)
        return head.append(bad._handle.state, entries, branch="main", summary={}, append_id=99)

    starts = [
        lambda: writers.append(0),
        lambda: writers.start(1, append_bad),
        lambda: writers.append(2),
        lambda: writers.append(3),
    ]
    _pile_up(server, gate, queued, starts)
    results = writers.join()
    assert isinstance(results[1], InvalidInput)
    assert "partition spec 5" in str(results[1])
    assert (results[2].shared_by, results[3].shared_by) == (2, 2)
    assert ids(catalog["shop.orders"]) == [0, 1, 20, 21, 30, 31]


def test_the_property_gives_every_append_its_own_snapshot(
    server: Running, remote: Catalog, catalog: Catalog
) -> None:
    table = remote["shop.orders"]
    stale = frazil.connect(server.uri).load_table("shop.orders")
    table.set_properties({"commit.group": "false"})
    assert table.append(rows(1)).shared_by == 1
    done = stale.append(rows(5))  # its client does not know the property yet
    assert done.shared_by == 1
    assert "frazil.group.size" not in done.snapshot.summary  # type: ignore[union-attr]
    assert ids(catalog["shop.orders"]) == [1, 2, 5, 6]
    with pytest.raises(InvalidInput, match=r"commit\.group"):
        table.set_properties({"commit.group": "often"})


# Answers that are lost


def _entries(table: Table) -> EntryBatch:
    """The entry of a file that is written and not committed."""
    with_tx = table.transaction()
    with_tx.append(rows(100))
    change = with_tx._change
    assert change is not None
    assert change.added is not None
    return change.added


def _sent(table: Table, entries: EntryBatch, append_id: int, **more: Any) -> dict[str, Any]:
    """Send an append, and once more as a client does that got no answer."""
    head = table._handle.head
    assert isinstance(head, RemoteHead)
    base = more.pop("base", table._handle.state)
    header = {
        "key": head.key,
        "branch": "main",
        "summary": {},
        "append-id": append_id,
        "writer": "w",
        "known": head.known().document(),
        "since-version": base.version,
        "since-sequence-number": base.metadata.last_sequence_number,
        **more,
    }
    return head._landed_once(header, entries_bytes(entries))


def test_an_append_that_is_sent_twice_lands_once(
    server: Running, remote: Catalog, catalog: Catalog
) -> None:
    table = remote["shop.orders"]
    base, entries = table._handle.state, _entries(table)
    first = _sent(table, entries, 77)
    again = _sent(table, entries, 77, base=base, **{"is-repeated": True})
    assert first["snapshot"] == again["snapshot"]
    assert ids(catalog["shop.orders"]) == [100, 101]


def test_a_restarted_server_knows_what_the_one_before_landed(
    remote: Catalog, catalog: Catalog
) -> None:
    table = remote["shop.orders"]
    base, entries = table._handle.state, _entries(table)
    _sent(table, entries, 77)
    table.append(rows(1))
    with serve.start(catalog) as other:
        fresh = frazil.connect(other.uri).load_table("shop.orders")
        again = _sent(fresh, entries, 77, base=base, **{"is-repeated": True})
        assert '"snapshot-id":77' in again["snapshot"]
        # The first request itself, should it arrive late and through another server.
        late = _sent(fresh, entries, 77, base=base)
        assert '"snapshot-id":77' in late["snapshot"]
    assert ids(catalog["shop.orders"]) == [1, 2, 100, 101]


def test_a_repeated_append_whose_snapshot_may_have_expired_is_not_landed_again(
    server: Running, remote: Catalog, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frazil.catalog.remote.remote_head.MAX_DOUBT_S", 0.2)
    table = remote["shop.orders"]
    base, entries = table._handle.state, _entries(table)
    _sent(table, entries, 77)
    table.refresh()
    table.append(rows(1))
    state = catalog["shop.orders"]._handle.state
    head = catalog["shop.orders"]._handle.head
    head.swap(state, Draft(metadata=state.metadata, removed_snapshot_ids=(77,)))
    with serve.start(catalog) as other:
        fresh = frazil.connect(other.uri).load_table("shop.orders")
        with pytest.raises(CommitUnknown):
            _sent(fresh, entries, 77, base=base, **{"is-repeated": True})
    assert ids(catalog["shop.orders"]) == [1, 2, 100, 101]


def test_two_servers_of_one_catalog_land_an_append_once(
    remote: Catalog, catalog: Catalog, tmp_path: Path
) -> None:
    with (
        frazil.connect(tmp_path / "warehouse") as second,
        serve.start(second) as other,
    ):
        here, there = remote["shop.orders"], frazil.connect(other.uri)["shop.orders"]
        base, entries = here._handle.state, _entries(here)
        there.append(rows(1))
        _sent(here, entries, 77, base=base)
        _sent(there, entries, 77, base=base, **{"is-repeated": True})
        _sent(here, entries, 77, base=base, **{"is-repeated": True})
        there.append(rows(5))
        here.append(rows(7))
    assert ids(catalog["shop.orders"]) == [1, 2, 5, 6, 7, 8, 100, 101]


# What is sent is not trusted


def _ipc(batch: pa.RecordBatch, options: pa.ipc.IpcWriteOptions | None = None) -> memoryview:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return memoryview(sink.getvalue().to_pybytes())


def test_entries_that_are_compressed_or_cut_short_are_refused() -> None:
    batch = pa.record_batch({"location": ["data/a.parquet" * 100]})
    assert group_entries.decoded(_ipc(batch)).batch.num_rows == 1
    packed = pa.ipc.IpcWriteOptions(compression="zstd")
    with pytest.raises(InvalidInput, match="compressed"):
        group_entries.decoded(_ipc(batch, packed))
    whole = _ipc(batch)
    for end in (0, 3, 40, len(whole) // 2):
        with pytest.raises(InvalidInput):
            group_entries.decoded(whole[:end])


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("location", "/etc/passwd", "inside the table"),
        ("location", "s3://elsewhere/x.parquet", "inside the table"),
        ("location", "data/../../other/x.parquet", r"\.\."),
        ("file_format", "exe", "file_format"),
        ("record_count", -1, "negative"),
        ("content_type", 2, "data files"),
        ("spec_id", 9, "partition spec 9"),
    ],
)
def test_entries_that_are_not_of_the_table_are_refused(
    remote: Catalog, catalog: Catalog, column: str, value: Any, said: str
) -> None:
    table = remote["shop.orders"]
    entries = _entries(table).with_constant(column, value)
    head = table._handle.head
    assert isinstance(head, RemoteHead)
    with pytest.raises(InvalidInput, match=said):
        head.append(table._handle.state, entries, branch="main", summary={}, append_id=5)
    assert ids(catalog["shop.orders"]) == []


def test_a_column_that_no_entry_has_is_refused(remote: Catalog) -> None:
    table = remote["shop.orders"]
    head = table._handle.head
    assert isinstance(head, RemoteHead)
    entries = EntryBatch(_entries(table).table.append_column("manifest_info.dv", pa.array([b"x"])))
    with pytest.raises(InvalidInput, match=r"manifest_info\.dv"):
        head.append(table._handle.state, entries, branch="main", summary={}, append_id=5)


def test_an_append_writes_one_root_and_asks_the_server_once(
    remote: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    from frazil.catalog.remote.remote_http import Requests

    table = remote["shop.orders"]
    table.append(rows(1))
    asked: list[str] = []
    answer = Requests._answer

    def counted(requests: Requests, method: str, path: str, *rest: Any) -> Any:
        asked.append(path)
        return answer(requests, method, path, *rest)

    monkeypatch.setattr(Requests, "_answer", counted)
    done = table.append(rows(5))
    assert asked == ["/v1/frazil/append"]
    assert done.metadata_files == 1


def test_a_change_that_is_not_a_plain_append_goes_its_own_way(
    remote: Catalog, catalog: Catalog
) -> None:
    table = remote["shop.orders"]
    table.append(rows(1, 4))
    table.delete("id = 1")
    table.append(rows(9), summary={"frazil.stream.query-id": "q", "frazil.stream.batch-id": "1"})
    with table.transaction() as tx:
        tx.set_properties({"owner": "me"})
        tx.append(rows(20))
    assert ids(catalog["shop.orders"]) == [2, 3, 4, 9, 10, 20, 21]
    assert table._handle.state.metadata.properties["owner"] == "me"


def test_nothing_is_refused_for_a_table_that_has_changed_since(
    server: Running, remote: Catalog, catalog: Catalog
) -> None:
    """The server commits group after group without looking at the catalog, until a swap fails or an
    append does not fit: then it looks."""
    table = remote.load_table("shop.orders")
    for first in (1, 3, 5):
        table.append(rows(first))
    elsewhere = catalog.load_table("shop.orders")  # on the database, past the server
    elsewhere.set_properties({"commit.group": "false"})
    assert table.append(rows(7)).shared_by == 1
    elsewhere.refresh()
    elsewhere.set_properties({"commit.group": "true"})
    elsewhere.evolve_partitions().add("bucket[4](id)").commit()
    table.refresh()
    table.append(rows(9))
    assert ids(table) == list(range(1, 11))
    assert table.check(deep=True).ok

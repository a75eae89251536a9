"""What a commit may write: objects and bytes, whatever the size of the table."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

import pytest

import frazil
from frazil.commit.change import Change, VectorEdit
from frazil.storage import StorageCall
from tests.support.orders import ORDERS, batches, order_files, orders_bench
from tests.support.trees import Bench, kind_of

KB = 1_000


def _metadata(calls: list[StorageCall]) -> list[tuple[str, int]]:
    """Kinds and sizes of what was written."""
    return [(kind_of(call.path), call.bytes) for call in calls if call.verb == "write"]


def test_an_append_writes_one_small_root(tmp_path: Path) -> None:
    bench = orders_bench(tmp_path)
    sizes = []
    for number in range(32):
        with bench.storage.recording() as calls:
            bench.commit(Change(added=order_files(bench, number, 1)))
        ((kind, size),) = _metadata(calls)
        assert kind == "root"
        sizes.append(size)
    assert sizes[0] <= 6.5 * KB
    assert sizes[31] <= 8.6 * KB


def test_an_append_after_an_append_reads_nothing(tmp_path: Path) -> None:
    bench = orders_bench(tmp_path)
    state = bench.commit(Change(added=order_files(bench, 0, 1))).state
    change = Change(added=order_files(bench, 1, 1))
    with bench.storage.recording() as calls:
        bench.commit(change, base=state)
    # The bench looks at leaves afterwards, with a cache of its own.
    before_swap = [call.verb for call in calls[: [c.verb for c in calls].index("write")]]
    assert before_swap == []


def test_a_small_commit_writes_a_few_kilobytes_to_the_catalog(tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "warehouse") as catalog:
        table = catalog.create_table("shop.orders", [{"id": 1}])
        log = tmp_path / "warehouse" / "catalog.db-wal"
        begins = log.stat().st_size
        for number in range(50):
            table.append([{"id": number}])
        assert (log.stat().st_size - begins) / 50 <= 4.5 * KB


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="only Linux counts bytes written")
def test_small_commits_write_and_keep_few_bytes(tmp_path: Path) -> None:
    """Roots, leaves, JSON files, the database's log and what checkpoints copy from it. In a process
    of its own: whatever a process writes counts."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as own:
        written, kept = own.submit(_written_and_kept, tmp_path).result()
    assert written <= 16 * KB
    assert kept <= 14.6 * KB


def _written_and_kept(folder: Path) -> tuple[float, float]:
    """Bytes per small commit."""
    commits = 200
    with frazil.connect(folder / "warehouse") as catalog:
        table = catalog.create_table("shop.orders", ORDERS, partition_by=["day(order_date)"])
        files = [order_files(cast(Any, table), number, 1) for number in range(commits)]
        before = _bytes_written()
        for entries in files:
            table._add_entries(entries)
        written = _bytes_written() - before
        kept = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return written / commits, kept / commits


def _bytes_written() -> int:
    """What this process has written so far."""
    counts = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counts["wchar"])


def test_a_catalog_with_larger_pages_is_used_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "warehouse").mkdir()
    file = tmp_path / "warehouse" / "catalog.db"
    with closing(sqlite3.connect(file)) as connection:  # as SQLite creates one by itself
        connection.execute("PRAGMA page_size=4096")
        connection.execute("CREATE TABLE others (a INTEGER)")
    with frazil.connect(tmp_path / "warehouse") as catalog:
        catalog.create_table("shop.orders", [{"id": 1}]).append([{"id": 2}])
    with frazil.connect(tmp_path / "warehouse") as catalog:
        assert catalog.load_table("shop.orders").scan().count() == 2
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA page_size").fetchone() == (4096,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_writing_does_not_grow_with_the_number_of_commits(tmp_path: Path) -> None:
    bench = orders_bench(tmp_path, **{"write.root.max-data-entries": "10"})
    written: list[int] = []
    for number in range(100):
        with bench.storage.recording() as calls:
            bench.commit(Change(added=order_files(bench, number, 1)))
        written.append(sum(size for _, size in _metadata(calls)))
    early, late = sum(written[20:40]), sum(written[80:100])
    assert late < 1.15 * early


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """100,000 files in ten leaves."""
    bench = orders_bench(tmp_path_factory.mktemp("large"), **{"write.leaf.target-entries": "10000"})
    for batch in batches(bench, 100_000, 50_000, files_per_day=100):
        bench.commit(Change(added=batch))
    assert len(bench.tree().leaves()) == 10
    return bench


def _some_file(bench: Bench, leaf: int, position: int) -> str:
    ref = bench.tree().leaves()[leaf]
    name = bench.reader().entries(ref, keys=["location"]).pylist("location")[position]
    assert isinstance(name, str)
    return name


def test_one_file_of_100_000_is_removed_by_one_root(large: Bench) -> None:
    name = _some_file(large, 3, 1234)
    with large.storage.recording() as calls:
        large.remove(name)
    ((kind, size),) = _metadata(calls)
    assert kind == "root"
    assert size < 30 * KB


def test_rows_of_one_file_of_100_000_are_deleted_by_one_puffin_and_one_root(large: Bench) -> None:
    name = _some_file(large, 5, 4321)
    with large.storage.recording() as calls:
        large.delete_rows(name, 17)
    (puffin, puffin_size), (root, root_size) = _metadata(calls)
    assert (puffin, root) == ("puffin", "root")
    assert puffin_size + root_size < 30 * KB


def test_a_hint_saves_looking_through_other_leaves(large: Bench) -> None:
    ref = large.tree().leaves()[7]
    name = _some_file(large, 7, 99)
    edit = large.vector(name, 5, leaf=ref.location, position=99)
    assert isinstance(edit, VectorEdit)
    change = Change(vectors=(edit,), base_snapshot_id=large.tip_id())
    large.context.cache.clear()
    with large.storage.recording() as calls:
        large.commit(change)
    until = [call.verb for call in calls].index("write")
    leaves = {call.path for call in calls[:until] if kind_of(call.path) == "leaf"}
    assert leaves == {f"{large.location}/{ref.location}"}


def test_many_dead_files_cost_a_few_bytes_each(large: Bench) -> None:
    ref = large.tree().leaves()[1]
    names = large.reader().live(ref, keys=["location"]).pylist("location")[::10]
    assert len(names) == 1_000
    with large.storage.recording() as calls:
        large.remove(*names)
    ((kind, size),) = _metadata(calls)
    assert kind == "root"
    assert size < 40 * KB

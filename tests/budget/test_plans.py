"""What a plan may read: leaves opened and bytes fetched."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from frazil.commit.change import Change
from frazil.filter.text.filter_text import parse
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import stats_key
from frazil.format.metadata.metadata import Snapshot
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import LongType, NestedField
from frazil.scan.plan import Plan, plan
from frazil.storage import StorageCall
from tests.support.orders import FIRST_DAY, ROWS_PER_FILE, batches, orders_bench
from tests.support.trees import Bench, bounds, kind_of

FILES, PER_DAY = 100_000, 1_000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """100,000 files of 100 days, in leaves of 4,000."""
    bench = orders_bench(tmp_path_factory.mktemp("large"), **{"write.leaf.target-entries": "4000"})
    for batch in batches(bench, FILES, 20_000, files_per_day=PER_DAY):
        bench.commit(Change(added=batch))
    assert len(bench.tree().leaves()) == 25
    return bench


def _planned(bench: Bench, where: str) -> tuple[Plan, list[StorageCall]]:
    reader = bench.reader()
    with bench.storage.recording() as calls:
        found = plan(reader, bench.tip, where=parse(where, bench.metadata.schema()))
    return found, calls


def _leaves(calls: list[StorageCall]) -> set[str]:
    return {call.path for call in calls if kind_of(call.path) == "leaf"}


def test_one_day_and_country_opens_few_leaves(large: Bench) -> None:
    found, calls = _planned(large, "order_date = '2024-01-15' and country = 'US'")
    assert found.files.num_rows == PER_DAY // 10
    assert len(_leaves(calls)) <= 3
    assert found.report.leaves.manifests_read == len(_leaves(calls))
    assert found.report.leaves.bytes_read + found.report.root.bytes_read == sum(
        call.bytes for call in calls
    )


def test_one_order_opens_few_leaves(large: Bench) -> None:
    """Not a partition column: ids only go along with time."""
    order = 42 * PER_DAY * ROWS_PER_FILE + 7
    found, calls = _planned(large, f"order_id = {order}")
    assert 0 < found.files.num_rows <= PER_DAY
    assert len(_leaves(calls)) <= 3


def test_what_no_file_has_opens_no_leaf(large: Bench) -> None:
    for where in ("order_date = '2031-01-01'", "country = 'ZZ'", "order_id < 0"):
        found, calls = _planned(large, where)
        assert found.files.num_rows == 0
        assert _leaves(calls) == set()


def test_a_plan_reads_the_root_once(large: Bench) -> None:
    _, calls = _planned(large, "order_date = '2024-01-15'")
    roots = [call for call in calls if kind_of(call.path) == "root"]
    assert len(roots) == 1


def test_a_second_plan_reads_nothing(large: Bench) -> None:
    reader = large.reader()
    where = parse("order_date = '2024-01-15'", large.metadata.schema())
    first = plan(reader, large.tip, where=where)
    with large.storage.recording() as calls:
        second = plan(reader, large.tip, where=where)
    assert calls == []
    assert second.files.pylist("location") == first.files.pylist("location")
    assert second.report.root.bytes_read == 0


def test_a_plan_with_another_column_reads_only_that_column(large: Bench) -> None:
    reader, schema = large.reader(), large.metadata.schema()
    day = "order_date = '2024-01-15'"
    with large.storage.recording() as first:
        plan(reader, large.tip, where=parse(day, schema))
    with large.storage.recording() as second:
        plan(reader, large.tip, where=parse(f"{day} and quantity < 0", schema))
    assert sum(call.bytes for call in second) < sum(call.bytes for call in first)
    assert _leaves(second) <= _leaves(first)


def test_listing_reads_what_listing_needs(large: Bench) -> None:
    reader = large.reader()
    with large.storage.recording() as calls:
        found = plan(reader, large.tip)
    assert found.files.num_rows == FILES
    sizes = sum(large.storage.size(path) for path in _leaves(calls))
    fetched = sum(call.bytes for call in calls if kind_of(call.path) == "leaf")
    assert fetched < 0.75 * sizes
    assert found.files.table.num_rows == FILES


WIDE = Schema(*(NestedField(n, f"c{n:03d}", LongType(), required=False) for n in range(1, 201)))


def test_two_of_200_columns_are_a_tenth_of_the_leaves(tmp_path: Path) -> None:
    bench = Bench(tmp_path, schema=WIDE)
    count = 10_000
    columns: dict[str, pa.Array] = {}
    random = np.random.default_rng(1)
    for field_id in range(1, 201):
        low = random.integers(0, 1_000_000, count)
        nulls = random.integers(0, 100, count)
        columns[stats_key(field_id, "lower_bound")] = pa.array(low)
        columns[stats_key(field_id, "upper_bound")] = pa.array(low + random.integers(0, 999, count))
        columns[stats_key(field_id, "tight_bounds")] = pa.array(np.ones(count, dtype=np.bool_))
        columns[stats_key(field_id, "value_count")] = pa.array(np.full(count, 1_000))
        columns[stats_key(field_id, "null_value_count")] = pa.array(nulls)
    files = bench.files(*(f"data/{n:08d}.parquet" for n in range(count)))
    bench.commit(Change(added=EntryBatch(pa.table({**dict(_columns(files)), **columns}))))
    (leaf,) = bench.tree().leaves()
    found, calls = _planned(bench, "c017 >= 0 and c123 > 5000")
    assert found.files.num_rows > 9_000
    fetched = sum(call.bytes for call in calls if kind_of(call.path) == "leaf")
    assert fetched < 0.1 * leaf.file_size_in_bytes


def _columns(batch: EntryBatch) -> list[tuple[str, pa.ChunkedArray]]:
    return list(zip(batch.table.column_names, batch.table.columns, strict=True))


def test_the_day_is_the_one_the_filter_names() -> None:
    assert FIRST_DAY == 19_723  # 2024-01-01


def test_deletes_spread_over_all_days_leave_leaves_narrow(tmp_path: Path) -> None:
    """400 commits in turns: three files of the current day, then a row of three older files.

    Before modified entries were flushed apart, a day took 5 leaves on average and 9 at most.
    """
    bench = Bench(tmp_path)
    days, names = 40, list[str]()
    for number in range(400):
        if number % 2 == 0:
            new = [f"F{number}-{index}" for index in range(3)]
            day = number * days // 400
            rows = [{"location": name, **bounds(1, day, day)} for name in new]
            names += new
            bench.commit(Change(added=bench.entries(rows)))
        else:
            # Coprime steps: files of all days, no row twice.
            picked = {names[(number * 7919 + index * 104_729) % len(names)] for index in range(3)}
            edits = tuple(bench.vector(name, number // 2 % 10) for name in sorted(picked))
            bench.commit(Change(vectors=edits, base_snapshot_id=bench.tip_id()))
    opened = []
    for day in range(days):
        found, calls = _planned(bench, f"id = {day}")
        assert found.files.num_rows == 15
        opened.append(len(_leaves(calls)))
    assert max(opened) <= 3
    assert sum(opened) / days <= 1.5
    written = [int(snapshot.summary["frazil.leaves-written"]) for snapshot in _history(bench)]
    assert sum(written) <= 75


def _history(bench: Bench) -> list[Snapshot]:
    return list(bench.head.snapshots())


def test_equal_columns_of_all_leaves_take_memory_once(large: Bench) -> None:
    files = plan(large.reader(), large.tip).files
    assert files.num_rows == FILES
    pieces = {
        (buffer.address, buffer.size)
        for key in files.keys
        for chunk in files.column(key).chunks
        for buffer in (*chunk.buffers(), *_dictionary(chunk))
        if buffer is not None
    }
    taken = sum(size for _, size in pieces)
    paths = sum(len(path) for path in files.column("location").to_pylist())
    # Beside its path a file has an offset of it (4 bytes), rows, bytes, a first row id and a
    # sequence number (8 each) and a day (4); what is the same for all is a few kB.
    assert taken - paths < FILES * (4 + 4 * 8 + 4 + 1)


def _dictionary(chunk: pa.Array) -> list[pa.Buffer | None]:
    is_encoded = isinstance(chunk, pa.DictionaryArray)
    return chunk.dictionary.buffers() if is_encoded else []

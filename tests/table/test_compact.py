"""Data files compacted without Spark: the same rows with the same ids, in fewer files."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frazil
from frazil.errors import CommitConflict, InvalidInput, Unsupported
from tests.table.conftest import ORDERS, orders

EVERYTHING = ["order_id", "country", "price", "_row_id", "_last_updated_sequence_number"]


def rows(table: frazil.Table) -> list[dict[str, Any]]:
    return sorted(table.scan(columns=EVERYTHING).to_pylist(), key=lambda row: row["order_id"])


def files(table: frazil.Table) -> list[dict[str, Any]]:
    return list(table.inspect.files.to_pylist())


def data_files(table: frazil.Table) -> set[str]:
    return {path.name for path in Path(table.location).rglob("*.parquet") if "data" in path.parts}


@pytest.fixture
def flat(catalog: frazil.Catalog) -> frazil.Table:
    """Six files of ten orders; a row updated, rows deleted from two files."""
    table = catalog.create_table("shop.flat", ORDERS)
    for first in range(0, 60, 10):
        table.append(orders(first, first + 10))
    table.update({"price": -1.0}, "order_id = 15")
    table.delete("order_id in (3, 4, 25)")
    return table


def test_small_files_become_one_and_rows_keep_who_they_are(flat: frazil.Table) -> None:
    before, seen = rows(flat), flat.current_snapshot()
    assert seen is not None
    done = flat.compact()
    assert (done.operation, done.files_removed, done.files_added) == ("replace", 7, 1)
    assert (done.rows_added, done.rows_removed, done.rows_updated) == (0, 0, 0)
    assert rows(flat) == before
    assert [file["record_count"] for file in files(flat)] == [57]
    assert flat.changes(since=seen.snapshot_id).to_arrow().num_rows == 0
    assert flat.check(deep=True).ok
    assert not flat.compact().committed


def test_what_is_fine_stays(flat: frazil.Table) -> None:
    assert not flat.compact(min_input_files=8).committed
    flat.compact()
    only = files(flat)[0]["file_path"]
    for first in range(60, 100, 10):
        flat.append(orders(first, first + 10))
    size = files(flat)[0]["file_size_in_bytes"]
    assert not flat.compact(target_file_bytes=size * 10, min_input_files=6).committed
    done = flat.compact(where="order_id >= 60", min_input_files=4)
    assert (done.files_removed, done.files_added) == (4, 1)
    assert only in {file["file_path"] for file in files(flat)}
    assert (flat.compact(rewrite_all=True).files_removed, flat.scan().count()) == (2, 97)


def test_files_reach_the_target_but_for_the_last_of_a_partition(catalog: frazil.Catalog) -> None:
    properties = {"write.parquet.compression-codec": "uncompressed"}
    table = catalog.create_table("shop.sized", ORDERS, properties=properties)
    for first in range(0, 20_000, 1_000):
        table.append(orders(first, first + 1_000))
    before = rows(table)
    table.compact(target_file_bytes=100_000)
    sizes = sorted(file["file_size_in_bytes"] for file in files(table))
    assert len(sizes) > 2
    assert all(100_000 <= size < 180_000 for size in sizes[1:])
    assert rows(table) == before
    assert not table.compact(target_file_bytes=100_000).committed


def test_every_partition_is_packed_by_itself(table: frazil.Table) -> None:
    for first in range(0, 50, 10):
        table.append(orders(first, first + 10))
    before = rows(table)
    steps: list[tuple[int, int]] = []
    done = table.compact(progress=lambda done, total, what: steps.append((done, total)))
    assert (done.files_removed, done.files_added) == (15, 3)
    assert steps == [(0, 15), (5, 15), (10, 15), (15, 15)]
    assert rows(table) == before


def test_files_of_another_partitioning_take_the_current_one(flat: frazil.Table) -> None:
    with flat.evolve_partitions() as change:
        change.add("country")
    before = rows(flat)
    assert flat.compact(min_input_files=100).files_added == 2
    assert {file["record_count"] for file in files(flat)} == {28, 29}
    assert rows(flat) == before


def test_rows_are_sorted_over_all_files_of_a_partition(flat: frazil.Table) -> None:
    flat.sort_by("price desc")
    flat.compact(sort_by=flat.sort_order, target_file_bytes=400)
    made = files(flat)
    assert len(made) > 3
    assert {file["sort_order_id"] for file in made} == {flat.sort_order.order_id}
    prices = [pq.read_table(file["file_path"])["price"].to_pylist() for file in made]
    assert all(part == sorted(part, reverse=True) for part in prices)
    spans = sorted((part[0], part[-1]) for part in prices)
    assert all(high[1] >= low[0] for low, high in pairwise(spans))
    flat.compact(sort_by=["order_id"])
    assert {file["sort_order_id"] for file in files(flat)} == {None}
    found = flat.scan(columns=["order_id"]).to_arrow()["order_id"].to_pylist()
    assert found == sorted(found)


def test_z_order_narrows_both_columns(catalog: frazil.Catalog) -> None:
    schema = pa.schema([("x", pa.int64()), ("y", pa.int64())])
    table = catalog.create_table("shop.grid", schema)
    numbers = [(7 * i % 64, i // 64) for i in range(64 * 64)]
    table.append(pa.table({"x": [x for x, _ in numbers], "y": [y for _, y in numbers]}))

    def read() -> tuple[int, int, int]:
        """How many files there are, and how many a value of x and one of y is looked for in."""
        x, y = (len(table.scan(where=f"{name} = 20").tasks()) for name in ("x", "y"))
        return len(files(table)), x, y

    table.compact(sort_by=["x"], target_file_bytes=2_000)
    every, x, y = read()
    assert every >= 8
    assert (x <= 2, y) == (True, every)
    table.compact(zorder_by=["x", "y"], target_file_bytes=2_000)
    every, x, y = read()
    assert every >= 8
    assert max(x, y) <= every // 2
    assert table.scan().count() == 64 * 64


def test_deleted_rows_stay_deleted_when_a_delete_comes_between(flat: frazil.Table) -> None:
    other = frazil.connect(Path(flat.location).parents[1]).load_table("shop.flat")
    before = data_files(flat)

    def meanwhile(done: int, total: int, what: str) -> None:
        if done == total:
            other.delete("order_id = 40")

    with pytest.raises(CommitConflict):
        flat.compact(progress=meanwhile)
    assert data_files(flat) == before
    assert flat.compact().committed
    assert len(rows(flat)) == 56


def test_appends_meanwhile_are_no_conflict(flat: frazil.Table) -> None:
    other = frazil.connect(Path(flat.location).parents[1]).load_table("shop.flat")

    def meanwhile(done: int, total: int, what: str) -> None:
        if done == total:
            other.append(orders(100, 110))

    assert flat.compact(progress=meanwhile).committed
    assert len(rows(flat.refresh())) == 67


def test_a_failure_leaves_no_files(table: frazil.Table) -> None:
    for first in range(0, 50, 10):
        table.append(orders(first, first + 10))
    before = data_files(table)

    def stop(done: int, total: int, what: str) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table.compact(progress=stop)
    assert data_files(table) == before


def test_types_that_duckdb_lacks_can_be_packed(catalog: frazil.Catalog) -> None:
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("ns", "UTC"))])
    table = catalog.create_table("shop.nanos", schema)
    for id in range(5):
        table.append(pa.table({"id": [id], "at": [1_700_000_000_000_000_001 + id]}, schema=schema))
    assert table.compact().files_added == 1
    found = table.scan().to_arrow()["at"].cast(pa.int64()).to_pylist()
    assert found == [1_700_000_000_000_000_001 + id for id in range(5)]
    with pytest.raises(Unsupported, match="at"):
        table.compact(sort_by=["id"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sort_by": ["price"], "zorder_by": ["price", "country"]}, "not both"),
        ({"sort_by": []}, "sort_by names no column"),
        ({"sort_by": ["colour"]}, "colour"),
        ({"zorder_by": ["price"]}, "two columns or more"),
        ({"zorder_by": ["price", "colour"]}, "colour"),
        ({"target_file_bytes": -5}, "above 0"),
        ({"min_input_files": 0}, "above 0"),
        ({"where": "colour = 1"}, "colour"),
    ],
)
def test_what_cannot_be_done_is_refused(
    flat: frazil.Table, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        flat.compact(**options)


def test_an_empty_table_has_nothing_to_compact(catalog: frazil.Catalog) -> None:
    table = catalog.create_table("shop.empty", ORDERS)
    assert str(table.compact()) == "nothing committed; no data file is worth rewriting"

"""Several changes in one snapshot: row ids, files in leaves, nothing left behind."""

from __future__ import annotations

import random
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frazil
from frazil.errors import InvalidInput
from tests.table.conftest import orders

LEAVES = {"write.root.max-data-entries": "1", "write.leaf.target-entries": "2"}


def row_ids(table: frazil.Table) -> list[int]:
    found = table.scan(columns=["order_id", "_row_id"]).to_arrow()
    ids = found.column("_row_id").to_pylist()
    assert None not in ids
    return sorted(ids)


def data_files(table: frazil.Table) -> set[str]:
    root = Path(table.metadata.location.removeprefix("file://"))
    return {path.name for path in (root / "data").rglob("*") if path.is_file()}


def test_rows_appended_twice_and_updated_in_one_transaction_have_ids_of_their_own(
    table: frazil.Table,
) -> None:
    with table.transaction() as tx:
        tx.append(orders(0, 10))
        tx.append(orders(10, 20))
        tx.update({"price": frazil.expr("price + 1")}, "order_id < 5 or order_id > 14")
    ids = row_ids(table)
    assert len(ids) == len(set(ids)) == 20


def test_ids_stay_apart_when_another_commit_came_first(
    catalog: frazil.Catalog, table: frazil.Table
) -> None:
    other = catalog.load_table(table.name)
    with table.transaction() as tx:
        tx.append(orders(0, 10))
        tx.update({"price": frazil.expr("price + 1")}, "order_id < 5")  # 100 and more cannot match
        other.append(orders(100, 110))
    ids = row_ids(table)
    assert len(ids) == len(set(ids)) == 20


def test_an_updated_row_keeps_the_id_it_had_before_the_transaction(table: frazil.Table) -> None:
    table.append(orders(0, 4))
    before = table.scan(columns=["order_id", "_row_id"]).to_arrow().to_pydict()
    with table.transaction() as tx:
        tx.append(orders(4, 8))
        tx.update({"price": frazil.expr("price + 1")}, "order_id < 6")
        tx.update({"price": frazil.expr("price + 1")}, "order_id < 6")
    after = table.scan(columns=["order_id", "_row_id"]).to_arrow().to_pydict()
    known = dict(zip(after["order_id"], after["_row_id"], strict=True))
    assert [known[each] for each in before["order_id"]] == before["_row_id"]
    assert len(set(known.values())) == 8


def _play(table: frazil.Table, rng: random.Random, top: int) -> int:
    """One transaction of random changes. Order ids from `top` on are free; returns the next."""
    with table.transaction() as tx:
        for _ in range(rng.randint(2, 6)):
            first = rng.randrange(0, top + 1)
            where = f"order_id >= {first} and order_id < {first + rng.randint(1, 12)}"
            match rng.choice(["append", "append", "update", "update", "delete", "upsert", "swap"]):
                case "append":
                    count = rng.randint(1, 5)
                    tx.append(orders(top, top + count))
                    top += count
                case "update":
                    tx.update({"price": frazil.expr("price + 1")}, where)
                case "delete":
                    tx.delete(where)
                case "upsert":
                    tx.upsert(orders(first, first + 4), on=["order_id"])
                    top = max(top, first + 4)
                case _:
                    within = f"order_id >= {first} and order_id < {first + 4}"
                    tx.overwrite(orders(first, first + 4), within)
                    top = max(top, first + 4)
    return top


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), leaves=st.booleans())
def test_row_ids_are_unique_after_random_transactions(
    tmp_path_factory: pytest.TempPathFactory, seed: int, leaves: bool
) -> None:
    rng = random.Random(seed)
    catalog = frazil.connect(str(tmp_path_factory.mktemp("w")))
    schema = orders(0, 1).schema
    table = catalog.create_table("shop.orders", schema, properties=LEAVES if leaves else {})
    top = 0
    for _ in range(3):
        top = _play(table, rng, top)
    ids = row_ids(table)
    assert len(ids) == len(set(ids))
    assert not table.check(deep=True).problems
    catalog.close()


def test_partitions_overwritten_and_rows_deleted_in_one_transaction(
    catalog: frazil.Catalog,
) -> None:
    table = catalog.create_table(
        "shop.parts", orders(0, 1).schema, partition_by=["day(order_date)"], properties=LEAVES
    )
    for first in (0, 3, 6, 9):
        table.append(orders(first, first + 3))
    day = orders(0, 1).set_column(
        0, pa.field("order_id", pa.int64(), nullable=False), pa.array([100])
    )
    with table.transaction() as tx:
        tx.overwrite_partitions(day)  # orders 0, 3, 6 and 9 leave with their day
        tx.delete("order_id = 1 or order_id >= 7 and order_id < 9")
    rows = table.scan(columns=["order_id", "order_date"]).to_arrow().sort_by("order_id")
    assert rows.column("order_id").to_pylist() == [2, 4, 5, 10, 11, 100]
    assert rows.column("order_date").to_pylist()[-1] == date(2024, 1, 1)


def test_a_transaction_that_changes_nothing_in_the_end_leaves_no_file(table: frazil.Table) -> None:
    before = data_files(table)
    with table.transaction() as tx:
        tx.append(orders(0, 10))
        tx.delete("order_id < 10")
    assert tx.result.snapshot is None
    assert data_files(table) == before


@pytest.mark.parametrize(
    "key", ["operation", "added-records", "total-records", "deleted-data-files", "added-dvs"]
)
def test_a_summary_cannot_overwrite_what_the_commit_says(table: frazil.Table, key: str) -> None:
    before = data_files(table)
    with pytest.raises(InvalidInput, match=key):
        table.append(orders(0, 10), summary={key: "replace"})
    assert table.refresh().current_snapshot() is None
    assert data_files(table) == before
    table.append(orders(0, 10), summary={"my.operation": "replace"})
    assert table.changes().to_arrow().num_rows == 10


def test_a_delete_keeps_its_isolation_in_a_transaction_that_also_appends(
    catalog: frazil.Catalog, table: frazil.Table
) -> None:
    table.append(orders(0, 10))
    table.set_properties({"write.delete.isolation-level": "snapshot"})
    tx = table.transaction()
    tx.append(orders(10, 12))
    tx.delete("order_id < 5")
    catalog.load_table(table.name).append(orders(2, 4))
    tx.commit()
    ids = table.refresh().scan().to_arrow()["order_id"].to_pylist()
    assert sorted(ids) == [2, 3, 5, 6, 7, 8, 9, 10, 11]


def test_a_delete_lands_beside_the_compaction_of_other_files(
    catalog: frazil.Catalog, table: frazil.Table
) -> None:
    for first in (0, 10, 20):
        table.append(orders(first, first + 5, country="DE"))
    table.append(orders(100, 130))
    tx = table.transaction()
    tx.delete("order_id between 7 and 9 or order_id >= 100")
    done = catalog.load_table(table.name).compact("order_id < 50", min_input_files=2).snapshot
    assert done is not None
    assert done.operation == "replace"
    tx.commit()
    ids = table.refresh().scan().to_arrow()["order_id"].to_pylist()
    assert sorted(ids) == [*range(5), *range(10, 15), *range(20, 25)]


def test_an_upsert_of_no_rows_does_not_stand_against_other_writers(
    catalog: frazil.Catalog, table: frazil.Table
) -> None:
    tx = table.transaction()
    tx.append(orders(0, 2))
    tx.upsert(orders(0, 0), on=["order_id"])
    catalog.load_table(table.name).append(orders(5, 6))
    tx.commit()
    assert table.refresh().scan().count() == 3

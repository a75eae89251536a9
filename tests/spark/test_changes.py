"""The change feed as a frame: expected changes are written by hand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import frazil
import frazil.spark
from tests.spark.shop import ORDERS, orders, row_ids

pytestmark = pytest.mark.spark


@pytest.fixture
def table(catalog: frazil.Catalog) -> frazil.Table:
    made = catalog.create_table("shop.orders", ORDERS, partition_by=["day"])
    made.append(orders(range(6)))
    return made


def feed(frame: Any) -> list[tuple[int, int, str]]:
    rows = frame.select("_change_ordinal", "id", "_change_type").collect()
    return sorted((at, id, kind) for at, id, kind in rows)


def test_every_kind_of_change_is_told_with_its_row_id(spark: Any, table: frazil.Table) -> None:
    ids = row_ids(table)
    table.delete("id = 0")
    table.update({"price": frazil.expr("price + 1")}, where="id = 3")
    table.upsert(orders([4, 9], price=7.0), on=["id"])
    frame = frazil.spark.changes(table)
    assert feed(frame) == [
        *((0, i, "insert") for i in range(6)),
        (1, 0, "delete"),
        (2, 3, "update_postimage"),
        (2, 3, "update_preimage"),
        (3, 4, "update_postimage"),
        (3, 4, "update_preimage"),
        (3, 9, "insert"),
    ]
    found = {
        (row["id"], row["_change_type"]): (row["price"], row["_row_id"]) for row in frame.collect()
    }
    assert found[3, "update_preimage"] == (3.0, ids[3])
    assert found[3, "update_postimage"] == (4.0, ids[3])
    assert found[0, "delete"] == (0.0, ids[0])
    commits = {row["_change_ordinal"]: row["_commit_snapshot_id"] for row in frame.collect()}
    assert commits == {at: each.snapshot_id for at, each in enumerate(table.snapshots())}


def test_a_range_of_snapshots_and_its_net_effect(spark: Any, table: frazil.Table) -> None:
    first = table.current_snapshot()
    assert first is not None
    table.append(orders([6, 7]))
    table.delete("id in (1, 6)")
    until = table.current_snapshot()
    table.append(orders([8]))
    some = frazil.spark.changes(table, since=first, until=until)
    assert feed(some) == [
        (0, 6, "insert"),
        (0, 7, "insert"),
        (1, 1, "delete"),
        (1, 6, "delete"),
    ]
    net = frazil.spark.changes(table, since=first, until=until, collapse=True)
    assert feed(net) == [(0, 1, "delete"), (0, 7, "insert")]


def test_rows_that_only_moved_are_no_change(spark: Any, table: frazil.Table) -> None:
    first = table.current_snapshot()
    frazil.spark.jobs.rewrite_data_files(table, rewrite_all=True)
    frame = frazil.spark.changes(table, since=first)
    assert feed(frame) == []
    assert frame.columns[-4:] == [
        "_change_type",
        "_change_ordinal",
        "_commit_snapshot_id",
        "_commit_timestamp",
    ]


def test_rows_that_an_equality_delete_took_are_deleted_rows(
    spark: Any, table: frazil.Table
) -> None:
    first = table.current_snapshot()
    keys = pa.table({"id": pa.array([2, 5, 77], pa.int64())})
    table.set_properties({"write.equality-deletes.enabled": "true"})
    table.row_delta().add_equality_deletes(keys, ["id"]).commit()
    assert feed(frazil.spark.changes(table, since=first)) == [
        (0, 2, "delete"),
        (0, 5, "delete"),
    ]

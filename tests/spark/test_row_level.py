"""Deletes and updates as Spark jobs, compared with a dictionary of rows."""

from __future__ import annotations

from typing import Any

import pytest

import frazil
import frazil.spark
from frazil.errors import CommitConflict, InvalidInput
from tests.spark.shop import ORDERS, content, orders, row, row_ids

pytestmark = pytest.mark.spark


@pytest.fixture
def table(catalog: frazil.Catalog) -> frazil.Table:
    made = catalog.create_table("shop.orders", ORDERS, partition_by=["day"])
    made.append(orders(range(30)))
    made.append(orders(range(30, 36)))
    return made


def test_delete_takes_the_rows_that_match_in_one_snapshot(spark: Any, table: frazil.Table) -> None:
    before = len(table.snapshots())
    done = frazil.spark.delete(table, "id < 5 or day = '2024-01-03'")
    assert content(table) == {i: row(i) for i in range(5, 36) if i % 3 != 2}
    assert len(table.snapshots()) == before + 1
    assert done.rows_removed == 36 - len(content(table))
    assert done.snapshot == table.current_snapshot()


def test_delete_of_nothing_commits_nothing(spark: Any, table: frazil.Table) -> None:
    before = table.current_snapshot()
    done = frazil.spark.delete(table, "id = 1000")
    assert (done.snapshot, done.rows_removed) == (None, 0)
    assert table.refresh().current_snapshot() == before


def test_update_changes_values_and_keeps_row_ids(spark: Any, table: frazil.Table) -> None:
    before = row_ids(table)
    done = frazil.spark.update(
        table, {"price": frazil.expr("price * 10"), "country": "FR"}, "id between 10 and 12"
    )
    wanted = {i: row(i) for i in range(36)}
    wanted |= {i: (row(i)[0], "FR", i * 10.0) for i in (10, 11, 12)}
    assert content(table) == wanted
    assert row_ids(table) == before
    assert (done.rows_updated, done.rows_removed, done.rows_added) == (3, 0, 0)


def test_an_update_that_moves_rows_to_another_partition_is_read_back(
    spark: Any, table: frazil.Table
) -> None:
    frazil.spark.update(table, {"day": frazil.expr("date'2024-02-01'")}, "id = 7")
    found = table.refresh().scan(where="day = '2024-02-01'").to_pylist()
    assert [each["id"] for each in found] == [7]


def test_an_update_of_unknown_columns_is_refused(spark: Any, table: frazil.Table) -> None:
    with pytest.raises(InvalidInput, match="unknown column 'colour'"):
        frazil.spark.update(table, {"colour": "red"})
    with pytest.raises(InvalidInput, match="update"):
        frazil.spark.update(table, {"price": frazil.expr("no_such_column + 1")})


def test_an_update_whose_row_was_deleted_meanwhile_is_a_conflict(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table
) -> None:
    stale = catalog.load_table("shop.orders").pinned()
    table.delete("id = 10")
    with pytest.raises(CommitConflict):
        frazil.spark.update(stale, {"price": 1.0}, "id = 10")
    assert 10 not in content(table)
    assert len(content(table)) == 35


def test_a_delete_beside_a_concurrent_delete_of_the_same_file_lands(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table
) -> None:
    stale = catalog.load_table("shop.orders").pinned()
    table.delete("id = 10")
    frazil.spark.delete(stale, "id in (10, 13)")
    assert content(table) == {i: row(i) for i in range(36) if i not in (10, 13)}

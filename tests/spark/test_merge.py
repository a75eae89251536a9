"""Merges, compared with the same merge of dictionaries."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import frazil
import frazil.spark
from frazil.data.schema import iceberg_schema
from frazil.errors import CommitConflict, InvalidInput
from frazil.rows.engine import KeyPair
from frazil.spark.rows.merge_source import pairs_of
from tests.spark.shop import ORDERS, content, orders, row, row_ids

pytestmark = pytest.mark.spark


@pytest.fixture
def table(catalog: frazil.Catalog) -> frazil.Table:
    made = catalog.create_table("shop.orders", ORDERS, partition_by=["day"])
    made.append(orders(range(20)))
    return made


def test_an_upsert_updates_what_matches_and_inserts_the_rest(
    spark: Any, table: frazil.Table
) -> None:
    before = row_ids(table)
    source = spark.createDataFrame(orders(range(18, 23), price=-1.0))
    done = frazil.spark.merge(table, source, on=["id"]).upsert().execute()
    wanted = {i: row(i) for i in range(18)}
    wanted |= {i: (*row(i)[:2], -1.0) for i in range(18, 23)}
    assert content(table) == wanted
    after = row_ids(table)
    assert {i: after[i] for i in before} == before
    assert len(set(after.values())) == 23
    assert (done.rows_updated, done.rows_added, done.rows_removed) == (2, 3, 0)
    assert len(table.snapshots()) == 2


def test_every_clause_applies_to_its_rows_in_order(spark: Any, table: frazil.Table) -> None:
    source = spark.createDataFrame(orders(range(15, 25), price=100.0))
    done = (
        frazil.spark.merge(table, source, on="t.id = s.id")
        .when_matched_delete(condition="s.id = 16")
        .when_matched_update({"price": frazil.expr("t.price + s.price")}, condition="t.id < 19")
        .when_not_matched_insert(
            {"id": frazil.expr("s.id"), "day": frazil.expr("s.day")}, condition="s.id < 22"
        )
        .when_not_matched_by_source_update({"country": "old"}, condition="t.id < 3")
        .when_not_matched_by_source_delete(condition="t.id between 5 and 7")
        .execute()
    )
    wanted: dict[int, tuple[Any, ...]] = {i: row(i) for i in range(20)}
    del wanted[16], wanted[5], wanted[6], wanted[7]
    for i in (15, 17, 18):
        wanted[i] = (*row(i)[:2], i + 100.0)
    for i in (20, 21):
        wanted[i] = (row(i)[0], None, None)
    for i in (0, 1, 2):
        wanted[i] = (row(i)[0], "old", float(i))
    assert content(table) == wanted
    assert (done.rows_removed, done.rows_updated, done.rows_added) == (4, 6, 2)
    assert len(table.snapshots()) == 2


def test_a_row_that_two_source_rows_match_is_an_error_and_changes_nothing(
    spark: Any, table: frazil.Table
) -> None:
    source = spark.createDataFrame(pa.concat_tables([orders([3, 4]), orders([4, 50])]))
    merge = frazil.spark.merge(table, source, on=["id"])
    with pytest.raises(InvalidInput, match="that another source row matched"):
        merge.upsert().execute()
    with pytest.raises(InvalidInput, match="that another source row matched"):
        merge.when_matched_delete(condition="false").execute()
    assert content(table) == {i: row(i) for i in range(20)}
    files = [file.path for file in table._handle.storage.list(f"{table.location}/data")]
    assert len(files) == 3


def test_inserting_only_leaves_matched_rows_alone(spark: Any, table: frazil.Table) -> None:
    source = spark.createDataFrame(orders([1, 1, 30], price=0.5))
    done = frazil.spark.merge(table, source, on=["id"]).when_not_matched_insert().execute()
    assert content(table) == {**{i: row(i) for i in range(20)}, 30: (*row(30)[:2], 0.5)}
    assert (done.rows_added, done.rows_updated) == (1, 0)


def test_a_merge_beside_a_concurrent_insert_of_the_same_key_is_a_conflict(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table
) -> None:
    stale = catalog.load_table("shop.orders").pinned()
    table.append(orders([40]))
    source = spark.createDataFrame(orders([40], price=1.0))
    with pytest.raises(CommitConflict):
        frazil.spark.merge(stale, source, on=["id"]).upsert().execute()
    assert content(table)[40] == row(40)


def test_a_merge_beside_an_append_elsewhere_lands(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table
) -> None:
    stale = catalog.load_table("shop.orders").pinned()
    table.append(orders([400]))
    source = spark.createDataFrame(orders([19, 40], price=1.0))
    frazil.spark.merge(stale, source, on=["id"]).upsert().execute()
    wanted = {**{i: row(i) for i in (*range(19), 400)}}
    wanted |= {i: (*row(i)[:2], 1.0) for i in (19, 40)}
    assert content(table) == wanted


def test_a_merge_into_an_empty_table_inserts(spark: Any, catalog: frazil.Catalog) -> None:
    empty = catalog.create_table("shop.empty", ORDERS)
    source = spark.createDataFrame(orders([1, 2]))
    frazil.spark.merge(empty, source, on=["id"]).upsert().execute()
    assert content(empty) == {1: row(1), 2: row(2)}


def test_wrong_merges_are_refused(spark: Any, table: frazil.Table) -> None:
    source = spark.createDataFrame(orders([1]))
    with pytest.raises(InvalidInput, match="no clause"):
        frazil.spark.merge(table, source, on=["id"]).execute()
    with pytest.raises(InvalidInput, match="not in both"):
        frazil.spark.merge(table, source, on=["colour"]).upsert().execute()
    with pytest.raises(InvalidInput, match="unknown column 'colour'"):
        frazil.spark.merge(table, source, on=["id"]).when_matched_update({"colour": 1})
    with pytest.raises(InvalidInput, match="merge"):
        frazil.spark.merge(table, source, on="t.nothing = s.id").upsert().execute()


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("t.id = s.id", [("id", "id")]),
        ("s.day = t.day AND t.id = s.id", [("day", "day"), ("id", "id")]),
        ("t.id = s.id and t.price > 3", [("id", "id")]),
        ("t.`id` = s.id", [("id", "id")]),
        ("t.id = s.id or t.day = s.day", []),
        ("not t.id = s.id", []),
        ("t.id + 1 = s.id", []),
        ("t.country = 'and t.id = s.id'", []),
    ],
)
def test_keys_are_taken_only_from_conditions_that_surely_ask_for_them(
    condition: str, wanted: list[tuple[str, str]]
) -> None:
    found = pairs_of(condition, iceberg_schema(ORDERS), ORDERS.names)
    assert found == [KeyPair(target=target, source=source) for target, source in wanted]

"""Appends that bring columns of their own, and tables that are replaced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import frazil
from frazil.errors import AlreadyExists, InvalidInput


@pytest.fixture
def catalog(tmp_path: Path) -> frazil.Catalog:
    return frazil.connect(tmp_path)


@pytest.fixture
def table(catalog: frazil.Catalog) -> frazil.Table:
    return catalog.create_table("shop.orders", {"id": [1], "price": [1.5]})


@pytest.mark.parametrize(
    "rows",
    [
        [{"id": 2, "note": "x"}, {"id": 3, "price": 2.5}],
        ({"id": at, **more} for at, more in ((2, {"note": "x"}), (3, {"price": 2.5}))),
        {"id": [2, 3], "note": ["x", None], "price": [None, 2.5]},
        pa.table({"id": [2, 3], "note": ["x", None], "price": [None, 2.5]}),
        pa.table({"id": [2, 3], "note": ["x", None], "price": [None, 2.5]}).to_reader(),
        pd.DataFrame({"id": [2, 3], "note": ["x", None], "price": [None, 2.5]}),
        pl.DataFrame({"id": [2, 3], "note": ["x", None], "price": [None, 2.5]}),
    ],
)
def test_new_columns_come_with_the_rows_in_one_commit(table: frazil.Table, rows: Any) -> None:
    done = table.append(rows, schema="merge")
    assert done.rows_added == 2
    assert len(table.snapshots()) == 2
    found = sorted(table.scan().to_pylist(), key=lambda row: row["id"])
    assert [(row["id"], row["note"]) for row in found] == [(1, None), (2, "x"), (3, None)]
    assert [row["price"] for row in found][0::2] == [1.5, 2.5]


def test_without_merge_such_rows_are_refused(table: frazil.Table) -> None:
    with pytest.raises(InvalidInput, match="an extra column"):
        table.append([{"id": 2, "note": "x"}])
    with pytest.raises(InvalidInput, match="'strict' or 'merge'"):
        table.append([{"id": 2}], schema="loose")
    assert [field.name for field in table.schema.fields] == ["id", "price"]


def test_types_are_widened_and_never_narrowed(catalog: frazil.Catalog) -> None:
    kinds = pa.schema(
        [("a", pa.int32()), ("b", pa.float64()), ("c", pa.struct([("x", pa.int64())]))]
    )
    table = catalog.create_table("shop.kinds", kinds)
    rows = pa.table(
        {"a": pa.array([2**40]), "b": pa.array([1]), "c": pa.array([{"x": 1, "y": "new"}])}
    )
    table.append(rows, schema="merge")
    assert [str(field.field_type) for field in table.schema.fields][:2] == ["long", "double"]
    assert table.scan().to_pylist() == [{"a": 2**40, "b": 1.0, "c": {"x": 1, "y": "new"}}]
    with pytest.raises(InvalidInput, match="a"):
        table.append(pa.table({"a": ["text"]}), schema="merge")


def test_a_new_column_without_values_is_refused(table: frazil.Table) -> None:
    for rows in ([{"id": 2, "note": None}], pa.table({"id": [2], "note": pa.nulls(1)})):
        with pytest.raises(InvalidInput, match="'note' has no value to tell its type from"):
            table.append(rows, schema="merge")
    assert table.scan().count() == 1


def test_columns_merge_within_a_transaction(table: frazil.Table) -> None:
    with table.transaction() as tx:
        tx.delete("id = 1")
        tx.append([{"id": 2, "note": "x"}], schema="merge")
        tx.append([{"id": 3, "note": "y", "more": 1}], schema="merge")
    assert [row["more"] for row in table.scan().to_pylist()] == [None, 1]
    assert len(table.snapshots()) == 2


def test_a_table_is_replaced_with_its_history_kept(
    catalog: frazil.Catalog, table: frazil.Table
) -> None:
    before = table.current_snapshot()
    assert before is not None
    rows = {"day": ["mon", "tue"], "n": [1, 2]}
    again = catalog.create_table("shop.orders", rows, partition_by=["day"], replace=True)
    assert again.scan().to_pylist() == [{"day": "mon", "n": 1}, {"day": "tue", "n": 2}]
    assert [field.name for field in again.spec.fields] == ["day"]
    assert table.scan().count() == 2
    assert table.scan(as_of=int(before.snapshot_id)).to_pylist() == [{"id": 1, "price": 1.5}]
    assert len(again.snapshots()) == 2


def test_replacing_creates_what_is_not_there_and_fails_as_a_whole(
    catalog: frazil.Catalog, table: frazil.Table
) -> None:
    assert catalog.create_table("shop.new", {"a": [1]}, replace=True).scan().count() == 1
    with pytest.raises(InvalidInput, match="not both"):
        catalog.create_table("shop.new", {"a": [1]}, replace=True, if_not_exists=True)
    with pytest.raises(InvalidInput, match="stays at"):
        catalog.create_table("shop.new", {"a": [1]}, replace=True, location="/elsewhere")
    with pytest.raises(InvalidInput):
        catalog.create_table("shop.orders", {"a": [1], "b": [None]}, replace=True)
    assert table.scan().to_pylist() == [{"id": 1, "price": 1.5}]
    with pytest.raises(AlreadyExists):
        catalog.create_table("shop.orders", {"a": [1]})

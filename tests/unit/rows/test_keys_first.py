"""Merges by key: keys are met first, deleted rows and row ids are looked up afterwards."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import frazil
from frazil.rows.duckdb import duckdb_source
from frazil.rows.duckdb.duckdb_engine import DuckDbEngine
from frazil.rows.duckdb.duckdb_scan import ScanSql, scan_sql


@pytest.fixture
def table(tmp_path: Path) -> Iterator[frazil.Table]:
    """Rows 0 to 39 in four files, a key of text and one of numbers with a NaN."""
    with frazil.connect(str(tmp_path / "lake")) as catalog:
        table: frazil.Table | None = None
        for start in range(0, 40, 10):
            ids = np.arange(start, start + 10)
            amounts = ids.astype(float)
            amounts[ids == 13] = math.nan
            rows = pa.table({"id": ids, "name": [f"n{at}" for at in ids], "amount": amounts})
            if table is None:
                table = catalog.create_table("shop.t", rows.schema)
            table.append(rows)
        assert table is not None
        yield table


@pytest.fixture
def met(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each scan of a merge was by keys."""
    found: list[bool] = []

    def noted(*arguments: object, **options: object) -> ScanSql:
        made = scan_sql(*arguments, **options)  # type: ignore[arg-type]
        found.append(made.raw is not None)
        return made

    monkeypatch.setattr("frazil.rows.duckdb.duckdb_scan.scan_sql", noted)
    return found


def state(table: frazil.Table) -> dict[int, str]:
    rows = table.scan(columns=["id", "name"]).to_arrow().to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["name"] for row in rows}


def test_a_key_whose_row_was_deleted_or_replaced_is_met_as_the_table_is_now(
    table: frazil.Table, met: list[bool]
) -> None:
    expected = {at: f"n{at}" for at in range(40)}
    table.delete("id = 3 or id = 25")
    del expected[3], expected[25]
    for turn in range(3):
        new = {3: f"three {turn}", 7: f"seven {turn}", 39: "n39", 50 + turn: "new"}
        rows = {"id": list(new), "name": list(new.values()), "amount": [float(at) for at in new]}
        done = table.upsert(pa.table(rows), on=["id"])
        expected |= new
        assert state(table) == expected
        # 39 is as it was; 3 was deleted at first and then is as new as 7.
        assert done.rows_updated == (1 if turn == 0 else 2)
    assert met == [True, True, True]


def test_row_ids_stay_with_rows_that_a_small_source_replaces(
    table: frazil.Table, met: list[bool]
) -> None:
    before = table.scan(columns=["id", "_row_id"]).to_arrow().sort_by("id")
    table.upsert(pa.table({"id": [12, 31], "name": ["a", "b"]}), on=["id"])
    table.upsert(pa.table({"id": [12], "name": ["c"]}), on=["id"])
    assert table.scan(columns=["id", "_row_id"]).to_arrow().sort_by("id").equals(before)
    assert met == [True, True]


def test_nan_is_met_as_a_key(table: frazil.Table, met: list[bool]) -> None:
    source = pa.table({"amount": [math.nan, 5.0, 5.5], "name": ["nan", "five", "none"]})
    merge = table.merge(source, on=["amount"]).when_matched_update({"name": frazil.expr("s.name")})
    merge.execute()
    changed = {at: name for at, name in state(table).items() if name != f"n{at}"}
    assert changed == {13: "nan", 5: "five"}
    assert met == [True]


def test_clauses_look_at_both_rows(table: frazil.Table, met: list[bool]) -> None:
    table.delete("id = 8")
    source = pa.table({"id": [1, 2, 8, 60, 61], "kind": ["drop", "keep", "drop", "add", "skip"]})
    (
        table.merge(source, on="t.id = s.id and t.amount < 20")
        .when_matched_delete(condition="s.kind = 'drop'")
        .when_not_matched_insert(
            {"id": frazil.expr("s.id"), "name": frazil.expr("s.kind")},
            condition="s.kind = 'add'",
        )
        .execute()
    )
    expected = {at: f"n{at}" for at in range(40) if at not in (1, 8)} | {60: "add"}
    assert state(table) == expected
    assert met == [True]


def test_two_rows_of_the_source_for_one_of_the_table_are_refused(
    table: frazil.Table, met: list[bool]
) -> None:
    source = pa.table({"id": [4, 4], "name": ["a", "b"]})
    with pytest.raises(frazil.InvalidInput, match="that another source row matched"):
        table.merge(source, on=["id"]).when_matched_update({"name": "x"}).execute()
    assert state(table)[4] == "n4"
    assert met == [True]


def test_rows_that_every_match_deletes_may_match_repeatedly(
    table: frazil.Table, met: list[bool]
) -> None:
    source = pa.table({"id": [4, 4, 7], "name": ["a", "b", "c"]})
    done = table.merge(source, on=["id"]).when_matched_delete().execute()
    assert done.rows_removed == 2
    assert state(table) == {at: f"n{at}" for at in range(40) if at not in (4, 7)}
    with pytest.raises(frazil.InvalidInput, match="that another source row matched"):
        table.merge(pa.table({"id": [5, 5], "name": ["a", "b"]}), on=["id"]).when_matched_delete(
            condition="s.name = 'a'"
        ).execute()
    assert met == [True, True]


def test_deleted_rows_are_no_business_of_expressions(table: frazil.Table, met: list[bool]) -> None:
    """`name` of row 5 is no number, but that row is deleted."""
    table.update({"name": frazil.expr("CAST(id AS VARCHAR)")}, "id <> 5")
    table.delete("id = 5")
    source = pa.table({"id": [5, 6], "add": [10, 10]})
    text = "CAST(CAST(t.name AS INTEGER) + s.add AS VARCHAR)"
    (
        table.merge(source, on="t.id = s.id and CAST(t.name AS INTEGER) < 30")
        .when_matched_update({"name": frazil.expr(text)}, condition="CAST(t.name AS INTEGER) > 0")
        .when_not_matched_insert({"id": frazil.expr("s.id"), "name": "new"})
        .execute()
    )
    expected = {at: str(at) for at in range(40)} | {5: "new", 6: "16"}
    assert state(table) == expected
    assert met[-1:] == [True]


def test_one_row_of_the_source_may_change_many_of_the_table(
    table: frazil.Table, met: list[bool]
) -> None:
    table.update({"name": "same"}, "id < 20")
    table.delete("id = 2")
    source = pa.table({"name": ["same", "other"], "amount": [1.5, 2.5]})
    merge = table.merge(source, on=["name"]).when_matched_update(
        {"amount": frazil.expr("s.amount")}
    )
    done = merge.when_not_matched_insert().execute()
    assert done.rows_updated == 19
    found = table.scan(columns=["id", "amount"]).to_arrow().to_pylist()
    assert {row["id"] for row in found if row["amount"] == 1.5} == set(range(20)) - {2}
    assert [row["id"] for row in found if row["amount"] == 2.5] == [None]
    assert met[-1:] == [True]


def test_a_large_source_is_split_by_what_met(table: frazil.Table, met: list[bool]) -> None:
    """Rows of several of DuckDB's row groups, in no order."""
    ids = np.random.default_rng(3).permutation(400_000)
    table.delete("id = 11")
    done = table.upsert(pa.table({"id": ids, "name": [f"x{at}" for at in ids]}), on=["id"])
    assert done.rows_updated == 39
    assert state(table) == {at: f"x{at}" for at in range(400_000)}
    again = table.upsert(pa.table({"id": ids[::2], "name": ["y"] * 200_000}), on=["id"])
    assert again.rows_updated == 200_000
    odd = set(ids[::2].tolist())
    assert state(table) == {at: "y" if at in odd else f"x{at}" for at in range(400_000)}
    assert met == [True, True]


@pytest.mark.parametrize("most_held", [0, 128 << 20])
@pytest.mark.parametrize(
    ("update", "insert", "expected"),
    [
        (True, True, {3: "x", 7: "x", 39: "n39", 90: "x"}),
        (True, False, {3: None, 7: "x", 39: "n39", 90: None}),
        (False, True, {3: "x", 7: "n7", 39: "n39", 90: "x"}),
    ],
)
def test_an_upsert_does_one_half_or_both(
    table: frazil.Table,
    monkeypatch: pytest.MonkeyPatch,
    update: bool,
    insert: bool,
    expected: dict[int, str | None],
    most_held: int,
) -> None:
    """With the source in memory, and in a table of DuckDB's."""
    monkeypatch.setattr(duckdb_source, "MAX_HELD", most_held)
    table.delete("id = 3")
    before = {at: f"n{at}" for at in range(40) if at != 3}
    rows = pa.table(
        {"id": [3, 90, 7, 39], "name": ["x", "x", "x", "n39"], "amount": [3.0, 90.0, 7.0, 39.0]}
    )
    table.upsert(rows, on=["id"], update_matched=update, insert_unmatched=insert)
    found = state(table)
    assert {at: found.get(at) for at in expected} == expected
    assert {at: name for at, name in found.items() if at not in expected} == {
        at: name for at, name in before.items() if at not in expected
    }


@pytest.mark.parametrize("most_held", [0, 128 << 20])
def test_a_column_of_the_source_may_be_called_as_duckdb_numbers_rows(
    table: frazil.Table, monkeypatch: pytest.MonkeyPatch, most_held: int
) -> None:
    monkeypatch.setattr(duckdb_source, "MAX_HELD", most_held)
    source = pa.table({"id": [1, 60, 61], "rowid": [7, 7, 7]})
    (
        table.merge(source, on=["id"])
        .when_matched_update({"amount": frazil.expr("s.rowid")})
        .when_not_matched_insert({"id": frazil.expr("s.id"), "amount": frazil.expr("s.rowid")})
        .execute()
    )
    found = table.scan("amount = 7 and id <> 7", ["id"]).to_arrow()["id"].to_pylist()
    assert sorted(found) == [1, 60, 61]


def test_keys_are_told_apart_whatever_other_columns_are_called(tmp_path: Path) -> None:
    with frazil.connect(str(tmp_path / "lake")) as catalog:
        rows = pa.table({"id": [1, 2, 3], "v": pa.array([7, None, None], pa.int64())})
        table = catalog.create_table("s.t", rows.schema)
        table.upsert(rows, on=["id"])
        done = table.upsert(rows, on=["id"])
        assert (done.committed, table.scan().count()) == (False, 3)


def test_keys_that_identify_no_row_are_refused(table: frazil.Table) -> None:
    table.append(pa.table({"id": [5], "name": ["again"], "amount": [5.5]}))
    files = set(Path(table.location.removeprefix("file://")).rglob("*.parquet"))
    rows = pa.table({"id": [5, 6], "name": ["x", "y"], "amount": [1.0, 2.0]})
    with pytest.raises(frazil.InvalidInput, match="1 table row shares a key with another row"):
        table.upsert(rows, on=["id"])
    assert set(Path(table.location.removeprefix("file://")).rglob("*.parquet")) == files


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        (pa.int32(), [-5, 0, 7, 1 << 30]),
        (pa.date32(), [date(1900, 1, 1), date(1970, 1, 1), date(2026, 2, 28), date(9999, 1, 1)]),
        (pa.timestamp("us"), [datetime(1, 1, 1), datetime(1969, 12, 31, 23), datetime(2026, 1, 1)]),
        (pa.timestamp("us", "UTC"), [datetime(1600, 1, 1, tzinfo=UTC), datetime.now(UTC)]),
        (pa.decimal128(20, 3), [Decimal("-7.125"), Decimal("0.001"), Decimal("12345.678")]),
        (pa.string(), ["", "é" * 40, "z" * 40, "\U0001f9ca" * 20, "'; --", "a\x00b"]),
        (pa.float64(), [-math.inf, -0.0, 1.5, math.inf, math.nan]),
        (pa.binary(), [b"", b"\x00", b"\xff" * 20]),
        (pa.bool_(), [False, True]),
    ],
)
def test_keys_within_and_without_the_tables_bounds_are_met(
    tmp_path: Path, kind: pa.DataType, keys: list[Any]
) -> None:
    """The table has some of the keys in one file each; an upsert brings them all, twice."""
    every = pa.array(keys, kind)
    first = len(keys) // 2
    with frazil.connect(str(tmp_path / "lake")) as catalog:
        table = catalog.create_table("s.t", pa.schema([("k", kind), ("n", pa.int64())]))
        for at in range(first, len(keys)):
            table.append(pa.table({"k": every.slice(at, 1), "n": [at]}))
        for turn in (1, 2):
            new = [100 * turn + at for at in range(len(keys))]
            done = table.upsert(pa.table({"k": every, "n": new}), on=["k"])
            assert done.rows_updated == (len(keys) - first if turn == 1 else len(keys))
            assert sorted(table.scan().to_arrow()["n"].to_pylist()) == new


def test_an_engine_keeps_nothing_of_its_merges(table: frazil.Table) -> None:
    engine = DuckDbEngine()
    new = {"id": [1, 50], "name": ["x", "y"], "amount": [1.0, 2.0]}
    with table.transaction(engine=engine) as tx:
        tx.upsert(pa.table(new), on=["id"])
        tx.merge(pa.table(new), on=["id"]).when_matched_update({"name": "z"}).execute()
    for bad in ({**new, "id": [1, 1]}, {**new, "id": [1, None]}):
        with pytest.raises(frazil.InvalidInput), table.transaction(engine=engine) as tx:
            tx.upsert(pa.table(bad), on=["id"])
    left = engine.connection.sql(
        "SELECT table_name FROM duckdb_tables() UNION ALL "
        "SELECT view_name FROM duckdb_views() WHERE NOT internal"
    )
    assert left.fetchall() == []


def test_a_clause_for_rows_of_the_table_alone_joins_all_at_once(
    table: frazil.Table, met: list[bool]
) -> None:
    source = pa.table({"id": [1, 70], "name": ["one", "seventy"]})
    merge = table.merge(source, on=["id"]).upsert()
    merge.when_not_matched_by_source_delete(condition="t.id < 30").execute()
    expected = {at: f"n{at}" for at in range(30, 40)} | {1: "one", 70: "seventy"}
    assert state(table) == expected
    assert met == [False]

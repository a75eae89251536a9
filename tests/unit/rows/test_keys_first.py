"""Merges whose source is small: its keys are met first, deleted rows are looked up afterwards."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import frazil
from frazil.rows.duckdb_scan import ScanSql, scan_sql


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
        found.append(made.is_met)
        return made

    monkeypatch.setattr("frazil.rows.duckdb_scan.scan_sql", noted)
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
    with pytest.raises(frazil.InvalidInput, match="may match one source row only"):
        table.merge(source, on=["id"]).when_matched_update({"name": "x"}).execute()
    assert state(table)[4] == "n4"
    assert met == [True]


def test_a_source_as_large_as_the_table_is_joined_at_once(
    table: frazil.Table, met: list[bool]
) -> None:
    rows = pa.table({"id": range(30), "name": ["x"] * 30})
    assert table.upsert(rows, on=["id"]).rows_updated == 30
    assert state(table) == {at: "x" if at < 30 else f"n{at}" for at in range(40)}
    assert met == [False]

"""What new columns may be computed from, and what is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import frazil
from frazil.errors import InvalidInput
from frazil.rows.columns import column_update

SCHEMA = pa.schema([("id", pa.int64()), ("a", pa.int64())])


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> frazil.Table:
    """Three files, whose values are computed one file after the other."""
    monkeypatch.setattr(column_update, "_CHUNK_ROWS", 4)
    table = frazil.connect(tmp_path).create_table("s.t", SCHEMA)
    for first in (0, 4, 8):
        ids = range(first, first + 4)
        table.append([{"id": id, "a": 100 - id} for id in ids])
    return table


def values(table: frazil.Table, name: str) -> list[Any]:
    rows = table.scan(columns=["id", name]).to_pylist()
    return [row[name] for row in sorted(rows, key=lambda row: row["id"])]


def test_window_functions_see_all_rows(table: frazil.Table) -> None:
    table.add_columns({"place": "row_number() OVER (ORDER BY a)", "share": "a / sum(a) OVER ()"})
    assert values(table, "place") == list(range(12, 0, -1))
    assert sum(values(table, "share")) == pytest.approx(1)
    table.update({"a": frazil.expr("max(a) OVER () - a")}, mode="columns")
    assert values(table, "a") == list(range(12))
    assert not table.check(deep=True).problems


@pytest.mark.parametrize("mode", ["columns", "rows", "auto"])
def test_window_functions_of_an_update_see_the_rows_that_match(
    table: frazil.Table, mode: str
) -> None:
    table.update({"a": frazil.expr("row_number() OVER (ORDER BY id)")}, "id >= 3", mode=mode)
    assert values(table, "a") == [100, 99, 98, *range(1, 10)]


def test_sums_of_integers_are_decimals(table: frazil.Table) -> None:
    table.add_columns({"total": "sum(id) OVER ()", "wide": "id::HUGEINT * 3", "bits": "'101'::BIT"})
    assert str(table.schema.find_field("total").field_type) == "decimal(38, 0)"
    assert values(table, "total") == [66] * 12
    assert values(table, "wide") == [id * 3 for id in range(12)]
    assert values(table, "bits") == ["101"] * 12


@pytest.mark.parametrize("text", ["sum(a)", "count(*)", "sum(a) + 1"])
def test_aggregates_are_refused(table: frazil.Table, text: str) -> None:
    with pytest.raises(InvalidInput, match=r"q: an aggregate has one value for all rows"):
        table.add_columns({"q": text})


@pytest.mark.parametrize(
    "given", [None, 1, [object()], [1, "x"]], ids=["nothing", "a number", "objects", "two types"]
)
def test_what_a_function_gives_is_checked(table: frazil.Table, given: Any) -> None:
    with pytest.raises(InvalidInput, match=r"the function for q gave .*; expected an Arrow array"):
        table.add_columns({"q": lambda rows: given})


def test_a_function_may_give_numpy_values(table: frazil.Table) -> None:
    table.add_columns({"q": lambda rows: np.asarray(rows["id"]) * 2})
    assert values(table, "q") == [id * 2 for id in range(12)]


@pytest.mark.parametrize("name", ["", " ", "__frazil_key", "__FRAZIL_x"])
def test_names_that_columns_cannot_have(table: frazil.Table, name: str) -> None:
    with pytest.raises(InvalidInput, match=r"not a name for a column|reserved"):
        table.add_columns({name: "id"})
    assert table.refresh().schema.column_names == ["id", "a"]

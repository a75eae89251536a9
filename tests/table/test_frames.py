"""Rows as pandas, polars, Arrow and Python hand them over."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import frazil
from frazil.errors import InvalidInput


@pytest.fixture
def catalog(tmp_path: Path) -> frazil.Catalog:
    return frazil.connect(tmp_path)


def _nested_dictionary() -> pa.Table:
    kind = pa.struct([("kind", pa.dictionary(pa.int8(), pa.string()))])
    return pa.table({"c": pa.array([{"kind": "x"}, {"kind": None}], kind)})


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (pl.DataFrame({"c": pl.Series(["x", "y"], dtype=pl.Enum(["x", "y"]))}), ["x", "y"]),
        (pl.DataFrame({"c": pl.Series(["x", None], dtype=pl.Categorical)}), ["x", None]),
        (pd.DataFrame({"c": pd.Categorical(["x", None])}), ["x", None]),
        (pd.DataFrame({"c": pd.Categorical([1, 2])}), [1, 2]),
        (pa.table({"c": pa.array(["x", None]).dictionary_encode()}), ["x", None]),
        (_nested_dictionary(), [{"kind": "x"}, {"kind": None}]),
    ],
)
def test_categories_are_values(catalog: frazil.Catalog, rows: Any, expected: list[Any]) -> None:
    table = catalog.create_table("a.t", rows)
    table.append(rows)
    assert table.scan().to_arrow()["c"].to_pylist() == expected * 2


def test_periods_are_moments_dates_or_text(catalog: frazil.Catalog) -> None:
    frame = pd.DataFrame({"c": pd.period_range("2024-01", periods=2, freq="M")})
    table = catalog.create_table("a.t", frame)
    assert table.scan().to_arrow()["c"].to_pylist() == [datetime(2024, 1, 1), datetime(2024, 2, 1)]
    dates = catalog.create_table("a.dates", pa.schema([("c", pa.date32())]))
    dates.append(frame)
    assert dates.scan().to_arrow()["c"].to_pylist() == [date(2024, 1, 1), date(2024, 2, 1)]
    texts = catalog.create_table("a.texts", pa.schema([("c", pa.string())]))
    texts.append(frame)
    assert texts.scan().to_arrow()["c"].to_pylist() == ["2024-01", "2024-02"]


def test_an_index_with_a_name_is_a_column(catalog: frazil.Catalog) -> None:
    sales = pd.DataFrame({"country": ["US", "DE", "US"], "price": [1.0, 2.0, 4.0]})
    table = catalog.create_table("a.t", sales.groupby("country").sum())
    assert sorted(table.scan().to_pylist(), key=str) == [
        {"country": "DE", "price": 2.0},
        {"country": "US", "price": 5.0},
    ]
    both = pd.DataFrame({"n": [1]}, index=pd.MultiIndex.from_tuples([("a", 2)], names=["k", None]))
    assert [field.name for field in catalog.create_table("a.b", both).schema.fields] == ["k", "n"]
    plain = pd.DataFrame({"n": [1]}, index=[7])
    assert [field.name for field in catalog.create_table("a.c", plain).schema.fields] == ["n"]


INTEGERS: list[Callable[[list[int]], Any]] = [
    lambda values: pa.table({"d": pa.array(values, pa.int64())}),
    lambda values: pd.DataFrame({"d": values}),
    lambda values: pl.DataFrame({"d": values}),
    lambda values: {"d": values},
    lambda values: [{"d": value} for value in values],
    lambda values: pa.table({"d": pa.array(values, pa.int64())}).to_reader(),
]


@pytest.mark.parametrize("make", INTEGERS)
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_integers_go_into_floating_point_columns(
    catalog: frazil.Catalog, make: Callable[[list[int]], Any], kind: pa.DataType
) -> None:
    table = catalog.create_table("a.t", pa.schema([("d", kind)]))
    table.append(make([1, 2]))
    table.upsert(make([2, 3]), on="d")
    table.overwrite(make([5]), where="d = 1")
    assert sorted(table.scan().to_arrow()["d"].to_pylist()) == [2.0, 3.0, 5.0]


@pytest.mark.parametrize("make", INTEGERS)
@pytest.mark.parametrize(("kind", "value"), [(pa.float64(), 2**53 + 1), (pa.float32(), 2**24 + 1)])
def test_an_integer_that_would_change_is_refused(
    catalog: frazil.Catalog, make: Callable[[list[int]], Any], kind: pa.DataType, value: int
) -> None:
    table = catalog.create_table("a.t", pa.schema([("d", kind)]))
    with pytest.raises(InvalidInput, match="column 'd'"):
        table.append(make([value]))
    assert table.scan().count() == 0


def test_an_index_named_like_a_column_is_refused(catalog: frazil.Catalog) -> None:
    frame = pd.DataFrame({"id": [1, 2]}, index=pd.Index([5, 6], name="id"))
    with pytest.raises(InvalidInput, match=r"both named 'id'; .* reset_index\(drop=True\)"):
        catalog.create_table("a.t", frame)
    assert catalog.create_table("a.t", frame.reset_index(drop=True)).scan().count() == 2


@pytest.mark.parametrize(
    ("value", "precision", "scale"), [("1.500", 10, 3), ("1.50", 38, 2), ("1.5", 5, 1)]
)
def test_decimals_of_other_scales_fit_if_their_values_do(
    catalog: frazil.Catalog, value: str, precision: int, scale: int
) -> None:
    table = catalog.create_table("a.t", pa.schema([("m", pa.decimal128(10, 2))]))
    table.append(pa.table({"m": pa.array([Decimal(value)], pa.decimal128(precision, scale))}))
    assert table.scan().to_arrow()["m"].to_pylist() == [Decimal("1.50")]


@pytest.mark.parametrize("value", ["1.501", "123456789.12"])
def test_a_decimal_that_would_be_rounded_or_overflow_is_refused(
    catalog: frazil.Catalog, value: str
) -> None:
    table = catalog.create_table("a.t", pa.schema([("m", pa.decimal128(10, 2))]))
    with pytest.raises(InvalidInput, match="column 'm'"):
        table.append(pa.table({"m": pa.array([Decimal(value)], pa.decimal128(20, 3))}))


@pytest.mark.parametrize(
    "rows",
    [
        {"id": [1, 2], "note": [None, None]},
        [{"id": 1, "note": None}],
        pd.DataFrame({"id": [1], "note": [None]}),
        pl.DataFrame({"id": [1], "note": [None]}),
        {"id": [1], "note": [[]]},
    ],
)
def test_a_column_without_values_takes_the_type_of_the_table(
    catalog: frazil.Catalog, rows: Any
) -> None:
    with pytest.raises(InvalidInput, match="column 'note' has no value to tell its type from"):
        catalog.create_table("a.t", rows)
    assert not catalog.table_exists("a.t")
    kind = pa.list_(pa.string()) if rows is not None and _has_list(rows) else pa.string()
    table = catalog.create_table("a.t", pa.schema([("id", pa.int64()), ("note", kind)]))
    table.append(rows)
    assert set(map(str, table.scan().to_arrow()["note"].to_pylist())) <= {"None", "[]"}


def _has_list(rows: Any) -> bool:
    return isinstance(rows, dict) and rows["note"] == [[]]


def test_dicts_have_the_columns_that_any_of_them_has(catalog: frazil.Catalog) -> None:
    rows = [{"id": 1}, {"id": 2, "note": "x"}, {"price": 1.5}]
    table = catalog.create_table("a.t", rows)
    table.append(rows)
    expected = [
        {"id": 1, "note": None, "price": None},
        {"id": 2, "note": "x", "price": None},
        {"id": None, "note": None, "price": 1.5},
    ]
    assert table.scan().to_pylist() == expected * 2

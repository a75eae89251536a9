"""Expressions of polars, pyarrow and pandas in `where`, beside the library filtering the rows."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import frazil
from frazil.errors import InvalidInput

NAN = float("nan")
UTC = dt.UTC
DAYS = [dt.date(2024, 1, 1), dt.date(2024, 2, 1), None, dt.date(2024, 3, 1), dt.date(2023, 1, 1)]
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5], pa.int64()),
        "a": pa.array([1, 2, None, 4, 5], pa.int64()),
        "b": pa.array([5, 2, 3, None, 1], pa.int64()),
        "x": pa.array([1.0, NAN, None, -1.0, float("inf")], pa.float64()),
        "y": pa.array([NAN, NAN, NAN, 1.0, None], pa.float64()),
        "f": pa.array([0.1, 0.2, None, NAN, 16777216.0], pa.float32()),
        "s": pa.array(["ab", "b%", None, "a'b", ""], pa.string()),
        "d": pa.array([Decimal("1.25"), Decimal("2.50"), None, Decimal("-1.00"), Decimal("0.00")]),
        "day": pa.array(DAYS, pa.date32()),
        "t": pa.array(
            [None if day is None else dt.datetime(day.year, day.month, 1, 12) for day in DAYS],
            pa.timestamp("us"),
        ),
        "z": pa.array(
            [
                None if day is None else dt.datetime(day.year, day.month, 1, tzinfo=UTC)
                for day in DAYS
            ],
            pa.timestamp("us", "UTC"),
        ),
        "flag": pa.array([True, False, None, True, False]),
        "raw": pa.array([b"a", b"\x00", None, b"b", b""], pa.binary()),
        "p": pa.array([{"q": 1}, {"q": 2}, None, {"q": None}, {"q": 5}]),
        "odd name": pa.array([1, 2, 3, None, 5], pa.int64()),
    }
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> frazil.Table:
    """Every row in a file of its own, so that wrong pruning loses it."""
    made = frazil.connect(tmp_path_factory.mktemp("frames")).create_table("a.t", ROWS.slice(0, 1))
    for at in range(1, ROWS.num_rows):
        made.append(ROWS.slice(at, 1))
    return made


def ids(rows: Any) -> list[int]:
    return sorted(rows["id"].to_pylist() if isinstance(rows, pa.Table) else list(rows["id"]))


C = pl.col
POLARS = [
    C("a") > 2,
    C("a") > 2,
    C("a") != 2,
    ~(C("a") >= 2),
    C("a") > 1.5,
    (C("a") > 1) & (C("s") == "b%"),
    (C("a") > 4) | C("a").is_null(),
    ~((C("a") > 4) | (C("b") < 3)),
    C("a") > C("b"),
    ~(C("a") > C("b")),
    C("a").is_in([1, 2, None]),
    ~C("a").is_in([1, 2, None]),
    C("a").is_in([1], nulls_equal=True),
    C("a").is_in([1, None], nulls_equal=True),
    ~C("a").is_in([1, None], nulls_equal=True),
    ~C("a").is_in([1], nulls_equal=True),
    C("a").is_in([]),
    ~C("a").is_in([]),
    C("a").is_in(pl.Series([4, 5])),
    C("a").is_between(2, 4),
    C("a").is_between(2, 4, closed="none"),
    ~C("a").is_between(2, 4, closed="left"),
    C("x") > 0,
    ~(C("x") > 0),
    C("x") <= 1,
    C("x") == 1,
    C("x") != 1,
    C("x") > C("y"),
    ~(C("x") == C("y")),
    C("x").is_nan(),
    C("x").is_not_nan(),
    ~C("x").is_nan(),
    C("x").is_in([NAN, 1.0]),
    C("f") == 0.1,
    C("f") > 0.1,
    C("f") != 0.1,
    C("s").str.starts_with("a"),
    ~C("s").str.starts_with("a"),
    C("s").str.starts_with(""),
    C("s").str.ends_with("b"),
    C("s").str.contains("%", literal=True),
    C("s").str.contains("'b"),
    ~C("s").str.contains("b"),
    C("s") == "a'b",
    C("s") >= "b",
    C("d") > Decimal("1.2"),
    C("d") == Decimal("2.5"),
    C("day") >= dt.date(2024, 2, 1),
    C("t") < dt.datetime(2024, 2, 1, 12),
    C("t") == dt.datetime(2024, 2, 1, 12),
    C("z") > dt.datetime(2024, 1, 1, tzinfo=UTC),
    C("flag"),
    ~C("flag"),
    C("flag") == True,  # noqa: E712
    C("flag").xor(C("a") > 2),
    C("raw") == b"\x00",
    C("p").struct.field("q") > 1,
    C("odd name") == 5,
    C("a").eq_missing(None),
    C("a").ne_missing(None),
    pl.all_horizontal(C("a") > 1, C("b") > 1),
    pl.any_horizontal(C("a") > 4, "flag"),
    pl.lit(True),
    C("a") > pl.lit(1) + 2,
    C("a").alias("other") > 2,
]


@pytest.mark.parametrize("expression", POLARS, ids=str)
def test_polars_expressions_select_what_polars_selects(
    table: frazil.Table, expression: Any
) -> None:
    expected = pl.from_arrow(ROWS).filter(expression)
    assert ids(table.scan(expression).to_arrow()) == ids(expected)


F = pc.field
ARROW = [
    F("a") > 2,
    pc.scalar(2) < F("a"),
    F("a") != 2,
    ~(F("a") >= 2),
    F("a") > 1.5,
    (F("a") > 1) & (F("s") == "b%"),
    (F("a") > 4) | F("a").is_null(),
    ~((F("a") > 4) | (F("b") < 3)),
    F("a") > F("b"),
    F("a").isin([1, 2, None]),
    ~F("a").isin([1, 2, None]),
    F("a").isin([1, 2]),
    ~F("a").isin([1, 2]),
    pc.is_in(F("a"), pa.array([1, None]), skip_nulls=True),
    ~pc.is_in(F("a"), pa.array([1, None]), skip_nulls=True),
    F("a").isin(pa.array([], pa.int64())),
    ~F("a").isin(pa.array([], pa.int64())),
    F("x").isin([NAN, 1.0]),
    ~F("x").isin([1.0]),
    F("x") > 0,
    ~(F("x") > 0),
    F("x") <= 1,
    ~(F("x") <= 1),
    ~(F("x") < 1),
    F("x") == 1,
    ~(F("x") == 1),
    F("x") != 1,
    ~(F("x") != 1),
    F("x") > F("y"),
    ~(F("x") > F("y")),
    F("x") == F("y"),
    F("x") != F("y"),
    ~(F("x") != F("y")),
    F("x") < F("a"),
    ~(F("x") < F("a")),
    F("x").is_nan(),
    ~F("x").is_nan(),
    F("x").is_null(),
    F("x").is_null(nan_is_null=True),
    ~F("x").is_null(nan_is_null=True),
    F("x").is_valid(),
    F("x") < float("inf"),
    F("f") == 0.1,
    F("f") != 0.1,
    F("f") > 0.1,
    F("f") < 0.1,
    F("f") <= 0.2,
    F("f") >= 0.2,
    ~(F("f") > 0.1),
    pc.starts_with(F("s"), "a"),
    ~pc.starts_with(F("s"), "a"),
    pc.ends_with(F("s"), "b"),
    pc.match_substring(F("s"), "%"),
    ~pc.match_substring(F("s"), "b"),
    F("s") == "a'b",
    F("s") >= "b",
    F("d") > Decimal("1.20"),
    F("day") >= dt.date(2024, 2, 1),
    F("t") < dt.datetime(2024, 2, 1, 12),
    F("z") > pa.scalar(dt.datetime(2024, 1, 1, tzinfo=UTC), pa.timestamp("us", "UTC")),
    F("flag"),
    ~F("flag"),
    F("flag") == True,  # noqa: E712
    pc.xor(F("flag"), F("a") > 2),
    F("raw") == b"\x00",
    F("p", "q") > 1,
    F("odd name") == 5,
    pc.scalar(True),
]


@pytest.mark.parametrize("expression", ARROW, ids=lambda e: str(e).replace("\n", ""))
def test_pyarrow_expressions_select_what_pyarrow_selects(
    table: frazil.Table, expression: Any
) -> None:
    assert ids(table.scan(expression).to_arrow()) == ids(ROWS.filter(expression))


needs_col = pytest.mark.skipif(not hasattr(pd, "col"), reason="pandas before 3.0 has no pd.col")


def pandas_expressions() -> list[Any]:
    if not hasattr(pd, "col"):
        return []
    c = pd.col
    return [
        c("a") > 2,
        c("a") > 2,
        c("a") != 2,
        ~(c("a") >= 2),
        ~(c("a") != 2),
        c("a").gt(2),
        (c("a") > 1) & (c("s") == "b%"),
        (c("a") > 4) | c("a").isna(),
        ~((c("a") > 4) | (c("b") < 3)),
        c("a") > c("b"),
        ~(c("a") > c("b")),
        c("a") != c("b"),
        (c("a") > 2) ^ (c("b") > 2),
        c("a").isin([1, 2]),
        ~c("a").isin([1, 2]),
        c("a").isin([]),
        c("a").isin(np.array([4, 5])),
        c("a").between(2, 4),
        c("a").between(2, 4, inclusive="neither"),
        ~c("a").between(2, 4, inclusive="left"),
        c("x") > 0,
        ~(c("x") > 0),
        ~(c("x") <= 1),
        c("x") == 1,
        c("x") != 1,
        c("x") != c("y"),
        ~(c("x") < c("y")),
        c("x").isna(),
        c("x").notna(),
        c("f") == 0.1,
        c("f") > 0.1,
        c("f") != 0.1,
        c("s").str.startswith("a"),
        ~c("s").str.startswith("a"),
        c("s").str.startswith(("a", "b")),
        c("s").str.endswith("b"),
        c("s").str.contains("%"),
        ~c("s").str.contains("b", regex=False),
        c("s") == "a'b",
        c("s") != "ab",
        c("s").isna(),
        c("s") >= "b",
        c("t") < dt.datetime(2024, 2, 1, 12),
        c("t") > np.datetime64("2024-01-02"),
        c("t") >= pd.Timestamp("2024-02-01 12:00"),
        c("t") != pd.Timestamp("2024-02-01 12:00"),
        c("z") > pd.Timestamp("2024-01-01", tz="UTC"),
        c("odd name") == np.int64(5),
    ]


@needs_col
@pytest.mark.parametrize("expression", pandas_expressions(), ids=repr)
def test_pandas_expressions_select_what_pandas_selects(
    table: frazil.Table, expression: Any
) -> None:
    assert ids(table.scan(expression).to_arrow()) == ids(ROWS.to_pandas().loc[expression])


@pytest.mark.parametrize(
    ("expression", "part"),
    [
        (C("a") + 1 > 2, 'the part [(col("a")) + (dyn int: 1)]'),
        (C("t").dt.year() == 2024, "dt.year()"),
        (C("a", "b") > 1, "cs.by_name"),
        (C("s").str.contains("a.b"), "the regular expression 'a.b'"),
        (C("a") == None, "a comparison with null"),  # noqa: E711
        (C("x") == NAN, "a value that is NaN or infinite"),
        (C("x") < pl.lit(float("inf")), "a value that is NaN or infinite"),
        (F("x") == NAN, "a comparison with NaN"),
        (C("a").map_elements(lambda value: value), "cannot be"),
        (C("a").sum() > 1, "sum"),
        (pl.lit(1), "the value 1 where a condition is expected"),
        (F("a") + 1 > 2, "the function add_checked in a comparison"),
        (pc.if_else(F("flag"), True, False), "the function if_else"),
        (F("a").cast("int32") == 1, "the function cast"),
        (pc.starts_with(F("s"), "a", ignore_case=True), "starts_with with ignore_case"),
        (F(0) > 1, "name columns by name"),
        (F("a") == pa.scalar(None, pa.int64()), "a comparison with null"),
    ],
)
def test_what_cannot_be_translated_is_named(
    table: frazil.Table, expression: Any, part: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        table.scan(expression).to_arrow()
    assert part in str(caught.value)


@needs_col
def test_what_cannot_be_translated_of_pandas_is_named(table: frazil.Table) -> None:
    c: Any = pd.col
    for expression, part in [
        (c("a") + 1 > 2, ".add"),
        (c("s").str.len() > 1, ".str.len"),
        (c("s").str.startswith("a", na=False), "na"),
        (np.isnan(c("x")), "numpy.isnan"),
        (c("a").isin([1, None]), "isin with a missing value"),
        (c(1) > 1, "the column name 1"),
    ]:
        with pytest.raises(InvalidInput) as caught:
            table.scan(expression).to_arrow()
        assert part in str(caught.value)


def test_unknown_columns_of_expressions_are_named(table: frazil.Table) -> None:
    for expression in (C("nope") > 1, F("nope") > 1, C("nope").str.ends_with("x")):
        with pytest.raises(InvalidInput, match="unknown column 'nope'"):
            table.scan(expression).count()


def test_plain_expressions_prune(table: frazil.Table) -> None:
    for expression in (C("id") == 3, F("id") == 3, (F("id") == 3) & pc.ends_with(F("s"), "b")):
        assert table.scan(expression).explain().files == 1


def test_expressions_change_rows_and_combine(tmp_path: Path) -> None:
    table = frazil.connect(tmp_path).create_table("a.t", ROWS.select(["id", "a", "s"]))
    table.update({"s": "new"}, where=C("a").is_null())
    table.delete(F("a") == 1)
    scan = table.scan("id < 5").where(C("s").str.ends_with("b")).where(F("a") > 0)
    assert ids(scan.to_arrow()) == [4]
    assert table.scan("s = 'new'").to_arrow()["id"].to_pylist() == [3]
    with table.transaction() as tx:
        tx.delete(C("id") == 5)
        assert ids(tx.scan(F("id") > 3).to_arrow()) == [4]
    assert table.scan(frazil.expr("id = ?", 2)).count() == 1


def test_other_objects_are_refused(table: frazil.Table) -> None:
    with pytest.raises(InvalidInput, match="expected text, a PyIceberg expression"):
        table.scan(3)

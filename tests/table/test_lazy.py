"""Lazy scans for other libraries: the rows of the table, from the files that a query needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import frazil
from frazil.errors import Unsupported
from frazil.rows.polars_scan import narrowed

NAN = float("nan")
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("x", pa.float64()),
        ("small", pa.float32()),
        ("name", pa.string()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("ok", pa.bool_()),
    ]
)
Hide = Callable[[str], None]


def row(id: int) -> dict[str, Any]:
    return {
        "id": id,
        "x": float(id),
        "small": id / 10,
        "name": f"n{id:02}",
        "day": date(1969, 12, 20 + id // 10),
        "at": datetime(2024, 1, 1, id // 10, tzinfo=UTC),
        "local": datetime(2024, 1, 1, id // 10),
        "ok": id >= 20,
    }


@pytest.fixture
def table(tmp_path: Path) -> Iterator[frazil.Table]:
    """Files of the ids from 0, 10, 20 and 30 on; 25 is deleted, x of 31 is NaN, 32 has nulls."""
    with frazil.connect(tmp_path / "warehouse") as catalog:
        made = catalog.create_table("s.t", SCHEMA)
        for first in (0, 10, 20):
            made.append([row(id) for id in range(first, first + 10)])
        last = [row(id) for id in range(30, 40)]
        last[1]["x"] = NAN
        last[2] = {**dict.fromkeys(row(32)), "id": 32}
        made.append(last)
        made.delete("id = 25")
        yield made


@pytest.fixture
def hide(table: frazil.Table) -> Hide:
    """Take away the files that hold no row of a condition: reading one of them would fail."""

    def act(where: str) -> None:
        needed = {task.source.path for task in table.scan(where).tasks()}
        for task in table.scan().tasks():
            if task.source.path not in needed:
                Path(task.source.path.removeprefix("file://")).unlink()

    return act


def ids(found: pl.LazyFrame) -> list[int]:
    return sorted(found.select("id").collect()["id"].to_list())


CONDITIONS: list[tuple[pl.Expr, str, list[int]]] = [
    (pl.col("id") > 37, "id > 37", [38, 39]),
    (pl.lit(2) > pl.col("id"), "id < 2", [0, 1]),
    ((pl.col("id") > 8) & (pl.col("name") <= "n10"), "id < 20", [9, 10]),
    (pl.col("x") == 12, "x = 12", [12]),
    (pl.col("day") == date(1969, 12, 21), "id between 10 and 19", list(range(10, 20))),
    (pl.col("local") < datetime(2024, 1, 1, 1), "id < 10", list(range(10))),
    (
        (pl.col("at") >= datetime(2024, 1, 1, 3, tzinfo=UTC)) & (pl.col("id") < 33),
        "id >= 30",
        [30, 31],
    ),
]


@pytest.mark.parametrize(("condition", "files", "expected"), CONDITIONS)
def test_polars_reads_the_files_that_a_condition_needs(
    table: frazil.Table, hide: Hide, condition: pl.Expr, files: str, expected: list[int]
) -> None:
    frame = table.scan().to_polars(lazy=True).filter(condition)
    hide(files + " or x > 1e9" if "x" in condition.meta.root_names() else files)
    assert ids(frame) == expected


UNUSUAL: list[tuple[pl.Expr, list[int]]] = [
    (pl.col("x") > 38.0, [31, 39]),
    (pl.col("x").is_nan(), [31]),
    (pl.col("name").is_null(), [32]),
    (pl.col("id").is_in([3, 25, 26]), [3, 26]),
    (~(pl.col("id") < 38), [38, 39]),
    ((pl.col("id") == 1) | (pl.col("name") == "n11"), [1, 11]),
    (pl.col("id") + pl.col("x") == 4, [2]),
    (pl.col("small") > pl.lit(3.8, pl.Float64), [39]),
    (pl.col("id") > 37.5, [38, 39]),
    (pl.col("ok") & (pl.col("id") < 22), [20, 21]),
    (pl.col("ok").eq(False) & (pl.col("id") > 18), [19]),
    (pl.col("name").str.starts_with("n0") & (pl.col("id") % 5 == 0), [0, 5]),
]


@pytest.mark.parametrize(("condition", "expected"), UNUSUAL)
def test_no_condition_of_polars_loses_a_row(
    table: frazil.Table, condition: pl.Expr, expected: list[int]
) -> None:
    assert ids(table.scan().to_polars(lazy=True).filter(condition)) == expected
    assert ids(table.scan().to_polars().lazy().filter(condition)) == expected


def test_a_lazy_frame_takes_first_rows_and_columns(table: frazil.Table) -> None:
    frame = table.scan(columns=["name", "id", "x"]).to_polars(lazy=True)
    assert frame.collect_schema().names() == ["name", "id", "x"]
    assert frame.head(2).filter(pl.col("id") == 0).collect().height <= 1
    assert frame.head(3).collect().height == 3
    assert frame.select(pl.len()).collect().item() == 39
    assert frame.filter(pl.col("id") == 7).select("name").collect().rows() == [("n07",)]
    joined = frame.join(frame, on="id").filter(pl.col("id") == 7).collect()
    assert joined.columns == ["name", "id", "x", "name_right", "x_right"]


def test_the_scan_s_own_filter_and_limit_hold(table: frazil.Table) -> None:
    scan = table.scan("id % 2 = 0").to_polars(lazy=True)
    assert ids(scan.filter(pl.col("id") < 5)) == [0, 2, 4]
    assert ids(table.scan("id >= 5").to_polars(lazy=True).filter(pl.col("id") < 7)) == [5, 6]
    limited = table.scan(limit=4)
    assert narrowed(limited, pl.col("id") == 99) is limited


def test_a_dataset_reads_the_files_that_a_filter_needs(table: frazil.Table, hide: Hide) -> None:
    dataset = table.scan().to_dataset()
    assert isinstance(dataset, ds.Dataset)
    assert (dataset.count_rows(), dataset.schema.names) == (39, SCHEMA.names)
    hide("id between 20 and 29")
    found = dataset.to_table(columns=["id"], filter=(pc.field("id") > 23) & (pc.field("id") < 27))
    assert sorted(found["id"].to_pylist()) == [24, 26]
    named = dataset.to_table(columns={"y": pc.field("id") * 2}, filter=pc.field("name") == "n21")
    assert named.to_pylist() == [{"y": 42}]
    assert dataset.count_rows(filter=pc.field("id").isin([20, 25])) == 1
    assert duckdb.sql("SELECT sum(id) FROM dataset WHERE id BETWEEN 24 AND 26").fetchall() == [
        (50,)
    ]


def test_a_dataset_loses_no_row_with_nan_or_null(table: frazil.Table) -> None:
    dataset = table.scan().to_dataset()
    missing = dataset.to_table(filter=pc.field("name").is_null())
    assert missing["id"].to_pylist() == [32]
    outside = dataset.to_table(columns=["id", "x"], filter=~(pc.field("x") <= 39))
    assert outside["id"].to_pylist() == [31]
    assert math.isnan(outside["x"][0].as_py())
    both = table.scan("id % 2 = 1").to_dataset()
    assert both.to_table(filter=pc.field("id") < 4)["id"].to_pylist() == [1, 3]


def test_what_a_dataset_cannot_do_is_refused(table: frazil.Table) -> None:
    dataset = table.scan().to_dataset()
    for act in (dataset.get_fragments, dataset.sort_by, dataset.join, dataset.replace_schema):
        with pytest.raises(Unsupported, match="scanner"):
            act()

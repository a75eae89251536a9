"""Bulk reads: every result is compared with the same rows computed without Spark."""

from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow as pa
import pytest

import frazil
import frazil.spark

pytestmark = pytest.mark.spark

ORDERS = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("country", pa.string()),
        ("price", pa.float64()),
    ]
)


def orders(first: int, last: int) -> pa.Table:
    ids = range(first, last)
    return pa.table(
        {
            "id": list(ids),
            "day": [date(2024, 1, 1 + i % 3) for i in ids],
            "country": [None if i % 7 == 0 else "US" if i % 2 else "DE" for i in ids],
            "price": [float("nan") if i % 5 == 0 else i / 4 for i in ids],
        },
        schema=ORDERS,
    )


@pytest.fixture
def table(catalog: frazil.Catalog) -> frazil.Table:
    made = catalog.create_table("shop.orders", ORDERS, partition_by=["day"])
    made.append(orders(0, 60))
    made.append(orders(60, 100))
    return made


def ids(frame: Any) -> list[int]:
    return sorted(row[0] for row in frame.select("id").collect())


def test_a_frame_holds_the_rows_that_were_appended(spark: Any, table: frazil.Table) -> None:
    rows = frazil.spark.table(spark, table).toArrow().sort_by("id")
    wanted = orders(0, 100)
    assert rows.column("id") == wanted.column("id")
    assert rows.column("day") == wanted.column("day")
    assert rows.column("country") == wanted.column("country")
    assert str(rows.column("price").to_pylist()) == str(wanted.column("price").to_pylist())


@pytest.mark.parametrize(
    ("where", "keeps"),
    [
        ("id < 10", lambda i: i < 10),
        ("day = '2024-01-02' and id > 50", lambda i: i % 3 == 1 and i > 50),
        ("country is null", lambda i: i % 7 == 0),
        ("country in ('US', 'FR')", lambda i: i % 7 and i % 2),
        ("country != 'US'", lambda i: i % 7 and not i % 2),
        ("price > 20", lambda i: i % 5 and i > 80),
        ("price is nan or id = 1", lambda i: i % 5 == 0 or i == 1),
        ("price != 1.0", lambda i: i != 4),
        ("country starts with 'U'", lambda i: i % 7 and i % 2),
    ],
)
def test_a_filter_keeps_the_same_rows_as_plain_python(
    spark: Any, table: frazil.Table, where: str, keeps: Any
) -> None:
    found = ids(frazil.spark.table(spark, table, where=where))
    assert found == [i for i in range(100) if keeps(i)]

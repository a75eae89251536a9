"""Filters of SQL prune files, and the rows are those of plain Spark."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
import frazil.spark

pytestmark = pytest.mark.spark

ORDERS = pa.schema(
    [
        ("order_id", pa.int64()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us")),
        ("country", pa.string()),
        ("price", pa.float64()),
        ("amount", pa.decimal128(9, 2)),
        ("paid", pa.bool_()),
    ]
)
FILES = 10


def orders(file: int) -> list[dict[str, Any]]:
    """Ten orders of one day; every tenth price is NaN, every fifth country null."""
    return [
        {
            "order_id": i,
            "day": date(2024, 1, 1) + timedelta(days=file),
            "at": datetime(2024, 1, 1) + timedelta(days=file, hours=i % 10),
            "country": None if i % 5 == 0 else f"C'{file}",
            "price": float("nan") if i % 10 == 9 else float(i),
            "amount": Decimal(i) / 4,
            "paid": file % 2 == 0,
        }
        for i in range(file * 10, file * 10 + 10)
    ]


@pytest.fixture(scope="module")
def spark(spark_context: Any) -> Any:
    """One session for all queries: nothing in it changes."""
    return spark_context.newSession()


@pytest.fixture(scope="module")
def attached(
    spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[frazil.spark.Attached]:
    with frazil.connect(tmp_path_factory.mktemp("pruned")) as catalog:
        made = catalog.create_table("shop.orders", ORDERS)
        for file in range(FILES):
            made.append(orders(file))
        catalog.create_table("shop.people", pa.schema([("name", pa.string())]))
        yield frazil.spark.attach(spark, catalog, "shop")


def answers(frame: Any) -> list[str]:
    return sorted(str(tuple(row)) for row in frame.collect())


@pytest.mark.parametrize(
    ("query", "files"),
    [
        ("SELECT * FROM orders WHERE order_id = 42", 1),
        ("SELECT order_id FROM orders WHERE 42 > order_id", 5),
        ("SELECT * FROM orders WHERE day = date'2024-01-03'", 1),
        ("SELECT * FROM orders WHERE day BETWEEN date'2024-01-03' AND date'2024-01-04'", 2),
        ("SELECT * FROM orders WHERE at >= timestamp_ntz'2024-01-10 00:00:00'", 1),
        ("SELECT * FROM orders WHERE country = 'C''7'", 1),
        ("SELECT * FROM orders WHERE country LIKE 'C''7%'", 1),
        ("SELECT * FROM orders WHERE amount < 2.5", 1),
        ("SELECT * FROM orders WHERE order_id IN (5, 95)", 2),
        (f"SELECT * FROM orders WHERE order_id IN ({', '.join(map(str, range(30)))})", 3),
        ("SELECT * FROM orders WHERE order_id = 1 OR day = date'2024-01-05'", 2),
        ("SELECT * FROM orders WHERE order_id < 20 AND upper(country) = 'C''1'", 2),
        ("SELECT a.order_id, b.order_id FROM orders a JOIN orders b ON a.order_id + 90 = "
         "b.order_id WHERE a.order_id < 10 AND b.order_id >= 90", 2),
        ("SELECT count(*) FROM orders WHERE order_id > (SELECT max(order_id) - 1 FROM orders "
         "WHERE day = date'2024-01-02') AND order_id < 30", 3),
        ("WITH few AS (SELECT * FROM orders WHERE order_id < 5) SELECT * FROM few UNION ALL "
         "SELECT * FROM orders WHERE order_id = 77", 2),
        ("SELECT country, sum(amount) FROM orders WHERE order_id >= 80 GROUP BY country", 2),
        ("SELECT * FROM orders o LEFT JOIN people p ON o.country = p.name WHERE order_id = 3", 1),
    ],
)  # fmt: skip
def test_filters_of_a_query_prune_files(
    spark: Any, attached: frazil.spark.Attached, query: str, files: int
) -> None:
    pruned = attached.sql(query)
    assert answers(pruned) == answers(spark.sql(query))
    assert len(pruned.inputFiles()) == files


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM orders",
        "SELECT * FROM orders WHERE price > 50",  # NaN is the greatest number in Spark
        "SELECT * FROM orders WHERE price != 3",
        "SELECT * FROM orders WHERE NOT paid",
        "SELECT * FROM orders WHERE country IS NULL OR upper(country) = 'x'",
        "SELECT * FROM orders WHERE country <=> NULL",
        "SELECT a.order_id FROM orders a, orders b "
        "WHERE a.order_id = 3 AND b.order_id > a.order_id",
        "SELECT count(*) FROM orders WHERE order_id < 10 UNION ALL SELECT count(*) FROM orders",
        "SELECT (SELECT count(*) FROM orders) AS n, order_id FROM orders WHERE order_id = 5",
        "SELECT order_id FROM orders WHERE order_id = 5 AND EXISTS "
        "(SELECT 1 FROM orders o WHERE o.day > orders.day)",
        "SELECT * FROM orders WHERE order_id = NULL",
    ],
)
def test_rows_are_those_of_plain_spark(
    spark: Any, attached: frazil.spark.Attached, query: str
) -> None:
    assert answers(attached.sql(query)) == answers(spark.sql(query))


def test_the_views_stay_as_they_were(spark: Any, attached: frazil.spark.Attached) -> None:
    assert attached.sql("SELECT * FROM orders WHERE order_id = 1").count() == 1
    assert spark.sql("SELECT * FROM orders").count() == FILES * 10


def test_a_cached_view_is_not_pruned_by_another_reference(
    spark: Any, attached: frazil.spark.Attached
) -> None:
    query = (
        "SELECT count(*) FROM orders WHERE order_id = 1 "
        "UNION ALL SELECT count(*) FROM orders WHERE order_id >= 0"
    )
    expected = answers(spark.sql(query))
    spark.catalog.cacheTable("orders")
    try:
        assert answers(attached.sql(query)) == expected
    finally:
        spark.catalog.uncacheTable("orders")


def test_a_statement_that_writes_is_done_once(spark: Any, tmp_path: Path) -> None:
    catalog = frazil.connect(tmp_path)
    table = catalog.create_table("shop.sums", pa.schema([("n", pa.int64())]))
    table.append([{"n": 1}, {"n": 2}])
    sums = frazil.spark.attach(spark, catalog, "shop")
    sums.sql("INSERT INTO sums SELECT n + 10 FROM sums WHERE n = 2")
    table.refresh()
    assert sorted(row["n"] for row in table.scan().to_arrow().to_pylist()) == [1, 2, 12]


def test_a_mistake_in_the_query_is_sparks_to_tell(attached: frazil.spark.Attached) -> None:
    with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR"):
        attached.sql("SELEC * FROM orders")
    with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
        attached.sql("SELECT nothing FROM orders")

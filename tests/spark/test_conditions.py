"""Conditions mean what Spark says: scans and changes of a table against the same rows held plainly.

Many conditions are asked at once, each with a scan of its own, so that one job answers them all.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

import frazil
import frazil.spark
from tests.property.test_conditions import ROWS, SCHEMA

pytestmark = pytest.mark.spark

VALUES = {
    "i": ["0", "1", "2.5BD", "-3", "1e12", "NULL"],
    "f": ["0", "-0.0D", "0.5", "2", "double('NaN')", "double('Infinity')", "NULL"],
    "g": ["0", "0.5", "2", "float('NaN')"],
    "d": ["0", "1.5BD", "1.505BD", "-1.25BD", "1e10"],
    "day": ["'1970-01-01'", "date'1931-05-06'", "date'2024-02-29'"],
    "ts": ["'2024-03-31 01:30:00'", "timestamp'2024-03-31 00:30:00-01:00'", "'1970-01-01'"],
    "t": ["''", "'a'", "'ab'", "'it\\'s'", "'é'"],
    "s.x": ["0", "0.5", "double('NaN')"],
    "s.y": ["'a'", "'é'"],
    "s.z.day": ["date'1970-01-01'", "'1931-05-06'"],
    "local": ["timestamp_ntz'1970-01-01 00:00:00'", "timestamp_ntz'2024-03-31 02:30:00'"],
    "big": ["0", "0.0000000001BD", "12345678901234567890.5BD", "-12345678901234567890BD"],
    "raw": ["X'61'", "X''", "X'00FF'"],
}
SIGNS = ["=", "<>", "<", "<=", ">", ">=", "<=>"]
OTHERS = [
    *(f"{name} IS {word}" for name in VALUES for word in ("NULL", "NOT NULL")),
    "i IN (0, 1, NULL)",
    "i NOT IN (0, 7)",
    "i NOT IN (0, NULL)",
    "f IN (0.0D, 2D)",
    "f NOT IN (0.5D, 1D)",
    "f BETWEEN 0 AND double('Infinity')",
    "d BETWEEN 0 AND 1.5",
    "day BETWEEN '1969-01-01' AND '1970-01-01'",
    "day = ts",
    "date(ts) = '2024-03-31'",
    "hour(ts) < 12",
    "t LIKE 'a%'",
    "t LIKE '%b'",
    "t LIKE 'a\\\\%b'",
    "t NOT LIKE 'a%'",
    "t ILIKE 'A%'",
    "t LIKE 'a_b'",
    "f + 1e16 = 1e16",
    "i * 2 > f",
    "f > g",
    "length(t) = 2",
    "coalesce(i, 0) = 0",
    "s.y || t = 'aa'",
    "year(day) < 1970",
    "n % 7 = 3",
    "isnan(f)",
    "abs(d) > 1",
    "ok",
    "NOT ok",
    "ok IS NOT TRUE",
    "ok = (i > 0)",
    "date(local) = '1970-01-01'",
    "local = day",
    "big > d",
    "big IN (0, 12345678901234567890.5BD)",
    "octet_length(raw) = 2",
    "N < 20 AND I = 1",
    "n IN (SELECT max(id) FROM range(30))",
]


def conditions(seed: int, count: int) -> list[str]:
    """Random conditions; the same for the same seed."""
    made = random.Random(seed)

    def one(depth: int) -> str:
        kind = made.random()
        if depth and kind < 0.3:
            return f"({one(depth - 1)} {made.choice(['AND', 'OR'])} {one(depth - 1)})"
        if depth and kind < 0.4:
            return f"NOT ({one(depth - 1)})"
        if kind < 0.75:
            name = made.choice(sorted(VALUES))
            return f"{name} {made.choice(SIGNS)} {made.choice(VALUES[name])}"
        return made.choice(OTHERS)

    return [one(2) for _ in range(count)]


def matches(spark: Any, table: str, asked: list[str]) -> dict[int, set[int]]:
    """The rows that each condition holds for."""
    parts = [
        f"SELECT {number} AS at, n FROM {table} WHERE {each}" for number, each in enumerate(asked)
    ]
    found: dict[int, set[int]] = {number: set() for number in range(len(asked))}
    for at, n in spark.sql(" UNION ALL ".join(parts)).collect():
        assert n not in found[at]
        found[at].add(n)
    return found


@pytest.fixture
def registered(spark: Any, catalog: frazil.Catalog) -> frazil.Table:
    """The rows as `frazil.s.t` in twelve files, one with a deleted row, and as the view `plain`."""
    made = catalog.create_table("s.t", SCHEMA)
    for first in range(0, 180, 15):
        made.append(ROWS.slice(first, 15))
    made.append(ROWS.slice(0, 1))
    made.delete("_pos = 0 and n = 0 and _row_id >= 180")
    frazil.spark.register(spark, catalog)
    spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")  # `local` has no zone here, either
    spark.createDataFrame(ROWS).createOrReplaceTempView("plain")
    spark.conf.unset("spark.sql.timestampType")
    return made


@pytest.mark.parametrize(
    ("zone", "ansi"),
    [("UTC", True), ("Asia/Kolkata", True), ("America/Los_Angeles", False)],
)
def test_every_condition_finds_the_rows_that_spark_finds_in_plain_rows(
    spark: Any, registered: frazil.Table, zone: str, ansi: bool
) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone)
    spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    asked = conditions(len(zone), 40)
    expected = matches(spark, "plain", asked)
    found = matches(spark, "frazil.s.t", asked)
    wrong = {asked[at]: (found[at], expected[at]) for at in found if found[at] != expected[at]}
    assert wrong == {}
    assert sum(map(len, expected.values())) > 100


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/New_York"])
def test_changes_hit_the_rows_that_a_filter_finds(
    spark: Any, registered: frazil.Table, zone: str
) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone)
    asked = [
        "ts < '2024-03-31 07:00:00'",
        "f > 0.5",
        "NOT (f <= 0.5) AND hour(ts) < 12",
        "s.x = double('NaN') OR d = 1.5",
    ]
    expected = matches(spark, "plain", asked)
    left = set(range(180))
    for at, condition in enumerate(asked):
        gone = expected[at] & left
        if at % 2:
            spark.sql(f"DELETE FROM frazil.s.t WHERE {condition}")
        else:
            done = frazil.spark.delete(registered.refresh(), condition)
            assert done.rows_removed == len(gone)
        left -= gone
        assert {row["n"] for row in spark.table("frazil.s.t").select("n").collect()} == left

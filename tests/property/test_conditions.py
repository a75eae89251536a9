"""Conditions mean what DuckDB says: our pruning and reading against DuckDB on all rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frazil
from frazil.rows.duckdb.duckdb_connection import connect

NAN = float("nan")
SCHEMA = pa.schema(
    [
        pa.field("n", pa.int64()),
        pa.field("i", pa.int32()),
        pa.field("f", pa.float64()),
        pa.field("g", pa.float32()),
        pa.field("d", pa.decimal128(9, 2)),
        pa.field("day", pa.date32()),
        pa.field("ts", pa.timestamp("us", "UTC")),
        pa.field("t", pa.string()),
        pa.field(
            "s",
            pa.struct(
                [
                    pa.field("x", pa.float64()),
                    pa.field("y", pa.string()),
                    pa.field("z", pa.struct([pa.field("day", pa.date32())])),
                ]
            ),
        ),
        pa.field("local", pa.timestamp("us")),
        pa.field("ok", pa.bool_()),
        pa.field("big", pa.decimal128(38, 10)),
        pa.field("raw", pa.binary()),
    ]
)
NUMBERS: list[Any] = [None, NAN, -1.5, -0.0, 0.0, 0.5, 2.0, float("inf"), float("-inf")]
DAYS = [None, date(1931, 5, 6), date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29)]
TEXTS = [None, "", "a", "ab", "a%b", "A_b", "é", "it's", "a\\b"]


def _row(n: int) -> dict[str, Any]:
    return {
        "n": n,
        "i": [None, -3, 0, 1, 2, 7][n % 6],
        "f": NUMBERS[n % 9],
        "g": NUMBERS[(n * 5) % 9],
        "d": [None, Decimal("-1.25"), Decimal("0.00"), Decimal("1.50"), Decimal("99.99")][n % 5],
        "day": DAYS[n % 5],
        "ts": [
            None,
            datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
            datetime(2024, 3, 31, 1, 30, tzinfo=UTC),
            datetime(2024, 3, 31, 22, tzinfo=UTC),
        ][n % 4],
        "t": TEXTS[n % 9],
        "s": None
        if n % 7 == 0
        else {
            "x": NUMBERS[(n * 2) % 9],
            "y": TEXTS[(n * 4) % 9],
            "z": None if n % 3 == 0 else {"day": DAYS[(n * 3) % 5]},
        },
        "local": [
            None,
            datetime(1969, 12, 31, 23, 59, 59, 999_999),
            datetime(1970, 1, 1),
            datetime(2024, 3, 31, 2, 30),
        ][(n * 3) % 4],
        "ok": [True, False, None][n % 3],
        "big": [
            None,
            Decimal("-12345678901234567890.5"),
            Decimal("0"),
            Decimal("0.0000000001"),
            Decimal("12345678901234567890.5"),
        ][(n * 2) % 5],
        "raw": [None, b"", b"\x00", b"\x00\xff", b"a"][(n * 4) % 5],
    }


ROWS = pa.Table.from_pylist([_row(n) for n in range(180)], SCHEMA)

SIGNS = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
VALUES = {
    "i": ["0", "1", "2.5", "-3", "1e12", "NULL"],
    "f": ["0", "-0.0", "0.5", "2", "1e400", "'NaN'::DOUBLE", "'inf'::DOUBLE", "NULL"],
    "g": ["0", "0.5", "2", "'NaN'::FLOAT"],
    "d": ["0", "1.5", "1.505", "-1.25", "1e10"],
    "day": ["'1970-01-01'", "date '1931-05-06'", "date '2024-02-29'"],
    "ts": ["'2024-03-31 01:30:00'", "timestamptz '2024-03-31 00:30:00-01:00'", "'1970-01-01'"],
    "t": ["''", "'a'", "'ab'", "'it''s'", "'é'"],
    "s.x": ["0", "0.5", "'NaN'::DOUBLE"],
    "s.y": ["'a'", "'é'"],
    "s.z.day": ["date '1970-01-01'", "'1931-05-06'"],
    "local": ["'1970-01-01'", "timestamp '2024-03-31 02:30:00'", "date '1970-01-01'"],
    "big": ["0", "1e-10", "12345678901234567890.5", "-12345678901234567890"],
    "raw": ["'a'::BLOB", "''::BLOB", "'\\x00\\xFF'::BLOB"],
}
COMPARED = st.sampled_from(sorted(VALUES)).flatmap(
    lambda name: st.builds(
        lambda sign, value: f"{name} {sign} {value}", SIGNS, st.sampled_from(VALUES[name])
    )
)
OTHERS = st.sampled_from(
    [
        *(f"{name} is {word}" for name in VALUES for word in ("null", "not null")),
        "i in (0, 1, NULL)",
        "i not in (0, 7)",
        "i not in (0, NULL)",
        "f in (0.0, 2)",
        "f not in (0.5, 1)",
        "f between 0 and 1e400",
        "d between 0 and 1.5",
        "day between '1969-01-01' and '1970-01-01'",
        "t like 'a%'",
        "t like '%b'",
        "t like 'a\\%b'",
        "t not like 'a%'",
        "t ilike 'A%'",
        "t like 'a_b'",
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
        "not ok",
        "ok is not true",
        "ok = (i > 0)",
        "local::date = '1970-01-01'",
        "local = day",
        "local < ts",
        "big > d",
        "big in (0, 12345678901234567890.5)",
        "octet_length(raw) = 2",
    ]
)
CONDITIONS = st.recursive(
    st.one_of(COMPARED, OTHERS),
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("not ({})".format, inner),
    ),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[frazil.Table]:
    with frazil.connect(tmp_path_factory.mktemp("conditions")) as catalog:
        made = catalog.create_table("s.t", SCHEMA)
        for first in range(0, 180, 6):
            made.append(ROWS.slice(first, 6))
        yield made


@settings(max_examples=120, deadline=None)
@given(where=CONDITIONS)
def test_a_condition_matches_the_rows_that_duckdb_says(table: frazil.Table, where: str) -> None:
    connection = connect()
    connection.register("arrow", ROWS)
    # Filters on Arrow tables are evaluated by Arrow, for which NaN is not greater than anything.
    connection.execute("CREATE TABLE rows AS SELECT * FROM arrow")
    expected = connection.sql(f"SELECT n FROM rows WHERE {where}").fetchall()
    scan = table.scan(where, ["n"])
    assert sorted(scan.to_arrow()["n"].to_pylist()) == sorted(n for (n,) in expected)
    assert scan.count() == len(expected)

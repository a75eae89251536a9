"""Statistics of expressions never leave out a file that has a row for a condition."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frazil

ROWS = 60


def cycled(values: list[object], step: int) -> list[object]:
    return [values[(at * step + at // len(values)) % len(values)] for at in range(ROWS)]


DATA = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "i": pa.array(cycled([None, -5, 0, 1, 2, 3, 7, 2**31 - 1], 3), pa.int32()),
        "f": pa.array(cycled([None, math.nan, -math.inf, -0.0, 0.0, 0.1, 1.5, 1e300], 5)),
        "s": pa.array(cycled([None, "", "a", "Ab", "aB", "Ä", "İ", "ﬁ", "ΟΔΟΣ", "zz" * 20], 3)),
        "d": pa.array(cycled([None, date(1969, 12, 31), date(2024, 2, 29)], 2), pa.date32()),
        "ts": pa.array(
            cycled([None, datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(2024, 3, 1)], 2),
            pa.timestamp("us"),
        ),
        "m": pa.array(cycled([None, Decimal("-1.50"), Decimal("0.00"), Decimal("99.99")], 3)),
        "j": pa.array(cycled([None, '{"k": "x"}', '{"k": "Y"}', '{"k": 5}', "{}"], 2)),
        "p": pa.array(cycled([None, {"a": 1, "n": "x"}, {"a": None, "n": "Y"}], 2)),
    }
)
VALUES = {
    "lower(s)": ["''", "'a'", "'ab'", "'ä'", "'i'", "'οδοσ'", "'zz'", f"'{'zz' * 20}'"],
    "upper(p.n)": ["'X'", "'Y'", "'x'"],
    "concat(s, p.n)": ["'a'", "'AbY'", "'x'"],
    "length(s)": ["0", "1", "2", "40", "1.5"],
    "json_extract_string(j, '$.k')": ["'x'", "'Y'", "'5'", "''"],
    "i % 3": ["-2", "0", "1", "2.0", "3"],
    "abs(i) + 1": ["1", "6", "2147483648", "0.5"],
    "f * 2": ["0", "-0.0", "'NaN'::DOUBLE", "'inf'::DOUBLE", "3", "0.2"],
    "i / 2": ["0", "0.5", "-2.5", "1073741823.5"],
    "m + 1": ["-0.5", "1.00", "100.99", "1"],
    "year(d)": ["1969", "2024", "1970"],
    "date_trunc('year', ts)": ["TIMESTAMP '1969-01-01 00:00:00'", "DATE '2024-01-01'"],
    "CAST(ts AS DATE)": ["DATE '1969-12-31'", "'2024-03-01'"],
    "coalesce(i, p.a, 0)": ["0", "1", "7"],
    "CASE WHEN i > 1 THEN s ELSE 'none' END": ["'none'", "'a'", "'Ä'"],
    "substring(s, 1, 1)": ["'a'", "'A'", "'z'", "''"],
}
FLAGS = ["contains(s, 'b')", "i > 1", "s IS NULL", "i BETWEEN 1 AND 3"]
SIGNS = ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]


def forms() -> Iterator[str]:
    for expression, values in VALUES.items():
        yield from (f"{expression} IS NULL", f"{expression} IS NOT NULL")
        for value in values:
            yield from (f"{expression} {sign} {value}" for sign in SIGNS)
        for no in ("", "NOT "):
            yield f"{expression} {no}IN ({', '.join(values)})"
            yield f"{expression} {no}BETWEEN {values[0]} AND {values[-1]}"
        if values[0].startswith("'"):
            for pattern in ("a%", "%b", "Ä%", "", "zz%", "zzzzzzzzzzzzzzzzz%", "x"):
                yield f"{expression} LIKE '{pattern}'"
                yield f"starts_with({expression}, '{pattern.strip('%')}')"
    for flag in FLAGS:
        yield from (flag, f"({flag}) = true", f"({flag}) IS TRUE", f"({flag}) IS NOT TRUE")


FORMS = [form for at, one in enumerate(forms()) for form in (one, f"NOT ({one})")[: 1 + at % 2]]


class Pruned:
    """A table with statistics of every expression, beside the same rows without a table."""

    def __init__(self, table: frazil.Table) -> None:
        self.table = table
        self.full = duckdb.connect()
        self.full.register("rows", DATA)
        rows = table.scan(columns=["id", "_file"]).to_pylist()
        self.files = {row["id"]: row["_file"].rsplit("/", 1)[1] for row in rows}

    def left(self, condition: str) -> set[str] | None:
        """The files that are left; after a check that none with a row is missing."""
        try:
            ids = [
                row[0] for row in self.full.sql(f"SELECT id FROM rows WHERE {condition}").fetchall()
            ]
        except duckdb.Error:
            return None
        plan = self.table.scan(condition).plan()
        left = {path.rsplit("/", 1)[1] for path in plan.table["location"].to_pylist()}
        assert {self.files[id] for id in ids} <= left, condition
        return left


@pytest.fixture(scope="module")
def pruned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pruned]:
    with frazil.connect(tmp_path_factory.mktemp("expressions")) as catalog:
        table = catalog.create_table(
            "s.t",
            DATA.schema,
            expressions=[*VALUES, *FLAGS],
            properties={"write.root.max-data-entries": "8"},
        )
        ordered = DATA.sort_by([("s", "ascending"), ("i", "ascending")])
        for start in range(0, ROWS, 5):
            table.append(ordered.slice(start, 5))
        yield Pruned(table)


def test_no_form_of_condition_prunes_a_file_that_has_a_row_for_it(pruned: Pruned) -> None:
    everything = len(set(pruned.files.values()))
    narrowed = sum(
        len(left) < everything for form in FORMS if (left := pruned.left(form)) is not None
    )
    assert narrowed > len(FORMS) // 4


@settings(max_examples=100, deadline=None)
@given(
    parts=st.lists(st.sampled_from(FORMS), min_size=2, max_size=4),
    words=st.lists(st.sampled_from(["AND", "OR"]), min_size=3, max_size=3),
)
def test_conditions_together_prune_no_file_with_a_row(
    pruned: Pruned, parts: list[str], words: list[str]
) -> None:
    text = f"({parts[0]})"
    for part, word in zip(parts[1:], words, strict=False):
        text = f"({text} {word} ({part}))"
    pruned.left(text)

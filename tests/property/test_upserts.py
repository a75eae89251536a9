"""Upserts of any keys leave the rows that a dictionary has after the same steps."""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import frazil
from frazil.rows.duckdb import duckdb_source

NAN = "NaN"
"""Stands for NaN, which equals itself as a key and as a value."""
KEYS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), st.integers(-3, 3) | st.integers(-(1 << 63), (1 << 63) - 1)),
    (pa.int32(), st.integers(-3, 3) | st.integers(-(1 << 31), (1 << 31) - 1)),
    (pa.string(), st.text(st.sampled_from("aZ'é\U0001f9ca\x00 "), max_size=20)),
    (pa.date32(), st.dates(date(1, 1, 1), date(9999, 12, 31))),
    (pa.timestamp("us", "UTC"), st.datetimes(datetime(1600, 1, 1), timezones=st.just(UTC))),
    (pa.decimal128(9, 2), st.integers(-999, 999).map(lambda cents: Decimal(cents) / 100)),
    (pa.float64(), st.floats(allow_nan=False).map(lambda x: x + 0.0) | st.just(math.nan)),
    (pa.bool_(), st.booleans()),
]
VALUES = st.tuples(st.none() | st.integers(0, 2), st.none() | st.sampled_from([1.5, math.nan]))


@dataclass(frozen=True, kw_only=True)
class Step:
    rows: list[tuple[Any, tuple[Any, Any]]]
    has_all_columns: bool
    update: bool
    insert: bool
    is_held: bool
    deleted: int | None


def same(value: Any) -> Any:
    return NAN if isinstance(value, float) and math.isnan(value) else value


@st.composite
def histories(draw: st.DrawFn) -> tuple[pa.DataType, list[Step]]:
    kind, keys = draw(st.sampled_from(KEYS))
    some = st.lists(keys, min_size=1, max_size=8, unique_by=same)
    known = st.sampled_from(draw(some)) | keys
    rows = st.lists(
        st.tuples(known, VALUES), min_size=1, max_size=8, unique_by=lambda row: same(row[0])
    )
    step = st.builds(
        Step,
        rows=rows,
        has_all_columns=st.booleans(),
        update=st.booleans(),
        insert=st.booleans(),
        is_held=st.booleans(),
        deleted=st.none() | st.integers(0, 2),
    )
    return kind, draw(st.lists(step, min_size=1, max_size=5))


@given(histories())
def test_an_upsert_does_what_a_dictionary_does(history: tuple[pa.DataType, list[Step]]) -> None:
    kind, steps = history
    schema = pa.schema([("k", kind), ("v", pa.int64()), ("w", pa.float64())])
    expected: dict[Any, tuple[Any, Any]] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        frazil.connect(folder) as catalog,
        pytest.MonkeyPatch.context() as patch,
    ):
        table = catalog.create_table("s.t", schema)
        for step in steps:
            patch.setattr(duckdb_source, "MAX_HELD", (1 << 27) if step.is_held else 0)
            table.upsert(
                given_rows(step, schema),
                on="k",
                update_matched=step.update,
                insert_unmatched=step.insert,
            )
            change(expected, step)
            if step.deleted is not None:
                table.delete(f"v = {step.deleted}")
                expected = {k: row for k, row in expected.items() if row[0] != step.deleted}
            found = table.scan(columns=["k", "v", "w", "_row_id"]).to_pylist()
            rows = {same(row["k"]): (same(row["v"]), same(row["w"])) for row in found}
            assert (rows, len(found)) == (expected, len(expected))
            assert len({row["_row_id"] for row in found}) == len(found)


def given_rows(step: Step, schema: pa.Schema) -> pa.Table:
    keys = [key for key, _ in step.rows]
    ones, others = zip(*(values for _, values in step.rows), strict=True)
    rows = pa.table({"k": keys, "v": list(ones), "w": list(others)}, schema=schema)
    return rows if step.has_all_columns else rows.drop_columns(["w"])


def change(rows: dict[Any, tuple[Any, Any]], step: Step) -> None:
    for key, (one, other) in step.rows:
        old = rows.get(same(key))
        if step.insert if old is None else step.update:
            kept = None if old is None else old[1]
            rows[same(key)] = (same(one), same(other) if step.has_all_columns else kept)

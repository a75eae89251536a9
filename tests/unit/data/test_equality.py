"""Which rows equality deletes remove."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from frazil.data.read.equality import EqualityDeletes


def _matches(deleted: dict[str, pa.Array], rows: dict[str, pa.Array]) -> list[bool]:
    deletes = EqualityDeletes(tuple(range(len(deleted))), pa.table(deleted))
    found = deletes.matches(list(rows.values()))
    return [bool(value) for value in found]


@pytest.mark.parametrize(
    ("deleted", "values", "expected"),
    [
        (pa.array([7, None]), pa.array([7, 8, None]), [True, False, True]),
        (pa.array([7]), pa.array([7, None]), [True, False]),
        (pa.array(["a"]), pa.array(["a", "b", ""]), [True, False, False]),
        (pa.array([b"x" * 16], pa.binary(16)), pa.array([b"x" * 16], pa.binary(16)), [True]),
        (pa.array([math.nan]), pa.array([math.nan, 1.0]), [True, False]),
        (pa.array([0.0]), pa.array([-0.0, 0.0, 1.0]), [True, True, False]),
        (pa.array([Decimal("1.50")]), pa.array([Decimal("1.50")]), [True]),
        (pa.array([True]), pa.array([True, False, None]), [True, False, False]),
        (pa.array([1], pa.date32()), pa.array([1, 2], pa.date32()), [True, False]),
        (pa.array([], pa.int64()), pa.array([1, None]), [False, False]),
    ],
)
def test_one_column(deleted: pa.Array, values: pa.Array, expected: list[bool]) -> None:
    assert _matches({"c": deleted}, {"c": values}) == expected


def test_all_columns_of_a_tuple_must_be_equal() -> None:
    deleted = {"a": pa.array([1, 1, None]), "b": pa.array(["x", None, "y"])}
    rows = {
        "a": pa.array([1, 1, 1, None, None, 2]),
        "b": pa.array(["x", "y", None, "y", "x", "x"]),
    }
    assert _matches(deleted, rows) == [True, False, True, True, False, False]


def test_many_tuples_of_many_columns_match_as_sets_of_tuples_do() -> None:
    random = np.random.default_rng(5)

    def table(rows: int) -> dict[str, Any]:
        return {
            "a": pa.array(random.integers(0, 6, rows)),
            "b": pa.array([None if v == 0 else f"v{v}" for v in random.integers(0, 6, rows)]),
            "c": pa.array(random.integers(0, 3, rows).astype("float64")),
        }

    deleted, rows = table(60), table(2_000)
    wanted = set(zip(*(column.to_pylist() for column in deleted.values()), strict=True))
    tuples = zip(*(column.to_pylist() for column in rows.values()), strict=True)
    assert _matches(deleted, rows) == [one in wanted for one in tuples]

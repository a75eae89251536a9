"""Rows in the order of a sort order."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from frazil.data.write.row_input import conformed
from frazil.data.write.write_files import sort_rows
from frazil.iceberg.schema import Schema
from frazil.iceberg.sorting import NullOrder, SortDirection, SortField, SortOrder
from frazil.iceberg.transforms import BucketTransform, IdentityTransform, TruncateTransform
from frazil.iceberg.types import DoubleType, LongType, NestedField, StringType, StructType, UUIDType
from tests.support.pyiceberg_oracle import transformed

SCHEMA = Schema(
    NestedField(1, "x", DoubleType()),
    NestedField(2, "k", StringType()),
    NestedField(3, "n", LongType()),
    NestedField(4, "s", StructType(NestedField(5, "y", LongType()))),
    NestedField(6, "u", UUIDType()),
)
ASC, DESC = SortDirection.ASC, SortDirection.DESC
FIRST, LAST = NullOrder.NULLS_FIRST, NullOrder.NULLS_LAST


def _sorted(rows: list[dict[str, Any]], *fields: SortField) -> pa.RecordBatch:
    (batch,) = conformed(rows, SCHEMA)
    return sort_rows(batch, SortOrder(*fields, order_id=1), SCHEMA)


def _key(source: int, direction: Any, nulls: Any, transform: Any = None) -> SortField:
    return SortField(source, transform or IdentityTransform(), direction, nulls)


@pytest.mark.parametrize(
    ("direction", "nulls", "expected"),
    [
        (ASC, FIRST, "[None, -1.0, 2.0, nan]"),
        (ASC, LAST, "[-1.0, 2.0, nan, None]"),
        (DESC, FIRST, "[None, nan, 2.0, -1.0]"),
        (DESC, LAST, "[nan, 2.0, -1.0, None]"),
    ],
)
def test_nulls_go_where_asked_and_nan_is_the_greatest(
    direction: Any, nulls: Any, expected: str
) -> None:
    rows: list[dict[str, Any]] = [{"x": 2.0}, {"x": math.nan}, {"x": None}, {"x": -1.0}]
    found = _sorted(rows, _key(1, direction, nulls))
    assert str(found.column("x").to_pylist()) == expected


def test_later_fields_break_ties_and_equal_rows_keep_their_places() -> None:
    rows = [{"k": "b", "n": 1}, {"k": "a", "n": 1}, {"k": "b", "n": 0}, {"k": "a", "n": 1, "x": 1}]
    found = _sorted(rows, _key(2, ASC, FIRST), _key(3, DESC, LAST)).to_pylist()
    assert [(row["k"], row["n"], row["x"]) for row in found] == [
        ("a", 1, None),
        ("a", 1, 1.0),
        ("b", 1, None),
        ("b", 0, None),
    ]


def test_transforms_and_nested_sources_can_be_sorted_by() -> None:
    rows: list[dict[str, Any]] = [
        {"k": "abz", "s": {"y": 2}},
        {"k": "aba", "s": {"y": 1}},
        {"k": "aaa", "s": None},
    ]
    found = _sorted(rows, _key(2, ASC, FIRST, TruncateTransform(2)), _key(5, ASC, FIRST))
    assert found.column("k").to_pylist() == ["aaa", "aba", "abz"]


def test_buckets_and_uuids_can_be_sorted_by() -> None:
    rows = [{"u": bytes([i]) * 16, "n": i} for i in (3, 1, 2)]
    assert _sorted(rows, _key(6, ASC, FIRST)).column("n").to_pylist() == [1, 2, 3]
    by_bucket = _sorted(rows, _key(3, ASC, FIRST, BucketTransform(100)))
    buckets = [transformed(BucketTransform(100), LongType(), n) for n in (3, 1, 2)]
    expected = [n for _, n in sorted(zip(buckets, (3, 1, 2), strict=True))]
    assert by_bucket.column("n").to_pylist() == expected

"""Filters over rows."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import expressions

from frazil.errors import InvalidInput
from frazil.filter.row_filter import columns_of, row_mask, to_arrow
from frazil.filter.text.filter_text import parse
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema

SCHEMA = Schema(
    ice.NestedField(1, "n", ice.LongType()),
    ice.NestedField(2, "s", ice.StringType()),
    ice.NestedField(3, "f", ice.DoubleType()),
    ice.NestedField(
        4,
        "place",
        ice.StructType(
            ice.NestedField(5, "zip", ice.IntegerType(), required=True),
            ice.NestedField(6, "at", ice.StructType(ice.NestedField(7, "x.y", ice.IntegerType()))),
        ),
    ),
    ice.NestedField(8, "key", ice.UUIDType()),
    ice.NestedField(9, "dotted.name", ice.StringType()),
)
make: Any = expressions
NAN = float("nan")
ROWS = pa.table(
    {
        "n": pa.array([1, 2, 3, None], pa.int64()),
        "s": ["apple", "bee", "", None],
        "f": [0.5, NAN, -0.0, None],
        "place": pa.array(
            [
                {"zip": 1, "at": {"x.y": 5}},
                {"zip": 2, "at": None},
                {"zip": 3, "at": {"x.y": None}},
                None,
            ],
            pa.struct(
                [("zip", pa.int32()), ("at", pa.struct([("x.y", pa.int32())]))],
            ),
        ),
        "key": pa.array([uuid.UUID(int=i).bytes for i in (1, 2, 3)] + [None], pa.binary(16)),
        "dotted.name": ["a", "b", "c", None],
    }
)


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("n = 2", [1]),
        ("n != 2", [0, 2]),
        ("n < 2", [0]),
        ("n <= 2", [0, 1]),
        ("n > 2", [2]),
        ("n >= 2", [1, 2]),
        ("n in (1, 3, 9)", [0, 2]),
        ("n not in (1, 9)", [1, 2]),
        ("n is null", [3]),
        ("n is not null", [0, 1, 2]),
        ("not n = 2", [0, 2]),
        ("s like 'a%'", [0]),
        ("s not like 'a%'", [1, 2]),
        ("s like '%'", [0, 1, 2]),
        ("s = ''", [2]),
        ("f is nan", [1]),
        ("f is not nan", [0, 2, 3]),
        ("f = 0", [2]),
        ("f in (0, 7)", [2]),
        ("f not in (0, 7)", [0, 1]),
        ("f != 0.5", [1, 2]),
        ("f < 1", [0, 2]),
        ("f > 0", [0, 1]),
        ("not f < 0.2", [0, 1]),
        ("place.zip = 2", [1]),
        ("place.zip is null", [3]),
        ("place is null", [3]),
        ('place.at."x.y" = 5', [0]),
        ('place.at."x.y" is null', [1, 2, 3]),
        ("key = '00000000-0000-0000-0000-000000000002'", [1]),
        ("\"dotted.name\" > 'a'", [1, 2]),
        ("n = 1 or s is null", [0, 3]),
        ("n > 1 and s like 'b%'", [1]),
        ("n > 99 or true", [0, 1, 2, 3]),
        ("true", [0, 1, 2, 3]),
        ("false", []),
        ("false or n = 1", [0]),
        ("n > 5000000000000 or n < 0", []),
    ],
)
def test_which_rows_match(where: str, rows: list[int]) -> None:
    bound = parse(where, SCHEMA)
    assert row_mask(bound, ROWS).to_pylist() == [index in rows for index in range(4)]
    numbered = ROWS.append_column("#", pa.array([0, 1, 2, 3]))
    assert numbered.filter(to_arrow(bound)).column("#").to_pylist() == rows
    for batch in numbered.to_batches():
        assert row_mask(bound, batch).null_count == 0


def test_chunks_and_empty_tables() -> None:
    bound = parse("n > 1 and s not like 'z%'", SCHEMA)
    chunked = pa.concat_tables([ROWS, ROWS.slice(1)])
    assert row_mask(bound, chunked).to_pylist() == [
        *(False, True, True, False),
        *(True, True, False),
    ]
    assert row_mask(bound, ROWS.slice(0, 0)).to_pylist() == []
    assert row_mask(parse("true", SCHEMA), ROWS.slice(0, 0)).to_pylist() == []


@pytest.mark.parametrize(
    ("name", "values", "where"),
    [
        ("s", pa.array(["a", "b"]).dictionary_encode(), "s in ('b', 'c')"),
        ("s", pa.array(["a", "b"], pa.large_string()), "s like 'b%'"),
        ("n", pa.array([1, 2], pa.int32()), "n > 1"),
        ("f", pa.array([0.0, 2.0], pa.float32()), "f > 1.1"),
        (
            "key",
            pa.array([uuid.UUID(int=1).bytes, uuid.UUID(int=2).bytes], pa.uuid()),
            "key = '00000000-0000-0000-0000-000000000002'",
        ),
    ],
)
def test_columns_of_a_kindred_arrow_type_are_taken(name: str, values: Any, where: str) -> None:
    assert row_mask(parse(where, SCHEMA), pa.table({name: values})).to_pylist() == [False, True]


def test_a_missing_column_is_named() -> None:
    with pytest.raises(InvalidInput, match="needs column 'n', but the rows have only: s"):
        row_mask(parse("n = 1", SCHEMA), pa.table({"s": ["a"]}))


def test_a_filter_that_was_not_bound_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not bound"):
        to_arrow(make.EqualTo("n", 1))


def test_the_columns_of_a_filter() -> None:
    assert columns_of(parse("n = 1 and (s is null or place.zip > 2)", SCHEMA)) == {1, 2, 5}
    assert columns_of(parse("true", SCHEMA)) == frozenset()

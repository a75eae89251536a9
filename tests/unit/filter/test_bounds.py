"""Each operator against statistics, by hand.

Every table below lists files as rows: what is known of column `x`, then whether the filter might
match and whether it must.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from frazil.filter.prune.prune import PruneContext, might_match, must_match
from frazil.filter.text.filter_text import parse
from frazil.format.entries.batch import EntryBatch
from frazil.format.values.types import arrow_type
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema


def judge(
    where: str,
    type_: ice.IcebergType,
    files: list[dict[str, Any]],
    *,
    stored: pa.DataType | None = None,
    required: bool = False,
) -> list[tuple[bool, bool]]:
    """(might, must) for each file; a file is low, high, values, nulls, nans; absent is unknown."""
    schema = Schema(ice.NestedField(1, "x", type_, required=required))
    names = {
        "low": "lower_bound",
        "high": "upper_bound",
        "values": "value_count",
        "nulls": "null_value_count",
        "nans": "nan_value_count",
    }
    rows = [
        {"record_count": 10} | {f"content_stats.1.{names[k]}": v for k, v in file.items()}
        for file in files
    ]
    kind = stored or arrow_type(type_)
    types = {f"content_stats.1.{end}": kind for end in ("lower_bound", "upper_bound")}
    batch = EntryBatch.from_rows(rows, types)
    expression, context = parse(where, schema), PruneContext(schema=schema)
    might = might_match(expression, batch, context)
    must = must_match(expression, batch, context)
    assert len(might) == len(must) == len(files)
    return [(bool(a), bool(b)) for a, b in zip(might, must, strict=True)]


def file(low: Any, high: Any, *, nulls: int = 0, nans: int | None = None) -> dict[str, Any]:
    found = {"low": low, "high": high, "values": 10, "nulls": nulls}
    return found if nans is None else found | {"nans": nans}


NO, MAYBE, ALL = (False, False), (True, False), (True, True)
ALL_NULL = {"values": 10, "nulls": 10}
NOTHING: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        # files: 1..5, 5..5, 5..9, 6..9, 1..5 with nulls, all null, nothing known
        ("x < 5", [MAYBE, NO, NO, NO, MAYBE, NO, MAYBE]),
        ("x < 6", [ALL, ALL, MAYBE, NO, MAYBE, NO, MAYBE]),
        ("x <= 5", [ALL, ALL, MAYBE, NO, MAYBE, NO, MAYBE]),
        ("x > 5", [NO, NO, MAYBE, ALL, NO, NO, MAYBE]),
        ("x >= 5", [MAYBE, ALL, ALL, ALL, MAYBE, NO, MAYBE]),
        ("x = 5", [MAYBE, ALL, MAYBE, NO, MAYBE, NO, MAYBE]),
        ("x != 5", [MAYBE, NO, MAYBE, ALL, MAYBE, NO, MAYBE]),
        ("x in (0, 5)", [MAYBE, ALL, MAYBE, NO, MAYBE, NO, MAYBE]),
        ("x in (0, 10)", [NO, NO, NO, NO, NO, NO, MAYBE]),
        ("x in (0, 3, 7)", [MAYBE, NO, MAYBE, MAYBE, MAYBE, NO, MAYBE]),
        ("x not in (0, 5)", [MAYBE, NO, MAYBE, ALL, MAYBE, NO, MAYBE]),
        ("x not in (0, 10)", [ALL, ALL, ALL, ALL, MAYBE, NO, MAYBE]),
        ("x is null", [NO, NO, NO, NO, MAYBE, ALL, MAYBE]),
        ("x is not null", [ALL, ALL, ALL, ALL, MAYBE, NO, MAYBE]),
        ("true", [ALL] * 7),
        ("false", [NO] * 7),
        ("x > 5 and x < 5", [NO, NO, NO, NO, NO, NO, MAYBE]),
        ("x < 6 or x > 5", [ALL, ALL, MAYBE, ALL, MAYBE, NO, MAYBE]),
        ("not (x < 5)", [MAYBE, ALL, ALL, ALL, MAYBE, NO, MAYBE]),
        ("not (x >= 5 and x is not null)", [MAYBE, NO, NO, NO, MAYBE, ALL, MAYBE]),
    ],
)
def test_whole_numbers(where: str, expected: list[tuple[bool, bool]]) -> None:
    files = [
        file(1, 5),
        file(5, 5),
        file(5, 9),
        file(6, 9),
        file(1, 5, nulls=3),
        ALL_NULL,
        NOTHING,
    ]
    assert judge(where, ice.LongType(), files) == expected


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        # files: 1..5 without NaN, with some, with unknown, all NaN, NaN and null only, 5..5 + NaN
        ("x < 6", [ALL, MAYBE, MAYBE, NO, NO, MAYBE]),
        ("x > 5", [NO, MAYBE, MAYBE, ALL, MAYBE, MAYBE]),
        ("x >= 1", [ALL, ALL, ALL, ALL, MAYBE, ALL]),
        ("x > 1", [MAYBE, MAYBE, MAYBE, ALL, MAYBE, ALL]),
        ("x = 5", [MAYBE, MAYBE, MAYBE, NO, NO, MAYBE]),
        ("x in (4, 5)", [MAYBE, MAYBE, MAYBE, NO, NO, MAYBE]),
        ("x != 5", [MAYBE, MAYBE, MAYBE, ALL, MAYBE, MAYBE]),
        ("x != 7", [ALL, ALL, ALL, ALL, MAYBE, ALL]),
        ("x not in (5, 6)", [MAYBE, MAYBE, MAYBE, ALL, MAYBE, MAYBE]),
        ("x not in (6, 7)", [ALL, ALL, ALL, ALL, MAYBE, ALL]),
        ("x is nan", [NO, MAYBE, MAYBE, ALL, MAYBE, MAYBE]),
        ("x is not nan", [ALL, MAYBE, MAYBE, NO, MAYBE, MAYBE]),
        ("x is not null", [ALL, ALL, ALL, ALL, MAYBE, ALL]),
        ("x is null", [NO, NO, NO, NO, MAYBE, NO]),
    ],
)
def test_nan_lies_outside_the_bounds(where: str, expected: list[tuple[bool, bool]]) -> None:
    files = [
        file(1.0, 5.0, nans=0),
        file(1.0, 5.0, nans=2),
        file(1.0, 5.0),
        {"values": 10, "nulls": 0, "nans": 10},
        {"values": 10, "nulls": 4, "nans": 6},
        file(5.0, 5.0, nans=1),
    ]
    assert judge(where, ice.DoubleType(), files) == expected


def test_a_nan_that_a_writer_left_as_a_bound_says_nothing() -> None:
    nan = float("nan")
    files = [file(nan, 5.0, nans=0), file(1.0, nan, nans=0), file(nan, nan, nans=0)]
    assert judge("x < 0", ice.DoubleType(), files) == [MAYBE, NO, MAYBE]
    assert judge("x > 9", ice.DoubleType(), files) == [NO, MAYBE, MAYBE]
    assert judge("x = 3", ice.DoubleType(), files) == [MAYBE] * 3
    assert judge("x < 9", ice.DoubleType(), files) == [ALL, MAYBE, MAYBE]


def test_the_zeros_are_equal_and_infinities_are_bounds() -> None:
    zero = file(-0.0, 0.0, nans=0)
    wide = file(float("-inf"), float("inf"), nans=0)
    assert judge("x = 0", ice.DoubleType(), [zero, wide]) == [ALL, MAYBE]
    assert judge("x < 0", ice.DoubleType(), [zero, wide]) == [NO, MAYBE]
    assert judge("x <= 'inf'", ice.DoubleType(), [zero, wide]) == [ALL, ALL]


def test_all_null_and_all_nan_are_different_for_is_not_nan() -> None:
    files = [ALL_NULL, ALL_NULL | {"nans": 0}]
    assert judge("x is not nan", ice.DoubleType(), files) == [ALL, ALL]
    assert judge("x is nan", ice.DoubleType(), files) == [NO, NO]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        # files: abc..abz, a..b, abcd..abcf, b..c, ab..ab + upper unknown, all null
        ("x like 'abc%'", [MAYBE, MAYBE, ALL, NO, MAYBE, NO]),
        ("x like 'ab%'", [ALL, MAYBE, ALL, NO, MAYBE, NO]),
        ("x like 'abcz%'", [MAYBE, MAYBE, NO, NO, MAYBE, NO]),
        ("x like 'a%'", [ALL, MAYBE, ALL, NO, MAYBE, NO]),
        ("x like 'z%'", [NO, NO, NO, NO, MAYBE, NO]),
        ("x like '%'", [ALL, ALL, ALL, ALL, ALL, NO]),
        ("x not like '%'", [NO, NO, NO, NO, NO, NO]),
        ("x not like 'ab%'", [NO, MAYBE, NO, ALL, MAYBE, NO]),
        ("x not like 'abc%'", [MAYBE, MAYBE, NO, ALL, MAYBE, NO]),
        ("x not like 'z%'", [ALL, ALL, ALL, ALL, MAYBE, NO]),
        ("x not like 'aa%'", [ALL, MAYBE, ALL, ALL, ALL, NO]),
        ("x = 'abd'", [MAYBE, MAYBE, NO, NO, MAYBE, NO]),
        ("x in ('aa', 'abce', 'c')", [MAYBE, MAYBE, MAYBE, MAYBE, MAYBE, NO]),
        ("x in ('aaa', 'aab')", [NO, MAYBE, NO, NO, NO, NO]),
        ("x >= 'b'", [NO, MAYBE, NO, ALL, MAYBE, NO]),
        ("x < 'abcd'", [MAYBE, MAYBE, NO, NO, MAYBE, NO]),
    ],
)
def test_text(where: str, expected: list[tuple[bool, bool]]) -> None:
    files = [
        file("abc", "abz"),
        file("a", "b"),
        file("abcd", "abcf"),
        file("b", "c"),
        {"low": "ab", "values": 10, "nulls": 0},
        ALL_NULL,
    ]
    assert judge(where, ice.StringType(), files) == expected


def test_text_is_ordered_by_its_utf8_bytes() -> None:
    # U+E000 sorts before U+10000 in UTF-8, after it in UTF-16.
    files = [file("\ue000", "\uffff")]
    assert judge("x < '\U00010000'", ice.StringType(), files) == [ALL]
    assert judge("x = '\U00010000'", ice.StringType(), files) == [NO]


def test_a_prefix_ending_in_the_last_code_point_is_found() -> None:
    files = [file("a\U0010ffff", "a\U0010ffffb"), file("b", "c")]
    assert judge("x like 'a\U0010ffff%'", ice.StringType(), files) == [ALL, NO]


def test_truncated_bounds_only_enclose() -> None:
    # Values "abcdefgh…" of 20 characters, kept as 16: lower cut, upper rounded up.
    cut = file("abcdefghijklmnop", "abcdefghijklmnoq")
    assert judge("x = 'abcdefghijklmnopqrst'", ice.StringType(), [cut]) == [MAYBE]
    assert judge("x like 'abcdefghijklmnopq%'", ice.StringType(), [cut]) == [MAYBE]
    assert judge("x like 'abcdefghijklmno%'", ice.StringType(), [cut]) == [ALL]
    assert judge("x not like 'abcdefghijklmnop%'", ice.StringType(), [cut]) == [MAYBE]


@pytest.mark.parametrize(
    ("type_", "low", "high", "inside", "outside"),
    [
        (ice.IntegerType(), 1, 5, "3", "7"),
        (ice.DateType(), 0, 31, "'1970-01-15'", "'1970-02-15'"),
        (ice.TimestampType(), 0, 10**6, "'1970-01-01T00:00:01'", "'1970-01-01T00:00:02'"),
        (ice.TimestamptzType(), 0, 10**6, "'1970-01-01T01:00:01+01:00'", "'1970-01-01T00:00:02Z'"),
        (ice.DecimalType(9, 2), Decimal("1.00"), Decimal("2.00"), "1.5", "2.01"),
        (ice.DecimalType(38, 2), Decimal("1.00"), Decimal("2.00"), "1.5", "2.01"),
        (ice.BooleanType(), False, False, "false", "true"),
        (ice.BinaryType(), b"\x7f", b"\x80\x00", "X'7fff'", "X'81'"),
        (ice.FixedType(2), b"\x7f\x00", b"\x80\x00", "X'7fff'", "X'8001'"),
        (
            ice.UUIDType(),
            bytes(16),
            b"\x80" + bytes(15),
            "'7fffffff-ffff-ffff-ffff-ffffffffffff'",
            "'80000000-0000-0000-0000-000000000001'",
        ),
    ],
    ids=str,
)
def test_every_type_has_an_order(
    type_: ice.IcebergType, low: Any, high: Any, inside: str, outside: str
) -> None:
    files = [file(low, high), NOTHING]
    assert judge(f"x = {outside}", type_, files) == [NO, MAYBE]
    assert judge(f"x > {outside}", type_, files) == [NO, MAYBE]
    assert judge(f"x < {outside}", type_, files) == [ALL, MAYBE]
    assert judge(f"x != {outside}", type_, files) == [ALL, MAYBE]
    assert judge(f"x in ({inside}, {outside})", type_, files)[0][0]
    assert judge(f"x = {inside}", type_, files)[0][0]


def test_a_list_of_many_values_is_searched() -> None:
    many = ", ".join(str(10 * n) for n in range(500))
    files = [file(11, 19), file(11, 20), file(4990, 4990), file(4991, 9000)]
    assert judge(f"x in ({many})", ice.LongType(), files) == [NO, MAYBE, ALL, NO]
    assert judge(f"x not in ({many})", ice.LongType(), files) == [ALL, MAYBE, NO, ALL]
    texts = ", ".join(f"'k{n:03}'" for n in range(0, 1000, 10))
    named = [file("k011", "k019"), file("k011", "k020"), file("k990", "k990")]
    assert judge(f"x in ({texts})", ice.StringType(), named) == [NO, MAYBE, ALL]
    wide = ", ".join(f"{n}.5" for n in range(0, 100, 10))
    sums = [file(Decimal("1.0"), Decimal("9.9")), file(Decimal("10.5"), Decimal("10.5"))]
    assert judge(f"x in ({wide})", ice.DecimalType(38, 1), sums) == [NO, ALL]


def test_bounds_from_before_a_promotion_are_widened() -> None:
    assert judge("x > 3000000000", ice.LongType(), [file(1, 5)], stored=pa.int32()) == [NO]
    assert judge("x < 0.1", ice.DoubleType(), [file(0.5, 1.0, nans=0)], stored=pa.float32()) == [NO]
    old = file(Decimal("1.00"), Decimal("2.00"))
    assert judge("x > 2.5", ice.DecimalType(18, 2), [old], stored=pa.decimal128(4, 2)) == [NO]
    days = file(0, 1)
    assert judge("x > '1970-01-03'", ice.TimestampType(), [days], stored=pa.date32()) == [NO]


def test_bounds_of_another_kind_say_nothing() -> None:
    assert judge("x > 9", ice.LongType(), [file("a", "b")], stored=pa.string()) == [MAYBE]


def test_a_required_column_needs_no_null_count() -> None:
    known = {"low": 1, "high": 5}
    assert judge("x < 9", ice.LongType(), [known], required=True) == [ALL]
    assert judge("x < 9", ice.LongType(), [known]) == [MAYBE]


def test_counts_without_bounds_and_bounds_without_counts() -> None:
    files = [{"values": 10, "nulls": 0}, {"low": 1, "high": 5}, {"nulls": 0}, {"values": 10}]
    assert judge("x = 9", ice.LongType(), files) == [MAYBE, NO, MAYBE, MAYBE]
    assert judge("x is null", ice.LongType(), files) == [NO, MAYBE, NO, MAYBE]
    assert judge("x is not null", ice.LongType(), files) == [ALL, MAYBE, ALL, MAYBE]


def test_a_file_without_rows_never_matches() -> None:
    assert judge("x = 9", ice.LongType(), [{"values": 0, "nulls": 0}])[0][0] is False
    assert judge("x is null", ice.LongType(), [{"values": 0, "nulls": 0}])[0][0] is False


def test_null_counts_serve_columns_without_bounds() -> None:
    files = [ALL_NULL, {"values": 10, "nulls": 0}, NOTHING]
    listed = ice.ListType(2, ice.StringType(), element_required=False)
    for type_ in (listed, ice.GeometryType()):
        schema = Schema(ice.NestedField(1, "x", type_))
        rows = [
            {"record_count": 10}
            | {
                f"content_stats.1.{name}": each[key]
                for key, name in (("values", "value_count"), ("nulls", "null_value_count"))
                if key in each
            }
            for each in files
        ]
        batch, context = EntryBatch.from_rows(rows), PruneContext(schema=schema)
        assert might_match(parse("x is null", schema), batch, context).tolist() == [
            True,
            False,
            True,
        ]
        assert must_match(parse("x is not null", schema), batch, context).tolist() == [
            False,
            True,
            False,
        ]


def test_no_entries_give_empty_masks() -> None:
    schema = Schema(ice.NestedField(1, "x", ice.LongType()))
    context = PruneContext(schema=schema)
    for where in ("x = 1", "x is null", "true", "false", "x in (1, 2) or x > 9"):
        expression = parse(where, schema)
        assert might_match(expression, EntryBatch.empty(), context).tolist() == []
        assert must_match(expression, EntryBatch.empty(), context).tolist() == []

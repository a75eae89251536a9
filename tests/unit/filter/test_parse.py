"""Filter text and PyIceberg expressions, bound to a schema."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyiceberg import expressions as ice
from pyiceberg.expressions import parser as pyiceberg_parser

from frazil.errors import InvalidInput, Unsupported
from frazil.filter.row_filter import row_mask
from frazil.filter.text.filter_text import parse
from frazil.iceberg import expressions as ours
from frazil.iceberg.expressions import Op, literals_of
from frazil.iceberg.literals import (
    BinaryLiteral,
    BooleanLiteral,
    DateLiteral,
    DecimalLiteral,
    DoubleLiteral,
    FixedLiteral,
    FloatLiteral,
    Literal,
    LongLiteral,
    StringLiteral,
    TimeLiteral,
    TimestampLiteral,
    UUIDLiteral,
)
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "country", StringType()),
    NestedField(3, "price", DecimalType(10, 2)),
    NestedField(4, "order_date", DateType()),
    NestedField(5, "ts", TimestampType()),
    NestedField(6, "tz", TimestamptzType()),
    NestedField(7, "ns", TimestampNanoType()),
    NestedField(8, "active", BooleanType()),
    NestedField(9, "score", FloatType()),
    NestedField(10, "ratio", DoubleType()),
    NestedField(11, "key", UUIDType()),
    NestedField(
        12,
        "address",
        StructType(
            NestedField(13, "zip", IntegerType(), required=True),
            NestedField(14, "city", StringType()),
        ),
    ),
    NestedField(15, "tags", ListType(16, StringType())),
    NestedField(17, "date", DateType()),
    NestedField(18, "raw", BinaryType()),
    NestedField(19, "code", FixedType(2)),
    NestedField(20, "at", TimeType()),
    NestedField(21, "odd name", StringType()),
    NestedField(22, "n", IntegerType()),
)
make: Any = ice
DAY_US = 86_400_000_000


NAMES = {
    Op.IS_NULL: "IsNull",
    Op.NOT_NULL: "NotNull",
    Op.IS_NAN: "IsNaN",
    Op.NOT_NAN: "NotNaN",
    Op.LT: "LessThan",
    Op.LE: "LessThanOrEqual",
    Op.GT: "GreaterThan",
    Op.GE: "GreaterThanOrEqual",
    Op.EQ: "EqualTo",
    Op.NE: "NotEqualTo",
    Op.STARTS_WITH: "StartsWith",
    Op.NOT_STARTS_WITH: "NotStartsWith",
    Op.IN: "In",
    Op.NOT_IN: "NotIn",
}


def shown(expression: ours.BooleanExpression) -> Any:
    """A bound expression as nested tuples of PyIceberg's class names, columns and values."""
    if isinstance(expression, ours.And | ours.Or):
        name = type(expression).__name__.lower()
        return (name, shown(expression.left), shown(expression.right))
    if isinstance(expression, ours.AlwaysTrue | ours.AlwaysFalse):
        return isinstance(expression, ours.AlwaysTrue)
    assert isinstance(expression, ours.BoundPredicate)
    assert expression.op is not None
    values = sorted(literal.value for literal in literals_of(expression))
    return (NAMES[expression.op], expression.term.field.name, *values)


def one(text: str) -> Literal:
    """The one literal of a filter."""
    (literal,) = literals_of(parse(text, SCHEMA))
    return literal


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("country = 'US'", ("EqualTo", "country", "US")),
        ("country == 'it''s'", ("EqualTo", "country", "it's")),
        ("country != 'US'", ("NotEqualTo", "country", "US")),
        ("country <> 'US'", ("NotEqualTo", "country", "US")),
        ("id < 5", ("LessThan", "id", 5)),
        ("id <= -5", ("LessThanOrEqual", "id", -5)),
        ("5 < id", ("GreaterThan", "id", 5)),
        ("+5 >= id", ("LessThanOrEqual", "id", 5)),
        ("5 = id", ("EqualTo", "id", 5)),
        ("country is null", ("IsNull", "country")),
        ("country IS NOT NULL", ("NotNull", "country")),
        ("score = 'NaN'", ("IsNaN", "score")),
        ("score >= ' nan'", ("IsNaN", "score")),
        ("score is nan", ("IsNaN", "score")),
        ("score is not NaN", ("NotNaN", "score")),
        ("id in (3, 1, 2)", ("In", "id", 1, 2, 3)),
        ("id in (3)", ("EqualTo", "id", 3)),
        ("id not in (1, 2.0)", ("NotIn", "id", 1, 2)),
        ("country like 'U%'", ("StartsWith", "country", "U")),
        ("country like 'U%%'", ("StartsWith", "country", "U")),
        ("country not like 'U%'", ("NotStartsWith", "country", "U")),
        ("country like 'US'", ("EqualTo", "country", "US")),
        ("country starts with '50%'", ("StartsWith", "country", "50%")),
        ("country not starts with 'x'", ("NotStartsWith", "country", "x")),
        ("active", ("EqualTo", "active", True)),
        ("not active", ("NotEqualTo", "active", True)),
        ("active = false", ("EqualTo", "active", False)),
        ("active is true", ("EqualTo", "active", True)),
        ("active is not true", ("or", ("NotEqualTo", "active", True), ("IsNull", "active"))),
        ("true", True),
        ("not true", False),
        ("1 = 1", True),
        ("2 < 1.5", False),
        ("'a' != 'b'", True),
        ("address.city = 'Rome'", ("EqualTo", "city", "Rome")),
        ('"address"."city" = \'Rome\'', ("EqualTo", "city", "Rome")),
        ("\"address.city\" = 'Rome'", ("EqualTo", "city", "Rome")),
        ("`odd name` is null", ("IsNull", "odd name")),
        ("tags is null", ("IsNull", "tags")),
        ("address is not null", ("NotNull", "address")),
        ("date > date '1970-01-02'", ("GreaterThan", "date", 1)),
        (
            "id between 1 and 5",
            ("and", ("GreaterThanOrEqual", "id", 1), ("LessThanOrEqual", "id", 5)),
        ),
        ("id not between 1 and 5", ("or", ("LessThan", "id", 1), ("GreaterThan", "id", 5))),
        (
            "id = 1 or id = 2 and not (n = 3 or n is null)",
            (
                "or",
                ("EqualTo", "id", 1),
                ("and", ("EqualTo", "id", 2), ("and", ("NotEqualTo", "n", 3), ("NotNull", "n"))),
            ),
        ),
        ("not not id = 1", ("EqualTo", "id", 1)),
        ("not id < 1", ("GreaterThanOrEqual", "id", 1)),
        (
            "not (id < 1 and n > 2)",
            ("or", ("GreaterThanOrEqual", "id", 1), ("LessThanOrEqual", "n", 2)),
        ),
        ("id\n=\n1", ("EqualTo", "id", 1)),
    ],
)
def test_text_means_what_sql_means(text: str, expected: Any) -> None:
    assert shown(parse(text, SCHEMA)) == expected


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("order_date = '2024-01-15'", DateLiteral(19737)),
        ("order_date = date '2024-01-15'", DateLiteral(19737)),
        ("order_date < '2024-01-15T00:00:00'", DateLiteral(19737)),
        ("ts >= '1970-01-02T10:00:00'", TimestampLiteral(DAY_US + 36_000_000_000)),
        ("ts >= timestamp '1970-01-02 10:00'", TimestampLiteral(DAY_US + 36_000_000_000)),
        ("ts = '1970-01-02'", TimestampLiteral(DAY_US)),
        ("ts = date '1970-01-02'", TimestampLiteral(DAY_US)),
        ("ts = '1969-12-31T23:59:59.999999'", TimestampLiteral(-1)),
        ("tz = '1970-01-01T02:30:00+02:30'", TimestampLiteral(0)),
        ("tz = '1969-12-31T23:00:00-0100'", TimestampLiteral(0)),
        ("tz = '1970-01-01T00:00:00Z'", TimestampLiteral(0)),
        ("tz = '1970-01-01T00:00:00'", TimestampLiteral(0)),
        ("ns = '1970-01-01T00:00:00.000000007'", LongLiteral(7)),
        ("at = '01:00'", TimeLiteral(3_600_000_000)),
        ("at = time '00:00:00.000001'", TimeLiteral(1)),
        ("price = 1.5", DecimalLiteral(Decimal("1.50"))),
        ("price = '1.5'", DecimalLiteral(Decimal("1.50"))),
        ("price = 2", DecimalLiteral(Decimal("2.00"))),
        ("price = 1e2", DecimalLiteral(Decimal("100.00"))),
        ("score = 0.1", FloatLiteral(0.10000000149011612)),
        ("ratio = .5", DoubleLiteral(0.5)),
        ("ratio = '-inf'", DoubleLiteral(float("-inf"))),
        ("id = '12'", LongLiteral(12)),
        ("n = 1e3", LongLiteral(1000)),
        (
            "key = 'f79c3e09-677c-4bbd-a479-3f349cb785e7'",
            UUIDLiteral(UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes),
        ),
        ("key = uuid '00000000-0000-0000-0000-000000000001'", UUIDLiteral(bytes(15) + b"\1")),
        ("raw = X'00fF'", BinaryLiteral(b"\x00\xff")),
        ("code = x'0001'", FixedLiteral(b"\0\1")),
        ("active = 'TRUE'", BooleanLiteral(True)),
        ("country = 'é€𝄞'", StringLiteral("é€𝄞")),
    ],
)
def test_literals_take_the_type_of_the_column(text: str, literal: Literal) -> None:
    found = one(text)
    assert type(found) is type(literal)
    assert found.value == literal.value


def test_decimal_literals_have_the_scale_of_the_column() -> None:
    assert str(one("price = 2").value) == "2.00"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n > 1.5", ("GreaterThan", "n", 1)),
        ("n >= 1.5", ("GreaterThan", "n", 1)),
        ("n < 1.5", ("LessThanOrEqual", "n", 1)),
        ("n <= -1.5", ("LessThanOrEqual", "n", -2)),
        ("n = 1.5", False),
        ("n != 1.5", ("NotNull", "n")),
        ("not n = 1.5", ("NotNull", "n")),
        ("n in (1.5, 2)", ("EqualTo", "n", 2)),
        ("n in (1.5, 2.5)", False),
        ("n not in (1.5, 2.5)", ("NotNull", "n")),
        ("id != 1.5", True),
        ("n < 3000000000", ("NotNull", "n")),
        ("n > 3000000000", False),
        ("n > -3000000000", ("NotNull", "n")),
        ("n < -3000000000", False),
        ("n != 3000000000", ("NotNull", "n")),
        ("n < 1e999999", ("NotNull", "n")),
        ("id < " + "9" * 5000, True),
        ("price < 1e30", ("NotNull", "price")),
        ("price > 1.005", ("GreaterThan", "price", Decimal("1.00"))),
        ("price < -1.005", ("LessThanOrEqual", "price", Decimal("-1.01"))),
        ("order_date > '1970-01-02T12:00:00'", ("GreaterThan", "order_date", 1)),
        ("order_date = '1970-01-02T12:00:00'", False),
        ("ts < '1970-01-01T00:00:00.0000005'", ("LessThanOrEqual", "ts", 0)),
        ("ns < '2500-01-01'", ("NotNull", "ns")),
        ("score > 1e39", ("GreaterThan", "score", 3.4028234663852886e38)),
        ("score < -1e39", ("LessThanOrEqual", "score", float("-inf"))),
    ],
)
def test_a_value_the_column_cannot_hold_keeps_its_meaning(text: str, expected: Any) -> None:
    assert shown(parse(text, SCHEMA)) == expected


def test_a_required_column_is_never_null_unless_its_struct_is() -> None:
    assert shown(parse("id is null", SCHEMA)) is False
    assert shown(parse("id is not null", SCHEMA)) is True
    assert shown(parse("address.zip is null", SCHEMA)) == ("IsNull", "zip")


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("contry = 'US'", 1, "unknown column 'contry'. Did you mean 'country'? Known columns: id,"),
        ("id = 1 and contry = 'US'", 12, "unknown column 'contry'"),
        ('country = "US"', 11, "single quotes"),
        ("country = `id`", 11, "expected a value, found column 'id'"),
        ("country = 5", 11, "cannot be compared with a string column"),
        ("id = 'x'", 6, "'x' cannot be compared with a long column"),
        ("id = true", 6, "cannot be compared with a long column"),
        ("active = 1", 10, "cannot be compared with a boolean column"),
        ("id in (1, 'x')", 11, "'x' cannot be compared"),
        ("(id = 5", 8, "expected AND, OR or ')', found end of the filter"),
        ("id = 5)", 7, "expected AND, OR or the end"),
        ("id = null", 6, "write IS NULL"),
        ("score = nan", 9, "write IS NAN"),
        ("country is nan", 1, "cannot be NaN"),
        ("country is", 11, "expected NULL, NAN, TRUE or FALSE"),
        ("order_date > 2024", 14, "write its values in quotes"),
        ("order_date = 'yesterday'", 14, "'yesterday' is not a date; write it like '2024-01-15'"),
        ("order_date = '2024-02-30'", 14, "is not a date"),
        ("ts = '2024-13-01T00:00:00'", 6, "is not a timestamp"),
        ("ts = '2024-01-01T00:00:00Z'", 6, "has a zone"),
        ("tz = 'now'", 6, "write it like '2024-01-15T10:30:00+00:00'"),
        ("at = '25:00'", 6, "is not a time"),
        ("key = 'abc'", 7, "is not a uuid"),
        ("key = uuid 'abc'", 12, "badly formed"),
        ("raw = 'abc'", 7, "X'00ff'"),
        ("raw = X'0'", 7, "hexadecimal"),
        ("code = X'000102'", 8, "it has 3 bytes"),
        ("tags = 'x'", 1, "only IS NULL and IS NOT NULL"),
        ("address.zop = 1", 1, "Did you mean 'address.zip'"),
        ("tags.element = 'x'", 1, "inside a list or a map"),
        ("country like '%x'", 14, "can only match a beginning"),
        ("country like 'a_c%'", 14, "can only match a beginning"),
        (r"country like 'a\%'", 14, "no escape character"),
        ("id like 'a%'", 9, "cannot be compared with a long column"),
        ("country like 5", 14, "text in single quotes"),
        ("id ! 5", 4, "unexpected character '!'"),
        ("country = 'US", 11, "no closing quote"),
        ('"country = 1', 1, "no closing quote"),
        ("id in ()", 8, "expected a value"),
        ("id in 5", 7, "expected '('"),
        ("id between 1 or 5", 14, "expected AND"),
        ("country", 8, "expected a comparison"),
        ("id = 5 5", 8, "expected AND, OR or the end"),
        ("id = -", 7, "expected a number"),
        ("5", 2, "expected a comparison"),
        ("1 = 'a'", 5, "cannot be compared"),
        ("and", 1, "expected a value"),
        ("address. = 1", 10, "expected a column name"),
        ("id = 1e99999999999999999999", 6, "exponent"),
        ("(" * 200 + "id = 1" + ")" * 200, 101, "nested deeper"),
        ("order_date = date '2024-01-15T10:00'", 19, "isoformat"),
    ],
)
def test_bad_text_is_refused_with_the_spot(text: str, position: int, problem: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(text, SCHEMA)
    message = str(caught.value)
    assert f"at position {position}:" in message
    assert problem in message


def test_an_error_quotes_the_line_and_points_under_the_spot() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse("id = 1\n  and pryce > 2", SCHEMA)
    lines = str(caught.value).splitlines()
    assert lines[1:] == ["    and pryce > 2", "        ^"]


def test_an_error_in_a_long_line_shows_the_part_around_the_spot() -> None:
    text = " or ".join(["id = 1"] * 50) + " or pryce > 2 or " + " or ".join(["id = 1"] * 50)
    with pytest.raises(InvalidInput) as caught:
        parse(text, SCHEMA)
    _, line, caret = str(caught.value).splitlines()
    assert len(line) < 130
    assert line[caret.index("^") :].startswith("pryce > 2")


def test_a_blank_filter_is_refused_and_none_matches_everything() -> None:
    for blank in ("", "  \n"):
        with pytest.raises(InvalidInput, match="write 'true'"):
            parse(blank, SCHEMA)
    assert shown(parse(None, SCHEMA)) is True


def test_what_is_no_filter_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not int"):
        parse(5, SCHEMA)  # type: ignore[arg-type]


def test_names_can_ignore_case() -> None:
    assert shown(parse("COUNTRY = 'US'", SCHEMA, case_sensitive=False)) == (
        "EqualTo",
        "country",
        "US",
    )
    with pytest.raises(InvalidInput, match="unknown column"):
        parse("COUNTRY = 'US'", SCHEMA)
    twins = Schema(NestedField(1, "ab", LongType()), NestedField(2, "AB", LongType()))
    with pytest.raises(InvalidInput, match="ambiguous"):
        parse("aB = 1", twins, case_sensitive=False)


@pytest.mark.parametrize(
    "text",
    [
        "id = 1 and country = 'US' or n is null",
        "not (id >= 1 and country like 'a%') or active = true",
        "id in (1, 2, 3) and country not in ('a', 'b')",
        "n between 1 and 5",
        "score is nan or score is not nan",
        "5 > n",
        "country not like 'a%'",
        "true",
    ],
)
def test_what_pyiceberg_parses_means_the_same_here(text: str) -> None:
    assert shown(parse(text, SCHEMA)) == shown(parse(pyiceberg_parser.parse(text), SCHEMA))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (make.EqualTo("order_date", date(1970, 1, 2)), ("EqualTo", "order_date", 1)),
        (make.EqualTo("ts", datetime(1970, 1, 1, 0, 0, 1)), ("EqualTo", "ts", 1_000_000)),
        (make.EqualTo("ns", datetime(1970, 1, 1, 0, 0, 1)), ("EqualTo", "ns", 1_000_000_000)),
        (
            make.EqualTo("tz", datetime(1970, 1, 1, tzinfo=UTC)),
            ("EqualTo", "tz", 0),
        ),
        (make.EqualTo("at", time(0, 0, 1)), ("EqualTo", "at", 1_000_000)),
        (make.EqualTo("key", UUID(int=1)), ("EqualTo", "key", bytes(15) + b"\1")),
        (make.EqualTo("order_date", 5), ("EqualTo", "order_date", 5)),
        (make.EqualTo("price", Decimal("1.5")), ("EqualTo", "price", Decimal("1.50"))),
        (make.In("n", [1, 2**40]), ("EqualTo", "n", 1)),
        (make.In("n", []), False),
        (make.Not(make.In("id", [1, 2])), ("NotIn", "id", 1, 2)),
        (make.Not(make.StartsWith("country", "a")), ("NotStartsWith", "country", "a")),
    ],
)
def test_pyiceberg_expressions_are_bound(expression: ice.BooleanExpression, expected: Any) -> None:
    assert shown(parse(expression, SCHEMA)) == expected


def test_an_expression_with_an_unknown_column_is_refused() -> None:
    with pytest.raises(InvalidInput, match="unknown column 'x'"):
        parse(make.EqualTo("x", 1), SCHEMA)
    with pytest.raises(InvalidInput, match="column 'country': 5 cannot be compared"):
        parse(make.EqualTo("country", 5), SCHEMA)


def test_a_bound_filter_follows_its_column_through_rename_and_promotion() -> None:
    old = Schema(NestedField(1, "a", IntegerType()), NestedField(2, "day", DateType()))
    new = Schema(NestedField(2, "moment", TimestampNanoType()), NestedField(1, "b", LongType()))
    bound = parse("a > 5 and day = '1970-01-02'", old)
    assert shown(parse(bound, new)) == (
        "and",
        ("GreaterThan", "b", 5),
        ("EqualTo", "moment", 86_400_000_000_000),
    )
    with pytest.raises(InvalidInput, match="no column has field id 1"):
        parse(bound, Schema(NestedField(2, "day", DateType())))


def test_filters_bound_twice_are_the_same() -> None:
    text = (
        "ns > '1970-01-02' and price in (1, 2) and score < 0.1 and code = X'0001' and at > '01:00'"
    )
    bound = parse(text, SCHEMA)
    assert shown(parse(bound, SCHEMA)) == shown(bound)


def test_a_term_that_is_no_column_is_refused() -> None:
    class Strange(ice.BooleanExpression):
        def __invert__(self) -> ice.BooleanExpression:
            return self

    with pytest.raises(Unsupported):
        parse(Strange(), SCHEMA)


def test_long_and_lopsided_filters_are_balanced() -> None:
    text = " or ".join(f"id = {number}" for number in range(5000))
    lopsided: ice.BooleanExpression = make.EqualTo("id", 0)
    for number in range(1, 5000):
        lopsided = make.Or(lopsided, make.EqualTo("id", number))

    def depth(node: ours.BooleanExpression) -> int:
        if isinstance(node, ours.Or):
            return 1 + max(depth(node.left), depth(node.right))
        return 1

    assert depth(parse(text, SCHEMA)) < 20
    assert depth(parse(lopsided, SCHEMA)) < 20


def test_bound_filters_can_be_pickled() -> None:
    bound = parse("id = 1 and address.zip in (1, 2) or country like 'a%'", SCHEMA)
    again = pickle.loads(pickle.dumps(bound))
    assert shown(again) == shown(bound)
    rows = pa.table({"id": [1, 1], "address": [{"zip": 3}, {"zip": 2}], "country": ["b", "b"]})
    assert row_mask(again, rows).to_pylist() == [False, True]

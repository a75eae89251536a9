"""Types from text."""

from __future__ import annotations

import pytest

from frazil.errors import InvalidInput
from frazil.filter.text.type_text import parse_type
from frazil.iceberg import types as ice

PLAIN = [
    ice.BooleanType(),
    ice.IntegerType(),
    ice.LongType(),
    ice.FloatType(),
    ice.DoubleType(),
    ice.DecimalType(10, 2),
    ice.DateType(),
    ice.TimeType(),
    ice.TimestampType(),
    ice.TimestamptzType(),
    ice.TimestampNanoType(),
    ice.TimestamptzNanoType(),
    ice.StringType(),
    ice.UUIDType(),
    ice.FixedType(16),
    ice.BinaryType(),
    ice.UnknownType(),
]


@pytest.mark.parametrize("kind", PLAIN, ids=str)
def test_the_name_a_type_prints_is_the_name_it_is_read_by(kind: ice.IcebergType) -> None:
    assert parse_type(str(kind)) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("BIGINT", ice.LongType()),
        (" integer ", ice.IntegerType()),
        ("varchar(20)", ice.StringType()),
        ("text", ice.StringType()),
        ("numeric(5)", ice.DecimalType(5, 0)),
        ("decimal", ice.DecimalType(18, 3)),
        ("NUMERIC", ice.DecimalType(18, 3)),
        (
            "struct<a: decimal>",
            ice.StructType(ice.NestedField(1, "a", ice.DecimalType(18, 3), False)),
        ),
        ("decimal( 38 , 38 )", ice.DecimalType(38, 38)),
        ("fixed(3)", ice.FixedType(3)),
        ("array<int>", ice.ListType(1, ice.IntegerType(), False)),
        ("list<list<string>>", ice.ListType(2, ice.ListType(1, ice.StringType(), False), False)),
        ("map<string, long>", ice.MapType(1, ice.StringType(), 2, ice.LongType(), False)),
        (
            "struct<a: int, b string NOT NULL, `c d`: required date>",
            ice.StructType(
                ice.NestedField(1, "a", ice.IntegerType(), required=False),
                ice.NestedField(2, "b", ice.StringType(), required=True),
                ice.NestedField(3, "c d", ice.DateType(), required=True),
            ),
        ),
        (
            "struct<7: a: optional int>",
            ice.StructType(ice.NestedField(1, "a", ice.IntegerType(), required=False)),
        ),
    ],
)
def test_sql_names_and_nested_types_are_read(text: str, kind: ice.IcebergType) -> None:
    assert parse_type(text) == kind


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "not a type"),
        ("strng", "'strng' is not a type"),
        ("decimal(39,2)", "1 to 38 digits"),
        ("decimal(3,4)", "1 to 38 digits"),
        ("decimal(x)", "expected a number"),
        ("fixed", "fixed takes a length"),
        ("list<int", "expected '>', found 'the end'"),
        ("list", "expected '<'"),
        ("map<int>", "expected ','"),
        ("struct<>", "expected a field name"),
        ("struct<a: int, a: long>", "occurs twice"),
        ("int int", "unexpected 'int' after the type"),
        ("int?", "unexpected '?'"),
        ("list<" * 60 + "int" + ">" * 60, "nested deeper"),
    ],
)
def test_what_is_no_type_is_refused(text: str, part: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_type(text)
    assert part in str(caught.value)

"""Types from text."""

from __future__ import annotations

import pytest
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)

from frazil.errors import InvalidInput
from frazil.expr.type_text import parse_type

PLAIN = [
    BooleanType(),
    IntegerType(),
    LongType(),
    FloatType(),
    DoubleType(),
    DecimalType(10, 2),
    DateType(),
    TimeType(),
    TimestampType(),
    TimestamptzType(),
    TimestampNanoType(),
    TimestamptzNanoType(),
    StringType(),
    UUIDType(),
    FixedType(16),
    BinaryType(),
    UnknownType(),
]


@pytest.mark.parametrize("kind", PLAIN, ids=str)
def test_the_name_a_type_prints_is_the_name_it_is_read_by(kind: IcebergType) -> None:
    assert parse_type(str(kind)) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("BIGINT", LongType()),
        (" integer ", IntegerType()),
        ("varchar(20)", StringType()),
        ("text", StringType()),
        ("numeric(5)", DecimalType(5, 0)),
        ("decimal( 38 , 38 )", DecimalType(38, 38)),
        ("fixed(3)", FixedType(3)),
        ("array<int>", ListType(1, IntegerType(), False)),
        ("list<list<string>>", ListType(2, ListType(1, StringType(), False), False)),
        ("map<string, long>", MapType(1, StringType(), 2, LongType(), False)),
        (
            "struct<a: int, b string NOT NULL, `c d`: required date>",
            StructType(
                NestedField(1, "a", IntegerType(), required=False),
                NestedField(2, "b", StringType(), required=True),
                NestedField(3, "c d", DateType(), required=True),
            ),
        ),
        (
            "struct<7: a: optional int>",
            StructType(NestedField(1, "a", IntegerType(), required=False)),
        ),
    ],
)
def test_sql_names_and_nested_types_are_read(text: str, kind: IcebergType) -> None:
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

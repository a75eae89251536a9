"""Filters shown to people can be read back."""

from __future__ import annotations

import pytest
from pyiceberg import types as ice
from pyiceberg.expressions import EqualTo
from pyiceberg.schema import Schema

from frazil.expr.filter_display import shown
from frazil.expr.parse import parse

SCHEMA = Schema(
    ice.NestedField(1, "id", ice.LongType()),
    ice.NestedField(2, "day", ice.DateType()),
    ice.NestedField(3, "country", ice.StringType()),
    ice.NestedField(4, "price", ice.DecimalType(10, 2)),
    ice.NestedField(5, "paid", ice.BooleanType()),
    ice.NestedField(6, "ts", ice.TimestamptzType()),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id=3 and day >= '2024-01-15'", "id = 3 and day >= '2024-01-15'"),
        ("country like 'a%' or country in ('y','x')", "country like 'a%' or country in ('x', 'y')"),
        (
            "not (country is null) and (price > 3.5 or paid = true)",
            "country is not null and (price > 3.50 or paid = true)",
        ),
        ("ts < '2024-01-01T00:00:00Z'", "ts < '2024-01-01T00:00:00+00:00'"),
        ("country = 'it''s'", "country = 'it''s'"),
        ("country not like 'b%'", "country not like 'b%'"),
    ],
)
def test_a_filter_is_shown_as_it_would_be_written(text: str, expected: str) -> None:
    made = shown(parse(text, SCHEMA))
    assert made == expected
    assert shown(parse(made, SCHEMA)) == expected


def test_no_filter_is_shown_as_true() -> None:
    assert shown(parse(None, SCHEMA)) == "true"


def test_an_unbound_filter_is_shown_too() -> None:
    unbound = EqualTo("country", "US")  # type: ignore[call-arg, arg-type]
    assert shown(unbound) == "country = 'US'"


def test_long_lists_are_cut() -> None:
    made = shown(parse("id in (1, 2, 3, 4, 5, 6, 7)", SCHEMA))
    assert made == "id in (1, 2, 3, 4, 5, … 2 more)"

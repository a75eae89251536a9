"""Filters shown to people can be read back."""

from __future__ import annotations

import pytest

from frazil.filter.text.filter_display import filter_text, human
from frazil.filter.text.filter_text import parse
from frazil.iceberg import types as ice
from frazil.iceberg.expressions import And, Not, Op, Or, Reference, UnboundPredicate
from frazil.iceberg.literals import literal
from frazil.iceberg.schema import Schema

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
        ("country starts with '5%_'", "country starts with '5%_'"),
        ("country not starts with '_'", "country not starts with '_'"),
    ],
)
def test_a_filter_is_shown_as_it_would_be_written(text: str, expected: str) -> None:
    made = filter_text(parse(text, SCHEMA))
    assert made == expected
    assert filter_text(parse(made, SCHEMA)) == expected


def _is(country: str) -> UnboundPredicate:
    return UnboundPredicate(Op.EQ, Reference("country"), [literal(country)])


def test_what_not_stands_before_is_in_brackets() -> None:
    us, de = _is("US"), _is("DE")
    assert filter_text(Not(us)) == "not country = 'US'"
    assert filter_text(Not(And(us, de))) == "not (country = 'US' and country = 'DE')"
    assert filter_text(Not(Or(us, de))) == "not (country = 'US' or country = 'DE')"


def test_days_past_the_end_of_the_calendar_are_shown() -> None:
    assert human(2_932_897, ice.DateType()) == "10000-01-01"
    assert human(253_402_300_800_000_000, ice.TimestampType()).startswith("10000-01-01T00:00")


def test_no_filter_is_shown_as_true() -> None:
    assert filter_text(parse(None, SCHEMA)) == "true"


def test_an_unbound_filter_is_shown_too() -> None:
    assert filter_text(_is("US")) == "country = 'US'"


def test_long_lists_are_cut() -> None:
    made = filter_text(parse("id in (1, 2, 3, 4, 5, 6, 7)", SCHEMA))
    assert made == "id in (1, 2, 3, 4, 5, … 2 more)"

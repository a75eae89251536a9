"""Partition specs from text."""

from __future__ import annotations

import pytest

from frazil.errors import InvalidInput
from frazil.filter.text.partition_by import parse_partition_by
from frazil.iceberg import types as ice
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)

SCHEMA = Schema(
    ice.NestedField(1, "id", ice.LongType(), required=True),
    ice.NestedField(2, "country", ice.StringType()),
    ice.NestedField(3, "order_date", ice.DateType()),
    ice.NestedField(4, "ts", ice.TimestampType()),
    ice.NestedField(5, "address", ice.StructType(ice.NestedField(6, "zip", ice.StringType()))),
    ice.NestedField(7, "tags", ice.ListType(8, ice.StringType())),
    ice.NestedField(9, "price", ice.DoubleType()),
    ice.NestedField(10, "odd name", ice.StringType()),
    ice.NestedField(11, "ts_hour", ice.LongType()),
)


def test_every_form_of_a_term() -> None:
    spec = parse_partition_by(
        [
            "day(order_date)",
            "bucket[16](id)",
            "truncate[4](country)",
            "country",
            " Years( ts ) ",
            "void(price)",
            "bucket(8, address.zip)",
            'identity("odd name")',
        ],
        SCHEMA,
    )
    assert spec == PartitionSpec(
        PartitionField(3, 1000, DayTransform(), "order_date_day"),
        PartitionField(1, 1001, BucketTransform(16), "id_bucket_16"),
        PartitionField(2, 1002, TruncateTransform(4), "country_trunc_4"),
        PartitionField(2, 1003, IdentityTransform(), "country"),
        PartitionField(4, 1004, YearTransform(), "ts_year"),
        PartitionField(9, 1005, VoidTransform(), "price_null"),
        PartitionField(6, 1006, BucketTransform(8), "address.zip_bucket_8"),
        PartitionField(10, 1007, IdentityTransform(), "odd name"),
        spec_id=0,
    )


@pytest.mark.parametrize(
    ("text", "transform"),
    [
        ("year(ts)", YearTransform()),
        ("months(ts)", MonthTransform()),
        ("month(ts)", MonthTransform()),
        ("days(ts)", DayTransform()),
        ("truncate(country, 4)", TruncateTransform(4)),
        ("truncate(4, country)", TruncateTransform(4)),
    ],
)
def test_other_spellings(text: str, transform: object) -> None:
    assert parse_partition_by([text], SCHEMA).fields[0].transform == transform


def test_no_terms_make_an_unpartitioned_spec() -> None:
    assert parse_partition_by([], SCHEMA) == PartitionSpec(spec_id=0)


def test_one_term_needs_no_list() -> None:
    assert parse_partition_by("country", SCHEMA).fields[0].name == "country"


@pytest.mark.parametrize(
    ("terms", "problem"),
    [
        (["contry"], "Did you mean 'country'"),
        (["week(ts)"], "'week' is not a transform. Known transforms: identity, void, year"),
        (["voids(ts)"], "'voids' is not a transform"),
        (["bucket(id)"], "it has no width"),
        (["bucket[0](id)"], "'0' is not a width"),
        (["bucket[-4](id)"], "'-4' is not a width"),
        (["bucket[99999999999999](id)"], "is not a width"),
        (["truncate(x, country)"], "'x' is not a width"),
        (["truncate(1, 2, id)"], "write it as truncate"),
        (["day[3](ts)"], "day takes no width"),
        (["day(ts, id)"], "day takes one column"),
        (["day(country)"], "cannot be applied to column 'country', a string"),
        (["hour(order_date)"], "it takes timestamps"),
        (["bucket[4](price)"], "cannot be applied to column 'price', a double"),
        (["tags"], "cannot be applied to column 'tags'"),
        (["tags.element"], "inside a list or a map"),
        (["day(ts"], "neither a column nor transform"),
        ([""], "it is empty"),
        (["country", "country"], "it repeats 'country'"),
        (["day(ts)", "month(ts)"], "it repeats 'ts_day'"),
        (["hour(ts)"], "'ts_hour', which is a column"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(terms: list[str], problem: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_partition_by(terms, SCHEMA)
    assert problem in str(caught.value)
    assert f"partition_by '{terms[-1]}'" in str(caught.value)


def test_hours_of_a_timestamp() -> None:
    schema = Schema(ice.NestedField(1, "at", ice.TimestampType()))
    assert parse_partition_by(["hours(at)"], schema).fields[0].transform == HourTransform()

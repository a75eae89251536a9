"""Partition tuples, derived columns, and what pruning reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import expressions

from frazil.errors import InvalidInput
from frazil.filter.prune.prune import (
    PruneContext,
    compile_filter,
    prune,
    required_keys,
    residual_needed,
)
from frazil.filter.text.filter_text import parse
from frazil.format.entries.batch import EntryBatch
from frazil.iceberg import types as ice
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)

SCHEMA = Schema(
    ice.NestedField(1, "id", ice.LongType(), required=True),
    ice.NestedField(2, "country", ice.StringType()),
    ice.NestedField(3, "ts", ice.TimestampType()),
    ice.NestedField(4, "day", ice.DateType()),
    ice.NestedField(5, "ratio", ice.DoubleType()),
)
TYPES = {
    "content_stats.1.lower_bound": pa.int64(),
    "content_stats.1.upper_bound": pa.int64(),
    "content_stats.3.lower_bound": pa.timestamp("us"),
    "content_stats.3.upper_bound": pa.timestamp("us"),
    "content_stats.100.lower_bound": pa.date32(),
    "content_stats.100.upper_bound": pa.date32(),
    "content_stats.101.lower_bound": pa.int32(),
    "content_stats.101.upper_bound": pa.int32(),
}
make: Any = expressions
DATA, EQUALITY_DELETES, DATA_MANIFEST = 0, 2, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    expr_id: int
    source_ids: tuple[int, ...]
    transform: Transform


def spec(*fields: tuple[int, int, Transform], spec_id: int = 0) -> PartitionSpec:
    """A spec of (source id, partition field id, transform)."""
    made = (PartitionField(source, pid, t, f"p{pid}") for source, pid, t in fields)
    return PartitionSpec(*made, spec_id=spec_id)


def one_field(
    where: str, source: int, transform: Transform, kind: pa.DataType, values: list[Any]
) -> tuple[list[bool], list[bool]]:
    """Might and must of files that differ only in the value of one partition field."""
    context = PruneContext(schema=SCHEMA, specs={0: spec((source, 1000, transform))})
    rows = [{"content_type": DATA, "spec_id": 0, "partition.1000": value} for value in values]
    batch = EntryBatch.from_rows(rows, {"partition.1000": kind})
    compiled = compile_filter(parse(where, SCHEMA), context)
    return compiled.might_match(batch).tolist(), compiled.must_match(batch).tolist()


@pytest.mark.parametrize(
    ("where", "might", "must"),
    [
        ("country = 'US'", [1, 0, 0], [1, 0, 0]),
        ("country != 'US'", [0, 1, 0], [0, 1, 0]),
        ("country in ('US', 'FR')", [1, 0, 0], [1, 0, 0]),
        ("country not in ('US', 'FR')", [0, 1, 0], [0, 1, 0]),
        ("country like 'U%'", [1, 0, 0], [1, 0, 0]),
        ("country not like 'U%'", [0, 1, 0], [0, 1, 0]),
        ("country < 'E'", [0, 1, 0], [0, 1, 0]),
        ("country <= 'DE'", [0, 1, 0], [0, 1, 0]),
        ("country > 'E'", [1, 0, 0], [1, 0, 0]),
        ("country >= 'US'", [1, 0, 0], [1, 0, 0]),
        ("country is null", [0, 0, 1], [0, 0, 1]),
        ("country is not null", [1, 1, 0], [1, 1, 0]),
    ],
)
def test_identity_values_decide_everything(where: str, might: list[int], must: list[int]) -> None:
    found = one_field(where, 2, IdentityTransform(), pa.string(), ["US", "DE", None])
    assert found == ([bool(m) for m in might], [bool(m) for m in must])


def test_identity_values_may_be_nan() -> None:
    values = [float("nan"), 0.5, None]
    for where, expected in (
        ("ratio is nan", [True, False, False]),
        ("ratio is not nan", [False, True, True]),
        ("ratio != 0.5", [True, False, False]),
        ("ratio >= 0.5", [True, True, False]),
        ("ratio > 0.5", [True, False, False]),
        ("ratio < 0.5", [False, False, False]),
        ("ratio <= 0.5", [False, True, False]),
    ):
        assert one_field(where, 5, IdentityTransform(), pa.float64(), values) == (
            expected,
            expected,
        )


@pytest.mark.parametrize(
    ("where", "transform", "values", "might", "must"),
    [
        # 1970-01-02 is day 1; hours 24 to 47; month 0; year 0.
        ("ts = '1970-01-02T05:00'", DayTransform(), [0, 1, 2, None], [0, 1, 0, 0], [0] * 4),
        ("ts < '1970-01-02'", DayTransform(), [0, 1, 2, None], [1, 0, 0, 0], [1, 0, 0, 0]),
        ("ts <= '1970-01-02'", DayTransform(), [0, 1, 2, None], [1, 1, 0, 0], [1, 0, 0, 0]),
        ("ts >= '1970-01-02'", DayTransform(), [0, 1, 2, None], [0, 1, 1, 0], [0, 1, 1, 0]),
        ("ts > '1970-01-02'", DayTransform(), [0, 1, 2, None], [0, 1, 1, 0], [0, 0, 1, 0]),
        ("ts != '1970-01-02'", DayTransform(), [0, 1, 2, None], [1, 1, 1, 1], [1, 0, 1, 0]),
        ("ts is null", DayTransform(), [0, 1, 2, None], [0, 0, 0, 1], [0, 0, 0, 1]),
        ("ts = '1970-01-02T05:00'", HourTransform(), [5, 28, 29], [0, 0, 1], [0] * 3),
        ("ts < '1970-03-05'", MonthTransform(), [0, 2, 3], [1, 1, 0], [1, 0, 0]),
        ("ts < '1971-03-05'", YearTransform(), [-1, 0, 1, 2], [1, 1, 1, 0], [1, 1, 0, 0]),
    ],
)
def test_parts_of_time(
    where: str,
    transform: Transform,
    values: list[Any],
    might: list[int],
    must: list[int],
) -> None:
    kind = pa.date32() if isinstance(transform, DayTransform) else pa.int32()
    found = one_field(where, 3, transform, kind, values)
    assert found == ([bool(m) for m in might], [bool(m) for m in must])


def test_buckets_rule_out_other_values() -> None:
    # The specification's example: 34 hashes to 2017239379, in bucket 3 of 16.
    values = [2, 3]
    assert one_field("id = 34", 1, BucketTransform(16), pa.int32(), values) == (
        [False, True],
        [False, False],
    )
    assert one_field("id != 34", 1, BucketTransform(16), pa.int32(), values) == (
        [True, True],
        [True, False],
    )
    assert one_field("id < 34", 1, BucketTransform(16), pa.int32(), values)[0] == [True, True]


def test_truncated_text() -> None:
    values = ["ab", "ac", "b"]
    cut: Transform = TruncateTransform(2)
    for where, might, must in (
        ("country = 'abc'", [1, 0, 0], [0, 0, 0]),
        ("country like 'a%'", [1, 1, 0], [1, 1, 0]),
        ("country like 'ab%'", [1, 0, 0], [1, 0, 0]),
        ("country like 'abc%'", [1, 0, 0], [0, 0, 0]),
        ("country not like 'ab%'", [0, 1, 1], [0, 1, 1]),
        ("country < 'ac'", [1, 1, 0], [1, 0, 0]),
    ):
        found = one_field(where, 2, cut, pa.string(), values)
        assert found == ([bool(m) for m in might], [bool(m) for m in must]), where


def test_void_says_nothing() -> None:
    assert one_field("country = 'US'", 2, VoidTransform(), pa.string(), [None, None])[0] == [
        True,
        True,
    ]


def test_tuples_are_read_by_the_files_own_spec() -> None:
    specs = {
        0: spec((2, 1000, IdentityTransform())),
        1: spec((3, 1001, DayTransform()), spec_id=1),
        2: spec((2, 1000, IdentityTransform()), (3, 1001, DayTransform()), spec_id=2),
    }
    rows: list[dict[str, Any]] = [
        {"content_type": DATA, "spec_id": 0, "partition.1000": "US"},
        {"content_type": DATA, "spec_id": 0, "partition.1000": "DE"},
        {"content_type": DATA, "spec_id": 1, "partition.1001": 0},
        {"content_type": DATA, "spec_id": 1, "partition.1001": 1},
        {"content_type": DATA, "spec_id": 2, "partition.1000": "US", "partition.1001": 1},
        {"content_type": EQUALITY_DELETES, "spec_id": 2, "partition.1000": "DE"},
        {"content_type": DATA, "spec_id": 7, "partition.1000": "DE"},
        {"content_type": DATA},
        {"content_type": DATA_MANIFEST, "spec_id": 0},
        {"content_type": DATA, "spec_id": 0},
    ]
    batch = EntryBatch.from_rows(
        rows, {"partition.1000": pa.string(), "partition.1001": pa.date32()}
    )
    expression = parse("country = 'US' and ts < '1970-01-02'", SCHEMA)
    found = prune(expression, batch, PruneContext(schema=SCHEMA, specs=specs))
    assert found.mask.tolist() == [
        True,  # the right country
        False,  # the wrong one
        True,  # spec 1 has no country, and the right day
        False,  # the wrong day
        False,  # the right country, the wrong day
        False,  # an equality delete of the wrong country
        True,  # a spec nobody knows
        True,  # unpartitioned
        True,  # a manifest has no tuple, though it names a spec
        False,  # the null partition: no country at all
    ]
    assert found.by_partition == 5


def test_a_column_partitioned_twice_uses_both() -> None:
    both = spec((1, 1000, BucketTransform(16)), (1, 1001, TruncateTransform(10)))
    rows = [
        {"content_type": DATA, "spec_id": 0, "partition.1000": b, "partition.1001": t}
        for b, t in ((3, 30), (3, 40), (4, 30))
    ]
    batch = EntryBatch.from_rows(rows, {"partition.1000": pa.int32(), "partition.1001": pa.int64()})
    context = PruneContext(schema=SCHEMA, specs={0: both})
    assert prune(parse("id = 34", SCHEMA), batch, context).mask.tolist() == [True, False, False]


def test_partition_values_from_before_a_promotion_are_widened() -> None:
    found = one_field("id > 5", 1, IdentityTransform(), pa.int32(), [5, 6])
    assert found == ([False, True], [False, True])


def test_partition_values_of_another_kind_say_nothing() -> None:
    found = one_field("id > 5", 1, IdentityTransform(), pa.string(), ["a", "b"])
    assert found == ([True, True], [False, False])


DERIVED = (
    Derived(expr_id=100, source_ids=(3,), transform=DayTransform()),
    Derived(expr_id=101, source_ids=(1,), transform=BucketTransform(16)),
)


def manifest(expr_id: int, low: Any, high: Any) -> dict[str, Any]:
    base = f"content_stats.{expr_id}."
    return {
        "content_type": DATA_MANIFEST,
        f"{base}lower_bound": low,
        f"{base}upper_bound": high,
        f"{base}value_count": 10,
        f"{base}null_value_count": 0,
    }


def test_manifests_are_pruned_by_derived_columns() -> None:
    rows = [manifest(101, 0, 2), manifest(101, 3, 3), manifest(101, 0, 15), manifest(100, 1, 1)]
    batch = EntryBatch.from_rows(rows, TYPES)
    context = PruneContext(schema=SCHEMA, derived=DERIVED)
    found = prune(parse("id = 34", SCHEMA), batch, context)
    assert found.mask.tolist() == [False, True, True, True]
    assert (found.by_partition, found.by_derived, found.by_bounds) == (0, 1, 0)


def test_derived_columns_prove_that_all_rows_match() -> None:
    batch = EntryBatch.from_rows([manifest(100, 1, 3), manifest(100, 0, 3)], TYPES)
    compiled = compile_filter(
        parse("ts >= '1970-01-02'", SCHEMA), PruneContext(schema=SCHEMA, derived=DERIVED)
    )
    assert compiled.must_match(batch).tolist() == [True, False]
    assert compiled.residual_needed(batch).tolist() == [False, True]


def test_derived_columns_of_several_sources_are_left_alone() -> None:
    strange = (Derived(expr_id=101, source_ids=(1, 2), transform=BucketTransform(16)),)
    batch = EntryBatch.from_rows([manifest(101, 0, 2)], TYPES)
    context = PruneContext(schema=SCHEMA, derived=strange)
    assert prune(parse("id = 34", SCHEMA), batch, context).mask.tolist() == [True]


def entry(country: str, bucket: int, low: int, high: int) -> dict[str, Any]:
    return {
        "content_type": DATA,
        "spec_id": 0,
        "partition.1000": country,
        "content_stats.1.lower_bound": low,
        "content_stats.1.upper_bound": high,
        "content_stats.1.value_count": 10,
        "content_stats.1.null_value_count": 0,
        "content_stats.101.lower_bound": bucket,
        "content_stats.101.upper_bound": bucket,
    }


def test_each_pruned_entry_is_counted_once_under_its_strongest_evidence() -> None:
    rows = [
        entry("DE", 3, 30, 40),  # partition
        entry("DE", 4, 90, 99),  # partition, though the others would do as well
        entry("US", 4, 30, 40),  # derived
        entry("US", 4, 90, 99),  # derived
        entry("US", 3, 90, 99),  # bounds
        entry("US", 3, 30, 40),
    ]
    batch = EntryBatch.from_rows(rows, TYPES | {"partition.1000": pa.string()})
    context = PruneContext(
        schema=SCHEMA, specs={0: spec((2, 1000, IdentityTransform()))}, derived=DERIVED
    )
    found = prune(parse("id = 34 and country = 'US'", SCHEMA), batch, context)
    assert found.mask.tolist() == [False] * 5 + [True]
    assert (found.by_partition, found.by_derived, found.by_bounds) == (2, 2, 1)


def test_an_or_prunes_only_what_both_sides_rule_out() -> None:
    rows = [entry("DE", 4, 90, 99), entry("US", 4, 90, 99), entry("DE", 3, 30, 40)]
    batch = EntryBatch.from_rows(rows, TYPES | {"partition.1000": pa.string()})
    context = PruneContext(schema=SCHEMA, specs={0: spec((2, 1000, IdentityTransform()))})
    found = prune(parse("id = 34 or country = 'US'", SCHEMA), batch, context)
    assert found.mask.tolist() == [False, True, True]
    assert found.by_bounds == 1


def test_a_filter_that_matches_nothing_prunes_everything() -> None:
    batch = EntryBatch.from_rows(
        [entry("US", 1, 1, 2)] * 3, TYPES | {"partition.1000": pa.string()}
    )
    found = prune(parse("false", SCHEMA), batch, PruneContext(schema=SCHEMA))
    assert found.mask.tolist() == [False] * 3
    assert (found.by_partition, found.by_derived, found.by_bounds) == (0, 0, 3)


def test_files_whose_rows_all_match_need_no_row_filter() -> None:
    rows = [entry("US", 1, 1, 5), entry("US", 1, 4, 9), entry("US", 1, 7, 9)]
    batch = EntryBatch.from_rows(rows, TYPES | {"partition.1000": pa.string()})
    found = residual_needed(parse("id < 6", SCHEMA), batch, PruneContext(schema=SCHEMA))
    assert found.tolist() == [False, True, False]


def test_the_keys_a_filter_needs() -> None:
    context = PruneContext(
        schema=SCHEMA,
        specs={0: spec((2, 1000, IdentityTransform()), (4, 1001, YearTransform()))},
        derived=DERIVED,
    )
    assert required_keys(parse("country = 'US'", SCHEMA), context) == {
        "content_type",
        "spec_id",
        "partition.1000",
        "content_stats.2.lower_bound",
        "content_stats.2.upper_bound",
        "content_stats.2.value_count",
        "content_stats.2.null_value_count",
    }
    assert required_keys(parse("id = 5", SCHEMA), context) == {
        "content_stats.1.lower_bound",
        "content_stats.1.upper_bound",
        "content_stats.101.lower_bound",
        "content_stats.101.upper_bound",
    }
    assert required_keys(parse("ratio is not null", SCHEMA), context) == {
        "content_stats.5.value_count",
        "content_stats.5.null_value_count",
        "content_stats.5.nan_value_count",
    }
    assert required_keys(parse("true", SCHEMA), context) == frozenset()


def test_values_beyond_the_calendar_are_projected() -> None:
    """Iceberg's days reach 5.8 million years further than Python's."""
    days = Schema(ice.NestedField(4, "day", ice.DateType()))
    context = PruneContext(schema=days, specs={0: spec((4, 1000, YearTransform()))})
    rows = [{"content_type": DATA, "spec_id": 0, "partition.1000": year} for year in (5, 5879610)]
    batch = EntryBatch.from_rows(rows, {"partition.1000": pa.int32()})
    last_day = parse(make.EqualTo("day", 2**31 - 1), days)
    assert prune(last_day, batch, context).mask.tolist() == [False, True]


def test_results_before_the_lowest_number_prune_nothing_wrongly() -> None:
    whole = Schema(ice.NestedField(1, "n", ice.IntegerType()))
    context = PruneContext(schema=whole, specs={0: spec((1, 1000, TruncateTransform(10)))})
    rows = [{"content_type": DATA, "spec_id": 0, "partition.1000": v} for v in (-10, 0)]
    batch = EntryBatch.from_rows(rows, {"partition.1000": pa.int32()})
    found = prune(parse("n >= -2147483648", whole), batch, context)
    assert found.mask.tolist() == [True, True]


def test_a_filter_that_was_not_bound_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not bound"):
        compile_filter(make.EqualTo("id", 1), PruneContext(schema=SCHEMA))


def test_batches_in_several_chunks_and_slices_are_read_alike() -> None:
    rows = [entry("US", 3, n, n) for n in range(6)]
    types = TYPES | {"partition.1000": pa.string()}
    whole = EntryBatch.from_rows(rows, types)
    halves = EntryBatch(pa.concat_tables([whole.table.slice(0, 3), whole.table.slice(3)]))
    context = PruneContext(schema=SCHEMA, specs={0: spec((2, 1000, IdentityTransform()))})
    compiled = compile_filter(parse("id in (1, 4) and country = 'US'", SCHEMA), context)
    expected = [False, True, False, False, True, False]
    assert compiled.might_match(whole).tolist() == expected
    assert compiled.might_match(halves).tolist() == expected
    assert compiled.might_match(whole.slice(1, 4)).tolist() == expected[1:5]
    assert compiled.must_match(whole.slice(1, 4)).tolist() == expected[1:5]

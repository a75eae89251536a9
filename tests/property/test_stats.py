"""Statistics against brute force, and bounds as bytes against PyIceberg."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from frazil.data.statistics.footer import footer_stats
from frazil.data.statistics.stats_collector import StatsCollector
from frazil.format.entries.aggregate import aggregate
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.metrics import MetricsConfig
from frazil.format.entries.stats import stats_types, tracked_fields
from frazil.format.values.single_value import decode_bounds, encode_bounds
from frazil.format.values.truncate import truncate_lower, truncate_upper, truncate_upper_bounds
from frazil.format.values.types import arrow_type, plain_value, scalar, scalar_value
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema
from tests.support.pyiceberg_oracle import from_bytes, to_bytes

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(
    st.one_of(
        st.sampled_from("ab\x00\x7f\ud7ff\ue000\uffff\U0010ffff"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=8,
)
BYTES = st.binary(max_size=8) | st.text("\x00\xff", max_size=6).map(
    lambda text: text.encode("latin-1")
)

VALUES: dict[ice.PrimitiveType, st.SearchStrategy[Any]] = {
    ice.BooleanType(): st.booleans(),
    ice.IntegerType(): INT32,
    ice.LongType(): INT64,
    ice.FloatType(): st.floats(width=32),
    ice.DoubleType(): st.floats(),
    ice.DecimalType(9, 2): st.decimals("-9999999.99", "9999999.99", places=2),
    ice.DecimalType(38, 10): st.integers(-(10**38) + 1, 10**38 - 1).map(
        lambda unscaled: Decimal((int(unscaled < 0), Decimal(abs(unscaled)).as_tuple().digits, -10))
    ),
    ice.DateType(): INT32,
    ice.TimeType(): st.integers(0, 86_399_999_999),
    ice.TimestampType(): INT64,
    ice.TimestamptzType(): INT64,
    ice.TimestampNanoType(): INT64,
    ice.TimestamptzNanoType(): INT64,
    ice.StringType(): TEXT,
    ice.BinaryType(): BYTES,
    ice.FixedType(3): st.binary(min_size=3, max_size=3),
    ice.UUIDType(): st.binary(min_size=16, max_size=16),
}

Column = tuple[ice.PrimitiveType, list[Any]]


def columns(*, nan: bool = True) -> st.SearchStrategy[Column]:
    """A primitive type with a column of its values, nulls among them."""

    def of(kind: ice.PrimitiveType) -> st.SearchStrategy[Column]:
        values = VALUES[kind]
        if not nan:
            values = values.filter(lambda value: value == value)
        return st.tuples(st.just(kind), st.lists(st.none() | values, max_size=12))

    return st.sampled_from(list(VALUES)).flatmap(of)


def rank(value: Any) -> Any:
    """A key in the order of bounds: -0.0 below +0.0, bytes unsigned."""
    return (value, math.copysign(1.0, value)) if isinstance(value, float) else value


def bounded(values: list[Any]) -> list[Any]:
    """The values that bounds are about."""
    return [value for value in values if value is not None and value == value]


def encloses(stats: dict[str, Any], values: list[Any]) -> bool:
    low, high = stats.get("lower_bound"), stats.get("upper_bound")
    return all(
        (low is None or rank(low) <= rank(value)) and (high is None or rank(value) <= rank(high))
        for value in bounded(values)
    )


def stats_of(kind: ice.PrimitiveType, values: list[Any], mode: str) -> dict[str, Any]:
    schema = Schema(ice.NestedField(1, "c", kind))
    properties = {"write.metadata.metrics.default": mode}
    collector = StatsCollector(schema, MetricsConfig.from_properties(properties, schema))
    half = len(values) // 2
    for part in (values[:half], values[half:]):
        collector.update(pa.table({"c": pa.array(part, arrow_type(kind))}))
    return {key.rpartition(".")[2]: value for key, value in collector.finish().items()}


MODES = st.sampled_from(["full", "truncate(1)", "truncate(3)"])


@given(columns(), MODES)
def test_bounds_enclose_values_and_counts_are_exact(column: Column, mode: str) -> None:
    kind, values = column
    stats = stats_of(kind, values, mode)
    assert encloses(stats, values)
    assert stats["value_count"] == len(values)
    assert stats["null_value_count"] == values.count(None)
    if "nan_value_count" in stats:
        assert stats["nan_value_count"] == sum(value != value for value in values)
    if stats.get("tight_bounds"):
        kept = bounded(values)
        assert rank(stats["lower_bound"]) == min(map(rank, kept))
        assert rank(stats["upper_bound"]) == max(map(rank, kept))


@given(columns())
def test_full_bounds_are_tight(column: Column) -> None:
    kind, values = column
    stats = stats_of(kind, values, "full")
    assert stats.get("tight_bounds") == (True if bounded(values) else None)


@given(
    st.sampled_from(list(VALUES)).flatmap(
        lambda kind: st.tuples(
            st.just(kind), st.lists(st.lists(st.none() | VALUES[kind], max_size=5), min_size=1)
        )
    ),
    MODES,
    st.booleans(),
)
def test_aggregates_enclose_every_child(
    files: tuple[ice.PrimitiveType, list[list[Any]]], mode: str, has_manifest_dv: bool
) -> None:
    kind, children = files
    fields = tracked_fields(Schema(ice.NestedField(1, "c", kind)))
    rows = [
        {"record_count": len(values)}
        | {f"content_stats.1.{name}": value for name, value in stats_of(kind, values, mode).items()}
        for values in children
    ]
    batch = EntryBatch.from_rows(rows, stats_types(fields))
    found = aggregate(batch, fields, has_manifest_dv=has_manifest_dv)
    stats = {key.rpartition(".")[2]: value for key, value in found.items()}
    every = [value for values in children for value in values]
    assert encloses(stats, every)
    assert stats["value_count"] == len(every)
    assert stats["null_value_count"] == every.count(None)
    if has_manifest_dv:
        assert stats.get("tight_bounds") in (None, False)
    elif mode == "full" and bounded(every):
        assert stats["tight_bounds"] is True
        assert rank(stats["lower_bound"]) == min(map(rank, bounded(every)))
        assert rank(stats["upper_bound"]) == max(map(rank, bounded(every)))


@given(columns(), MODES)
def test_footers_enclose_values(column: Column, mode: str) -> None:
    kind, values = column
    schema = Schema(ice.NestedField(1, "c", kind))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"c": pa.array(values, arrow_type(kind))}), sink, row_group_size=4)
    footer = pq.read_metadata(pa.BufferReader(sink.getvalue()))
    properties = {"write.metadata.metrics.default": mode}
    found = footer_stats(footer, schema, MetricsConfig.from_properties(properties, schema))
    stats = {key.rpartition(".")[2]: value for key, value in found.items()}
    assert encloses(stats, values)
    assert stats["null_value_count"] == values.count(None)


def check_truncation(
    values: list[Any],
    length: int,
    arrow: pa.DataType,
    encode: Callable[[Any], bytes],
) -> None:
    low = [truncate_lower(value, length) for value in values]
    high = [truncate_upper(value, length) for value in values]
    for value, lower, upper in zip(values, low, high, strict=True):
        assert len(lower) <= length
        assert encode(lower) <= encode(value)
        if upper is not None:
            assert len(upper) <= length
            assert encode(value) <= encode(upper)
        else:
            assert len(value) > length
    column = pa.array(values, arrow)
    assert truncate_upper_bounds(column, length).to_pylist() == high
    ordered = sorted(values, key=encode)
    uppers = [truncate_upper(value, length) for value in ordered]
    known = [encode(upper) for upper in uppers if upper is not None]
    assert known == sorted(known)


@given(st.lists(TEXT, max_size=8), st.integers(1, 6))
def test_truncated_text_keeps_its_order(values: list[str], length: int) -> None:
    check_truncation(values, length, pa.string(), lambda text: str(text).encode())


@given(st.lists(BYTES, max_size=8), st.integers(1, 6))
def test_truncated_bytes_keep_their_order(values: list[bytes], length: int) -> None:
    check_truncation(values, length, pa.binary(), bytes)


@given(columns(nan=False))
def test_bytes_of_bounds_are_those_of_pyiceberg(column: Column) -> None:
    kind, values = column
    array = pa.array(values, arrow_type(kind))
    expected = [None if value is None else to_bytes(kind, value) for value in values]
    encoded = encode_bounds(array, kind)
    assert encoded.to_pylist() == expected
    decoded = decode_bounds(encoded, kind)
    decoded.validate(full=True)
    assert decoded.type == arrow_type(kind)
    assert [scalar_value(value) for value in decoded] == [
        None if value is None else from_bytes(kind, value) for value in expected
    ]
    assert decoded.equals(array)


@given(columns(nan=False))
def test_values_come_back_from_arrow_as_they_went_in(column: Column) -> None:
    kind, values = column
    for value in values:
        assert rank(plain_value(scalar(value, kind), kind)) == rank(value)

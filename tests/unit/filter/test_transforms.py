"""Transforms in bulk: the check values of the specification, and PyIceberg value by value."""

from __future__ import annotations

import uuid
from decimal import Decimal
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.errors import InvalidInput
from frazil.filter.transforms import hash_bytes, hash_longs, joint_array, transform_array
from frazil.format.values.types import arrow_type
from frazil.iceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    JointBucketTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
    YearTransform,
)
from frazil.iceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    FixedType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from tests.support.pyiceberg_oracle import transformed

TIME_TRANSFORMS: tuple[Transform, ...] = (
    YearTransform(),
    MonthTransform(),
    DayTransform(),
    HourTransform(),
)
INT, LONG = (-(2**31) + 1000, 2**31 - 1), (-(2**63) + 1000, 2**63 - 1)
MICROS = (-62_000_000_000_000_000, 250_000_000_000_000_000)  # about years 5 to 9892
VALUES: dict[IcebergType, st.SearchStrategy[Any]] = {
    IntegerType(): st.integers(*INT),
    LongType(): st.integers(*LONG),
    DecimalType(9, 2): st.integers(-999_990_000, 999_999_999).map(
        lambda unscaled: Decimal(unscaled).scaleb(-2)
    ),
    DecimalType(38, 10): st.integers(-(10**38) + 10**6, 10**38 - 1).map(
        lambda unscaled: Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -10))
    ),
    DateType(): st.integers(-700_000, 2_900_000),
    TimeType(): st.integers(0, 86_399_999_999),
    TimestampType(): st.integers(*MICROS),
    TimestamptzType(): st.integers(*MICROS),
    TimestampNanoType(): st.integers(*LONG),
    TimestamptzNanoType(): st.integers(*LONG),
    StringType(): st.text(max_size=20),
    UUIDType(): st.uuids().map(lambda value: value.bytes),
    FixedType(5): st.binary(min_size=5, max_size=5),
    BinaryType(): st.binary(max_size=20),
}
TRANSFORMS: tuple[Transform, ...] = (
    IdentityTransform(),
    BucketTransform(16),
    BucketTransform(2**31 - 1),
    TruncateTransform(1),
    TruncateTransform(7),
    TruncateTransform(100),
    *TIME_TRANSFORMS,
)
PAIRS = [(type_, t) for type_ in VALUES for t in TRANSFORMS if t.can_transform(type_)]


def plain(array: pa.Array) -> list[Any]:
    """Values as PyIceberg's transforms give them: dates and times as integers."""
    if pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    elif pa.types.is_temporal(array.type):
        array = array.cast(pa.int64())
    return list(array.to_pylist())


@pytest.mark.parametrize(("type_", "transform"), PAIRS, ids=lambda part: str(part))
def test_bulk_transforms_agree_with_pyiceberg(type_: IcebergType, transform: Transform) -> None:
    @settings(max_examples=25, deadline=None)
    @given(st.lists(st.none() | VALUES[type_], max_size=12))
    def agree(values: list[Any]) -> None:
        array = pa.array(values, arrow_type(type_))
        made = transform_array(transform, array, type_)
        assert made.type == arrow_type(transform.result_type(type_))
        expected = [
            None if value is None else transformed(transform, type_, value) for value in values
        ]
        assert plain(made) == expected
        sliced = transform_array(transform, array[1:], type_)
        assert plain(sliced) == expected[1:]

    agree()


@pytest.mark.parametrize(
    ("type_", "value", "hashed"),
    [
        (IntegerType(), 34, 2017239379),
        (LongType(), 34, 2017239379),
        (DecimalType(4, 2), Decimal("14.20"), -500754589),
        (DateType(), 17486, -653330422),
        (TimeType(), 81_068_000_000, -662762989),
        (TimestampType(), 1_510_871_468_000_000, -2047944441),
        (TimestampType(), 1_510_871_468_000_001, -1207196810),
        (TimestamptzType(), 1_510_871_468_000_000, -2047944441),
        (TimestampNanoType(), 1_510_871_468_000_001_001, -1207196810),
        (StringType(), "iceberg", 1210000089),
        (UUIDType(), uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes, 1488055340),
        (FixedType(4), b"\0\1\2\3", -188683207),
        (BinaryType(), b"\0\1\2\3", -188683207),
    ],
    ids=str,
)
def test_bucket_gives_the_hashes_of_the_iceberg_specification(
    type_: IcebergType, value: Any, hashed: int
) -> None:
    buckets = 2**31 - 1
    array = pa.array([value], arrow_type(type_))
    made = transform_array(BucketTransform(buckets), array, type_)
    assert made.to_pylist() == [(hashed & 0x7FFFFFFF) % buckets]


@pytest.mark.parametrize(
    ("type_", "width", "value", "cut"),
    [
        (IntegerType(), 10, 1, 0),
        (IntegerType(), 10, -1, -10),
        (LongType(), 10, -11, -20),
        (DecimalType(9, 2), 50, Decimal("10.65"), Decimal("10.50")),
        (DecimalType(9, 2), 50, Decimal("-0.05"), Decimal("-0.50")),
        (StringType(), 3, "iceberg", "ice"),
        (StringType(), 2, "𝄞é€", "𝄞é"),
        (BinaryType(), 3, b"\1\2\3\4\5", b"\1\2\3"),
    ],
    ids=str,
)
def test_truncate_gives_the_examples_of_the_iceberg_specification(
    type_: IcebergType, width: int, value: Any, cut: Any
) -> None:
    array = pa.array([value, None], arrow_type(type_))
    assert transform_array(TruncateTransform(width), array, type_).to_pylist() == [cut, None]


def test_times_before_1970_round_down() -> None:
    array = pa.array([-1, -3_600_000_001], pa.timestamp("us"))
    made = [plain(transform_array(each, array, TimestampType())) for each in TIME_TRANSFORMS]
    assert made == [[-1, -1], [-1, -1], [-1, -1], [-1, -2]]


def test_hours_of_nanosecond_timestamps() -> None:
    array = pa.array([-1, 0, 3_600_000_000_000], pa.timestamp("ns", "UTC"))
    assert transform_array(HourTransform(), array, TimestamptzNanoType()).to_pylist() == [-1, 0, 1]


def test_days_are_dates() -> None:
    made = transform_array(DayTransform(), pa.array([0], pa.timestamp("us")), TimestampType())
    assert made.type == pa.date32()


def test_void_is_null_everywhere() -> None:
    made = transform_array(VoidTransform(), pa.array([1, 2], pa.int64()), LongType())
    assert made.equals(pa.nulls(2, pa.int64()))


def test_narrower_larger_chunked_and_extension_columns_are_taken() -> None:
    narrow = pa.chunked_array([pa.array([1, 2], pa.int32()), pa.array([None], pa.int32())])
    assert transform_array(TruncateTransform(2), narrow, LongType()).to_pylist() == [0, 2, None]
    large = pa.array(["abc"], pa.large_string())
    assert transform_array(TruncateTransform(2), large, StringType()).to_pylist() == ["ab"]
    coded = pa.array(["abc", "abd", "abc"]).dictionary_encode()
    assert transform_array(TruncateTransform(2), coded, StringType()).to_pylist() == ["ab"] * 3
    ids = pa.array([uuid.UUID(int=7).bytes], pa.uuid())
    assert transform_array(BucketTransform(5), ids, UUIDType()).to_pylist() == [
        (mmh3.hash(uuid.UUID(int=7).bytes) & 0x7FFFFFFF) % 5
    ]


def test_lowest_numbers_that_cannot_be_truncated_are_refused() -> None:
    with pytest.raises(InvalidInput, match="outside the int range"):
        transform_array(TruncateTransform(10), pa.array([-(2**31)], pa.int32()), IntegerType())
    with pytest.raises(InvalidInput, match="outside the long range"):
        transform_array(TruncateTransform(10), pa.array([-(2**63)], pa.int64()), LongType())
    lowest = pa.array([Decimal("-9.9")], pa.decimal128(2, 1))
    with pytest.raises(InvalidInput, match="outside the decimal"):
        transform_array(TruncateTransform(7), lowest, DecimalType(2, 1))


def test_types_that_a_transform_does_not_take_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"day cannot be applied to a string column"):
        transform_array(DayTransform(), pa.array(["x"]), StringType())
    with pytest.raises(InvalidInput, match="cannot be applied"):
        transform_array(BucketTransform(4), pa.array([True]), BooleanType())
    with pytest.raises(InvalidInput, match="cannot be applied"):
        transform_array(UnknownTransform("zorder"), pa.array([1]), IntegerType())


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(max_size=40), min_size=1, max_size=20))
def test_murmur_of_bytes_agrees_with_mmh3(values: list[bytes]) -> None:
    data = np.frombuffer(b"".join(values), np.uint8)
    lengths = np.array([len(value) for value in values], dtype=np.int64)
    starts = np.cumsum(lengths) - lengths
    expected = [mmh3.hash(value, signed=False) for value in values]
    assert hash_bytes(data, starts, lengths).tolist() == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_murmur_of_longs_agrees_with_mmh3(values: list[int]) -> None:
    expected = [mmh3.hash(v.to_bytes(8, "little", signed=True), signed=False) for v in values]
    assert hash_longs(np.array(values, dtype=np.int64)).tolist() == expected


def hashed_bytes(value: Any, type_: IcebergType) -> bytes:
    """What the specification hashes of one value."""
    if isinstance(type_, StringType):
        return bytes(value.encode())
    if isinstance(type_, UUIDType | FixedType | BinaryType):
        return bytes(value)
    if isinstance(type_, DecimalType):
        unscaled = int(value.scaleb(type_.scale))
        length = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
        return unscaled.to_bytes(length, "big", signed=True)
    if isinstance(type_, TimestampNanoType | TimestamptzNanoType):
        value //= 1000
    return int(value).to_bytes(8, "little", signed=True)


@pytest.mark.parametrize("first", VALUES, ids=str)
@pytest.mark.parametrize("second", [StringType(), LongType(), DecimalType(9, 2)], ids=str)
def test_a_bucket_of_several_columns_hashes_their_bytes_together(
    first: IcebergType, second: IcebergType
) -> None:
    types = (first, second, BinaryType())
    rows = st.tuples(*(st.none() | VALUES[type_] for type_ in types))

    @settings(max_examples=10, deadline=None)
    @given(st.lists(rows, max_size=8))
    def agree(values: list[tuple[Any, ...]]) -> None:
        columns = [
            pa.array([row[at] for row in values], arrow_type(type_)).slice(0)
            for at, type_ in enumerate(types)
        ]
        expected = [
            None
            if None in row
            else (mmh3.hash(b"".join(map(hashed_bytes, row, types)), signed=False) & 0x7FFFFFFF)
            % 1000
            for row in values
        ]
        made = joint_array(JointBucketTransform(1000), columns, types)
        assert made.to_pylist() == expected
        if len(values) > 2:
            cut = [column.slice(1, 2) for column in columns]
            assert joint_array(JointBucketTransform(1000), cut, types).to_pylist() == expected[1:3]

    agree()

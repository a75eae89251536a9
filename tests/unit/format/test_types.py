"""Arrow types of Iceberg primitives, single values, and promotion."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.expressions.literals import literal
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)

from frazil.errors import InvalidInput, Unsupported
from frazil.format.types import arrow_type, plain, plain_of, promote, scalar

ID = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")


@pytest.mark.parametrize(
    ("iceberg", "arrow"),
    [
        (BooleanType(), pa.bool_()),
        (IntegerType(), pa.int32()),
        (LongType(), pa.int64()),
        (FloatType(), pa.float32()),
        (DoubleType(), pa.float64()),
        (DateType(), pa.date32()),
        (TimeType(), pa.time64("us")),
        (TimestampType(), pa.timestamp("us")),
        (TimestamptzType(), pa.timestamp("us", "UTC")),
        (TimestampNanoType(), pa.timestamp("ns")),
        (TimestamptzNanoType(), pa.timestamp("ns", "UTC")),
        (StringType(), pa.string()),
        (UUIDType(), pa.binary(16)),
        (FixedType(7), pa.binary(7)),
        (BinaryType(), pa.binary()),
        (DecimalType(38, 10), pa.decimal128(38, 10)),
        (GeometryType(), pa.binary()),
        (GeographyType(), pa.binary()),
        (UnknownType(), pa.null()),
    ],
)
def test_every_primitive_has_its_arrow_type(iceberg: IcebergType, arrow: pa.DataType) -> None:
    assert arrow_type(iceberg) == arrow


def test_no_primitive_of_pyiceberg_is_missing() -> None:
    kinds: list[Any] = PrimitiveType.__subclasses__()
    for kind in kinds:
        made = kind(9, 2) if kind is DecimalType else kind(4) if kind is FixedType else kind()
        assert isinstance(arrow_type(made), pa.DataType)


def test_nested_types_have_no_single_arrow_type() -> None:
    with pytest.raises(Unsupported):
        arrow_type(ListType(1, LongType()))


@pytest.mark.parametrize(
    ("value", "iceberg", "expected"),
    [
        (True, BooleanType(), True),
        (-(2**31), IntegerType(), -(2**31)),
        (2**63 - 1, LongType(), 2**63 - 1),
        (1, DoubleType(), 1.0),
        (Decimal("1.5"), DecimalType(9, 2), Decimal("1.50")),
        (7, DecimalType(9, 2), Decimal("7.00")),
        (date(1970, 1, 2), DateType(), 1),
        (date(1969, 12, 31), DateType(), -1),
        (19_000, DateType(), 19_000),
        (time(0, 0, 1, 5), TimeType(), 1_000_005),
        (datetime(1970, 1, 1, 0, 0, 1), TimestampType(), 1_000_000),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999), TimestampType(), -1),
        (datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), TimestamptzType(), 0),
        (datetime(1970, 1, 1, 0, 0, 1), TimestampNanoType(), 10**9),
        (datetime(1970, 1, 1, tzinfo=UTC), TimestamptzNanoType(), 0),
        (2**62, TimestampType(), 2**62),
        ("é", StringType(), "é"),
        (ID, UUIDType(), ID.bytes),
        (str(ID), UUIDType(), ID.bytes),
        (ID.bytes, UUIDType(), ID.bytes),
        (b"abc", FixedType(3), b"abc"),
        (bytearray(b"\x00\xff"), BinaryType(), b"\x00\xff"),
        (literal(5), LongType(), 5),
        (literal(date(1970, 1, 2)).to(DateType()), DateType(), 1),
        (pa.scalar(datetime(1970, 1, 1, 0, 0, 1), pa.timestamp("us")), TimestampType(), 1_000_000),
        (None, LongType(), None),
    ],
)
def test_a_value_has_one_plain_form(value: Any, iceberg: IcebergType, expected: Any) -> None:
    assert plain(value, iceberg) == expected
    stored = scalar(value, iceberg)
    assert stored.type == arrow_type(iceberg)
    assert plain_of(stored) == expected


@pytest.mark.parametrize(
    ("value", "iceberg"),
    [
        (1, BooleanType()),
        (True, LongType()),
        (2**31, IntegerType()),
        (2**63, LongType()),
        (1.5, LongType()),
        ("1", IntegerType()),
        (1e39, FloatType()),
        ("x", DoubleType()),
        (Decimal("1.005"), DecimalType(9, 2)),
        (Decimal("10000000"), DecimalType(9, 2)),
        (1.5, DecimalType(9, 2)),
        (datetime(1970, 1, 1), DateType()),
        (86_400_000_000, TimeType()),
        (time(1, tzinfo=UTC), TimeType()),
        (datetime(1970, 1, 1, tzinfo=UTC), TimestampType()),
        (datetime(1970, 1, 1), TimestamptzType()),
        ("\ud800", StringType()),
        (b"x", StringType()),
        ("not-a-uuid", UUIDType()),
        (b"short", UUIDType()),
        (b"ab", FixedType(3)),
        ("text", BinaryType()),
    ],
)
def test_a_value_that_does_not_fit_is_refused(value: Any, iceberg: IcebergType) -> None:
    with pytest.raises(InvalidInput):
        scalar(value, iceberg)


def test_floats_keep_infinity_and_negative_zero() -> None:
    assert plain(float("inf"), FloatType()) == float("inf")
    assert str(plain_of(scalar(-0.0, FloatType()))) == "-0.0"


def test_a_uuid_extension_scalar_gives_its_bytes() -> None:
    assert plain_of(pa.scalar(ID.bytes, pa.uuid())) == ID.bytes


@pytest.mark.parametrize(
    ("array", "to", "expected"),
    [
        (pa.array([1, None, -1], pa.int32()), LongType(), [1, None, -1]),
        (pa.array([0.5, None], pa.float32()), DoubleType(), [0.5, None]),
        (
            pa.array([Decimal("1.25")], pa.decimal128(5, 2)),
            DecimalType(20, 2),
            [Decimal("1.25")],
        ),
        (
            pa.array([1, -1, None], pa.date32()),
            TimestampType(),
            [datetime(1970, 1, 2), datetime(1969, 12, 31), None],
        ),
        (pa.array(["a", None]), BinaryType(), [b"a", None]),
        (pa.array([b"a", b"\xff", None]), StringType(), ["a", None, None]),
        (pa.nulls(2), StringType(), [None, None]),
        (pa.array([5], pa.int64()), LongType(), [5]),
    ],
)
def test_promotion_keeps_values(array: pa.Array, to: IcebergType, expected: list[Any]) -> None:
    promoted = promote(array, to)
    assert promoted.type == arrow_type(to)
    assert promoted.to_pylist() == expected
    chunked = promote(pa.chunked_array([array, array]), to)
    assert chunked.to_pylist() == expected * 2


def test_a_date_beyond_nanoseconds_becomes_unknown() -> None:
    days = pa.array([0, 106_751, 106_752, -106_751, 2_932_896], pa.date32())
    nanos = promote(days, TimestampNanoType()).cast(pa.int64()).to_pylist()
    per_day = 86_400 * 10**9
    assert nanos == [0, 106_751 * per_day, None, -106_751 * per_day, None]


@pytest.mark.parametrize(
    ("array", "to"),
    [
        (pa.array([1], pa.int64()), IntegerType()),
        (pa.array([1.0], pa.float64()), FloatType()),
        (pa.array([Decimal("1.25")], pa.decimal128(5, 2)), DecimalType(20, 3)),
        (pa.array([Decimal("1.25")], pa.decimal128(5, 2)), DecimalType(4, 2)),
        (pa.array([1], pa.date32()), TimestamptzType()),
        (pa.array(["1"]), LongType()),
        (pa.array([1], pa.timestamp("us")), TimestampNanoType()),
    ],
)
def test_a_step_that_is_no_promotion_is_refused(array: pa.Array, to: IcebergType) -> None:
    with pytest.raises(InvalidInput):
        promote(array, to)

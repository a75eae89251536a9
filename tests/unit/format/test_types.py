"""Arrow types of Iceberg primitives, single values, and promotion."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from frazil.errors import InvalidInput, Unsupported
from frazil.format.values.types import arrow_type, plain_value, promote, scalar, scalar_value
from frazil.iceberg import types as ice
from frazil.iceberg.literals import literal

ID = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")


@pytest.mark.parametrize(
    ("iceberg", "arrow"),
    [
        (ice.BooleanType(), pa.bool_()),
        (ice.IntegerType(), pa.int32()),
        (ice.LongType(), pa.int64()),
        (ice.FloatType(), pa.float32()),
        (ice.DoubleType(), pa.float64()),
        (ice.DateType(), pa.date32()),
        (ice.TimeType(), pa.time64("us")),
        (ice.TimestampType(), pa.timestamp("us")),
        (ice.TimestamptzType(), pa.timestamp("us", "UTC")),
        (ice.TimestampNanoType(), pa.timestamp("ns")),
        (ice.TimestamptzNanoType(), pa.timestamp("ns", "UTC")),
        (ice.StringType(), pa.string()),
        (ice.UUIDType(), pa.binary(16)),
        (ice.FixedType(7), pa.binary(7)),
        (ice.BinaryType(), pa.binary()),
        (ice.DecimalType(38, 10), pa.decimal128(38, 10)),
        (ice.GeometryType(), pa.binary()),
        (ice.GeographyType(), pa.binary()),
        (ice.UnknownType(), pa.null()),
    ],
)
def test_every_primitive_has_its_arrow_type(iceberg: ice.IcebergType, arrow: pa.DataType) -> None:
    assert arrow_type(iceberg) == arrow


def test_no_primitive_of_pyiceberg_is_missing() -> None:
    kinds: list[Any] = ice.PrimitiveType.__subclasses__()
    for kind in kinds:
        made = (
            kind(9, 2) if kind is ice.DecimalType else kind(4) if kind is ice.FixedType else kind()
        )
        assert isinstance(arrow_type(made), pa.DataType)


def test_nested_types_have_no_single_arrow_type() -> None:
    with pytest.raises(Unsupported):
        arrow_type(ice.ListType(1, ice.LongType()))


@pytest.mark.parametrize(
    ("value", "iceberg", "expected"),
    [
        (True, ice.BooleanType(), True),
        (-(2**31), ice.IntegerType(), -(2**31)),
        (2**63 - 1, ice.LongType(), 2**63 - 1),
        (1, ice.DoubleType(), 1.0),
        (Decimal("1.5"), ice.DecimalType(9, 2), Decimal("1.50")),
        (7, ice.DecimalType(9, 2), Decimal("7.00")),
        (date(1970, 1, 2), ice.DateType(), 1),
        (date(1969, 12, 31), ice.DateType(), -1),
        (19_000, ice.DateType(), 19_000),
        (time(0, 0, 1, 5), ice.TimeType(), 1_000_005),
        (datetime(1970, 1, 1, 0, 0, 1), ice.TimestampType(), 1_000_000),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999), ice.TimestampType(), -1),
        (datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), ice.TimestamptzType(), 0),
        (datetime(1970, 1, 1, 0, 0, 1), ice.TimestampNanoType(), 10**9),
        (datetime(1970, 1, 1, tzinfo=UTC), ice.TimestamptzNanoType(), 0),
        (2**62, ice.TimestampType(), 2**62),
        ("é", ice.StringType(), "é"),
        (ID, ice.UUIDType(), ID.bytes),
        (str(ID), ice.UUIDType(), ID.bytes),
        (ID.bytes, ice.UUIDType(), ID.bytes),
        (b"abc", ice.FixedType(3), b"abc"),
        (bytearray(b"\x00\xff"), ice.BinaryType(), b"\x00\xff"),
        (literal(5), ice.LongType(), 5),
        (literal(date(1970, 1, 2)), ice.DateType(), 1),
        (
            pa.scalar(datetime(1970, 1, 1, 0, 0, 1), pa.timestamp("us")),
            ice.TimestampType(),
            1_000_000,
        ),
        (None, ice.LongType(), None),
    ],
)
def test_a_value_has_one_plain_form(value: Any, iceberg: ice.IcebergType, expected: Any) -> None:
    assert plain_value(value, iceberg) == expected
    stored = scalar(value, iceberg)
    assert stored.type == arrow_type(iceberg)
    assert scalar_value(stored) == expected


@pytest.mark.parametrize(
    ("value", "iceberg"),
    [
        (1, ice.BooleanType()),
        (True, ice.LongType()),
        (2**31, ice.IntegerType()),
        (2**63, ice.LongType()),
        (1.5, ice.LongType()),
        ("1", ice.IntegerType()),
        (1e39, ice.FloatType()),
        ("x", ice.DoubleType()),
        (Decimal("1.005"), ice.DecimalType(9, 2)),
        (Decimal("10000000"), ice.DecimalType(9, 2)),
        (1.5, ice.DecimalType(9, 2)),
        (datetime(1970, 1, 1), ice.DateType()),
        (86_400_000_000, ice.TimeType()),
        (time(1, tzinfo=UTC), ice.TimeType()),
        (datetime(1970, 1, 1, tzinfo=UTC), ice.TimestampType()),
        (datetime(1970, 1, 1), ice.TimestamptzType()),
        ("\ud800", ice.StringType()),
        (b"x", ice.StringType()),
        ("not-a-uuid", ice.UUIDType()),
        (b"short", ice.UUIDType()),
        (b"ab", ice.FixedType(3)),
        ("text", ice.BinaryType()),
    ],
)
def test_a_value_that_does_not_fit_is_refused(value: Any, iceberg: ice.IcebergType) -> None:
    with pytest.raises(InvalidInput):
        scalar(value, iceberg)


def test_floats_keep_infinity_and_negative_zero() -> None:
    assert plain_value(float("inf"), ice.FloatType()) == float("inf")
    assert str(scalar_value(scalar(-0.0, ice.FloatType()))) == "-0.0"


def test_a_uuid_extension_scalar_gives_its_bytes() -> None:
    assert scalar_value(pa.scalar(ID.bytes, pa.uuid())) == ID.bytes


@pytest.mark.parametrize(
    ("array", "to", "expected"),
    [
        (pa.array([1, None, -1], pa.int32()), ice.LongType(), [1, None, -1]),
        (pa.array([0.5, None], pa.float32()), ice.DoubleType(), [0.5, None]),
        (
            pa.array([Decimal("1.25")], pa.decimal128(5, 2)),
            ice.DecimalType(20, 2),
            [Decimal("1.25")],
        ),
        (
            pa.array([1, -1, None], pa.date32()),
            ice.TimestampType(),
            [datetime(1970, 1, 2), datetime(1969, 12, 31), None],
        ),
        (pa.array(["a", None]), ice.BinaryType(), [b"a", None]),
        (pa.array([b"a", b"\xff", None]), ice.StringType(), ["a", None, None]),
        (pa.nulls(2), ice.StringType(), [None, None]),
        (pa.array([5], pa.int64()), ice.LongType(), [5]),
    ],
)
def test_promotion_keeps_values(array: pa.Array, to: ice.IcebergType, expected: list[Any]) -> None:
    promoted = promote(array, to)
    assert promoted.type == arrow_type(to)
    assert promoted.to_pylist() == expected
    chunked = promote(pa.chunked_array([array, array]), to)
    assert chunked.to_pylist() == expected * 2


def test_a_date_beyond_nanoseconds_becomes_unknown() -> None:
    days = pa.array([0, 106_751, 106_752, -106_751, 2_932_896], pa.date32())
    nanos = promote(days, ice.TimestampNanoType()).cast(pa.int64()).to_pylist()
    per_day = 86_400 * 10**9
    assert nanos == [0, 106_751 * per_day, None, -106_751 * per_day, None]


@pytest.mark.parametrize(
    ("array", "to"),
    [
        (pa.array([1], pa.int64()), ice.IntegerType()),
        (pa.array([1.0], pa.float64()), ice.FloatType()),
        (pa.array([Decimal("1.25")], pa.decimal128(5, 2)), ice.DecimalType(20, 3)),
        (pa.array([Decimal("1.25")], pa.decimal128(5, 2)), ice.DecimalType(4, 2)),
        (pa.array([1], pa.date32()), ice.TimestamptzType()),
        (pa.array(["1"]), ice.LongType()),
        (pa.array([1], pa.timestamp("us")), ice.TimestampNanoType()),
    ],
)
def test_a_step_that_is_no_promotion_is_refused(array: pa.Array, to: ice.IcebergType) -> None:
    with pytest.raises(InvalidInput):
        promote(array, to)

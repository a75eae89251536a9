"""Bounds as bytes, against PyIceberg's conversions and the Iceberg specification's examples."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from frazil.errors import FormatError, Unsupported
from frazil.format.values.single_value import (
    decode_bounds,
    decode_points,
    encode_bounds,
    encode_points,
)
from frazil.format.values.types import arrow_type
from frazil.iceberg import types as ice
from tests.support.pyiceberg_oracle import to_bytes

CASES: list[tuple[ice.PrimitiveType, list[Any]]] = [
    (ice.BooleanType(), [True, False]),
    (ice.IntegerType(), [0, 1, -1, 2**31 - 1, -(2**31)]),
    (ice.LongType(), [0, -1, 2**63 - 1, -(2**63)]),
    (ice.FloatType(), [1.5, -0.0, float("inf")]),
    (ice.DoubleType(), [1.5, -0.0, 5e-324, float("-inf")]),
    (ice.DateType(), [0, -719_162, 19_000]),
    (ice.TimeType(), [0, 86_399_999_999]),
    (ice.TimestampType(), [0, -1, 2**62]),
    (ice.TimestamptzType(), [0, -1, 2**62]),
    (ice.TimestampNanoType(), [0, -1, 2**62]),
    (ice.TimestamptzNanoType(), [0, -1, 2**62]),
    (ice.StringType(), ["", "é", "\U0010ffff"]),
    (ice.BinaryType(), [b"", b"\x00\xff"]),
    (ice.FixedType(3), [b"abc", b"\xff\x00\x01"]),
    (ice.UUIDType(), [bytes(range(16))]),
    (
        ice.DecimalType(38, 2),
        [
            Decimal(text)
            for text in (
                *("0.00", "0.01", "-0.01", "1.27", "1.28", "-1.28", "-1.29"),
                *("327.67", "327.68", "-327.68", "-327.69"),
                "9" * 36 + ".99",
                "-" + "9" * 36 + ".99",
            )
        ],
    ),
]


@pytest.mark.parametrize(("iceberg", "values"), CASES, ids=lambda case: str(case)[:20])
def test_bytes_are_those_of_pyiceberg_both_ways(
    iceberg: ice.PrimitiveType, values: list[Any]
) -> None:
    expected = [None, *(to_bytes(iceberg, value) for value in values), None]
    column = pa.array([None, *values, None], arrow_type(iceberg))
    encoded = encode_bounds(column, iceberg)
    assert encoded.type == pa.binary()
    assert encoded.to_pylist() == expected
    decoded = decode_bounds(pa.array(expected, pa.binary()), iceberg)
    decoded.validate(full=True)
    assert decoded.equals(column)


@pytest.mark.parametrize(("iceberg", "values"), CASES, ids=lambda case: str(case)[:20])
def test_slices_and_chunks_decode_alike(iceberg: ice.PrimitiveType, values: list[Any]) -> None:
    column = pa.array([None, *values], arrow_type(iceberg))
    encoded = encode_bounds(column, iceberg)
    assert encode_bounds(column.slice(1), iceberg).equals(encoded.slice(1))
    assert decode_bounds(encoded.slice(1), iceberg).equals(column.slice(1))
    twice = decode_bounds(pa.chunked_array([encoded, encoded]), iceberg)
    assert twice.equals(pa.concat_arrays([column, column]))
    assert len(decode_bounds(encoded.slice(0, 0), iceberg)) == 0


def test_a_long_reads_the_four_bytes_of_an_int() -> None:
    stored = pa.array([b"\xfe\xff\xff\xff", None, b"\x01" + bytes(7)])
    assert decode_bounds(stored, ice.LongType()).to_pylist() == [-2, None, 1]


def test_a_double_reads_the_four_bytes_of_a_float() -> None:
    stored = pa.array([struct.pack("<f", 0.5), struct.pack("<d", 0.1)])
    assert decode_bounds(stored, ice.DoubleType()).to_pylist() == [0.5, 0.1]


def test_a_timestamp_reads_the_four_bytes_of_a_date() -> None:
    stored = pa.array([struct.pack("<i", -1), struct.pack("<q", 7)])
    micros = decode_bounds(stored, ice.TimestampType()).cast(pa.int64())
    assert micros.to_pylist() == [-86_400_000_000, 7]
    nanos = decode_bounds(stored, ice.TimestampNanoType()).cast(pa.int64())
    assert nanos.to_pylist() == [-86_400_000_000_000, 7]


def test_a_wider_decimal_reads_what_a_narrower_one_wrote() -> None:
    stored = pa.array([to_bytes(ice.DecimalType(3, 2), Decimal("-1.25"))])
    assert decode_bounds(stored, ice.DecimalType(20, 2)).to_pylist() == [Decimal("-1.25")]


def test_a_cut_fixed_bound_is_filled_with_zeros() -> None:
    decoded = decode_bounds(pa.array([b"ab", b"abcd", None]), ice.FixedType(4))
    assert decoded.to_pylist() == [b"ab\x00\x00", b"abcd", None]


def test_nan_and_broken_text_bound_nothing() -> None:
    nan = pa.array([struct.pack("<d", float("nan")), struct.pack("<d", 1.0)])
    assert decode_bounds(nan, ice.DoubleType()).to_pylist() == [None, 1.0]
    assert decode_bounds(pa.array([b"\xc3", b"ok"]), ice.StringType()).to_pylist() == [None, "ok"]


@pytest.mark.parametrize(
    ("stored", "iceberg"),
    [
        (b"\x01\x02\x03", ice.LongType()),
        (b"", ice.IntegerType()),
        (b"\x01\x02\x03\x04", ice.TimestamptzType()),
        (b"", ice.DecimalType(9, 2)),
        (bytes(17), ice.DecimalType(38, 2)),
        (bytes(15), ice.UUIDType()),
        (b"abcd", ice.FixedType(3)),
        (b"ab", ice.BooleanType()),
    ],
)
def test_bytes_of_a_wrong_width_are_refused(stored: bytes, iceberg: ice.IcebergType) -> None:
    with pytest.raises(FormatError, match="bytes"):
        decode_bounds(pa.array([None, stored], pa.binary()), iceberg)


def test_an_unknown_column_has_no_bounds() -> None:
    assert decode_bounds(pa.array([b"x", None]), ice.UnknownType()).null_count == 2
    assert encode_bounds(pa.nulls(2), ice.UnknownType()).to_pylist() == [None, None]


def test_geo_bounds_are_points() -> None:
    xy, xyz = struct.pack("<2d", 1, 2), struct.pack("<3d", 1, 2, 3)
    xym = struct.pack("<4d", 1, 2, float("nan"), 4)
    stored = pa.array([xy, xyz, xym, None], pa.binary())
    points = decode_points(stored)
    assert {axis: column.to_pylist() for axis, column in points.items()} == {
        "x": [1.0, 1.0, 1.0, None],
        "y": [2.0, 2.0, 2.0, None],
        "z": [None, 3.0, None, None],
        "m": [None, None, 4.0, None],
    }
    assert encode_points(points).to_pylist() == stored.to_pylist()
    with pytest.raises(FormatError):
        decode_points(pa.array([b"12345678"]))
    with pytest.raises(Unsupported):
        decode_bounds(stored, ice.GeometryType())
    with pytest.raises(Unsupported):
        encode_bounds(stored, ice.GeometryType())

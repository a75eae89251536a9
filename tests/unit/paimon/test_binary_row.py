"""BinaryRow in bulk, against bytes seen in files of Paimon and against a slow encoder."""

from __future__ import annotations

import datetime
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from frazil.errors import FormatError
from frazil.paimon.read.binary_row import decode, null_bytes
from frazil.paimon.read.data_types import DataType, parse_type
from tests.unit.paimon.encode import binary_row

UTC = datetime.UTC


def types(*texts: Any) -> list[DataType]:
    return [parse_type(text) for text in texts]


def decoded(data: bytes, *texts: Any) -> list[Any]:
    return [column.to_pylist()[0] for column in decode(pa.array([data]), types(*texts))]


def slot(hex_bytes: str, text: str, tail: str = "") -> Any:
    row = bytes(8) + bytes.fromhex(hex_bytes) + bytes.fromhex(tail)
    return decoded(struct.pack(">i", 1) + row, text)[0]


def test_a_partition_as_paimon_wrote_it() -> None:
    data = bytes.fromhex(
        "00000002 0000000000000000 0a00000018000000 0b4d000000000000"
        "323032342d30312d3031000000000000".replace(" ", "")
    )
    assert decoded(data, "STRING", "DATE") == ["2024-01-01", datetime.date(2024, 1, 1)]


def test_null_and_empty_text_are_told_apart() -> None:
    null_text = bytes.fromhex("00000002 0001000000000000 0000000000000000 0d4d000000000000")
    empty_text = bytes.fromhex("00000002 0002000000000000 0000000000000080 0000000000000000")
    assert decoded(null_text, "STRING", "DATE") == [None, datetime.date(2024, 1, 3)]
    assert decoded(empty_text, "STRING", "DATE") == ["", None]


@pytest.mark.parametrize(
    ("hex_bytes", "text", "value"),
    [
        ("0100000000000000", "INT", 1),
        ("feff000000000000", "SMALLINT", -2),
        ("ff00000000000000", "TINYINT", -1),
        ("0100000000000000", "BOOLEAN", True),
        ("0010a5d4e8000000", "BIGINT", 10**12),
        ("0000000000000080", "BIGINT", -(2**63)),
        ("0000c03f00000000", "FLOAT", 1.5),
        ("00000000000002c0", "DOUBLE", -2.25),
        ("7d00000000000000", "DECIMAL(10, 2)", Decimal("1.25")),
        ("ffffffffffffffff", "DECIMAL(18, 18)", Decimal("-0.000000000000000001")),
        ("7331000000000082", "STRING", "s1"),
        ("6162636465666787", "STRING", "abcdefg"),
        ("c3a9e6bca2000085", "STRING", "é漢"),
        ("0001ff0100000084", "BYTES", b"\x00\x01\xff\x01"),
        ("219cffff00000000", "DATE", datetime.date(1900, 1, 1)),
        ("e803000000000000", "TIME(3)", datetime.time(0, 0, 1)),
        ("16df20c88c010000", "TIMESTAMP(3)", datetime.datetime(2024, 1, 2, 3, 4, 6, 678000)),
    ],
)
def test_a_slot_holds_a_compact_value(hex_bytes: str, text: str, value: Any) -> None:
    assert slot(hex_bytes, text) == value


def test_values_too_long_for_a_slot_lie_behind_the_slots() -> None:
    at = "10000000"  # one field: the variable part starts at byte 16 of the row
    text = b"long string number 001"
    assert slot("16000000" + at, "STRING", (text + bytes(2)).hex()) == text.decode()
    big = "01056e0f36a6443de46619 0000000000".replace(" ", "")
    assert slot("0b000000" + at, "DECIMAL(30, 5)", big) == Decimal("12345678901234567891.12345")
    assert slot("02000000" + at, "DECIMAL(19, 4)", "d8f0" + "00" * 14) == Decimal("-1.0000")
    millis = "16df20c88c010000"
    micros = datetime.datetime(2024, 1, 2, 3, 4, 6, 678901)
    assert slot("88bf0d00" + at, "TIMESTAMP(6)", millis) == micros
    assert slot("88bf0d00" + at, "TIMESTAMP_LTZ(6)", millis) == micros.replace(tzinfo=UTC)
    before_1970 = datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)
    assert slot("583e0f00" + at, "TIMESTAMP(6)", "ff" * 8) == before_1970


@pytest.mark.parametrize(("arity", "size"), [(0, 8), (56, 8), (57, 16), (120, 16), (121, 24)])
def test_null_bits_take_whole_words_with_the_kind_byte_inside(arity: int, size: int) -> None:
    assert null_bytes(arity) == size


def test_a_wide_row_finds_its_nulls() -> None:
    data = bytes.fromhex("0000003e" + "0000000200000000" + "2000000000000000") + bytes(8 * 62)
    values = decoded(data, *["INT"] * 62)
    assert [i for i, value in enumerate(values) if value is None] == [17, 61]


def test_null_and_zero_length_values_are_rows_without_fields() -> None:
    rows = pa.array([None, b"", bytes(12), binary_row(types("INT"), [7])], pa.binary())
    assert decode(rows, types("INT"))[0].to_pylist() == [None, None, None, 7]


def test_a_null_slot_may_hold_anything() -> None:
    row = bytes.fromhex("0001000000000000" + "ffffffffffffffff")
    assert decoded(struct.pack(">i", 1) + row, "DECIMAL(30, 2)") == [None]


def test_rows_of_a_sliced_and_chunked_column_are_decoded() -> None:
    rows = [binary_row(types("STRING"), [f"value {i}"]) for i in range(6)]
    chunked = pa.chunked_array([pa.array(rows[:3]).slice(1), pa.array(rows[3:])])
    assert decode(chunked, types("STRING"))[0].to_pylist() == [f"value {i}" for i in range(1, 6)]
    assert decode(pa.array([], pa.binary()), types("STRING"))[0].to_pylist() == []


def test_nested_values_are_decoded() -> None:
    row = {"type": "ROW", "fields": [{"id": 1, "name": "x", "type": "INT"}]}
    texts = [
        {"type": "ARRAY", "element": "STRING"},
        {"type": "MAP", "key": "STRING", "value": "INT"},
        row,
        {"type": "ARRAY", "element": {"type": "ARRAY", "element": "SMALLINT"}},
        {"type": "ARRAY", "element": row},
    ]
    value = [
        ["a", None, "a longer text"],
        [("one", 1), ("two", None)],
        {"x": 5},
        [[1, 2], [], None],
        [{"x": None}, {"x": 9}],
    ]
    rows = pa.array(
        [binary_row(types(*texts), value), binary_row(types(*texts), [None] * 5)], pa.binary()
    )
    columns = [column.to_pylist() for column in decode(rows, types(*texts))]
    assert [column[0] for column in columns] == value
    assert [column[1] for column in columns] == [None] * 5


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        (b"\0\0", ["INT"]),
        (struct.pack(">i", 1) + bytes(8), ["INT"]),
        (struct.pack(">i", 2) + bytes(24), ["INT"]),
        (struct.pack(">i", -1) + bytes(24), ["INT"]),
        (struct.pack(">i", 1) + bytes(8) + struct.pack("<II", 9, 16) + b"short", ["STRING"]),
        (struct.pack(">i", 1) + bytes(8) + struct.pack("<II", 9, 2**30), ["STRING"]),
        (struct.pack(">i", 1) + bytes(15) + b"\x88", ["STRING"]),
        (struct.pack(">i", 1) + bytes(8) + b"\xff" + bytes(6) + b"\x81", ["STRING"]),
        (struct.pack(">i", 1) + bytes(8) + struct.pack("<II", 17, 16) + bytes(24), ["DECIMAL(30)"]),
        (struct.pack(">i", 1) + bytes(8) + struct.pack("<q", 10**6), ["DECIMAL(3)"]),
        (struct.pack(">i", 1) + bytes(8) + struct.pack("<II", 10**6, 16) + bytes(8), ["TIMESTAMP"]),
        (struct.pack(">i", 1) + bytes(8) + struct.pack("<II", 0, 16) + bytes(4), ["TIMESTAMP"]),
        (struct.pack(">i", 1) + bytes(8) + struct.pack("<q", 2**62), ["TIMESTAMP(3)"]),
        (struct.pack(">i", 1) + bytes(8) + struct.pack("<q", 86_400_000), ["TIME"]),
    ],
)
def test_a_row_that_breaks_the_format_is_refused(data: bytes, texts: list[str]) -> None:
    with pytest.raises(FormatError, match="BinaryRow"):
        decode(pa.array([data]), types(*texts))

"""Truncated bounds: hand-made cases for values and for columns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from frazil.format.values.truncate import truncate_lower, truncate_upper, truncate_upper_bounds

LAST = "\U0010ffff"

TEXT: list[tuple[str, int, str, str | None]] = [
    ("", 1, "", ""),
    ("abc", 3, "abc", "abc"),
    ("abc", 4, "abc", "abc"),
    ("abcd", 3, "abc", "abd"),
    ("ab" + LAST + "x", 3, "ab" + LAST, "ac"),
    ("a" + LAST + LAST + "x", 3, "a" + LAST + LAST, "b"),
    (LAST + LAST + "x", 2, LAST + LAST, None),
    (LAST + LAST, 2, LAST + LAST, LAST + LAST),
    ("\ud7ffx", 1, "\ud7ff", "\ue000"),
    ("a\x7fz", 2, "a\x7f", "a\x80"),
    ("éàü", 2, "éà", "éá"),
    ("\U0001f600\U0001f600", 1, "\U0001f600", "\U0001f601"),
    ("\uffffx", 1, "\uffff", "\U00010000"),
]

BYTES: list[tuple[bytes, int, bytes, bytes | None]] = [
    (b"", 1, b"", b""),
    (b"ab", 2, b"ab", b"ab"),
    (b"abc", 2, b"ab", b"ac"),
    (b"a\xff\xffz", 3, b"a\xff\xff", b"b"),
    (b"\xff\xff\x00", 2, b"\xff\xff", None),
    (b"\xff\xff", 2, b"\xff\xff", b"\xff\xff"),
    (b"\x00\x00", 1, b"\x00", b"\x01"),
    (b"\x7f\x01", 1, b"\x7f", b"\x80"),
]


@pytest.mark.parametrize(("value", "length", "lower", "upper"), TEXT)
def test_text_is_cut_by_code_points(value: str, length: int, lower: str, upper: str | None) -> None:
    assert truncate_lower(value, length) == lower
    assert truncate_upper(value, length) == upper


@pytest.mark.parametrize(("value", "length", "lower", "upper"), BYTES)
def test_bytes_are_cut_by_bytes(
    value: bytes, length: int, lower: bytes, upper: bytes | None
) -> None:
    assert truncate_lower(value, length) == lower
    assert truncate_upper(value, length) == upper


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_columns_are_cut_as_single_values_are(length: int) -> None:
    texts = [None, *(case[0] for case in TEXT), "plain", "text", None]
    column = pa.array(texts)
    high = [None if text is None else truncate_upper(text, length) for text in texts]
    assert truncate_upper_bounds(column, length).to_pylist() == high
    chunked = pa.chunked_array([column, column.slice(3)])
    assert truncate_upper_bounds(chunked, length).to_pylist() == high + high[3:]
    blobs = [None, *(case[0] for case in BYTES), b"plain"]
    high_blobs = [None if blob is None else truncate_upper(blob, length) for blob in blobs]
    assert truncate_upper_bounds(pa.array(blobs, pa.binary()), length).to_pylist() == high_blobs


def test_a_column_that_is_short_enough_stays_as_it_is() -> None:
    column = pa.array(["ab", None, LAST])
    assert truncate_upper_bounds(column, 2).equals(column)
    assert truncate_upper_bounds(column.slice(0, 0), 2).to_pylist() == []
    assert truncate_upper_bounds(pa.array([None, None], pa.string()), 2).null_count == 2

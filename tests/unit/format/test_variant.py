"""The binary encoding of variants: the specification's bytes, values and back, and damaged ones."""

from __future__ import annotations

import random
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import FormatError, InvalidInput
from frazil.format.values import variant

# Written down from the specification's tables, not by the code under test.
BYTES: list[tuple[Any, bytes, bytes]] = [
    (None, b"\x01\x00\x00", b"\x00"),
    (True, b"\x01\x00\x00", b"\x04"),
    (False, b"\x01\x00\x00", b"\x08"),
    (-1, b"\x01\x00\x00", b"\x0c\xff"),
    (300, b"\x01\x00\x00", b"\x10\x2c\x01"),
    (1 << 20, b"\x01\x00\x00", b"\x14\x00\x00\x10\x00"),
    (1 << 40, b"\x01\x00\x00", b"\x18\x00\x00\x00\x00\x00\x01\x00\x00"),
    (1.0, b"\x01\x00\x00", b"\x1c\x00\x00\x00\x00\x00\x00\xf0\x3f"),
    (Decimal("1.25"), b"\x01\x00\x00", b"\x20\x02\x7d\x00\x00\x00"),
    ("hi", b"\x01\x00\x00", b"\x09hi"),
    ("x" * 64, b"\x01\x00\x00", b"\x40\x40\x00\x00\x00" + b"x" * 64),
    (b"\x01\x02", b"\x01\x00\x00", b"\x3c\x02\x00\x00\x00\x01\x02"),
    ([1, "a"], b"\x01\x00\x00", b"\x03\x02\x00\x02\x04\x0c\x01\x05a"),
    ({}, b"\x01\x00\x00", b"\x02\x00\x00"),
    # Names are sorted: a is number 0.
    (
        {"b": 1, "a": []},
        b"\x11\x02\x00\x01\x02ab",
        b"\x02\x02\x00\x01\x00\x03\x05\x03\x00\x00\x0c\x01",
    ),
]


@pytest.mark.parametrize(("value", "metadata", "data"), BYTES)
def test_values_have_the_bytes_of_the_specification(
    value: Any, metadata: bytes, data: bytes
) -> None:
    assert variant.encode(value) == (metadata, data)
    assert variant.decode(metadata, data) == value


def test_what_other_writers_may_write_is_decoded() -> None:
    # An object whose values are stored in the other order than its names, with wide offsets.
    data = b"\x06\x02\x00\x01\x02\x00\x00\x00\x04\x00" + b"\x0c\x07" + b"\x0c\x08"
    assert variant.decode(b"\x01\x02\x00\x01\x02ab", data) == {"a": 8, "b": 7}
    assert variant.decode(b"\x01\x00\x00", b"\x38\x00\x00\xc0\x3f") == 1.5  # a float
    uuid = b"\x50" + bytes(range(16))
    assert str(variant.decode(b"\x01\x00\x00", uuid)) == "00010203-0405-0607-0809-0a0b0c0d0e0f"


_plain = (
    st.none()
    | st.booleans()
    | st.integers(-(10**38) + 1, 10**38 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(max_size=80)
    | st.dates()
    | st.datetimes()
    | st.times()
    | st.uuids()
    | st.decimals(allow_nan=False, allow_infinity=False, places=3, max_value=10**30)
)
_values = st.recursive(
    _plain,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=30,
)


@given(_values)
def test_values_come_back(value: Any) -> None:
    metadata, data = variant.encode(value)
    assert variant.decode(metadata, data) == value
    assert variant.value_size(data) == len(data)


@given(_values, st.randoms(use_true_random=False))
def test_damaged_bytes_are_an_error_of_the_format(value: Any, chance: random.Random) -> None:
    parts = [bytearray(part) for part in variant.encode(value)]
    for part in parts:
        for _ in range(2):
            part[chance.randrange(len(part))] = chance.randrange(256)
    metadata, data = (bytes(part)[: chance.randrange(1, len(part) + 1)] for part in parts)
    with suppress(FormatError):
        variant.decode(metadata, data)


@pytest.mark.parametrize(
    "value", [object(), {1: 2}, 10**38, Decimal("NaN"), "\ud800", Decimal("1e-39"), [{"a": {3}}]]
)
def test_what_no_variant_holds_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput):
        variant.encode(value)


def test_values_nested_too_deep_are_refused() -> None:
    deep: Any = 1
    for _ in range(variant.MAX_DEPTH + 1):
        deep = [deep]
    with pytest.raises(InvalidInput, match="levels"):
        variant.encode(deep)

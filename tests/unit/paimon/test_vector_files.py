"""Deletion vectors of both widths, from bytes that Paimon wrote."""

from __future__ import annotations

import pytest

from frazil.errors import FormatError
from frazil.paimon.read.vector_files import read_vector
from tests.unit.paimon.encode import framed

NARROW = bytes.fromhex(
    "01" + "00000018" + "5e43f2d0 3a300000 01000000 0000 0100 10000000 0200 0300" + "c898f63d"
)
WIDE = bytes.fromhex(
    "01" + "00000024" + "d1d33964 0100000000000000 00000000"
    "3a300000 01000000 0000 0100 10000000 0200 0300" + "7a813847"
)


def test_vectors_of_32_and_64_bits_are_read() -> None:
    assert read_vector(NARROW, offset=1, length=24).tolist() == [2, 3]
    assert read_vector(WIDE, offset=1, length=44).tolist() == [2, 3]


def test_both_widths_may_share_a_file() -> None:
    data = NARROW + WIDE[1:]
    assert read_vector(data, offset=33, length=44, cardinality=2).tolist() == [2, 3]


def test_what_the_manifest_says_is_checked() -> None:
    assert read_vector(NARROW, offset=1, length=24, row_count=4, cardinality=2).tolist() == [2, 3]
    with pytest.raises(FormatError, match="manifest says 3"):
        read_vector(NARROW, offset=1, length=24, cardinality=3)
    with pytest.raises(FormatError, match="limit is 3"):
        read_vector(NARROW, offset=1, length=24, row_count=3)
    with pytest.raises(FormatError, match="manifest says 25"):
        read_vector(NARROW, offset=1, length=25)


@pytest.mark.parametrize(
    ("data", "offset"),
    [
        *((b"", 1), (b"\x01", 1), (b"\x02" + NARROW[1:], 1), (NARROW, 0), (NARROW, 100)),
        *((NARROW[:-1], 1), (NARROW[:20], 1), (NARROW[:-1] + b"\0", 1)),
        (b"\x01" + framed(bytes.fromhex("00112233") + NARROW[9:29]), 1),
        (b"\x01" + framed(NARROW[5:25]), 1),
        (b"\x01" + framed(NARROW[5:29] + b"\0\0"), 1),
    ],
)
def test_a_damaged_vector_is_refused(data: bytes, offset: int) -> None:
    length = int.from_bytes(data[offset : offset + 4], "big") if len(data) > offset + 4 else 24
    with pytest.raises(FormatError):
        read_vector(data, offset=offset, length=length)

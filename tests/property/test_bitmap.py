"""Bitmaps against Python sets, and against bytes that went wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from frazil.errors import FormatError
from frazil.format.vectors import bitmap, pfor

LAST = 2_097_151


def runs(first: int, length: int, step: int) -> set[int]:
    return set(range(first, min(first + length * step, LAST + 1), step))


# Scattered positions, and runs at different densities: sparse, dense and mixed containers.
POSITIONS = st.one_of(
    st.sets(st.integers(0, LAST), max_size=200),
    st.sets(st.integers(0, 3000), max_size=400),
    st.lists(
        st.builds(runs, st.integers(0, LAST), st.integers(1, 2000), st.integers(1, 40)), max_size=5
    ).map(lambda parts: set().union(*parts)),
)


@st.composite
def mutated(draw: st.DrawFn, original: bytes) -> bytes:
    """The bytes with some overwritten, and perhaps cut or extended."""
    data = bytearray(original)
    for _ in range(draw(st.integers(0, 4))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    cut = draw(st.one_of(st.just(len(data)), st.integers(0, len(data))))
    return bytes(data[:cut]) + draw(st.binary(max_size=3))


@given(POSITIONS)
@example(set())
@example({0})
@example({LAST})
def test_decode_undoes_encode(expected: set[int]) -> None:
    data = bitmap.encode(bitmap.as_positions(expected))
    assert bitmap.cardinality(data) == len(expected)
    assert bitmap.decode(data, limit=LAST + 1).tolist() == sorted(expected)


@given(st.lists(st.integers(0, 255), max_size=700))
def test_pfor_decode_undoes_encode(values: list[int]) -> None:
    data = pfor.encode(np.array(values, np.uint8))
    decoded, end = pfor.decode(data, len(values))
    assert decoded.tolist() == values
    assert end == len(data)


@given(st.lists(st.integers(0, 32), min_size=1, max_size=256))
def test_pfor_is_never_longer_than_any_other_choice_of_bits(values: list[int]) -> None:
    relative = [value - min(values) for value in values]
    widest = max(value.bit_length() for value in relative)
    sizes = []
    for bits in range(9):
        exceptions = sum(value.bit_length() > bits for value in relative)
        rest = exceptions * max(widest - bits, 0)
        sizes.append(3 + -(-len(values) * bits // 8) + exceptions + -(-rest // 8))
    assert len(pfor.encode(np.array(values, np.uint8))) == min(sizes)


@given(POSITIONS, POSITIONS)
def test_algebra_agrees_with_sets(left: set[int], right: set[int]) -> None:
    a, b = bitmap.as_positions(left), bitmap.as_positions(right)
    assert bitmap.union(a, b).tolist() == sorted(left | right)
    assert bitmap.difference(a, b).tolist() == sorted(left - right)
    assert bitmap.contains(a, b).tolist() == [position in left for position in sorted(right)]


@settings(max_examples=400)
@given(POSITIONS.flatmap(lambda p: mutated(bitmap.encode(bitmap.as_positions(p)))))
def test_mutated_bitmaps_give_positions_or_our_own_error(data: bytes) -> None:
    try:
        found = bitmap.decode(data, path="leaf.parquet")
    except FormatError as error:
        if error.path != "leaf.parquet":
            raise
        return
    # What was accepted is a bitmap in its own right: it says the same when written again.
    assert bitmap.cardinality(data) == len(found)
    assert bitmap.decode(bitmap.encode(found)).tolist() == found.tolist()


@settings(max_examples=300)
@given(st.binary(max_size=400), st.integers(0, 8192))
def test_arbitrary_bytes_after_a_header_never_crash_the_reader(
    body: bytes, containers: int
) -> None:
    data = b"\x01" + bytes(3) + containers.to_bytes(2, "little") + body
    try:
        assert bitmap.decode(data).tolist() == []
    except FormatError:
        return


@given(POSITIONS.filter(bool))
def test_every_truncation_is_refused(positions: set[int]) -> None:
    data = bitmap.encode(bitmap.as_positions(positions))
    for length in {0, 5, 6, 7, 8, len(data) // 2, len(data) - 1}:
        with pytest.raises(FormatError):
            bitmap.decode(data[: min(length, len(data) - 1)])

"""Mumbling bitmaps and PFOR chunks: what we write Iceberg Java reads, and the other way round."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.format.vectors import bitmap, pfor
from tests.support.java import JavaOracle

pytestmark = pytest.mark.java

QUICK = settings(max_examples=150, deadline=None)
DESCRIPTORS = st.lists(st.integers(0, 255), max_size=700)


@st.composite
def position_sets(draw: st.DrawFn) -> set[int]:
    """Scattered positions and runs, so that sparse and dense containers lie side by side."""
    limit = draw(st.sampled_from([300, 5_000, 70_000, 2**21]))
    positions = draw(st.sets(st.integers(0, limit - 1), max_size=60))
    for start in draw(st.lists(st.integers(0, limit - 1), max_size=4)):
        length = draw(st.integers(1, 600))
        positions |= set(range(start, min(start + length, limit)))
    return positions


@given(positions=position_sets())
@QUICK
def test_java_reads_the_positions_we_wrote(java: JavaOracle, positions: set[int]) -> None:
    data = bitmap.encode(np.array(sorted(positions), dtype=np.int64))
    seen = java.call("bitmap.read", hex=data.hex())
    assert seen == {"cardinality": len(positions), "positions": sorted(positions)}


@pytest.mark.parametrize(
    "positions",
    [
        [],
        [0],
        [2_097_151],
        list(range(31)),
        list(range(32)),
        list(range(300_000)),
        list(range(0, 2_097_152, 7)),
    ],
    ids=["empty", "first", "last", "sparse-31", "dense-32", "run-300k", "every-seventh"],
)
def test_java_reads_bitmaps_at_the_edges(java: JavaOracle, positions: list[int]) -> None:
    data = bitmap.encode(np.array(positions, dtype=np.int64))
    seen = java.call("bitmap.read", hex=data.hex())
    assert seen == {"cardinality": len(positions), "positions": positions}


@given(values=DESCRIPTORS)
@QUICK
def test_java_decodes_the_chunks_we_encoded(java: JavaOracle, values: list[int]) -> None:
    data = pfor.encode(np.array(values, dtype=np.uint8))
    assert java.call("pfor.decode", hex=data.hex(), count=len(values)) == values


@given(values=DESCRIPTORS)
@QUICK
def test_we_decode_the_chunks_java_encoded(java: JavaOracle, values: list[int]) -> None:
    data = bytes.fromhex(java.call("pfor.encode", values=values))
    decoded, end = pfor.decode(data, len(values))
    assert decoded.tolist() == values
    assert end == len(data)


@given(values=DESCRIPTORS)
@QUICK
def test_our_chunks_are_never_longer_than_javas(java: JavaOracle, values: list[int]) -> None:
    ours = pfor.encode(np.array(values, dtype=np.uint8))
    assert len(ours) <= len(java.call("pfor.encode", values=values)) // 2

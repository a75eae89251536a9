"""Sketches of distinct values, read by Apache DataSketches, whose hashes are also mmh3's."""

from __future__ import annotations

import random

import datasketches
import mmh3
import pyarrow as pa
import pytest

from frazil.format.metadata.statistics_files import ThetaSketch
from frazil.format.values.murmur128 import hashes


def sketch_of(words: list[str], *, batch: int = 7_000) -> ThetaSketch:
    sketch = ThetaSketch()
    for start in range(0, len(words), batch):
        sketch.add(pa.array([word.encode() for word in words[start : start + batch]], pa.binary()))
    return sketch


def test_hashes_are_those_of_murmur3_for_every_length() -> None:
    numbers = random.Random(4)
    values = [numbers.randbytes(length) for length in [*range(70), *range(70)]]
    array = pa.array([b"before", *values], pa.binary()).slice(1)
    expected = [mmh3.hash64(value, 9001, signed=False)[0] for value in values]
    assert hashes(array, 9001).tolist() == expected


@pytest.mark.parametrize("count", [0, 1, 2, 100, 4096])
def test_few_values_are_counted_exactly(count: int) -> None:
    words = [f"word {i}" for i in range(count)] * 2
    theirs = datasketches.update_theta_sketch(12)
    for word in words:
        theirs.update(word)
    ours = sketch_of(words)
    read = datasketches.compact_theta_sketch.deserialize(ours.to_bytes())
    assert sorted(read) == sorted(theirs.compact())
    expected = bytearray(theirs.compact().serialize())
    if count == 1:
        expected[5] |= 32  # the flag of a single value, which only the Java library sets
    assert ours.to_bytes() == expected
    assert ours.estimate == count == round(read.get_estimate())


def test_many_values_are_estimated_as_the_library_does() -> None:
    words = [f"word {i}" for i in range(60_000)]
    sketch = sketch_of(words)
    read = datasketches.compact_theta_sketch.deserialize(sketch.to_bytes())
    assert sketch.estimate == int(read.get_estimate())
    low, high = read.get_lower_bound(3), read.get_upper_bound(3)
    assert low <= 60_000 <= high


def test_sketches_of_parts_are_united_by_the_library() -> None:
    union = datasketches.theta_union(12)
    for first in (0, 3_000):
        part = sketch_of([f"word {i}" for i in range(first, first + 4_000)])
        union.update(datasketches.compact_theta_sketch.deserialize(part.to_bytes()))
    result = union.get_result()
    assert result.get_lower_bound(3) <= 7_000 <= result.get_upper_bound(3)


def test_nulls_are_no_values() -> None:
    sketch = ThetaSketch()
    sketch.add(pa.array([b"a", None, b"a", None], pa.binary()))
    sketch.add(pa.nulls(3, pa.binary()))
    assert sketch.estimate == 1


@pytest.mark.parametrize("second", [100, 4_000, 50_000])
def test_a_sketch_takes_in_another_as_the_library_does(second: int) -> None:
    union = datasketches.theta_union(12)
    whole = ThetaSketch()
    for words in (range(30_000), range(20_000, 20_000 + second)):
        part = sketch_of([f"word {i}" for i in words])
        union.update(datasketches.compact_theta_sketch.deserialize(part.to_bytes()))
        whole.merge(part)
    theirs = union.get_result()
    assert whole.estimate == int(theirs.get_estimate())
    read = datasketches.compact_theta_sketch.deserialize(whole.to_bytes())
    assert sorted(read) == sorted(theirs)

"""Sets of row numbers that come array by array."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.rows import actions
from frazil.rows.actions import RowNumbers

ARRAYS = st.lists(st.lists(st.integers(0, 1 << 52), max_size=20), max_size=8)


@pytest.mark.parametrize("most_held", [1 << 22, 5])
@given(arrays=ARRAYS, cut=st.integers(0, 8))
def test_numbers_are_those_of_a_set(arrays: list[list[int]], cut: int, most_held: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(actions, "_MAX_HELD", most_held)
        parts = (RowNumbers(), RowNumbers())
        for at, numbers in enumerate(arrays):
            parts[at < cut].add(np.array(numbers, dtype=np.int64))
        sent = [pickle.loads(pickle.dumps(each)) for each in parts]
        for found in (RowNumbers.union(parts), RowNumbers.union(sent)):
            every = [number for numbers in arrays for number in numbers]
            assert found.to_array().tolist() == sorted(set(every))
            assert (len(found), found.added) == (len(set(every)), len(every))


def test_a_set_without_numbers_is_empty() -> None:
    assert RowNumbers().to_array().tolist() == []
    assert RowNumbers.union([]).added == 0


@pytest.mark.parametrize("most_held", [1 << 22, 2])
def test_a_union_leaves_its_parts_as_they_are(
    monkeypatch: pytest.MonkeyPatch, most_held: int
) -> None:
    monkeypatch.setattr(actions, "_MAX_HELD", most_held)
    one, other = RowNumbers(), RowNumbers()
    one.add(np.array([1, 2, 3]))
    other.add(np.array([7, 8, 9]))
    other.add(np.array([5]))
    assert RowNumbers.union([one, other]).to_array().tolist() == [1, 2, 3, 5, 7, 8, 9]
    assert (one.to_array().tolist(), other.to_array().tolist()) == ([1, 2, 3], [5, 7, 8, 9])

"""Sets of row numbers that come array by array."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.rows import row_numbers
from frazil.rows.row_numbers import RowNumbers

ARRAYS = st.lists(st.lists(st.integers(0, 1 << 52), max_size=20), max_size=8)


@pytest.mark.parametrize("most_held", [1 << 22, 5])
@given(arrays=ARRAYS, cut=st.integers(0, 8))
def test_numbers_are_those_of_a_set(arrays: list[list[int]], cut: int, most_held: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_numbers, "_MOST_HELD", most_held)
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

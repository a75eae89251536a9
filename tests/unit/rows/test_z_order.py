"""Z-values: near for rows that are near in every column."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest

from frazil.rows.z_order import ZValue, interleaved, ordered


def test_bits_of_ranks_are_taken_in_turn() -> None:
    x = np.array([0b00, 0b01, 0b10, 0b11], dtype=np.uint64)
    y = np.array([0b11, 0b00, 0b01, 0b11], dtype=np.uint64)
    assert interleaved([x, y], 2).tolist() == [0b0101, 0b0010, 0b1001, 0b1111]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([None, -5, -1, 0, 3, 1 << 40]),
        pa.array([None, -1e300, -0.5, 0.0, 1e-9, 7.0]),
        pa.array([None, "", "a", "ab", "b", "é"]),
        pa.array([None, False, True]),
        pa.array([None, datetime(1960, 1, 1), datetime(2024, 1, 1)]),
    ],
)
def test_codes_are_in_the_order_of_values(values: pa.Array) -> None:
    codes = ordered(values, "column").tolist()
    assert codes == sorted(codes)
    # Null and the empty text share the lowest code; no other two values do.
    assert len(set(codes[1:])) == len(codes) - 1


def test_z_values_of_near_rows_are_near() -> None:
    cuts = (np.array([2, 4], dtype=np.uint64) ^ np.uint64(1 << 63),) * 2
    rows = pa.StructArray.from_arrays(
        [pa.array([0, 1, 5, 5]), pa.array([0, 1, 0, 5])], names=["x", "y"]
    )
    near, also, apart, far = ZValue(("x", "y"), cuts, 2).of(rows).to_pylist()
    assert near == also == 0
    assert apart == 0b1000
    assert far == 0b1100

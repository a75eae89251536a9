"""Deleted rows as a condition: DuckDB against a set of positions."""

from __future__ import annotations

import random

import duckdb
import numpy as np
import pytest

from frazil.rows.duckdb.duckdb_deleted import DELETED, deleted_bit, without_deleted

PIECE = 1 << 18
"""Rows of one bitmap."""


def kept(positions: list[list[int]], records: list[int]) -> list[tuple[int, int]]:
    found = deleted_bit([np.array(each, dtype=np.int64) for each in positions], records, "bits")
    assert found is not None
    con = duckdb.connect()
    for name, bits in found.bitmaps.items():
        con.execute(f"SET VARIABLE {name} = CAST(CAST(? AS BLOB) AS BIT)", [bits])
    rows = " UNION ALL ".join(
        f"SELECT {at}::UBIGINT AS file_index, range AS file_row_number FROM range({count})"
        for at, count in enumerate(records)
    )
    query = without_deleted(f"SELECT *, {found.expression} AS {DELETED} FROM ({rows}) r")
    return [(file, at) for file, at in con.execute(query).fetchall()]


@pytest.mark.parametrize(
    "records",
    [[1], [9, 8, 7], [100] * 40, [PIECE, 3, PIECE - 1, 5], [3, 2 * PIECE + 10, 4, PIECE + 1]],
)
def test_passes_over_the_deleted_positions_and_no_others(records: list[int]) -> None:
    chance = random.Random(len(records))
    positions = [
        sorted(chance.sample(range(count), min(count, chance.choice([0, 1, 5]))))
        for count in records
    ]
    positions[-1] = [records[-1] - 1]
    gone = {(at, each) for at, found in enumerate(positions) for each in found}
    every = [(at, each) for at, count in enumerate(records) for each in range(count)]
    assert sorted(kept(positions, records)) == [each for each in every if each not in gone]


def test_positions_behind_the_end_of_a_file_touch_no_other() -> None:
    assert kept([[1, 3, 700], [0]], [3, 3]) == [(0, 0), (0, 2), (1, 1), (1, 2)]


def test_only_pieces_with_deleted_rows_have_a_bitmap() -> None:
    found = deleted_bit([np.array([5]), np.array([], np.int64)], [4 * PIECE, PIECE], "bits")
    assert found is not None
    assert [len(bits) for bits in found.bitmaps.values()] == [PIECE // 8]


def test_a_table_of_too_many_pieces_is_left_to_a_join() -> None:
    every = [np.array([0])] * 300
    assert deleted_bit(every, [PIECE] * 300, "bits") is None


def test_a_wrong_count_of_rows_costs_nothing() -> None:
    found = deleted_bit([np.array([5, PIECE + 1])], [1 << 60], "bits")
    assert found is not None
    assert [len(bits) for bits in found.bitmaps.values()] == [PIECE // 8] * 2
    assert len(found.expression) < 1_000


def test_pieces_far_apart_are_told_from_those_between() -> None:
    far = 10 * PIECE + 3
    assert (0, far) not in (left := kept([[0, far]], [far + 2]))
    assert (0, 0) not in left
    assert len(left) == far

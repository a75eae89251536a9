"""Rows found by file and position become rows of the plan."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from frazil.data.metadata_columns import ROW_ID
from frazil.errors import FormatError
from frazil.rows.actions import KEY
from frazil.rows.matched_rows import MatchedRows


def plan(first_row_ids: list[int]) -> Any:
    """Three files of 10, 20 and 5 rows."""
    return SimpleNamespace(
        bases=np.array([100, 0, 50]),
        records=np.array([10, 20, 5]),
        first_row_ids=np.array(first_row_ids),
    )


def met(found: Sequence[tuple[int, int, int | None]]) -> pa.RecordBatch:
    """Rows by file, position and stored id, and a number of their own."""
    files, positions, ids = zip(*found, strict=True)
    return pa.record_batch(
        {
            "n": pa.array(range(len(found))),
            ROW_ID.name: pa.array(ids, pa.int64()),
            KEY: pa.array(positions, pa.int64()),
            "file": pa.array(files, pa.uint64()),
        }
    )


def test_keys_and_ids_follow_from_file_and_position() -> None:
    rows = met([(0, 3, None), (1, 19, 777), (2, 0, None), (2, 4, None)])
    located = MatchedRows(plan([1000, 2000, -1]), {}).located(rows, "file")
    assert located.to_pydict() == {
        "n": [0, 1, 2, 3],
        ROW_ID.name: [1003, 777, None, None],
        KEY: [103, 19, 50, 54],
    }


def test_deleted_rows_go_and_positions_behind_the_end_mean_nothing() -> None:
    deleted = {0: np.array([0, 9, 12]), 2: np.array([4, 40])}
    found = [(file, at, None) for file, size in enumerate((10, 20, 5)) for at in range(size)]
    located = MatchedRows(plan([0, 10, 30]), deleted).located(met(found), "file")
    left = [at for at in range(35) if at not in (0, 9, 34)]
    assert located.column("n").to_pylist() == left
    assert located.column(ROW_ID.name).to_pylist() == left


def test_rows_without_ids_need_none() -> None:
    rows = met([(1, 2, None)]).drop_columns([ROW_ID.name])
    located = MatchedRows(plan([0, 10, 30]), {1: np.array([3])}).located(rows, "file")
    assert located.to_pydict() == {"n": [0], KEY: [2]}


def test_a_wrong_count_of_rows_takes_no_memory() -> None:
    planned = plan([0, 10, 30])
    planned.records = np.array([10, 1 << 60, 5])
    rows = met([(1, 3, None), (1, 4, None), (1, 900, None)])
    located = MatchedRows(planned, {1: np.array([3])}).located(rows, "file")
    assert located.column("n").to_pylist() == [1, 2]


def test_rows_behind_the_recorded_end_are_refused() -> None:
    planned = plan([0, 10, 30])
    planned.paths = ["a", "b", "c"]
    with pytest.raises(FormatError, match="c: the file has more rows than the 5"):
        MatchedRows(planned, {}).located(met([(0, 9, None), (2, 5, None)]), "file")

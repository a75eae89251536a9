"""Rows of a source in the places of rows that they meet."""

from __future__ import annotations

import pyarrow as pa
import pytest

from frazil.data.metadata_columns import LAST_UPDATED, ROW_ID
from frazil.errors import InvalidInput
from frazil.rows.actions import ACTION, KEY, SOURCE_ROW, Action
from frazil.rows.matched_rows import ReplacedRows

KEEP, UPDATE, INSERT = int(Action.KEEP), int(Action.UPDATE), int(Action.INSERT)


def source(numbers: list[int]) -> pa.RecordBatch:
    names = pa.array([f"n{number}" for number in numbers])
    return pa.record_batch({"name": names, SOURCE_ROW: pa.array(numbers, pa.int64())})


def stream(rows: ReplacedRows, *batches: list[int]) -> pa.Table:
    """The rows of a source that has these numbers, with their actions."""
    made = [source(numbers) for numbers in batches]
    return rows.stream(pa.RecordBatchReader.from_batches(made[0].schema, made)).read_all()


def met(*rows: tuple[int, int, int | None, int]) -> pa.RecordBatch:
    """Rows that met: number in the source, key, row id, action."""
    numbers, keys, ids, actions = zip(*rows, strict=True)
    return pa.record_batch(
        {
            SOURCE_ROW: pa.array(numbers, pa.int64()),
            KEY: pa.array(keys, pa.int64()),
            ROW_ID.name: pa.array(ids, pa.int64()),
            ACTION: pa.array(actions, pa.int8()),
        }
    )


def test_rows_come_in_the_order_of_the_source_with_what_they_replace() -> None:
    rows = ReplacedRows(5, inserts=True, updates=True)
    rows.note(met((3, 70, 900, UPDATE)))
    rows.note(met((0, 50, None, UPDATE), (4, 60, 7, KEEP)))
    assert stream(rows, [2, 3], [0, 1, 4]).to_pydict() == {
        "name": ["n2", "n3", "n0", "n1", "n4"],
        ROW_ID.name: [None, 900, None, None, 7],
        LAST_UPDATED.name: [None] * 5,
        KEY: [None, 70, 50, None, 60],
        ACTION: [INSERT, UPDATE, UPDATE, INSERT, KEEP],
    }


def test_rows_that_meet_none_are_left_out_where_none_is_inserted() -> None:
    rows = ReplacedRows(3, inserts=False, updates=True)
    rows.note(met((1, 5, 5, UPDATE)))
    found = stream(rows, [0, 1, 2])
    assert (found["name"].to_pylist(), found[KEY].to_pylist()) == (["n1"], [5])


def test_without_updates_there_are_no_row_ids() -> None:
    rows = ReplacedRows(2, inserts=True, updates=False)
    rows.note(met((0, 5, 5, KEEP)).drop_columns([ROW_ID.name]))
    found = stream(rows, [0, 1])
    assert found.column_names == ["name", KEY, ACTION]
    assert found[ACTION].to_pylist() == [KEEP, INSERT]


def test_a_row_that_met_two_is_refused() -> None:
    rows = ReplacedRows(2, inserts=True, updates=True)
    rows.note(met((0, 5, 5, UPDATE), (0, 6, 6, UPDATE)))
    with pytest.raises(InvalidInput, match="1 table row shares a key with another row"):
        stream(rows, [0, 1])


def test_large_keys_are_exact() -> None:
    large = (1 << 62) + 1
    rows = ReplacedRows(2, inserts=True, updates=True)
    rows.note(met((1, large, large, UPDATE)))
    found = stream(rows, [0, 1])
    assert (found[KEY].to_pylist(), found[ROW_ID.name].to_pylist()) == ([None, large],) * 2

"""Column files of a plan's files, from values that come in any order and in any pieces."""

from __future__ import annotations

import random
from collections.abc import Generator
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.cancellation import Cancellation, under
from frazil.errors import Cancelled, InvalidInput
from frazil.rows.actions import KEY
from frazil.rows.columns import column_changes, column_update
from frazil.rows.columns.column_sink import ColumnSink, UpdatedFile
from frazil.rows.planned import Planned

SIZES = (3, 1, 5, 2)
SCHEMA = pa.schema([("id", pa.int64()), ("a", pa.int64())])


@pytest.fixture
def table(tmp_path: Path) -> frazil.Table:
    """Files of several sizes; the last one has two deleted rows of seven."""
    table = frazil.connect(tmp_path).create_table("s.t", SCHEMA)
    first = 0
    for size in (*SIZES, 7):
        ids = range(first, first + size)
        table.append({"id": list(ids), "a": [0] * size})
        first += size
    table.delete(f"id in ({first - 1}, {first - 3})")
    return table


def written(table: frazil.Table, batches: list[list[tuple[int, int]]]) -> list[UpdatedFile]:
    """Column files of `a` from batches of row numbers, counted over the table, and values."""
    editor = table.transaction()._editor()
    planned = column_changes.whole_table(editor)
    sink = ColumnSink.of(
        planned,
        [editor.metadata.schema().find_field("a")],
        handle=editor.handle,
        metadata=editor.metadata,
    )

    def compute(part: Planned) -> Generator[pa.RecordBatch]:
        base = int(part.bases.min())
        for rows in batches:
            keys, values = zip(*rows, strict=True)
            keys_ = pa.array([base + key for key in keys], pa.int64())
            yield pa.RecordBatch.from_pydict({"a": pa.array(values, pa.int64()), KEY: keys_})

    return column_update.written_here(planned, sink, compute)


def test_work_that_nobody_waits_for_ends(table: frazil.Table) -> None:
    work = Cancellation()
    work.cancel()
    with pytest.raises(Cancelled), under(work):
        written(table, [[(row, 1)] for row in range(3)])


def in_pieces(rows: list[int], seed: int) -> list[list[tuple[int, int]]]:
    """Rows in an order and in pieces of chance."""
    chance = random.Random(seed)
    chance.shuffle(rows)
    batches = []
    while rows:
        size = chance.randint(1, 6)
        batches.append([(row, row * 10) for row in rows[:size]])
        rows = rows[size:]
    return batches


@pytest.mark.parametrize("seed", range(12))
def test_values_come_in_any_order(table: frazil.Table, seed: int) -> None:
    left = [row for row in range(18) if row not in (15, 17)]
    updated = written(table, in_pieces(left, seed))
    assert [file.rows for file in updated] == [*SIZES, 5]
    bounds = [(min(values), max(values)) for values in ([0, 2], [3], [4, 8], [9, 10], [11, 16])]
    id = table.schema.find_field("a").field_id
    assert bounds == [
        tuple(
            file.edit.stats[f"content_stats.{id}.{name}_bound"] // 10 for name in ("lower", "upper")
        )
        for file in updated
    ]


@pytest.mark.parametrize("seed", range(4))
def test_files_without_a_value_get_no_column_file(table: frazil.Table, seed: int) -> None:
    updated = written(table, in_pieces([0, 1, 4, 11], seed))
    assert [file.rows for file in updated] == [2, 1, 1]


@pytest.mark.parametrize(
    "batches",
    [
        [[(3, 1), (3, 2)]],  # in one batch
        [[(3, 1)], [(0, 1)], [(3, 2)]],  # after the file was complete
        [[(4, 1)], [(0, 1)], [(4, 2)]],  # before it was
        [[(0, 1), (1, 1)], [(1, 2)], [(2, 1)]],  # as many values as rows
    ],
)
def test_a_second_value_of_a_row_is_refused(
    table: frazil.Table, batches: list[list[tuple[int, int]]]
) -> None:
    with pytest.raises(InvalidInput, match="more than one new value"):
        written(table, batches)

"""Deleted rows as DuckDB passes over them: by a condition that looks positions up in bitmaps.

A join against the deleted positions costs twice as much for every row that stays. DuckDB copies a
constant for each vector of rows it looks at, so a bitmap is cut into pieces of a few kilobytes; a
tree of CASE finds the piece. All rows of a vector are of one file and next to each other, so that
the tree is walked once for all of them.

DuckDB takes a condition on a scan to leave a fifth of its rows, and orders joins by that. This one
leaves nearly all of them, so it stands on a projection, where conditions are not counted: one that
may raise an error, as a cast may, is not moved below a projection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from frazil import arrow_values
from frazil.rows.planned import Longs
from frazil.value_classes import dataclass, field

FILE: Final = "__frazil_deleted_file"
ROW: Final = "__frazil_deleted_row"
_PIECE_ROWS: Final = 1 << 18
_MAX_PIECES: Final = 256
DELETED: Final = "__frazil_deleted"
"""Column that is 1 where a row is deleted, and 0 elsewhere."""
NOT_DELETED: Final = f"NOT CAST({DELETED} AS BOOLEAN)"
"""The condition on a projection with this column."""


def without_deleted(rows: str) -> str:
    """The rows of a SELECT with the column `DELETED`, without those that are deleted."""
    return f"SELECT * EXCLUDE ({DELETED}) FROM ({rows}) WHERE {NOT_DELETED}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedBit:
    """The value of `DELETED`, from `r.file_index` and `r.file_row_number`, and the bitmaps that it
    names."""

    expression: str
    bitmaps: dict[str, bytes]


def deleted_rows(files: Sequence[int], positions: Sequence[Longs]) -> pa.Table:
    """A table of the rows that are deleted in files, given by their numbers."""
    numbers = np.repeat(np.array(files, dtype=np.uint64), [len(rows) for rows in positions])
    rows = np.concatenate(positions).astype(np.int64)
    return pa.table({FILE: arrow_values.array(numbers), ROW: arrow_values.array(rows)})


def deleted_bit(
    positions: Sequence[Longs], records: Sequence[int], prefix: str
) -> DeletedBit | None:
    """Whether rows of files, in their order, are at these positions. Names of bitmaps start with
    the prefix. None for tables that a join suits better: their tree would be too large."""
    pieces = _Pieces(prefix)
    # Delete files of other writers may name positions behind the end of a file.
    positions = [np.sort(dead[dead < rows]) for dead, rows in zip(positions, records, strict=True)]
    files: list[tuple[int, str]] = []
    at = 0
    while at < len(records):
        if records[at] > _PIECE_ROWS:
            files.append((at, pieces.large(positions[at], records[at])))
            at += 1
        else:
            end = _group_end(records, at)
            files.append((at, pieces.small(at, positions[at:end], max(records[at:end]))))
            at = end
        if len(pieces.bitmaps) > _MAX_PIECES:
            return None
    tree = _tree(files, "r.file_index < {}".format)
    return DeletedBit(expression=tree, bitmaps=pieces.bitmaps)


def _group_end(records: Sequence[int], start: int) -> int:
    """Files from here on that share a piece, each with room for the largest."""
    widest = 0
    for end in range(start, len(records)):
        widest = max(widest, records[end])
        if widest * (end + 1 - start) > _PIECE_ROWS:
            return max(end, start + 1)
    return len(records)


@dataclass(slots=True)
class _Pieces:
    prefix: str
    bitmaps: dict[str, bytes] = field(default_factory=dict)

    def small(self, first: int, positions: Sequence[Longs], width: int) -> str:
        """The bit of a row in one of several files."""
        if len(positions) == 1:
            return self._bit(positions[0], width, "r.file_row_number")
        marked = np.concatenate([rows + at * width for at, rows in enumerate(positions)])
        number = f"(CAST(r.file_index AS BIGINT) - {first}) * {width} + r.file_row_number"
        return self._bit(marked, width * len(positions), number)

    def large(self, positions: Longs, records: int) -> str:
        """The bit of a row in a file of several pieces."""
        parts: list[tuple[int, str]] = []
        end = 0
        # Only pieces with deleted rows: a recorded count of rows may be wrong, and beyond measure.
        for piece in np.unique(positions // _PIECE_ROWS).tolist():
            start = piece * _PIECE_ROWS
            if start > end:
                parts.append((end, "0"))
            end = min(start + _PIECE_ROWS, records)
            low, high = np.searchsorted(positions, (start, end))
            bit = self._bit(
                positions[low:high] - start, end - start, f"r.file_row_number - {start}"
            )
            parts.append((start, bit))
        return _tree([*parts, (end, "0")], "r.file_row_number < {}".format)

    def _bit(self, marked: Longs, size: int, number: str) -> str:
        if not len(marked):
            return "0"
        bits = np.zeros(size, dtype=np.bool_)
        bits[marked] = True
        name = f"{self.prefix}_{len(self.bitmaps)}"
        self.bitmaps[name] = np.packbits(bits).tobytes()
        return f"get_bit(getvariable('{name}'), CAST({number} AS INTEGER))"


def _tree(parts: Sequence[tuple[int, str]], is_before: Callable[[int], str]) -> str:
    """The expression of the part that a row is in; each part is given by where it starts."""
    if len(parts) == 1:
        return parts[0][1]
    middle = len(parts) // 2
    left, right = _tree(parts[:middle], is_before), _tree(parts[middle:], is_before)
    if left == right == "0":
        return "0"
    return f"CASE WHEN {is_before(parts[middle][0])} THEN {left} ELSE {right} END"

"""Rows that an engine found by their keys, completed by what metadata says of their files.

An engine that reads files as they are gives a row's file and its position there. From them follow
the row's number in the plan, its id where the file does not store one, and whether it is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.data.metadata_columns import ROW_ID
from frazil.rows.actions import KEY
from frazil.rows.planned import Longs, Planned


class MetRows:
    """Looks rows of a plan's files up; `deleted` gives positions by file."""

    def __init__(self, planned: Planned, deleted: Mapping[int, Longs]) -> None:
        self._bases = planned.bases
        self._first_row_ids = planned.first_row_ids
        self._starts, self._bits = _bits(planned.records, deleted)

    def located(self, batch: pa.RecordBatch, file_column: str) -> pa.RecordBatch:
        """The rows that are not deleted. `KEY`, a position before, becomes the number in the plan;
        the column with the file's number in the plan goes."""
        files = np.asarray(batch.column(file_column)).astype(np.intp)
        batch = batch.drop_columns([file_column])
        positions = np.asarray(batch.column(KEY))
        if len(self._bits):
            lives = ~self._is_deleted(files, positions)
            if not lives.all():
                batch = batch.filter(pa.array(lives))
                files, positions = files[lives], positions[lives]
        at = batch.schema.get_field_index(KEY)
        batch = batch.set_column(at, KEY, pa.array(self._bases[files] + positions))
        at = batch.schema.get_field_index(ROW_ID.name)
        if at < 0:
            return batch
        ids = self._row_ids(batch.column(at), files, positions)
        return batch.set_column(at, ROW_ID.name, ids)

    def _row_ids(self, stored: pa.Array, files: npt.NDArray[np.intp], positions: Longs) -> pa.Array:
        firsts = self._first_row_ids[files]
        own = pa.array(firsts + positions, mask=firsts < 0)
        return own if stored.null_count == len(stored) else pc.coalesce(stored, own)

    def _is_deleted(self, files: npt.NDArray[np.intp], positions: Longs) -> npt.NDArray[np.bool_]:
        starts = self._starts[files]
        bits = np.where(starts < 0, 0, starts + positions)  # the first bit is nobody's
        return np.asarray((self._bits[bits >> 3] >> (bits & 7)) & 1, dtype=np.bool_)


def _bits(records: Longs, deleted: Mapping[int, Longs]) -> tuple[Longs, npt.NDArray[np.uint8]]:
    """A bit for every row of files that have deleted ones, and where each file's bits start."""
    starts = np.full(len(records), -1, dtype=np.int64)
    if not deleted:
        return starts, np.zeros(0, dtype=np.uint8)
    end, parts = 8, [np.zeros(1, dtype=np.uint8)]
    for file, positions in deleted.items():
        size = -(-int(records[file]) // 8) * 8
        marked = np.zeros(size, dtype=np.bool_)
        # Delete files of other writers may name positions behind the end of a file.
        marked[positions[positions < records[file]].astype(np.int64)] = True
        starts[file] = end
        parts.append(np.packbits(marked, bitorder="little"))
        end += size
    return starts, np.concatenate(parts)

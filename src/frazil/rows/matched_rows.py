"""Rows that an engine found by their keys, completed by what metadata says of their files.

An engine that reads files as they are gives a row's file and its position there. From them follow
the row's number in the plan, its id where the file does not store one, and whether it is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.data.metadata_columns import ROW_ID
from frazil.errors import FormatError
from frazil.rows.actions import KEY
from frazil.rows.planned import Longs, Planned


class MatchedRows:
    """Looks rows of a plan's files up; `deleted` gives positions by file."""

    def __init__(self, planned: Planned, deleted: Mapping[int, Longs]) -> None:
        self._bases = planned.bases
        self._first_row_ids = planned.first_row_ids
        self._planned = planned
        self._starts, self._ends, self._bits = _bits(planned.records, deleted)

    def located(self, batch: pa.RecordBatch, file_column: str) -> pa.RecordBatch:
        """The rows that are not deleted. `KEY`, a position before, becomes the number in the plan;
        the column with the file's number in the plan goes."""
        files = arrow_values.to_numpy(batch.column(file_column)).astype(np.intp)
        batch = batch.drop_columns([file_column])
        positions = arrow_values.to_numpy(batch.column(KEY))
        self._check(files, positions)
        if len(self._bits):
            lives = ~self._is_deleted(files, positions)
            if not lives.all():
                batch = pc.filter(batch, arrow_values.array(lives))
                files, positions = files[lives], positions[lives]
        at = batch.schema.get_field_index(KEY)
        batch = batch.set_column(at, KEY, arrow_values.array(self._bases[files] + positions))
        at = batch.schema.get_field_index(ROW_ID.name)
        if at < 0:
            return batch
        ids = self._row_ids(batch.column(at), files, positions)
        return batch.set_column(at, ROW_ID.name, ids)

    def _row_ids(self, stored: pa.Array, files: npt.NDArray[np.intp], positions: Longs) -> pa.Array:
        firsts = self._first_row_ids[files]
        own = arrow_values.array(firsts + positions, mask=firsts < 0)
        return own if stored.null_count == len(stored) else pc.coalesce(stored, own)

    def _check(self, files: npt.NDArray[np.intp], positions: Longs) -> None:
        """Refuse rows behind the last one that metadata records: they have no number."""
        extra = files[positions >= self._planned.records[files]]
        if len(extra):
            row = int(extra[0])
            raise FormatError(
                f"the file has more rows than the {self._planned.records[row]} that the metadata "
                "records. The data file was changed after it was committed",
                path=self._planned.paths[row],
            )

    def _is_deleted(self, files: npt.NDArray[np.intp], positions: Longs) -> npt.NDArray[np.bool_]:
        bits = self._starts[files] + positions
        bits = np.where(bits < self._ends[files], bits, 0)  # the first bit is nobody's
        return np.asarray((self._bits[bits >> 3] >> (bits & 7)) & 1, dtype=np.bool_)


def _bits(
    records: Longs, deleted: Mapping[int, Longs]
) -> tuple[Longs, Longs, npt.NDArray[np.uint8]]:
    """A bit for every row of files up to the last deleted one, and where each file's bits start
    and end. A recorded count of rows may be wrong, and beyond measure."""
    starts, ends = np.zeros(len(records), dtype=np.int64), np.zeros(len(records), dtype=np.int64)
    if not deleted:
        return starts, ends, np.zeros(0, dtype=np.uint8)
    end, parts = 8, [np.zeros(1, dtype=np.uint8)]
    for file, positions in deleted.items():
        # Delete files of other writers may name positions behind the end of a file.
        inside = positions[positions < records[file]].astype(np.int64)
        if not len(inside):
            continue
        size = -(-(int(inside.max()) + 1) // 8) * 8
        marked = np.zeros(size, dtype=np.bool_)
        marked[inside] = True
        starts[file], ends[file] = end, end + size
        parts.append(np.packbits(marked, bitorder="little"))
        end += size
    return starts, ends, np.concatenate(parts)

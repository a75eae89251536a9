"""Rows that an engine found by their keys, and which row of a table each row of a source replaces.

An engine that reads files as they are gives a row's file and its position there. From them follow
the row's number in the plan, its id where the file does not store one, and whether it is deleted.

If rows are written exactly as the source has them, a join only has to find addresses. They are
kept in arrays indexed by the number of the source row, and the source is then read once, in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.data.metadata_columns import LAST_UPDATED, ROW_ID
from frazil.errors import FormatError
from frazil.rows.actions import ACTION, KEY, SOURCE_ROW, Action, check_met_once
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
        counted_ids = arrow_values.array(firsts + positions, mask=firsts < 0)
        return counted_ids if stored.null_count == len(stored) else pc.coalesce(stored, counted_ids)

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


_NONE = -1


class ReplacedRows:
    """What becomes of each row of a source, by its number."""

    def __init__(self, num_rows: int, *, inserts: bool, updates: bool) -> None:
        """Rows without a match are inserted or left out. With `updates`, row ids are kept."""
        self._actions = np.full(num_rows, Action.INSERT if inserts else Action.KEEP, dtype=np.int8)
        self._keys = np.full(num_rows, _NONE, dtype=np.int64)
        self._row_ids = np.full(num_rows, _NONE, dtype=np.int64) if updates else None
        self._met = 0

    def note(self, met: pa.RecordBatch) -> None:
        """Add matches, as `MetRows` returns them."""
        at = arrow_values.to_numpy(met.column(SOURCE_ROW))
        self._met += len(at)
        self._keys[at] = arrow_values.to_numpy(met.column(KEY))
        self._actions[at] = arrow_values.to_numpy(met.column(ACTION))
        if self._row_ids is not None:
            row_ids = pc.fill_null(met.column(ROW_ID.name), arrow_values.scalar(_NONE, pa.int64()))
            self._row_ids[at] = arrow_values.to_numpy(row_ids)

    def stream(self, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """The numbered rows of the source, with their actions instead of their numbers."""
        check_met_once(self._met - int(np.count_nonzero(self._keys != _NONE)))
        fields = [field for field in rows.schema if field.name != SOURCE_ROW]
        if self._row_ids is not None:
            fields += [pa.field(column.name, pa.int64()) for column in (ROW_ID, LAST_UPDATED)]
        schema = pa.schema([*fields, pa.field(KEY, pa.int64()), pa.field(ACTION, pa.int8())])
        return pa.RecordBatchReader.from_batches(schema, self._acted(schema, rows))

    def _acted(self, schema: pa.Schema, rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            at = arrow_values.to_numpy(batch.column(SOURCE_ROW))
            columns = batch.drop_columns([SOURCE_ROW]).columns
            keys, actions = self._keys[at], self._actions[at]
            if self._row_ids is not None:
                ids = self._row_ids[at]
                columns += [
                    arrow_values.array(ids, mask=ids == _NONE),
                    pa.nulls(len(at), pa.int64()),
                ]
            columns += [arrow_values.array(keys, mask=keys == _NONE), arrow_values.array(actions)]
            acted = pa.RecordBatch.from_arrays(columns, schema=schema)
            is_lost = (keys == _NONE) & (actions == Action.KEEP)
            yield pc.filter(acted, arrow_values.array(~is_lost)) if is_lost.any() else acted

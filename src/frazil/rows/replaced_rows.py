"""Which row of a table each row of a source replaces.

If rows are written exactly as the source has them, a join only has to find addresses. They are
kept in arrays indexed by the number of the source row, and the source is then read once, in order.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.data.metadata_columns import LAST_UPDATED, ROW_ID
from frazil.rows.actions import ACTION, KEY, SOURCE_ROW, Action, check_met_once

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
            known = pc.fill_null(met.column(ROW_ID.name), arrow_values.scalar(_NONE, pa.int64()))
            self._row_ids[at] = arrow_values.to_numpy(known)

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

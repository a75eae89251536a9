"""Row lineage: which row is this, and which commit last changed it.

A file may store both columns (rows that moved keep their identity); where it does not, or holds
null, a row's id follows from the file's first row id and the row's position, and its sequence
number is the file's. A file without a first row id has neither.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema

from frazil.data.metadata_columns import LAST_UPDATED, LINEAGE, ROW_ID, with_columns
from frazil.data.slices import DataFileSlice


def with_lineage(schema: Schema) -> Schema:
    """The schema of rows that carry both lineage columns, for files that store them."""
    return with_columns(schema, LINEAGE)


def row_ids(stored: pa.Array, positions: npt.NDArray[np.int64], source: DataFileSlice) -> pa.Array:
    """`_row_id` of rows at these positions; `stored` is the file's own column, null where it is
    silent."""
    if source.first_row_id is None:
        return stored
    return filled(stored, positions + source.first_row_id)


def filled(stored: pa.Array, own: npt.NDArray[np.int64]) -> pa.Array:
    """A file's own column, with the values that follow from metadata where it is silent."""
    if stored.null_count == 0:
        return stored
    values = pa.array(own, pa.int64())
    return values if stored.null_count == len(stored) else pc.coalesce(stored, values)


def last_updated(stored: pa.Array, source: DataFileSlice) -> pa.Array:
    """`_last_updated_sequence_number` of rows; `stored` as in `row_ids`."""
    if source.first_row_id is None or source.data_sequence_number is None:
        return stored
    return pc.fill_null(stored, pa.scalar(source.data_sequence_number, pa.int64()))


LINEAGE_IDS = (ROW_ID.field_id, LAST_UPDATED.field_id)

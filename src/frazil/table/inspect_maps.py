"""Statistics of files as Iceberg's metadata tables have them: maps from the id of a column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.format.entries.batch import EntryBatch, single_chunk
from frazil.format.entries.fields import stats_key
from frazil.format.entries.stats import TrackedField, has_bounds
from frazil.format.values import single_value
from frazil.format.values.types import is_geo

_COUNTS: Final = {
    "value_counts": "value_count",
    "null_value_counts": "null_value_count",
    "nan_value_counts": "nan_value_count",
}
_BOUNDS: Final = {"lower_bounds": "lower", "upper_bounds": "upper"}


def statistics_maps(batch: EntryBatch, columns: tuple[TrackedField, ...]) -> dict[str, pa.MapArray]:
    """Counts and bounds of every file by column id; bounds are in Iceberg's single-value bytes.

    A file without any has null. `column_sizes` is null in every row: version 4 keeps no sizes of
    columns.
    """
    sizes = pa.map_(pa.int32(), pa.int64())
    maps: dict[str, pa.Array] = {"column_sizes": pa.nulls(batch.num_rows, sizes)}
    for name, statistic in _COUNTS.items():
        counts = {
            column.id: single_chunk(batch.column(stats_key(column.id, statistic)))
            for column in columns
            if batch.has(stats_key(column.id, statistic))
        }
        maps[name] = _maps(counts, batch.num_rows, pa.int64())
    for name, side in _BOUNDS.items():
        bounds = {column.id: _bounds(batch, column, side) for column in columns}
        known = {id: values for id, values in bounds.items() if values is not None}
        maps[name] = _maps(known, batch.num_rows, pa.binary())
    return maps


def _bounds(batch: EntryBatch, column: TrackedField, side: str) -> pa.Array | None:
    if not has_bounds(column.type):
        return None
    if is_geo(column.type):
        keys = {axis: stats_key(column.id, f"{side}_{axis}") for axis in single_value.AXES}
        if not any(map(batch.has, keys.values())):
            return None
        absent = pa.nulls(batch.num_rows, pa.float64())
        return single_value.encode_points(
            {axis: batch.column(key) if batch.has(key) else absent for axis, key in keys.items()}
        )
    key = stats_key(column.id, f"{side}_bound")
    return single_value.encode_bounds(batch.column(key), column.type) if batch.has(key) else None


def _maps(columns: Mapping[int, pa.Array], rows: int, kind: pa.DataType) -> pa.MapArray:
    """One map per row: the ids of the columns whose value is not null, and these values."""
    if not columns:
        return pa.nulls(rows, pa.map_(pa.int32(), kind))
    valid = np.array([np.asarray(values.is_valid()) for values in columns.values()])
    # Values lie column by column; a map needs them row by row.
    by_row = np.arange(valid.size).reshape(valid.shape).T[valid.T]
    items = pa.concat_arrays([values.cast(kind) for values in columns.values()]).take(
        pa.array(by_row)
    )
    ids = np.broadcast_to(np.array(list(columns), dtype=np.int32)[:, None], valid.shape)
    held: np.ndarray[Any, Any] = valid.sum(axis=0)
    offsets = np.concatenate([[0], np.cumsum(held)]).astype(np.int32)
    return pa.MapArray.from_arrays(
        pa.array(offsets), pa.array(ids.T[valid.T]), items, mask=pc.equal(pa.array(held), 0)
    )

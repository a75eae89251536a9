"""Bounding boxes of many files judged by a window: which may have a shape that matches.

False only where no shape can match. An end that is not known, or is NaN, never prunes. A box whose
west is greater than its east is judged by its latitudes alone: engines take shapes on the plane of
longitudes and latitudes, where a line across the antimeridian goes around the other way.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.filter.bind.comparable import Mask
from frazil.filter.bind.file_predicates import BoxPredicate, Window
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import stats_key

Floats = np.ndarray[Any, np.dtype[np.float64]]

_ENDS: Final = ("lower_x", "lower_y", "upper_x", "upper_y")
_COUNTS: Final = ("value_count", "null_value_count")


def keys(predicate: BoxPredicate) -> frozenset[str]:
    """The statistics columns that judging it needs."""
    field_id = predicate.term.field.field_id
    return frozenset(stats_key(field_id, name) for name in (*_ENDS, *_COUNTS))


def might(predicate: BoxPredicate, batch: EntryBatch) -> Mask | None:
    """Where some shape can match; None when that is everywhere."""
    field = predicate.term.field
    ends = [_floats(batch, stats_key(field.field_id, name)) for name in _ENDS]
    mask = _with_values(batch, field.field_id)
    if all(end is None for end in ends):
        return mask
    unknown = np.full(batch.num_rows, np.nan)
    west, south, east, north = (unknown if end is None else end for end in ends)
    reached = _reached(predicate.window, west, south, east, north)
    return reached if mask is None else reached & mask


def _reached(window: Window, west: Floats, south: Floats, east: Floats, north: Floats) -> Mask:
    turned = west > east
    if window.covers:
        inside = ~(west > window.west) & ~(east < window.east)
        rows = ~(south > window.south) & ~(north < window.north)
        return (inside | turned) & rows
    rows = ~(south > window.north) & ~(north < window.south)
    if window.west > window.east:
        columns = ~(east < window.west) | ~(west > window.east)
    else:
        columns = ~(east < window.west) & ~(west > window.east)
    return (columns | turned) & rows


def _with_values(batch: EntryBatch, field_id: int) -> Mask | None:
    """Where not every value is null."""
    values, nulls = (stats_key(field_id, name) for name in _COUNTS)
    if not batch.has(values) or not batch.has(nulls):
        return None
    counted = batch.numpy(nulls)
    mask: Mask = (counted < 0) | (counted != batch.numpy(values))
    return mask


def _floats(batch: EntryBatch, key: str) -> Floats | None:
    if not batch.has(key):
        return None
    column = batch.column(key)
    if column.null_count == len(column):
        return None
    if column.null_count:
        column = pc.fill_null(column, arrow_values.scalar(float("nan"), pa.float64()))
    return arrow_values.to_numpy(column)

"""Statistics over many entries: aggregates for a manifest entry, and conforming to a schema.

An aggregate may be wider than the truth, never narrower: a child whose statistic is unknown makes
the aggregate unknown. A child that provably has no value to bound (every value null or NaN) is no
such child: it leaves bounds as they are. Knows nothing of which entries are live; it is given them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import STATS_PREFIX, split_stats_key, stats_key
from frazil.format.entries.stats import (
    GEO_LOWER,
    GEO_UPPER,
    ROW_LINEAGE,
    TrackedField,
    has_bounds,
    stats_types,
    tracked_fields,
)
from frazil.format.values.types import (
    is_floating,
    is_geo,
    is_variable_length,
    promote,
    scalar_value,
)
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import GeographyType, VariantType

Mask = np.ndarray[Any, np.dtype[np.bool_]]

_COUNTS: Final = ("value_count", "null_value_count", "nan_value_count")


def aggregate(
    batch: EntryBatch, fields: Iterable[TrackedField], *, has_manifest_dv: bool
) -> dict[str, Any]:
    """One row of statistics that holds for all entries of the batch, which must be the live ones.

    Keys whose aggregate is unknown are left out; values are plain (`frazil.format.values.types`).
    """
    row: dict[str, Any] = {}
    if batch.num_rows == 0:
        return row
    for field in fields:
        children = _Children(batch, field)
        for name in _COUNTS:
            row[children.key(name)] = children.total(name)
        if is_variable_length(field.type):
            row[children.key("avg_value_size_in_bytes")] = children.average_size()
        if is_geo(field.type):
            row.update(children.box())
        elif isinstance(field.type, VariantType):
            row.update(children.paths())
        elif has_bounds(field.type):
            row.update(children.bounds(has_manifest_dv=has_manifest_dv))
    return {key: value for key, value in row.items() if value is not None}


def conform(
    batch: EntryBatch, schema: Schema, *, derived: Iterable[TrackedField] = ()
) -> EntryBatch:
    """The batch with the statistics of the current schema: what a rewritten manifest holds.

    Statistics of dropped columns go, bounds of promoted columns are promoted, new columns stay
    absent. `derived` columns are kept; they are not in the schema.
    """
    fields = (*tracked_fields(schema), *derived, *ROW_LINEAGE)
    types = stats_types(fields)
    by_id = {field.id: field for field in fields}
    unknown_keys = [key for key in batch.keys if key.startswith(STATS_PREFIX) and key not in types]
    batch = batch.without(*unknown_keys)
    for key in batch.keys:
        if key in types and batch.column(key).type != types[key]:
            field_id, name = split_stats_key(key)
            column = batch.column(key)
            is_bound = name in ("lower_bound", "upper_bound")
            if is_bound:
                column = promote(column, by_id[field_id].type)
            else:
                column = pc.cast(column, types[key])
            batch = batch.with_column(key, column)
    return batch


def extremes(column: pa.Array | pa.ChunkedArray) -> tuple[Any, Any]:
    """Least and greatest value as plain values, None when there is none.

    NaN does not count; -0.0 is below +0.0; strings, bytes and uuids compare as unsigned bytes.
    """
    ends = pc.min_max(column)
    lower, upper = scalar_value(ends["min"]), scalar_value(ends["max"])
    if lower is None or not pa.types.is_floating(column.type):
        return lower, upper
    if lower != lower or lower > upper:  # nothing but NaN, as newer and older pyarrow say it
        return None, None
    if lower == 0.0 or upper == 0.0:
        numbers = arrow_values.to_numpy(pc.drop_null(column))
        negative = np.signbit(numbers[numbers == 0.0])
        lower = (-0.0 if negative.any() else 0.0) if lower == 0.0 else lower
        upper = (-0.0 if negative.all() else 0.0) if upper == 0.0 else upper
    return lower, upper


class _Children:
    """The statistics of one column in all entries of a batch."""

    def __init__(self, batch: EntryBatch, field: TrackedField) -> None:
        self._batch = batch
        self._field = field
        self._empty: Mask | None = None

    def key(self, name: str) -> str:
        return stats_key(self._field.id, name)

    def column(self, name: str) -> pa.ChunkedArray | None:
        """The statistic's column; None when no entry has it."""
        key = self.key(name)
        if not self._batch.has(key):
            return None
        column = self._batch.column(key)
        return None if column.null_count == len(column) else column

    def total(self, name: str) -> int | None:
        column = self.column(name)
        return None if column is None or column.null_count else int(pc.sum(column).as_py())

    def empty(self) -> Mask:
        """Entries that provably have no value to bound."""
        if self._empty is None:
            self._empty = self._values_left() == 0
        return self._empty

    def _values_left(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """How many values are neither null nor NaN, per entry; -1 where that is not known."""
        values, nulls = self.column("value_count"), self.column("null_value_count")
        if values is None or nulls is None:
            return np.full(self._batch.num_rows, -1, dtype=np.int64)
        left = pc.subtract(values, nulls)
        if is_floating(self._field.type):
            nans = self.column("nan_value_count")
            unknown = arrow_values.scalar(None, pa.int64())
            # With NaN uncounted, only a column of nothing but nulls is known to be empty.
            finite = unknown if nans is None else pc.subtract(left, nans)
            left = pc.if_else(pc.equal(left, 0), left, finite)
        return arrow_values.to_numpy(pc.fill_null(left, -1))

    def extreme(self, name: str, pick: Callable[[tuple[Any, Any]], Any]) -> Any:
        """Least or greatest bound; None when an entry that has values lacks it."""
        column = self.column(name)
        if column is None:
            return None
        if name in ("lower_bound", "upper_bound"):
            column = promote(column, self._field.type)
        if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
            column = pc.if_else(pc.is_nan(column), arrow_values.scalar(None, column.type), column)
        return None if self._lacking(column) else pick(extremes(column))

    def _lacking(self, column: pa.ChunkedArray) -> bool:
        """Whether the statistic is missing from an entry that has values."""
        if column.null_count == 0:
            return False
        return bool((arrow_values.to_numpy(pc.is_null(column)) & ~self.empty()).any())

    def bounds(self, *, has_manifest_dv: bool) -> dict[str, Any]:
        lower = self.extreme("lower_bound", lambda mode: mode[0])
        upper = self.extreme("upper_bound", lambda mode: mode[1])
        row = {self.key("lower_bound"): lower, self.key("upper_bound"): upper}
        if lower is not None or upper is not None:
            row[self.key("tight_bounds")] = False if has_manifest_dv else self._all_tight()
        return row

    def _all_tight(self) -> bool | None:
        column = self.column("tight_bounds")
        if column is None or self._lacking(column):
            return None
        return bool(pc.all(column).as_py())

    def average_size(self) -> int | None:
        """The average weighted by values that are not null, or by rows where those are unknown."""
        column = self.column("avg_value_size_in_bytes")
        if column is None or self._lacking(column):
            return None
        weights = self._values_left()
        if (weights < 0).any():
            weights = self._batch.numpy("record_count", missing=0)
        sizes = arrow_values.to_numpy(pc.fill_null(column, 0)).astype(np.int64)
        total = int(weights.sum())
        return int((sizes * weights).sum()) // total if total else None

    def paths(self) -> dict[str, Any]:
        """The bounds of fields inside variants that every entry with values has."""
        from frazil.format.values.variant_bounds import united

        row: dict[str, Any] = {}
        for name in ("lower_bound", "upper_bound"):
            column = self.column(name)
            if column is None or self._lacking(column):
                continue
            bounds = (bound for bound in column.to_pylist() if bound is not None)
            row[self.key(name)] = united(bounds, upper=name == "upper_bound")
        return row

    def box(self) -> dict[str, Any]:
        """The bounding box of all boxes; z and m only where every entry has them."""
        row = {name: self.extreme(name, lambda mode: mode[0]) for name in GEO_LOWER}
        row |= {name: self.extreme(name, lambda mode: mode[1]) for name in GEO_UPPER}
        if isinstance(self._field.type, GeographyType):
            row |= self._longitudes()
        for corner in (GEO_LOWER, GEO_UPPER):
            if row[corner[0]] is None or row[corner[1]] is None:
                row |= dict.fromkeys(corner)
        return {self.key(name): value for name, value in row.items()}

    def _longitudes(self) -> dict[str, Any]:
        """West and east of all boxes on the circle: the west of one may be above its east."""
        west, east = self.column("lower_x"), self.column("upper_x")
        if west is None or east is None or self._lacking(west) or self._lacking(east):
            return {"lower_x": None, "upper_x": None}
        from frazil.format.values.boxes import Longitudes

        circle = Longitudes()
        circle.add(np.asarray(pc.drop_null(west)), np.asarray(pc.drop_null(east)))
        return dict(zip(("lower_x", "upper_x"), circle.range(), strict=True))

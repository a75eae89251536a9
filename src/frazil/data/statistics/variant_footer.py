"""Bounds of fields inside variants from the footer of a file whose writer shredded them.

A part that was shredded is a group of `value` and `typed_value`. Its bounds are those of the typed
column, if the other one holds nothing, or only nulls: a value that does not fit the type is there.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from frazil import arrow_parquet as pq
from frazil.format.entries.metrics import MetricsMode
from frazil.format.values import variant
from frazil.format.values.variant_bounds import MAX_STEPS, encoded_bounds, path_text
from frazil.iceberg import types as ice

_EPOCH: Final = datetime(1970, 1, 1)
_DAY_ZERO: Final = date(1970, 1, 1).toordinal()
Ends = Callable[[int, ice.IcebergType], tuple[Any, Any] | None]
"""The least and greatest value of a leaf as plain values of a type; None where not known."""


def variant_bounds(
    footer: pq.FileMetaData, kind: pa.DataType, first_leaf: int, ends_of: Ends, mode: MetricsMode
) -> dict[str, Any]:
    """The bounds of a column of this type whose leaves begin there."""
    bounds: dict[tuple[str, ...], tuple[Any, Any]] = {}
    _Walk(footer, ends_of, bounds).group(kind, first_leaf, ())
    lower, upper = {}, {}
    for path, (low, high) in bounds.items():
        text = path_text(path)
        if isinstance(low, str):
            low, high, _ = mode.fit(low, high, ice.StringType())
        lower[text] = low
        if high is not None:
            upper[text] = high
    ends = {"lower_bound": encoded_bounds(lower), "upper_bound": encoded_bounds(upper)}
    return {name: end for name, end in ends.items() if end is not None}


class _Walk:
    """A pass over the groups of one variant column."""

    def __init__(
        self,
        footer: pq.FileMetaData,
        ends_of: Ends,
        found: dict[tuple[str, ...], tuple[Any, Any]],
    ) -> None:
        self._footer = footer
        self._ends_of = ends_of
        self._found = found

    def group(self, kind: pa.DataType, leaf: int, path: tuple[str, ...]) -> None:
        """Note the bounds below a group that begins at a leaf of the file."""
        value_leaf: int | None = None
        typed: tuple[pa.DataType, int] | None = None
        for field in kind:
            if field.name == "value":
                value_leaf = leaf
            elif field.name == "typed_value":
                typed = field.type, leaf
            leaf += _leaves(field.type)
        if typed is None:
            return
        typed_kind, typed_leaf = typed
        if pa.types.is_struct(typed_kind):
            if len(path) < MAX_STEPS:
                for field in typed_kind:
                    if pa.types.is_struct(field.type):
                        self.group(field.type, typed_leaf, (*path, field.name))
                    typed_leaf += _leaves(field.type)
            return
        iceberg = _iceberg_type(typed_kind)
        if iceberg is None or not self._holds_nothing(value_leaf):
            return
        ends = self._ends_of(typed_leaf, iceberg)
        if ends is not None:
            low, high = (_python(end, iceberg) for end in ends)
            if low is not None and high is not None:
                self._found[path] = low, high

    def _holds_nothing(self, leaf: int | None) -> bool:
        """Whether a column of values has none, or only those that say null."""
        if leaf is None:
            return True
        for number in range(self._footer.num_row_groups):
            chunk = self._footer.row_group(number).column(leaf)
            stats = chunk.statistics if chunk.is_stats_set else None
            if stats is None or not stats.has_null_count:
                return False
            if stats.null_count == chunk.num_values:
                continue
            if not stats.has_min_max or {bytes(stats.min_raw), bytes(stats.max_raw)} != {
                variant.NULL
            }:
                return False
        return True


def _leaves(kind: pa.DataType) -> int:
    children = [kind.field(at) for at in range(kind.num_fields)]
    return sum(_leaves(child.type) for child in children) if children else 1


def _iceberg_type(kind: pa.DataType) -> ice.PrimitiveType | None:
    """The type whose bounds a typed column has; None for those that have no order here."""
    types = pa.types
    if types.is_signed_integer(kind):
        return ice.LongType()
    if types.is_decimal(kind):
        return ice.DecimalType(kind.precision, kind.scale)
    if types.is_floating(kind):
        return None  # a footer does not say whether there is a NaN, which is above all numbers
    if types.is_string(kind):
        return ice.StringType()
    if types.is_date32(kind):
        return ice.DateType()
    if kind == pa.timestamp("us"):
        return ice.TimestampType()
    return None


def _python(end: Any, kind: ice.IcebergType) -> Any:
    """A plain value as variants have it; None for a day or a moment that Python has not."""
    try:
        match kind:
            case ice.DateType():
                return date.fromordinal(end + _DAY_ZERO)
            case ice.TimestampType():
                return _EPOCH + timedelta(microseconds=end)
    except (ValueError, OverflowError):
        return None
    return end


__all__ = ["variant_bounds"]

"""Exact statistics of rows as they are written to one data file.

`StatsCollector` is fed Arrow batches and gives the flat `content_stats` columns of the file's
entry. It knows which columns have statistics and how values are counted; statistics of files that
others wrote come from their footers (`data.statistics.footer`), and values of derived columns from
whoever knows the partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.errors import InvalidInput
from frazil.format.entries.aggregate import extremes
from frazil.format.entries.fields import stats_key
from frazil.format.entries.metrics import FULL, MetricsConfig, MetricsMode
from frazil.format.entries.stats import (
    ROW_LINEAGE,
    TrackedField,
    has_bounds,
    is_ordered,
    tracked_fields,
)
from frazil.format.values.types import arrow_type, is_floating, is_geo, is_variable_length
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import IcebergType, NestedField, PrimitiveType, StructType, VariantType

if TYPE_CHECKING:
    from frazil.format.values.boxes import BoxCollector
    from frazil.format.values.variant_bounds import VariantBounds

Column: TypeAlias = "pa.Array | pa.ChunkedArray"


class StatsCollector:
    """Accumulates the statistics of one file; rows may come in any number of batches.

    Columns are found by name, as in the table schema. One that the rows do not have gets no
    statistics. The row lineage columns are counted when the rows have them.
    """

    def __init__(self, schema: Schema, metrics: MetricsConfig | None = None) -> None:
        config = metrics or MetricsConfig()
        fields = {field.id: field for field in tracked_fields(schema)}
        self._columns = [
            ColumnStats(fields[leaf.field_id], path, config.mode(leaf.field_id))
            for path, leaf in _paths(schema.fields)
            if leaf.field_id in fields and config.mode(leaf.field_id).has_counts
        ]
        self._columns += [ColumnStats(field, (field.full_name,), FULL) for field in ROW_LINEAGE]

    def update(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Count more rows."""
        if rows.num_rows:
            for column in self._columns:
                column.update(rows)

    def finish(self) -> dict[str, Any]:
        """The statistics of all rows so far: flat key to plain value, unknown ones left out."""
        row: dict[str, Any] = {}
        for column in self._columns:
            row.update(column.finish())
        return row


def stored_bounds(
    field: TrackedField, mode: MetricsMode, lower: Any, upper: Any, *, tight: bool
) -> dict[str, Any]:
    """The bound columns an entry gets for these extremes; none when there is nothing to bound."""
    if lower is None and upper is None:
        return {}
    low, high, unchanged = mode.fit(lower, upper, field.type)
    row = {
        stats_key(field.id, "lower_bound"): low,
        stats_key(field.id, "upper_bound"): high,
        stats_key(field.id, "tight_bounds"): tight and unchanged,
    }
    return {key: value for key, value in row.items() if value is not None}


class ColumnStats:
    """The running statistics of one column."""

    def __init__(self, field: TrackedField, path: tuple[str, ...], mode: MetricsMode) -> None:
        self._field = field
        self._path = path
        bounded = mode.has_bounds and has_bounds(field.type)
        self._bounded = bounded and is_ordered(field.type)
        self._paths = _path_bounds(mode) if bounded and _is_variant(field.type) else None
        self._box = _box_collector(field.type) if bounded and is_geo(field.type) else None
        self._mode = mode
        self._lineage = field in ROW_LINEAGE
        self._present = True
        self._values = self._nulls = self._nans = self._bytes = 0
        self._lower: Any = None
        self._upper: Any = None

    def update(self, rows: pa.RecordBatch | pa.Table) -> None:
        column = _descend(rows, self._path) if self._present else None
        if column is None:
            self._present = False
            return
        self._values += len(column)
        if isinstance(self._field.type, PrimitiveType):
            column = self._comparable(column)
        self._nulls += column.null_count
        if column.null_count == len(column):
            return
        if is_floating(self._field.type):
            self._nans += pc.sum(pc.is_nan(column)).as_py()
        if is_variable_length(self._field.type):
            self._bytes += sum(pc.sum(pc.binary_length(part)).as_py() for part in _parts(column))
        if self._box is not None:
            self._box.update(column)
        if self._paths is not None:
            self._paths.update(column)
        if self._bounded:
            lower, upper = extremes(column)
            self._lower = _pick(_below, self._lower, lower)
            self._upper = _pick(_above, self._upper, upper)

    def _comparable(self, column: Column) -> Column:
        """The column in its stored type; strings and bytes stay in whatever width they have."""
        column = _storage(column)
        if is_variable_length(self._field.type):
            wide = _VIEWS.get(column.type)
            return column if wide is None else pc.cast(column, wide)
        target = arrow_type(self._field.type)
        if column.type == target:
            return column
        try:
            return pc.cast(column, target)
        except pa.ArrowException as error:
            raise InvalidInput(
                f"column {self._field.full_name} is {column.type}; expected {target}: {error}"
            ) from error

    def finish(self) -> dict[str, Any]:
        if not self._present or (self._lineage and self._values == 0):
            return {}
        key = self._field.id
        row: dict[str, Any] = {
            stats_key(key, "value_count"): self._values,
            stats_key(key, "null_value_count"): self._nulls,
        }
        if is_floating(self._field.type):
            row[stats_key(key, "nan_value_count")] = self._nans
        if is_variable_length(self._field.type) and self._nulls < self._values:
            average = self._bytes // (self._values - self._nulls)
            row[stats_key(key, "avg_value_size_in_bytes")] = average
        if self._lineage and self._nulls:
            return (
                row  # null row lineage is inherited from the entry: stored values do not bound it
            )
        if self._box is not None:
            return row | {stats_key(key, name): end for name, end in self._box.finish().items()}
        if self._paths is not None:
            lower, upper = self._paths.finish()
            ends = {"lower_bound": lower, "upper_bound": upper}
            return row | {
                stats_key(key, name): end for name, end in ends.items() if end is not None
            }
        return row | stored_bounds(self._field, self._mode, self._lower, self._upper, tight=True)


def _parts(column: Column) -> list[Column]:
    """Bytes and text as they are; variants as their metadata and their values."""
    if not pa.types.is_struct(column.type):
        return [column]
    names = [field.name for field in column.type]
    return [pc.struct_field(column, name) for name in names]


def _is_variant(kind: IcebergType) -> bool:
    return isinstance(kind, VariantType)


def _path_bounds(mode: MetricsMode) -> VariantBounds:
    from frazil.format.values.variant_bounds import VariantBounds

    return VariantBounds(mode.length)


def _box_collector(kind: IcebergType) -> BoxCollector:
    from frazil.format.values.boxes import BoxCollector

    return BoxCollector(kind)


_VIEWS = {
    pa.string_view(): pa.large_string(),
    pa.binary_view(): pa.large_binary(),
}


def _paths(
    fields: Iterable[NestedField], parents: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], NestedField]]:
    for field in fields:
        path = (*parents, field.name)
        if isinstance(field.field_type, StructType):
            yield from _paths(field.field_type.fields, path)
        else:
            yield path, field


def _descend(rows: pa.RecordBatch | pa.Table, path: tuple[str, ...]) -> Column | None:
    """The column at a path of names; a value under a null struct is null. None: not there."""
    index = rows.schema.get_field_index(path[0])
    if index < 0:
        return None
    column, kind = rows.column(index), rows.schema.field(index).type
    steps: list[int] = []
    for name in path[1:]:
        position = kind.get_field_index(name) if pa.types.is_struct(kind) else -1
        if position < 0:
            return None
        steps.append(position)
        kind = kind.field(position).type
    return pc.struct_field(column, steps) if steps else column


def _storage(column: Column) -> Column:
    """Values without an extension type or dictionary around them."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        if isinstance(column, pa.ChunkedArray):
            return pa.chunked_array([part.storage for part in column.chunks], kind.storage_type)
        return column.storage
    if pa.types.is_dictionary(kind):
        return pc.cast(column, kind.value_type)
    return column


def _pick(wins: Callable[[Any, Any], bool], old: Any, new: Any) -> Any:
    if old is None or new is None:
        return old if new is None else new
    return new if wins(new, old) else old


def _below(left: Any, right: Any) -> bool:
    return bool(left < right) or (left == right == 0 and _negative_zero(left))


def _above(left: Any, right: Any) -> bool:
    return bool(left > right) or (left == right == 0 and _negative_zero(right))


def _negative_zero(value: Any) -> bool:
    return isinstance(value, float) and str(value) == "-0.0"

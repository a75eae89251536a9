"""The shape of `content_stats`: which columns have statistics, and the ids of every statistic.

The arithmetic of statistics ids lives here and nowhere else. How values are collected
(`frazil.data.statistics.stats_collector`), truncated (`frazil.format.values.truncate`), chosen
(`frazil.format.entries.metrics`) and aggregated (`frazil.format.entries.aggregate`) is for others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

from frazil.errors import InvalidInput
from frazil.format.entries.fields import stats_key
from frazil.format.values.types import arrow_type, is_floating, is_geo, is_variable_length
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import VariantType
from frazil.value_classes import frozen

ROW_ID: Final = 2_147_483_540
LAST_UPDATED_SEQUENCE_NUMBER: Final = 2_147_483_539

_START: Final = 10_000
_STEP: Final = 200
_END: Final = 200_000_000
_RESERVED: Final = {LAST_UPDATED_SEQUENCE_NUMBER: 9_000, ROW_ID: 9_200}
_RESERVED_BY_BASE: Final = {base: field_id for field_id, base in _RESERVED.items()}

MAX_FIELD_ID: Final = (_END - _START) // _STEP - 1
"""The largest column id that statistics have room for; later columns have none."""

OFFSETS: Final = {
    "lower_bound": 1,
    "upper_bound": 2,
    "tight_bounds": 3,
    "value_count": 4,
    "null_value_count": 5,
    "nan_value_count": 6,
    "avg_value_size_in_bytes": 7,
    "lower_x": 10,
    "lower_y": 11,
    "lower_z": 12,
    "lower_m": 13,
    "upper_x": 14,
    "upper_y": 15,
    "upper_z": 16,
    "upper_m": 17,
}
"""Statistic to its offset from the base id of its column."""

DISK_NAME: Final = "s"
DISK_NAMES: Final = {
    "lower_bound": "l",
    "upper_bound": "u",
    "tight_bounds": "t",
    "value_count": "v",
    "null_value_count": "n",
    "nan_value_count": "f",
    "avg_value_size_in_bytes": "a",
}
"""What statistics are called in a manifest: `s.7.l` is the lower bound of column 7. The footer has
every name two or three times for each column, and is most of a small root."""
_NAMES: Final = {offset: name for name, offset in OFFSETS.items()}
GEO_LOWER: Final = ("lower_x", "lower_y", "lower_z", "lower_m")
GEO_UPPER: Final = ("upper_x", "upper_y", "upper_z", "upper_m")


def stats_base(field_id: int) -> int:
    """The id of a column's statistics struct."""
    base = _RESERVED.get(field_id)
    if base is not None:
        return base
    if not 0 <= field_id <= MAX_FIELD_ID:
        raise InvalidInput(f"field id {field_id} has no statistics; expected 0 to {MAX_FIELD_ID}")
    return _START + _STEP * field_id


def field_of_stats_id(stats_id: int) -> tuple[int, str] | None:
    """The column and the statistic an id stands for; "" for the struct itself.

    None when the id is not one of a statistic that this version knows.
    """
    offset = stats_id % _STEP
    base = stats_id - offset
    name = "" if offset == 0 else _NAMES.get(offset)
    if base < _START:
        field_id = _RESERVED_BY_BASE.get(base)
    else:
        field_id = (base - _START) // _STEP if base < _END else None
    return None if name is None or field_id is None else (field_id, name)


@frozen
class TrackedField:
    """A column with statistics: of the schema, derived from one, or a row lineage column."""

    id: int
    full_name: str
    type: ice.IcebergType
    required: bool = False
    depth: int = 0


ROW_LINEAGE: Final = (
    TrackedField(
        id=LAST_UPDATED_SEQUENCE_NUMBER,
        full_name="_last_updated_sequence_number",
        type=ice.LongType(),
    ),
    TrackedField(id=ROW_ID, full_name="_row_id", type=ice.LongType()),
)
"""Columns that files may store and that have reserved statistics ids."""


@frozen
class StatsColumn:
    """One statistic of one column: its flat key, offset from the base id, and Arrow type.

    On disk it is called `name`; a geo bound lies one struct deeper, in the one of the lower or the
    upper bounds, as x, y, z or m.
    """

    key: str
    offset: int
    name: str
    type: pa.DataType
    required: bool = False


def tracked_fields(schema: Schema) -> tuple[TrackedField, ...]:
    """The columns of a schema that have statistics, in schema order.

    Fields of structs count by their full name, at any depth. A list or map counts as one column;
    nothing inside it does, as a row has many of those. Structs themselves have none.
    """
    return tuple(_walk(schema.fields, prefix="", required=True, depth=0))


def _walk(
    fields: Iterable[ice.NestedField], *, prefix: str, required: bool, depth: int
) -> Iterator[TrackedField]:
    for field in fields:
        name, always = prefix + field.name, required and field.required
        if isinstance(field.field_type, ice.StructType):
            yield from _walk(
                field.field_type.fields, prefix=f"{name}.", required=always, depth=depth + 1
            )
        elif field.field_id <= MAX_FIELD_ID:
            yield TrackedField(
                id=field.field_id,
                full_name=name,
                type=field.field_type,
                required=always,
                depth=depth,
            )


def has_bounds(kind: ice.IcebergType) -> bool:
    """Whether statistics of the type have bounds, as values or as points."""
    return isinstance(kind, ice.PrimitiveType) and not isinstance(kind, ice.UnknownType)


def is_ordered(kind: ice.IcebergType) -> bool:
    """Whether bounds are the least and the greatest value, not points or objects."""
    return has_bounds(kind) and not is_geo(kind) and not isinstance(kind, VariantType)


def stats_columns(field: TrackedField) -> tuple[StatsColumn, ...]:
    """The statistics a column can have, in on-disk order."""
    kind = field.type
    columns: list[StatsColumn] = []
    if is_geo(kind):
        columns += [_geo_column(field.id, name) for name in (*GEO_LOWER, *GEO_UPPER)]
    elif has_bounds(kind):
        bound = arrow_type(kind)
        columns.append(_column(field.id, "lower_bound", bound))
        columns.append(_column(field.id, "upper_bound", bound))
        if is_ordered(kind):
            columns.append(_column(field.id, "tight_bounds", pa.bool_()))
    columns.append(_column(field.id, "value_count", pa.int64()))
    columns.append(_column(field.id, "null_value_count", pa.int64()))
    if is_floating(kind):
        columns.append(_column(field.id, "nan_value_count", pa.int64()))
    if is_variable_length(kind):
        columns.append(_column(field.id, "avg_value_size_in_bytes", pa.int32()))
    return tuple(columns)


def stats_types(fields: Iterable[TrackedField]) -> dict[str, pa.DataType]:
    """Key to Arrow type of every statistic of the columns, as `EntryBatch.from_rows` takes it."""
    return {column.key: column.type for field in fields for column in stats_columns(field)}


def _column(field_id: int, name: str, kind: pa.DataType) -> StatsColumn:
    return StatsColumn(key=stats_key(field_id, name), offset=OFFSETS[name], name=name, type=kind)


def _geo_column(field_id: int, name: str) -> StatsColumn:
    axis = name.removeprefix("lower_").removeprefix("upper_")
    return StatsColumn(
        key=stats_key(field_id, name),
        offset=OFFSETS[name],
        name=axis,
        type=pa.float64(),
        required=axis in ("x", "y"),
    )

"""Statistics of a Parquet file that another writer made, from its footer alone.

Columns are matched by field id, or by the table's name mapping when the file has no ids. A footer
says less than the rows do: NaN is not counted, strings may be cut without saying so, timestamps in
INT96 have no order. What it does not say is left out, and a bound is never narrower than the rows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from frazil import arrow_parquet as pq
from frazil.data.statistics.stats_collector import stored_bounds
from frazil.errors import FormatError
from frazil.format.entries.fields import stats_key
from frazil.format.entries.metrics import FULL, MetricsConfig, MetricsMode
from frazil.format.entries.stats import ROW_LINEAGE, TrackedField, has_bounds, tracked_fields
from frazil.format.values.types import is_floating, is_geo
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema
from frazil.value_classes import dataclass

if TYPE_CHECKING:
    from frazil.iceberg.name_mapping import MappedField, NameMapping

_FIELD_ID: Final = b"PARQUET:field_id"
_TEMPORAL: Final = (
    ice.TimeType,
    ice.TimestampType,
    ice.TimestamptzType,
    ice.TimestampNanoType,
    ice.TimestamptzNanoType,
)
_LINE_STRING: Final = 2
_POINTS: Final = frozenset({1, 4})
_UNITS_PER_SECOND: Final = {"milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}


def footer_stats(
    footer: pq.FileMetaData,
    schema: Schema,
    metrics: MetricsConfig | None = None,
    *,
    name_mapping: NameMapping | None = None,
) -> dict[str, Any]:
    """The flat `content_stats` columns a footer can vouch for; unknown statistics are left out.

    `name_mapping` serves files without field ids; without one, columns go by their names in the
    schema.
    """
    config = metrics or MetricsConfig()
    modes = {field.id: (field, config.mode(field.id)) for field in tracked_fields(schema)}
    modes |= {field.id: (field, FULL) for field in ROW_LINEAGE}
    row: dict[str, Any] = {}
    for column in _columns(footer, name_mapping or schema.name_mapping):
        field, mode = modes.get(column.field_id, (None, None))
        if field is not None and mode is not None and mode.has_counts:
            row.update(_column_stats(footer, column, field, mode))
    return row


def top_level_names(schema: pa.Schema) -> dict[int, str]:
    """The names of a file's top-level columns by their field ids."""
    ids = ((_id_of(field), field.name) for field in schema)
    return {field_id: name for field_id, name in ids if field_id is not None}


# --- which column of the file is which of the table --------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileColumn:
    """A column of the file that is one of the table; `leaf` is None for a list or map."""

    field_id: int
    leaf: int | None
    variant: tuple[pa.DataType, int] | None = None
    """The parts of a column of variants, and their first leaf; `leaf` is that of the metadata."""


def _columns(footer: pq.FileMetaData, mapping: NameMapping) -> Iterator[_FileColumn]:
    fields = list(footer.schema.to_arrow_schema())
    width = sum(_leaves(field.type) for field in fields)
    if width != footer.num_columns:
        raise FormatError(f"footer lists {footer.num_columns} columns; its schema has {width}")
    names = None if any(_has_ids(field) for field in fields) else _by_name(mapping.fields)
    yield from _match(fields, names, first_leaf=0)


def _match(
    fields: Iterable[pa.Field], names: Mapping[str, MappedField] | None, *, first_leaf: int
) -> Iterator[_FileColumn]:
    """Columns at any depth of structs, by id or, when `names` is given, by name."""
    leaf = first_leaf
    for field in fields:
        kind = _storage(field.type)
        inner: Mapping[str, MappedField] | None = None
        field_id = _id_of(field)
        if names is not None:
            mapped = names.get(field.name)
            field_id = None if mapped is None else mapped.field_id
            inner = {} if mapped is None else _by_name(mapped.fields)
        if field_id is not None and _is_variant(kind):
            at = leaf + sum(_leaves(part.type) for part in kind.fields[: _metadata_at(kind)])
            yield _FileColumn(field_id=field_id, leaf=at, variant=(kind, leaf))
        elif pa.types.is_struct(kind):
            yield from _match(_children(kind), inner, first_leaf=leaf)
        elif field_id is not None:
            yield _FileColumn(field_id=field_id, leaf=None if _children(kind) else leaf)
        leaf += _leaves(kind)


def _is_variant(kind: pa.DataType) -> bool:
    """Whether a group has an id, which structs do not need, and the parts of a variant, which have
    none."""
    if not pa.types.is_struct(kind) or _has_ids(pa.field("", kind)):
        return False
    return {"metadata"} < {field.name for field in kind} <= {"metadata", "value", "typed_value"}


def _metadata_at(kind: pa.StructType) -> int:
    return int(kind.get_field_index("metadata"))


def _by_name(fields: Iterable[MappedField]) -> dict[str, MappedField]:
    return {name: field for field in fields for name in field.names}


def _id_of(field: pa.Field) -> int | None:
    value = (field.metadata or {}).get(_FIELD_ID)
    return None if value is None else int(value)


def _has_ids(field: pa.Field) -> bool:
    return _id_of(field) is not None or any(_has_ids(child) for child in _children(field.type))


def _storage(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _children(kind: pa.DataType) -> list[pa.Field]:
    kind = _storage(kind)
    if pa.types.is_dictionary(kind):
        return []
    return [kind.field(index) for index in range(kind.num_fields)]


def _leaves(kind: pa.DataType) -> int:
    children = _children(kind)
    return sum(_leaves(child.type) for child in children) if children else 1


# --- one column ---------------------------------------------------------------------------------


def _column_stats(
    footer: pq.FileMetaData, column: _FileColumn, field: TrackedField, mode: MetricsMode
) -> dict[str, Any]:
    row: dict[str, Any] = {stats_key(field.id, "value_count"): footer.num_rows}
    if column.leaf is None or not isinstance(field.type, ice.PrimitiveType):
        return row
    source = _Source.of(footer, column.leaf)
    groups = range(footer.num_row_groups)
    chunks = [_Chunk(footer, group, column.leaf, source) for group in groups]
    null_counts = [chunk.nulls for chunk in chunks if chunk.nulls is not None]
    nulls = sum(null_counts) if len(null_counts) == len(chunks) else None
    if nulls is not None:
        row[stats_key(field.id, "null_value_count")] = nulls
    with_values = [chunk for chunk in chunks if chunk.nulls is None or chunk.nulls < chunk.rows]
    if not with_values or not mode.has_bounds or not has_bounds(field.type):
        return row
    if field in ROW_LINEAGE and nulls != 0:
        return row  # null row lineage is inherited from the entry: stored values do not bound it
    if column.variant is not None:
        from frazil.data.statistics.variant_footer import variant_bounds

        def ends_of(leaf: int, kind: ice.IcebergType) -> tuple[Any, Any] | None:
            typed = _Source.of(footer, leaf)
            chunks = [_Chunk(footer, group, leaf, typed) for group in groups]
            filled = [chunk for chunk in chunks if chunk.nulls is None or chunk.nulls < chunk.rows]
            part = TrackedField(id=field.id, full_name=field.full_name, type=kind)
            bounds_found = _bounds(filled, typed, part, FULL) if filled else {}
            ends = [
                bounds_found.get(stats_key(field.id, name))
                for name in ("lower_bound", "upper_bound")
            ]
            return None if None in ends else (ends[0], ends[1])

        paths = variant_bounds(footer, *column.variant, ends_of, mode)
        return row | {stats_key(field.id, name): end for name, end in paths.items()}
    if is_geo(field.type):
        box = _box(with_values, field, source) or _geoparquet_box(footer, column, field)
        return row | box
    return row | _bounds(with_values, source, field, mode)


class _Chunk:
    """One column of one row group."""

    def __init__(self, footer: pq.FileMetaData, group: int, leaf: int, source: _Source) -> None:
        row_group = footer.row_group(group)
        self.rows: int = row_group.num_rows
        self.meta = row_group.column(leaf)
        stats = self.meta.statistics if self.meta.is_stats_set else None
        self.stats = stats if stats is not None and stats.has_min_max else None
        self.nulls: int | None = None
        if source.kind == "Null" or self.rows == 0:
            self.nulls = self.rows
        elif footer.schema.column(leaf).max_definition_level == 0:
            self.nulls = 0
        elif stats is not None and stats.has_null_count:
            self.nulls = stats.null_count


def _bounds(
    chunks: list[_Chunk], source: _Source, field: TrackedField, mode: MetricsMode
) -> dict[str, Any]:
    """Bounds over row groups; none when one that has values lacks them."""
    lows, highs, exact = [], [], True
    for chunk in chunks:
        if chunk.stats is None:
            return {}
        low = source.value(chunk.stats.min_raw, field.type, up=False)
        high = source.value(chunk.stats.max_raw, field.type, up=True)
        if low is None or high is None:
            return {}
        lows.append(low[0])
        highs.append(high[0])
        exact = exact and low[1] and high[1]
    lower, upper = min(lows), max(highs)
    if is_floating(field.type):
        # Writers may store either zero for both, so each bound takes the wider one.
        lower, upper = (-0.0 if lower == 0 else lower), (0.0 if upper == 0 else upper)
    return stored_bounds(field, mode, lower, upper, tight=exact)


def _box(chunks: list[_Chunk], field: TrackedField, source: _Source) -> dict[str, Any]:
    """The bounding box over row groups; none when one that has values lacks x or y."""
    if not all(chunk.meta.is_geo_stats_set for chunk in chunks):
        return {}
    boxes = [chunk.meta.geo_statistics for chunk in chunks]
    if isinstance(field.type, ice.GeographyType) and source.kind != "Geography":
        kinds = {kind % 1000 for box in boxes for kind in box.geospatial_types or [_LINE_STRING]}
        if not kinds <= _POINTS:
            return {}  # a box of straight edges says too little of great circles
    row: dict[str, Any] = {}
    for axis in ("x", "y", "z", "m"):
        lows = [getattr(box, f"{axis}min") for box in boxes]
        highs = [getattr(box, f"{axis}max") for box in boxes]
        if None in lows or None in highs:
            if axis in ("x", "y"):
                return {}
            continue
        low, high = min(lows), max(highs)
        crosses = any(west > east for west, east in zip(lows, highs, strict=True))
        if axis == "x" and crosses:
            if not isinstance(field.type, ice.GeographyType):
                return {}
            low, high = -180.0, 180.0
        row[stats_key(field.id, f"lower_{axis}")] = low
        row[stats_key(field.id, f"upper_{axis}")] = high
    return row


def _geoparquet_box(
    footer: pq.FileMetaData, column: _FileColumn, field: TrackedField
) -> dict[str, Any]:
    """The box that GeoParquet's metadata gives for a top-level column."""
    assert column.leaf is not None
    geo = (footer.metadata or {}).get(b"geo")
    path = footer.schema.column(column.leaf).path
    try:
        column_metadata = json.loads(geo or b"{}")["columns"][path]
        ends = [float(end) for end in column_metadata["bbox"]]
    except (LookupError, TypeError, ValueError, ArithmeticError, RecursionError):
        return {}
    axes = {4: "xy", 6: "xyz"}.get(len(ends))
    if axes is None or not all(map(math.isfinite, ends)):
        return {}
    lows, highs = ends[: len(axes)], ends[len(axes) :]
    crosses, *inverted = (low > high for low, high in zip(lows, highs, strict=True))
    if any(inverted) or (crosses and not isinstance(field.type, ice.GeographyType)):
        return {}
    on_globe = (
        isinstance(field.type, ice.GeographyType) and column_metadata.get("edges") != "spherical"
    )
    if on_globe and set(column_metadata.get("geometry_types") or ["?"]) != {"Point"}:
        return {}  # a box of straight edges says too little of great circles
    return {
        stats_key(field.id, f"{side}_{axis}"): end
        for side, corner in (("lower", lows), ("upper", highs))
        for axis, end in zip(axes, corner, strict=True)
    }


# --- single values ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """What a column's physical values mean in the file."""

    physical: str
    logical: Mapping[str, Any]

    @staticmethod
    def of(footer: pq.FileMetaData, leaf: int) -> _Source:
        column = footer.schema.column(leaf)
        return _Source(
            physical=column.physical_type, logical=json.loads(column.logical_type.to_json())
        )

    @property
    def kind(self) -> str:
        return str(self.logical.get("Type", "None"))

    def value(self, raw: Any, to: ice.IcebergType, *, up: bool) -> tuple[Any, bool] | None:
        """A footer value as a plain value of the table's type, and whether it is exact.

        None when the file's type is not one the table's type can be read from.
        """
        if isinstance(to, ice.StringType | ice.BinaryType | ice.UUIDType | ice.FixedType):
            bound = self._bytes(raw, to)
            return None if bound is None else (bound, False)
        if isinstance(to, _TEMPORAL):
            return self._temporal(raw, to, up=up)
        bound = self._number(raw, to)
        return None if bound is None else (bound, True)

    def _bytes(self, raw: Any, to: ice.IcebergType) -> str | bytes | None:
        """Bytes and strings; a footer does not say in a way we can see whether they are cut."""
        if isinstance(to, ice.UUIDType | ice.FixedType):
            width = 16 if isinstance(to, ice.UUIDType) else len(to)
            fixed = self.physical == "FIXED_LEN_BYTE_ARRAY" and self.kind in ("None", "UUID")
            return bytes(raw) if fixed and len(raw) == width else None
        if self.physical != "BYTE_ARRAY" or self.kind == "Decimal":
            return None
        if isinstance(to, ice.BinaryType):
            return bytes(raw)
        try:
            return bytes(raw).decode()
        except UnicodeDecodeError:
            return None

    def _number(self, raw: Any, to: ice.IcebergType) -> Any:
        if isinstance(to, ice.BooleanType):
            return bool(raw) if self.physical == "BOOLEAN" else None
        if isinstance(to, ice.DecimalType):
            return self._decimal(raw, to)
        if is_floating(to):
            sources = ("FLOAT",) if isinstance(to, ice.FloatType) else ("FLOAT", "DOUBLE")
            return float(raw) if self.physical in sources and raw == raw else None
        if isinstance(to, ice.DateType):
            return int(raw) if self.kind == "Date" else None
        if isinstance(to, ice.IntegerType | ice.LongType):
            return self._integer(raw, to)
        return None

    def _integer(self, raw: Any, to: ice.IcebergType) -> int | None:
        if self.physical not in ("INT32", "INT64") or self.kind not in ("None", "Int"):
            return None
        value = int(raw)
        if value < 0 and self.logical.get("isSigned") is False:
            value += 1 << (32 if self.physical == "INT32" else 64)
        limit = 1 << (31 if isinstance(to, ice.IntegerType) else 63)
        return value if -limit <= value < limit else None

    def _decimal(self, raw: Any, to: ice.DecimalType) -> Decimal | None:
        if self.kind != "Decimal" or self.logical.get("scale") != to.scale:
            return None
        integer = self.physical in ("INT32", "INT64")
        unscaled = int(raw) if integer else int.from_bytes(raw, "big", signed=True)
        if abs(unscaled) >= 10**to.precision:
            return None
        digits = tuple(int(digit) for digit in str(abs(unscaled)))
        return Decimal((int(unscaled < 0), digits, -to.scale))

    def _temporal(self, raw: Any, to: ice.IcebergType, *, up: bool) -> tuple[int, bool] | None:
        if self.physical == "INT96":
            return None
        nano = isinstance(to, ice.TimestampNanoType | ice.TimestamptzNanoType)
        units = 10**9 if nano else 10**6
        zoned = isinstance(to, ice.TimestamptzType | ice.TimestamptzNanoType)
        if self.kind == "Date" and not zoned and not isinstance(to, ice.TimeType):
            stored = 86_400 * int(raw), 1
        elif self.kind == ("Time" if isinstance(to, ice.TimeType) else "Timestamp"):
            if not isinstance(to, ice.TimeType) and self.logical.get("isAdjustedToUTC") != zoned:
                return None
            stored = int(raw), _UNITS_PER_SECOND[str(self.logical["timeUnit"])]
        else:
            return None
        value, rest = divmod(stored[0] * units, stored[1])
        value += int(up and rest > 0)
        return (value, rest == 0) if -(1 << 63) <= value < 1 << 63 else None

"""Iceberg columns and their values as DuckDB writes them.

Also says which columns DuckDB's Parquet reader reads as the table means them. It finds top columns
by field id or by name, and parts of nested columns by name.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import numpy as np

from frazil.data.metadata_columns import RESERVED_IDS
from frazil.errors import InvalidInput, Unsupported
from frazil.filter.text.sql_values import blob_text, escaped_text, string_text, type_text
from frazil.format.values.types import plain_value
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import VariantType

_NOT_NATIVE: Final = (ice.GeometryType, ice.GeographyType, ice.UnknownType, VariantType)
_WIDENED: Final = (
    frozenset({ice.IntegerType, ice.LongType}),
    frozenset({ice.FloatType, ice.DoubleType}),
    frozenset({ice.DecimalType}),
)
_UNITS: Final[dict[type[ice.IcebergType], str]] = {
    ice.DateType: "D",
    ice.TimestampType: "us",
    ice.TimestamptzType: "us",
    ice.TimestampNanoType: "ns",
}
_VIRTUAL: Final = frozenset({"file_index", "file_row_number", "filename"})
"""Columns that DuckDB adds to what files hold."""
_YEARS: Final = (np.datetime64("0001-01-01", "D"), np.datetime64("9999-12-31", "D"))


def check_columns(fields: Iterable[ice.NestedField]) -> None:
    """Reject columns that DuckDB cannot hold or cannot distinguish."""
    known: dict[str, str] = {}
    for field in fields:
        other = known.setdefault(field.name.lower(), field.name)
        if other != field.name:
            raise Unsupported(
                f"DuckDB cannot distinguish the columns {other} and {field.name}, because it "
                "ignores case; select one of them or rename one",
                feature="column names that differ in case only",
            )
        _check_type(field.field_type, field.name)


def _check_type(kind: ice.IcebergType, path: str) -> None:
    match kind:
        case ice.TimestamptzNanoType():
            raise Unsupported(
                f"column {path} is a timestamptz_ns; DuckDB would cut its nanoseconds. "
                "Leave the column out",
                feature="timestamptz_ns on DuckDB",
            )
        case ice.StructType():
            check_columns(kind.fields)
        case ice.ListType():
            _check_type(kind.element_type, f"{path}.element")
        case ice.MapType():
            _check_type(kind.key_type, f"{path}.key")
            _check_type(kind.value_type, f"{path}.value")


# Which columns DuckDB reads by itself


class ColumnHistory:
    """What the columns of a table's schemas were called and what types they had. The schemas are
    looked through once, however many columns are asked for."""

    def __init__(self, schemas: Iterable[Schema]) -> None:
        self._ids: dict[str, set[int]] = {}
        self._names: dict[int, set[str]] = {}
        self._types: dict[int, list[ice.IcebergType]] = {}
        numbers = []
        for schema in schemas:
            numbers.append(schema.schema_id)
            for column in schema.fields:
                name = column.name.lower()
                self._ids.setdefault(name, set()).add(column.field_id)
                self._names.setdefault(column.field_id, set()).add(name)
                self._types.setdefault(column.field_id, []).append(column.field_type)
        self._num_schemas = len(numbers)
        # Some writers drop schemas of old snapshots, though files written under them live on.
        self._is_whole = set(numbers) == set(range(len(numbers)))

    def is_native(self, field: ice.NestedField) -> bool:
        """Whether DuckDB reads the column rightly from every file of the table."""
        if field.field_id in RESERVED_IDS:
            return True
        if not field.field_type.is_primitive and not self._is_whole:
            return False
        types = (field.field_type, *self._types.get(field.field_id, ()))
        return _Parts().are_native(types) and _has_default_text(field)

    def has_lasting_name(self, field: ice.NestedField) -> bool:
        """Whether files of the table have the column, if at all, by its name, and no other column
        by that name."""
        name = field.name.lower()
        return (
            self._is_whole
            and name not in _VIRTUAL
            and self._ids.get(name, set()) <= {field.field_id}
            and self._names.get(field.field_id, set()) <= {name}
        )

    def is_in_all(self, field: ice.NestedField) -> bool:
        """Whether no file was written before the column was added."""
        return len(self._types.get(field.field_id, ())) == self._num_schemas


def usable_names(
    names: Sequence[str | None], every: Collection[str]
) -> tuple[str | None, ...] | None:
    """The names that a file has for columns, `every` being all that it has; None if DuckDB cannot
    tell them apart, or finds none of them."""
    folded = {name.lower() for name in every}
    if len(folded) < len(every) or folded & _VIRTUAL or not any(name for name in names):
        return None
    return tuple(names)


class _Parts:
    """What the names and ids below one column have meant in the types seen so far."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, ...], int] = {}
        self._paths: dict[int, tuple[str, ...]] = {}
        self._types: dict[tuple[str, ...], set[type[ice.IcebergType]]] = {}

    def are_native(self, types: Iterable[ice.IcebergType]) -> bool:
        return all(self._type(kind, ()) for kind in types)

    def _type(self, kind: ice.IcebergType, path: tuple[str, ...]) -> bool:
        types = self._types.setdefault(path, set())
        types.add(type(kind))
        if len(types) > 1 and not any(types <= same for same in _WIDENED):
            return False
        match kind:
            case ice.StructType():
                return bool(kind.fields) and all(self._part(part, path) for part in kind.fields)
            case ice.ListType():
                return self._type(kind.element_type, (*path, "element"))
            case ice.MapType():
                return self._type(kind.key_type, (*path, "key")) and self._type(
                    kind.value_type, (*path, "value")
                )
        return not isinstance(kind, _NOT_NATIVE)

    def _part(self, part: ice.NestedField, path: tuple[str, ...]) -> bool:
        """A part read by name is right while its name meant no other part and it had no other."""
        here = (*path, part.name)
        return (
            part.initial_default is None
            and self._ids.setdefault(here, part.field_id) == part.field_id
            and self._paths.setdefault(part.field_id, here) == here
            and self._type(part.field_type, here)
        )


def _has_default_text(field: ice.NestedField) -> bool:
    """Dates that text writes differently (before year 1, after 9999) are left to Arrow."""
    unit = _UNITS.get(type(field.field_type))
    if field.initial_default is None or unit is None:
        return True
    value = _moment(plain_value(field.initial_default, field.field_type), unit)
    return bool(_YEARS[0] <= value <= _YEARS[1])


def _moment(value: Any, unit: str) -> Any:
    return np.array(value, dtype=f"datetime64[{unit}]")[()]


def default_text(field: ice.NestedField) -> str:
    """The initial default as text that DuckDB casts to the column's type, or NULL."""
    kind = field.field_type
    value = None if field.initial_default is None else plain_value(field.initial_default, kind)
    match kind, value:
        case _, None:
            return "NULL"
        case ice.UUIDType(), _:
            return string_text(str(uuid.UUID(bytes=value)))
        case _, bytes():
            return escaped_text(value)
        case ice.TimeType(), _:
            return string_text(_time(value))
        case ice.DecimalType(), _:
            return string_text(f"{value:f}")
        case ice.TimestamptzType(), _:
            return string_text(f"{_moment(value, 'us')}+00")
    unit = _UNITS.get(type(kind))
    return string_text(str(value if unit is None else _moment(value, unit)))


def literal(value: Any, kind: ice.IcebergType) -> str:
    """A value of a type as an expression of exactly this type."""
    plain = plain_value(value, kind)
    match kind:
        case _ if plain is None:
            return f"CAST(NULL AS {type_text(kind)})"
        case ice.BooleanType():
            return "true" if plain else "false"
        case ice.StringType():
            return string_text(plain)
        case ice.DateType():
            return f"(DATE '1970-01-01' + {plain})"
        case ice.TimeType():
            return f"TIME {string_text(_time(plain))}"
        case ice.TimestampType():
            return f"make_timestamp({plain})"
        case ice.TimestamptzType():
            return f"to_timestamp(0) + to_microseconds({plain})"
        case ice.TimestampNanoType():
            return f"make_timestamp_ns({plain})"
        case ice.UUIDType():
            return f"UUID {string_text(str(uuid.UUID(bytes=plain)))}"
        case ice.DecimalType():
            return f"CAST({string_text(f'{plain:f}')} AS {type_text(kind)})"
        case ice.FloatType() | ice.DoubleType():
            digits = repr(float(plain)) if math.isfinite(plain) else str(float(plain))
            return f"CAST('{digits}' AS {type_text(kind)})"
    if isinstance(plain, bytes):
        return blob_text(plain)
    if isinstance(plain, int):
        return f"CAST({plain} AS {type_text(kind)})"
    raise InvalidInput(f"{value!r} cannot be written as a {kind} for DuckDB")


def _time(micros: int) -> str:
    seconds, fraction = divmod(micros, 1_000_000)
    minutes, second = divmod(seconds, 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}.{fraction:06d}"

"""Iceberg columns, types and values as DuckDB writes them.

Also says which columns DuckDB's Parquet reader reads as the table means them. It finds top columns
by field id but parts of nested columns by name, and it has no zoned nanoseconds.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from pyiceberg import types as ice
from pyiceberg.schema import Schema

from frazil.data.metadata_columns import RESERVED_IDS
from frazil.errors import InvalidInput, Unsupported
from frazil.expr.quotes import literal as text_literal
from frazil.expr.quotes import quoted
from frazil.format.types import plain

_TYPES: Final[dict[type[ice.IcebergType], str]] = {
    ice.BooleanType: "BOOLEAN",
    ice.IntegerType: "INTEGER",
    ice.LongType: "BIGINT",
    ice.FloatType: "FLOAT",
    ice.DoubleType: "DOUBLE",
    ice.DateType: "DATE",
    ice.TimeType: "TIME",
    ice.TimestampType: "TIMESTAMP",
    ice.TimestamptzType: "TIMESTAMP WITH TIME ZONE",
    ice.TimestampNanoType: "TIMESTAMP_NS",
    ice.StringType: "VARCHAR",
    ice.UUIDType: "UUID",
    ice.BinaryType: "BLOB",
    ice.FixedType: "BLOB",
    ice.GeometryType: "BLOB",
    ice.GeographyType: "BLOB",
    ice.UnknownType: '"NULL"',
}
_NOT_NATIVE: Final = (ice.GeometryType, ice.GeographyType, ice.UnknownType)
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
_YEARS: Final = (np.datetime64("0001-01-01", "D"), np.datetime64("9999-12-31", "D"))


def text(value: str) -> str:
    """A text literal. The parser stops at a zero byte, so text with one is decoded from bytes."""
    if "\0" in value:
        return f"decode({_blob(value.encode())}::BLOB)"
    return text_literal(value)


def _blob(value: bytes) -> str:
    return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'"


def type_text(kind: ice.IcebergType) -> str:
    """A type as DuckDB writes it; refuses zoned nanoseconds, which DuckDB would cut."""
    match kind:
        case ice.DecimalType():
            return f"DECIMAL({kind.precision},{kind.scale})"
        case ice.StructType():
            inner = (f"{quoted(part.name)} {type_text(part.field_type)}" for part in kind.fields)
            return f"STRUCT({', '.join(inner)})"
        case ice.ListType():
            return f"{type_text(kind.element_type)}[]"
        case ice.MapType():
            return f"MAP({type_text(kind.key_type)}, {type_text(kind.value_type)})"
    found = _TYPES.get(type(kind))
    if found is None:
        raise Unsupported(f"DuckDB has no type for {kind}", feature=str(kind))
    return found


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


def is_native(field: ice.NestedField, schemas: Iterable[Schema]) -> bool:
    """Whether DuckDB reads the column rightly from every file of a table with these schemas."""
    if field.field_id in RESERVED_IDS:
        return True
    return _Parts().are_native(field, schemas) and _has_default_text(field)


class _Parts:
    """What the names and ids below one column have meant in the schemas seen so far."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, ...], int] = {}
        self._paths: dict[int, tuple[str, ...]] = {}
        self._types: dict[tuple[str, ...], set[type[ice.IcebergType]]] = {}

    def are_native(self, field: ice.NestedField, schemas: Iterable[Schema]) -> bool:
        older = (
            schema.find_field(field.field_id).field_type
            for schema in schemas
            if any(column.field_id == field.field_id for column in schema.fields)
        )
        return all(self._type(kind, ()) for kind in (field.field_type, *older))

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
    value = _moment(plain(field.initial_default, field.field_type), unit)
    return bool(_YEARS[0] <= value <= _YEARS[1])


def _moment(value: Any, unit: str) -> Any:
    return np.array(value, dtype=f"datetime64[{unit}]")[()]


def default_text(field: ice.NestedField) -> str:
    """The initial default as text that DuckDB casts to the column's type, or NULL."""
    kind = field.field_type
    value = None if field.initial_default is None else plain(field.initial_default, kind)
    match kind, value:
        case _, None:
            return "NULL"
        case ice.UUIDType(), _:
            return text(str(uuid.UUID(bytes=value)))
        case _, bytes():
            return _blob(value)
        case ice.TimeType(), _:
            return text(_time(value))
        case ice.DecimalType(), _:
            return text(f"{value:f}")
        case ice.TimestamptzType(), _:
            return text(f"{_moment(value, 'us')}+00")
    unit = _UNITS.get(type(kind))
    return text(str(value if unit is None else _moment(value, unit)))


def literal(value: Any, kind: ice.IcebergType) -> str:
    """A value of a type as an expression of exactly this type."""
    found = plain(value, kind)
    match kind:
        case _ if found is None:
            return f"CAST(NULL AS {type_text(kind)})"
        case ice.BooleanType():
            return "true" if found else "false"
        case ice.StringType():
            return text(found)
        case ice.DateType():
            return f"(DATE '1970-01-01' + {found})"
        case ice.TimeType():
            return f"TIME {text(_time(found))}"
        case ice.TimestampType():
            return f"make_timestamp({found})"
        case ice.TimestamptzType():
            return f"to_timestamp(0) + to_microseconds({found})"
        case ice.TimestampNanoType():
            return f"make_timestamp_ns({found})"
        case ice.UUIDType():
            return f"UUID {text(str(uuid.UUID(bytes=found)))}"
        case ice.DecimalType():
            return f"CAST({text(f'{found:f}')} AS {type_text(kind)})"
        case ice.FloatType() | ice.DoubleType():
            shown = repr(float(found)) if math.isfinite(found) else str(float(found))
            return f"CAST('{shown}' AS {type_text(kind)})"
    if isinstance(found, bytes):
        return f"{_blob(found)}::BLOB"
    if isinstance(found, int):
        return f"CAST({found} AS {type_text(kind)})"
    raise InvalidInput(f"{value!r} cannot be written as a {kind} for DuckDB")


def _time(micros: int) -> str:
    seconds, fraction = divmod(micros, 1_000_000)
    minutes, second = divmod(seconds, 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}.{fraction:06d}"

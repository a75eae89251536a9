"""Values of Iceberg types between Arrow, plain Python and the exact JSON form of the Java harness.

Plain Python holds dates, times and timestamps as counts of the type's unit, so that every stored
value fits. Nothing here uses Frazil: expected values must not come from the code under test.
"""

from __future__ import annotations

import math
import struct
import uuid
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema

_ARROW: dict[type[ice.IcebergType], pa.DataType] = {
    ice.BooleanType: pa.bool_(),
    ice.IntegerType: pa.int32(),
    ice.LongType: pa.int64(),
    ice.FloatType: pa.float32(),
    ice.DoubleType: pa.float64(),
    ice.DateType: pa.date32(),
    ice.TimeType: pa.time64("us"),
    ice.TimestampType: pa.timestamp("us"),
    ice.TimestamptzType: pa.timestamp("us", "UTC"),
    ice.TimestampNanoType: pa.timestamp("ns"),
    ice.TimestamptzNanoType: pa.timestamp("ns", "UTC"),
    ice.StringType: pa.string(),
    ice.UUIDType: pa.binary(16),
    ice.BinaryType: pa.binary(),
}

_EXACT = Context(prec=60)


def arrow_type(kind: ice.IcebergType) -> pa.DataType:
    """The Arrow type that holds an Iceberg type, nested ones included."""
    match kind:
        case ice.DecimalType():
            return pa.decimal128(kind.precision, kind.scale)
        case ice.FixedType():
            return pa.binary(len(kind))
        case ice.StructType():
            return pa.struct([pa.field(f.name, arrow_type(f.field_type)) for f in kind.fields])
        case ice.ListType():
            return pa.list_(arrow_type(kind.element_type))
        case ice.MapType():
            return pa.map_(arrow_type(kind.key_type), arrow_type(kind.value_type))
        case _:
            return _ARROW[type(kind)]


def to_json(kind: ice.IcebergType, value: Any) -> Any:
    """The harness's form of a plain value; structs are mappings by field name."""
    if value is None:
        return None
    match kind:
        case ice.FloatType():
            return int(struct.unpack("<i", struct.pack("<f", value))[0])
        case ice.DoubleType():
            return int(struct.unpack("<q", struct.pack("<d", value))[0])
        case ice.DecimalType():
            return str(int(_EXACT.scaleb(value, kind.scale)))
        case ice.UUIDType():
            return str(uuid.UUID(bytes=value))
        case ice.FixedType() | ice.BinaryType():
            return bytes(value).hex()
        case ice.StructType():
            return {str(f.field_id): to_json(f.field_type, value.get(f.name)) for f in kind.fields}
        case ice.ListType():
            return [to_json(kind.element_type, item) for item in value]
        case ice.MapType():
            pairs = value.items() if isinstance(value, Mapping) else value
            return [[to_json(kind.key_type, k), to_json(kind.value_type, v)] for k, v in pairs]
        case _:
            return value


def from_json(kind: ice.IcebergType, value: Any) -> Any:
    """The plain value of the harness's form; structs are mappings by field name."""
    if value is None:
        return None
    match kind:
        case ice.FloatType():
            return struct.unpack("<f", struct.pack("<i", value))[0]
        case ice.DoubleType():
            return struct.unpack("<d", struct.pack("<q", value))[0]
        case ice.DecimalType():
            return _EXACT.scaleb(Decimal(value), -kind.scale)
        case ice.UUIDType():
            return uuid.UUID(value).bytes
        case ice.FixedType() | ice.BinaryType():
            return bytes.fromhex(value)
        case ice.StructType():
            return {f.name: from_json(f.field_type, value[str(f.field_id)]) for f in kind.fields}
        case ice.ListType():
            return [from_json(kind.element_type, item) for item in value]
        case ice.MapType():
            return [(from_json(kind.key_type, k), from_json(kind.value_type, v)) for k, v in value]
        case _:
            return value


def rows_to_json(schema: Schema, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Plain rows, mappings by column name, in the harness's form."""
    return [to_json(schema.as_struct(), row) for row in rows]


def rows_from_json(schema: Schema, rows: Sequence[Any]) -> pa.Table:
    """The harness's rows as an Arrow table of the schema."""
    plain = [from_json(schema.as_struct(), row) for row in rows]
    arrays = {
        field.name: pa.array([row[field.name] for row in plain], arrow_type(field.field_type))
        for field in schema.fields
    }
    return pa.table(arrays)


def canonical_rows(table: pa.Table) -> list[tuple[tuple[str, Any], ...]]:
    """Rows in a form that compares equal across engines whatever the order and the Arrow types.

    Timestamps become nanoseconds, uuid and fixed bytes, NaN the text `NaN`; columns are sorted by
    name and rows by their text.
    """
    names = sorted(table.column_names)
    columns = [[_canonical(scalar) for scalar in table.column(name)] for name in names]
    rows = [tuple(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
    return sorted(rows, key=repr)


_NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def _canonical(scalar: pa.Scalar) -> Any:
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if isinstance(scalar, pa.ExtensionScalar):
        value = _canonical(scalar.value)
        return bool(value) if kind.extension_name == "arrow.bool8" else value
    if pa.types.is_dictionary(kind):
        return _canonical(scalar.value)
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return scalar.value * _NANOS[kind.unit]
    if pa.types.is_temporal(kind):
        return scalar.value
    if pa.types.is_floating(kind):
        number = scalar.as_py()
        return "NaN" if math.isnan(number) else number
    if pa.types.is_struct(kind):
        return tuple((name, _canonical(scalar[name])) for name in sorted(f.name for f in kind))
    if pa.types.is_map(kind):
        pairs = [
            (_canonical(item["key"]), _canonical(item["value"])) for item in scalar.values or []
        ]
        return tuple(sorted(pairs, key=repr))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return tuple(_canonical(item) for item in scalar.values)
    return scalar.as_py()

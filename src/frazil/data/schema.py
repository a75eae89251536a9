"""Iceberg schemas as Arrow schemas and back.

Three Arrow renderings of one table schema: rows in memory (`arrow_schema`, plain storage types, so
that every compute kernel works), rows as stored in Parquet (`parquet_schema`, field ids at every
level, UUIDs and shapes marked as such, columns of unknown type left out) and rows for people
(`for_display`).
It knows types only; values are conformed in `conform` and files are projected in `project`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import count
from typing import Final

import pyarrow as pa

from frazil.errors import InvalidInput, Unsupported
from frazil.format.values.types import arrow_type
from frazil.format.values.variant_type import MARK, is_marked
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema, freshly_numbered
from frazil.iceberg.types import VariantType
from frazil.value_classes import replace

FIELD_ID_KEY: Final = b"PARQUET:field_id"
DOC_KEY: Final = b"doc"


def arrow_schema(schema: Schema | ice.StructType) -> pa.Schema:
    """The Arrow schema of rows in memory."""
    return pa.schema([_field(field, ids=False, uuids=False) for field in schema.fields])


def parquet_schema(schema: Schema | ice.StructType) -> pa.Schema:
    """The Arrow schema to write Parquet with: field ids at all levels, UUIDs as UUIDs, geometries
    and geographies as Parquet's own."""
    fields = stored_schema(schema).fields
    return pa.schema([_field(field, ids=True, uuids=True, shapes=True) for field in fields])


def identified_schema(schema: Schema | ice.StructType) -> pa.Schema:
    """`arrow_schema` with field ids, as a file in memory would have them."""
    return pa.schema([_field(field, ids=True, uuids=False) for field in schema.fields])


def nested_arrow_type(iceberg_type: ice.IcebergType) -> pa.DataType:
    """The Arrow type of a column in memory, whatever its nesting."""
    return _type(iceberg_type, ids=False, uuids=False)


def stored_schema(schema: Schema | ice.StructType) -> Schema:
    """The schema without what data files never hold: columns of unknown type."""
    fields = _without_unknown(schema.fields)
    if isinstance(schema, Schema) and len(fields) == len(schema.fields):
        return schema
    return Schema(*fields)


def for_display(table: pa.Table, schema: Schema | ice.StructType) -> pa.Table:
    """Rows of this schema for people: UUID columns marked as UUIDs."""
    shown_schema = display_schema(schema)
    return table if table.schema.equals(shown_schema) else table.cast(shown_schema)


def display_schema(schema: Schema | ice.StructType) -> pa.Schema:
    """What `for_display` gives."""
    return pa.schema([_field(field, ids=False, uuids=True) for field in schema.fields])


def iceberg_schema(arrow: pa.Schema) -> Schema:
    """A table schema for Arrow data, with fresh field ids; every problem is listed at once."""
    problems: list[str] = []
    numbers = count(1)
    fields = _fields_from_arrow(arrow, "", problems, numbers)
    if not fields and not problems:
        problems.append("no columns; a table needs at least one")
    if problems:
        listed = "".join(f"\n  - {problem}" for problem in problems)
        raise InvalidInput(f"The Arrow schema does not make a table schema:{listed}")
    try:
        return freshly_numbered(Schema(*fields))
    except ValueError as error:  # names that differ only in where their dots come from
        raise InvalidInput(f"The Arrow schema does not make a table schema: {error}") from error


class WellKnownBinary(pa.ExtensionType):  # type: ignore[misc]
    """What pyarrow writes as Parquet's GEOMETRY or GEOGRAPHY; the name is GeoArrow's.

    It is registered nowhere: readers get bytes.
    """

    def __init__(self, crs: str, *, on_globe: bool) -> None:
        self.crs = crs
        self.on_globe = on_globe
        super().__init__(pa.binary(), "geoarrow.wkb")

    def __arrow_ext_serialize__(self) -> bytes:
        edges = {"edges": "spherical"} if self.on_globe else {}
        return json.dumps({"crs": self.crs, **edges}).encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, data: bytes) -> WellKnownBinary:
        metadata = json.loads(data)
        return cls(metadata.get("crs", ""), on_globe="edges" in metadata)


def _shape_type(kind: ice.GeometryType | ice.GeographyType) -> pa.DataType:
    """pyarrow has no other edges than straight and spherical ones; others are stored as bytes."""
    if isinstance(kind, ice.GeometryType):
        return WellKnownBinary(kind.crs, on_globe=False)
    if kind.algorithm == "spherical":
        return WellKnownBinary(kind.crs, on_globe=True)
    return arrow_type(kind)


def _field(field: ice.NestedField, *, ids: bool, uuids: bool, shapes: bool = False) -> pa.Field:
    metadata: dict[bytes, bytes] = {}
    if ids:
        metadata[FIELD_ID_KEY] = str(field.field_id).encode()
    if isinstance(field.field_type, VariantType):
        metadata |= MARK
    return pa.field(
        field.name,
        _type(field.field_type, ids=ids, uuids=uuids, shapes=shapes),
        nullable=not field.required,
        metadata=metadata or None,
    )


def _type(
    iceberg_type: ice.IcebergType, *, ids: bool, uuids: bool, shapes: bool = False
) -> pa.DataType:
    def inner(field: ice.NestedField) -> pa.Field:
        return _field(field, ids=ids, uuids=uuids, shapes=shapes)

    match iceberg_type:
        case ice.StructType():
            return pa.struct([inner(field) for field in iceberg_type.fields])
        case ice.ListType():
            return pa.list_(inner(iceberg_type.element_field))
        case ice.MapType():
            return pa.map_(inner(iceberg_type.key_field), inner(iceberg_type.value_field))
        case ice.UUIDType() if uuids:
            return pa.uuid()
        case ice.GeometryType() | ice.GeographyType() if shapes:
            return _shape_type(iceberg_type)
        case ice.UnknownType():
            return pa.null()
        case ice.PrimitiveType():
            return arrow_type(iceberg_type)
    raise Unsupported(f"Type {iceberg_type} has no Arrow type.", feature=str(iceberg_type))


def _without_unknown(fields: Iterable[ice.NestedField]) -> list[ice.NestedField]:
    known_fields = []
    for field in fields:
        stored = _stored_type(field.field_type)
        if stored is None:
            continue
        if stored is not field.field_type:
            field = replace(field, field_type=stored)
        known_fields.append(field)
    return known_fields


def _stored_type(iceberg_type: ice.IcebergType) -> ice.IcebergType | None:
    match iceberg_type:
        case ice.UnknownType():
            return None
        case ice.StructType():
            fields = _without_unknown(iceberg_type.fields)
            if len(fields) == len(iceberg_type.fields) and all(
                a is b for a, b in zip(fields, iceberg_type.fields, strict=True)
            ):
                return iceberg_type
            return ice.StructType(*fields) if fields else None
        case ice.ListType() if _stored_type(iceberg_type.element_type) is None:
            return None
        case ice.MapType() if _stored_type(iceberg_type.value_type) is None:
            return None
    return iceberg_type


def _fields_from_arrow(
    fields: Iterable[pa.Field], prefix: str, problems: list[str], numbers: count[int]
) -> list[ice.NestedField]:
    columns: list[ice.NestedField] = []
    names: set[str] = set()
    for field in fields:
        path = f"{prefix}{field.name}"
        if field.name in names:
            problems.append(f"column '{path}': the name occurs twice")
            continue
        if not field.name:
            problems.append(f"column {len(columns) + 1} of '{prefix}': the name is empty")
            continue
        names.add(field.name)
        type_ = _field_type(field, path, problems, numbers)
        if type_ is None:
            continue
        doc = (field.metadata or {}).get(DOC_KEY)
        columns.append(
            ice.NestedField(
                field_id=next(numbers),
                name=field.name,
                field_type=type_,
                required=not field.nullable and not isinstance(type_, ice.UnknownType),
                doc=doc.decode() if doc else None,
            )
        )
    return columns


def _field_type(
    field: pa.Field, path: str, problems: list[str], numbers: count[int]
) -> ice.IcebergType | None:
    if is_marked(field):
        return VariantType()
    return _type_from_arrow(field.type, path, problems, numbers)


def _type_from_arrow(
    arrow: pa.DataType, path: str, problems: list[str], numbers: count[int]
) -> ice.IcebergType | None:
    if pa.types.is_struct(arrow):
        if not arrow.num_fields:
            problems.append(f"column '{path}': a struct needs at least one field")
            return None
        return ice.StructType(*_fields_from_arrow(arrow, f"{path}.", problems, numbers))
    if is_list(arrow):
        element = arrow.value_field
        element_type = _field_type(element, f"{path}.element", problems, numbers)
        if element_type is None:
            return None
        return ice.ListType(
            element_id=next(numbers),
            element_type=element_type,
            element_required=not element.nullable,
        )
    if pa.types.is_map(arrow):
        key = _type_from_arrow(arrow.key_type, f"{path}.key", problems, numbers)
        value = _field_type(arrow.item_field, f"{path}.value", problems, numbers)
        if key is None or value is None:
            return None
        return ice.MapType(
            key_id=next(numbers),
            key_type=key,
            value_id=next(numbers),
            value_type=value,
            value_required=not arrow.item_field.nullable,
        )
    primitive = _primitive_from_arrow(plain_type(arrow))
    if primitive is None:
        advice = next((text for is_kind, text in _INSTEAD if is_kind(arrow)), "")
        problems.append(f"column '{path}': Arrow type {arrow} has no table type{advice}")
    return primitive


_INSTEAD: Final = (
    (pa.types.is_uint64, "; cast it to int64 or decimal(20, 0)"),
    (pa.types.is_duration, "; cast it to int64 or text"),
)
"""What to do about types that tables do not have."""


def plain_type(arrow: pa.DataType) -> pa.DataType:
    """The type of the values, without dictionary or run-length encoding or an extension type.

    UUID stays: it is a table type of its own.
    """
    if pa.types.is_dictionary(arrow) or pa.types.is_run_end_encoded(arrow):
        return plain_type(arrow.value_type)
    if isinstance(arrow, pa.BaseExtensionType) and not isinstance(arrow, pa.UuidType):
        return plain_type(arrow.storage_type)
    return arrow


def is_list(arrow: pa.DataType) -> bool:
    """Whether an Arrow type is any of the list types."""
    return bool(
        pa.types.is_list(arrow)
        or pa.types.is_large_list(arrow)
        or pa.types.is_fixed_size_list(arrow)
        or pa.types.is_list_view(arrow)
        or pa.types.is_large_list_view(arrow)
    )


def is_text(arrow: pa.DataType) -> bool:
    """Whether an Arrow type is any of the string types."""
    return bool(
        pa.types.is_string(arrow)
        or pa.types.is_large_string(arrow)
        or pa.types.is_string_view(arrow)
    )


def is_bytes(arrow: pa.DataType) -> bool:
    """Whether an Arrow type is any of the binary types of varying length."""
    return bool(
        pa.types.is_binary(arrow)
        or pa.types.is_large_binary(arrow)
        or pa.types.is_binary_view(arrow)
    )


def _primitive_from_arrow(arrow: pa.DataType) -> ice.PrimitiveType | None:
    types = pa.types
    if isinstance(arrow, pa.UuidType):
        return ice.UUIDType()
    if types.is_null(arrow):
        return ice.UnknownType()
    if types.is_boolean(arrow):
        return ice.BooleanType()
    if types.is_integer(arrow):
        if types.is_uint64(arrow):
            return None
        narrow = arrow.bit_width <= 16 or types.is_int32(arrow)
        return ice.IntegerType() if narrow else ice.LongType()
    if types.is_floating(arrow):
        return ice.DoubleType() if types.is_float64(arrow) else ice.FloatType()
    if types.is_decimal(arrow):
        fits = arrow.precision <= 38 and 0 <= arrow.scale <= arrow.precision
        return ice.DecimalType(arrow.precision, arrow.scale) if fits else None
    if types.is_date(arrow):
        return ice.DateType()
    if types.is_time(arrow):
        return ice.TimeType()
    if types.is_timestamp(arrow):
        return _timestamp_from_arrow(arrow)
    if is_text(arrow):
        return ice.StringType()
    if types.is_fixed_size_binary(arrow):
        return ice.FixedType(arrow.byte_width)
    if is_bytes(arrow):
        return ice.BinaryType()
    return None


def _timestamp_from_arrow(arrow: pa.TimestampType) -> ice.PrimitiveType:
    if arrow.unit == "ns":
        return ice.TimestampNanoType() if arrow.tz is None else ice.TimestamptzNanoType()
    return ice.TimestampType() if arrow.tz is None else ice.TimestamptzType()

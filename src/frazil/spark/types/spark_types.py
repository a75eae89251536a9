"""Table types as Spark types and back.

Spark lacks some of Iceberg's types: a uuid is a string in its canonical form, a fixed is a binary,
a geometry or geography a spatial value of the same reference system. Nanosecond timestamps have no
Spark type that Python can name. The module knows types, neither values (`spark_arrow`) nor files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import count
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import types as sql

from frazil.errors import Unsupported
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import VariantType

FIELD_ID: Final = "parquet.field.id"

_PLAIN: Final = "UTF8_BINARY"
_CRS: Final = re.compile(r"\((?:([^,)]*))")
_SPARK: Final[dict[type[ice.IcebergType], sql.DataType]] = {
    ice.BooleanType: sql.BooleanType(),
    ice.IntegerType: sql.IntegerType(),
    ice.LongType: sql.LongType(),
    ice.FloatType: sql.FloatType(),
    ice.DoubleType: sql.DoubleType(),
    ice.DateType: sql.DateType(),
    ice.TimeType: sql.TimeType(6),
    ice.TimestampType: sql.TimestampNTZType(),
    ice.TimestamptzType: sql.TimestampType(),
    ice.StringType: sql.StringType(),
    ice.UUIDType: sql.StringType(),
    ice.BinaryType: sql.BinaryType(),
    ice.FixedType: sql.BinaryType(),
    ice.UnknownType: sql.NullType(),
    VariantType: sql.VariantType(),
}
_ICEBERG: Final[dict[type[sql.DataType], ice.PrimitiveType]] = {
    sql.BooleanType: ice.BooleanType(),
    sql.ByteType: ice.IntegerType(),
    sql.ShortType: ice.IntegerType(),
    sql.IntegerType: ice.IntegerType(),
    sql.LongType: ice.LongType(),
    sql.FloatType: ice.FloatType(),
    sql.DoubleType: ice.DoubleType(),
    sql.DateType: ice.DateType(),
    sql.TimestampType: ice.TimestamptzType(),
    sql.TimestampNTZType: ice.TimestampType(),
    sql.StringType: ice.StringType(),
    sql.CharType: ice.StringType(),
    sql.VarcharType: ice.StringType(),
    sql.BinaryType: ice.BinaryType(),
    sql.NullType: ice.UnknownType(),
    sql.VariantType: VariantType(),
}


# --- table to Spark --------------------------------------------------------------------------


def spark_schema(schema: Schema | ice.StructType) -> sql.StructType:
    """The Spark schema of a table. Raises an error that names every column without a Spark type."""
    problems: list[str] = []
    struct = _struct(schema.fields, "", problems)
    if problems:
        listed = "".join(f"\n  - {problem}" for problem in problems)
        raise Unsupported(
            f"Spark has no type for some columns; name the others with columns=[…]:{listed}",
            feature="Spark type",
        )
    return struct


def spark_type(iceberg_type: ice.IcebergType) -> sql.DataType:
    """The Spark type of a table type."""
    problems: list[str] = []
    type_ = _type(iceberg_type, "value", problems)
    if problems:
        raise Unsupported(problems[0], feature=str(iceberg_type))
    return type_


def _struct(fields: Iterable[ice.NestedField], prefix: str, problems: list[str]) -> sql.StructType:
    return sql.StructType(
        [
            sql.StructField(
                field.name,
                _type(field.field_type, f"{prefix}{field.name}", problems),
                True,
                {"comment": field.doc} if field.doc else None,
            )
            for field in fields
        ]
    )


def _type(kind: ice.IcebergType, path: str, problems: list[str]) -> sql.DataType:
    match kind:
        case ice.StructType():
            return _struct(kind.fields, f"{path}.", problems)
        case ice.ListType():
            return sql.ArrayType(_type(kind.element_type, f"{path}.element", problems), True)
        case ice.MapType():
            return sql.MapType(
                _type(kind.key_type, f"{path}.key", problems),
                _type(kind.value_type, f"{path}.value", problems),
                True,
            )
        case ice.DecimalType():
            return sql.DecimalType(kind.precision, kind.scale)
        case ice.GeometryType() | ice.GeographyType():
            return _spatial(kind, path, problems)
    type_ = _SPARK.get(type(kind))
    if type_ is None:
        problems.append(f"column '{path}': {kind} has no Spark type in Python")
        return sql.NullType()
    return type_


def _spatial(
    kind: ice.GeometryType | ice.GeographyType, path: str, problems: list[str]
) -> sql.DataType:
    number = srid(kind.crs)
    is_plane = isinstance(kind, ice.GeometryType)
    try:
        if number is not None:
            return sql.GeometryType(number) if is_plane else sql.GeographyType(number)
    except PySparkException as error:
        problems.append(f"column '{path}': {kind}: {error}")
        return sql.NullType()
    problems.append(f"column '{path}': {kind}: Spark does not know this reference system")
    return sql.NullType()


def srid(crs: str | None) -> int | None:
    """The number of a reference system; None if it has none."""
    if crs is None or crs.upper() == "OGC:CRS84":
        return 4326
    name, _, number = crs.partition(":")
    return int(number) if name.upper() in ("EPSG", "SRID") and number.isdigit() else None


# --- Spark to table --------------------------------------------------------------------------


def frame_schema(schema: sql.StructType) -> Schema:
    """A table schema for Spark rows, with fresh field ids; every problem is listed at once.

    All columns are optional: that the rows of one frame have no nulls does not make them required.
    """
    return declared_schema(_optional(schema))


def declared_schema(schema: sql.StructType) -> Schema:
    """The same for a schema that says on purpose which columns are required."""
    problems: list[str] = []
    fields = _fields(schema, "", problems, count(1))
    if problems:
        listed = "".join(f"\n  - {problem}" for problem in problems)
        raise Unsupported(f"Some columns have no table type:{listed}", feature="table type")
    return Schema(*fields)


def _optional(kind: Any) -> Any:
    match kind:
        case sql.StructType():
            return sql.StructType(
                [
                    sql.StructField(field.name, _optional(field.dataType), True, field.metadata)
                    for field in kind.fields
                ]
            )
        case sql.ArrayType():
            return sql.ArrayType(_optional(kind.elementType), True)
        case sql.MapType():
            return sql.MapType(_optional(kind.keyType), _optional(kind.valueType), True)
    return kind


def _fields(
    schema: sql.StructType, prefix: str, problems: list[str], numbers: count[int]
) -> list[ice.NestedField]:
    fields = []
    for field in schema.fields:
        kind = _table_type(field.dataType, f"{prefix}{field.name}", problems, numbers)
        fields.append(
            ice.NestedField(
                field_id=next(numbers),
                name=field.name,
                field_type=kind,
                required=not field.nullable and not isinstance(kind, ice.UnknownType),
                doc=(field.metadata or {}).get("comment"),
            )
        )
    return fields


def _check_collation(kind: sql.StringType, path: str, problems: list[str]) -> None:
    collation = getattr(kind, "collation", _PLAIN)
    if collation != _PLAIN:
        problems.append(
            f"column '{path}': tables do not store the collation {collation}; declare a plain "
            "STRING, and COLLATE in queries"
        )


def _table_type(
    kind: sql.DataType, path: str, problems: list[str], numbers: count[int]
) -> ice.IcebergType:
    if isinstance(kind, sql.StructType):
        return ice.StructType(*_fields(kind, f"{path}.", problems, numbers))
    if isinstance(kind, sql.ArrayType):
        element = _table_type(kind.elementType, f"{path}.element", problems, numbers)
        return ice.ListType(
            element_id=next(numbers), element_type=element, element_required=not kind.containsNull
        )
    if isinstance(kind, sql.MapType):
        key = _table_type(kind.keyType, f"{path}.key", problems, numbers)
        value = _table_type(kind.valueType, f"{path}.value", problems, numbers)
        return ice.MapType(
            key_id=next(numbers),
            key_type=key,
            value_id=next(numbers),
            value_type=value,
            value_required=not kind.valueContainsNull,
        )
    if isinstance(kind, sql.DecimalType):
        return ice.DecimalType(kind.precision, kind.scale)
    if isinstance(kind, sql.TimeType):
        return ice.TimeType()
    if isinstance(kind, sql.StringType):
        _check_collation(kind, path, problems)
    if isinstance(kind, sql.GeometryType | sql.GeographyType):
        return _iceberg_spatial(kind, path, problems)
    type_ = _ICEBERG.get(type(kind))
    if type_ is None:
        problems.append(f"column '{path}': {kind.simpleString()} has no table type")
        return ice.UnknownType()
    return type_


def _iceberg_spatial(
    kind: sql.GeometryType | sql.GeographyType, path: str, problems: list[str]
) -> ice.IcebergType:
    match = _CRS.search(str(kind.jsonValue()))
    crs = match.group(1).strip() if match else ""
    if not crs or crs.upper().endswith(":ANY"):
        problems.append(f"column '{path}': {kind.simpleString()} has no single reference system")
        return ice.UnknownType()
    return ice.GeometryType(crs) if isinstance(kind, sql.GeometryType) else ice.GeographyType(crs)

"""Table types as Spark types and back, and Arrow batches between the two.

Spark lacks some of Iceberg's types: a uuid is a string in its canonical form, a fixed is a binary,
a geometry or geography a spatial value of the same reference system. Nanosecond timestamps have no
Spark type that Python can name. The module knows types and values, neither files nor sessions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from inspect import signature
from itertools import count
from typing import Any, Final

import pyarrow as pa
from pyiceberg import types as ice
from pyiceberg.schema import Schema
from pyspark.errors import PySparkException
from pyspark.sql import types as sql
from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type

from frazil.data.reshape import null_mask
from frazil.errors import InvalidInput, Unsupported
from frazil.spark.spark_values import geo_values, texts_of_uuids, uuids_of_texts

_IN_UTC: Final = {"timezone": "UTC"} if "timezone" in signature(to_arrow_type).parameters else {}
"""Spark 4.1 has no such argument: its times are in UTC anyway."""

FIELD_ID: Final = "parquet.field.id"

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
}


# --- table to Spark --------------------------------------------------------------------------


def spark_schema(schema: Schema | ice.StructType) -> sql.StructType:
    """The Spark schema of a table. Raises an error that names every column without a Spark type."""
    problems: list[str] = []
    made = _struct(schema.fields, "", problems)
    if problems:
        listed = "".join(f"\n  - {problem}" for problem in problems)
        raise Unsupported(
            f"Spark has no type for some columns; name the others with columns=[…]:{listed}",
            feature="Spark type",
        )
    return made


def spark_type(iceberg_type: ice.IcebergType) -> sql.DataType:
    """The Spark type of a table type."""
    problems: list[str] = []
    found = _type(iceberg_type, "value", problems)
    if problems:
        raise Unsupported(problems[0], feature=str(iceberg_type))
    return found


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
    found = _SPARK.get(type(kind))
    if found is None:
        problems.append(f"column '{path}': {kind} has no Spark type in Python")
        return sql.NullType()
    return found


def _spatial(
    kind: ice.GeometryType | ice.GeographyType, path: str, problems: list[str]
) -> sql.DataType:
    srid = _srid(kind.crs)
    is_plane = isinstance(kind, ice.GeometryType)
    try:
        if srid is not None:
            return sql.GeometryType(srid) if is_plane else sql.GeographyType(srid)
    except PySparkException as error:
        problems.append(f"column '{path}': {kind}: {error}")
        return sql.NullType()
    problems.append(f"column '{path}': {kind}: Spark does not know this reference system")
    return sql.NullType()


def _srid(crs: str | None) -> int | None:
    if crs is None or crs.upper() == "OGC:CRS84":
        return 4326
    name, _, number = crs.partition(":")
    return int(number) if name.upper() in ("EPSG", "SRID") and number.isdigit() else None


# --- Spark to table --------------------------------------------------------------------------


def table_schema(schema: sql.StructType) -> Schema:
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
                    sql.StructField(each.name, _optional(each.dataType), True, each.metadata)
                    for each in kind.fields
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
    made = []
    for field in schema.fields:
        kind = _table_type(field.dataType, f"{prefix}{field.name}", problems, numbers)
        made.append(
            ice.NestedField(
                field_id=next(numbers),
                name=field.name,
                field_type=kind,
                required=not field.nullable and not isinstance(kind, ice.UnknownType),
                doc=(field.metadata or {}).get("comment"),
            )
        )
    return made


def _table_type(
    kind: sql.DataType, path: str, problems: list[str], numbers: count[int]
) -> ice.IcebergType:
    if isinstance(kind, sql.StructType):
        return ice.StructType(*_fields(kind, f"{path}.", problems, numbers))
    if isinstance(kind, sql.ArrayType):
        element = _table_type(kind.elementType, f"{path}.element", problems, numbers)
        return ice.ListType(
            element_id=next(numbers), element=element, element_required=not kind.containsNull
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
    if isinstance(kind, sql.GeometryType | sql.GeographyType):
        return _iceberg_spatial(kind, path, problems)
    found = _ICEBERG.get(type(kind))
    if found is None:
        problems.append(f"column '{path}': {kind.simpleString()} has no table type")
        return ice.UnknownType()
    return found


def _iceberg_spatial(
    kind: sql.GeometryType | sql.GeographyType, path: str, problems: list[str]
) -> ice.IcebergType:
    found = _CRS.search(str(kind.jsonValue()))
    crs = found.group(1).strip() if found else ""
    if not crs or crs.upper().endswith(":ANY"):
        problems.append(f"column '{path}': {kind.simpleString()} has no single reference system")
        return ice.UnknownType()
    return ice.GeometryType(crs) if isinstance(kind, sql.GeometryType) else ice.GeographyType(crs)


# --- batches ---------------------------------------------------------------------------------


def arrow_of(schema: sql.StructType) -> pa.Schema:
    """The Arrow schema that Spark expects of rows of this schema, and hands over."""
    plain = to_arrow_schema(schema, **_IN_UTC)
    return pa.schema([field.remove_metadata() for field in plain])


def arrow_type(kind: sql.DataType) -> pa.DataType:
    """The Arrow type of Spark's values of a type."""
    return to_arrow_type(kind, **_IN_UTC)


def into_spark(batch: pa.RecordBatch, schema: Schema, arrow: pa.Schema) -> pa.RecordBatch:
    """Rows of a table schema as the batch Spark takes; `arrow` is `arrow_of(spark_schema(…))`."""
    columns = [
        column_into_spark(column, field.field_type, target.type)
        for column, field, target in zip(batch.columns, schema.fields, arrow, strict=True)
    ]
    if not columns:
        return batch
    return pa.RecordBatch.from_arrays(columns, schema=arrow)


def column_into_spark(array: pa.Array, kind: ice.IcebergType, target: pa.DataType) -> pa.Array:
    """A column of the table's Arrow type as Spark's."""
    if array.type.equals(target, check_metadata=False):
        return array
    if not _is_foreign(kind):
        return array.cast(target)
    match kind:
        case ice.UUIDType():
            return texts_of_uuids(array)
        case ice.GeometryType() | ice.GeographyType():
            return geo_values(array, _srid(kind.crs) or 0, target)
        case ice.StructType():
            children = [
                column_into_spark(child, field.field_type, target.field(at).type)
                for at, (child, field) in enumerate(zip(_children(array), kind.fields, strict=True))
            ]
            return pa.StructArray.from_arrays(children, fields=list(target), mask=null_mask(array))
        case ice.ListType():
            values = column_into_spark(array.values, kind.element_type, target.value_type)
            return _relisted(array, values, target)
        case ice.MapType():
            keys = column_into_spark(array.keys, kind.key_type, target.key_type)
            items = column_into_spark(array.items, kind.value_type, target.item_type)
            return pa.MapArray.from_arrays(_offsets(array), keys, items, type=target)
    return array.cast(target)


def from_spark(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """Spark's rows with what only Spark spells differently (uuid, fixed, spatial) respelled.

    Columns are matched by name; whether they fit is for `frazil.data.conform` to say.
    """
    known = {field.name: field.field_type for field in schema.fields}
    columns = [
        array if name not in known else column_from_spark(array, known[name])
        for name, array in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names) if columns else batch


def incoming(schema: sql.StructType, table: Schema) -> pa.Schema:
    """The Arrow schema that `from_spark` gives for frames of this schema."""
    arrow = arrow_of(schema)
    empty = pa.RecordBatch.from_arrays(
        [pa.array([], field.type) for field in arrow], names=list(arrow.names)
    )
    return from_spark(empty, table).schema


def column_from_spark(array: pa.Array, kind: ice.IcebergType) -> pa.Array:
    """A column as Spark hands it over, respelled for the table type where the two can be told."""
    if not _is_foreign(kind):
        return array
    found = array.type
    match kind:
        case ice.UUIDType() if pa.types.is_string(found):
            return uuids_of_texts(array)
        case ice.FixedType() if pa.types.is_binary(found):
            return _fixed(array, len(kind))
        case ice.GeometryType() | ice.GeographyType() if pa.types.is_struct(found):
            return array.field("wkb") if not array.null_count else _wkb(array)
        case ice.StructType() if pa.types.is_struct(found):
            known = {field.name: field.field_type for field in kind.fields}
            children = [
                column_from_spark(child, known[field.name]) if field.name in known else child
                for child, field in zip(_children(array), found, strict=True)
            ]
            return pa.StructArray.from_arrays(
                children, names=[field.name for field in found], mask=null_mask(array)
            )
        case ice.ListType() if pa.types.is_list(found):
            values = column_from_spark(array.values, kind.element_type)
            return _relisted(array, values, pa.list_(pa.field("element", values.type)))
        case ice.MapType() if pa.types.is_map(found):
            keys = column_from_spark(array.keys, kind.key_type)
            items = column_from_spark(array.items, kind.value_type)
            return pa.MapArray.from_arrays(_offsets(array), keys, items)
    return array


def _fixed(array: pa.Array, length: int) -> pa.Array:
    try:
        return array.cast(pa.binary(length))
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"a value of a fixed[{length}] column has another length") from error


def _wkb(array: pa.Array) -> pa.Array:
    bytes_ = array.field("wkb")
    return pa.array(
        [
            value if valid else None
            for value, valid in zip(bytes_.to_pylist(), array.is_valid().to_pylist(), strict=True)
        ],
        pa.binary(),
    )


def _is_foreign(kind: ice.IcebergType) -> bool:
    """Whether Spark spells values of the type, or of a part of it, in its own way."""
    match kind:
        case ice.StructType():
            return any(_is_foreign(field.field_type) for field in kind.fields)
        case ice.ListType():
            return _is_foreign(kind.element_type)
        case ice.MapType():
            return _is_foreign(kind.key_type) or _is_foreign(kind.value_type)
    return isinstance(kind, ice.UUIDType | ice.FixedType | ice.GeometryType | ice.GeographyType)


def _children(array: pa.StructArray) -> list[pa.Array]:
    return [array.field(at) for at in range(array.type.num_fields)]


def _offsets(array: pa.Array) -> Any:
    """Offsets into the values, with a null where the list itself is null."""
    if not array.null_count:
        return array.offsets
    ends = array.offsets
    starts = ends.slice(0, len(array)).to_pylist()
    valid = array.is_valid().to_pylist()
    kept = [at if ok else None for at, ok in zip(starts, valid, strict=True)]
    return pa.array([*kept, ends[len(array)].as_py()], ends.type)


def _relisted(array: pa.ListArray, values: pa.Array, target: pa.DataType) -> pa.Array:
    return pa.ListArray.from_arrays(_offsets(array), values, type=target)


__all__ = [
    "FIELD_ID",
    "arrow_of",
    "arrow_type",
    "column_from_spark",
    "column_into_spark",
    "declared_schema",
    "from_spark",
    "incoming",
    "into_spark",
    "spark_schema",
    "spark_type",
    "table_schema",
]

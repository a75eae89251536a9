"""Arrow batches in Spark's form: the types of its frames, and columns that it spells differently.

Schemas are converted in `spark_types`, which needs no Arrow.
"""

from __future__ import annotations

from inspect import signature
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import types as sql
from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type

from frazil.data.reshape import null_mask
from frazil.errors import InvalidInput
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import VariantType
from frazil.spark.types.spark_types import srid
from frazil.spark.types.spark_values import geo_values, texts_of_uuids, uuids_of_texts

_IN_UTC: Final = {"timezone": "UTC"} if "timezone" in signature(to_arrow_type).parameters else {}
"""Spark 4.1 has no such argument: its times are in UTC anyway."""


def arrow_of(schema: sql.StructType) -> pa.Schema:
    """The Arrow schema that Spark expects of rows of this schema, and hands over."""
    schema_ = to_arrow_schema(schema, **_IN_UTC)
    return pa.schema([field.remove_metadata() for field in schema_])


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
            return geo_values(array, srid(kind.crs) or 0, target)
        case VariantType():
            parts = [array.field(field.name) for field in target]
            return pa.StructArray.from_arrays(parts, fields=list(target), mask=null_mask(array))
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
    types = {field.name: field.field_type for field in schema.fields}
    columns = [
        array if name not in types else column_from_spark(array, types[name])
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
    kind_ = array.type
    match kind:
        case ice.UUIDType() if pa.types.is_string(kind_):
            return uuids_of_texts(array)
        case ice.FixedType() if pa.types.is_binary(kind_):
            return _fixed(array, len(kind))
        case ice.GeometryType() | ice.GeographyType() if pa.types.is_struct(kind_):
            return array.field("wkb") if not array.null_count else _wkb(array)
        case ice.StructType() if pa.types.is_struct(kind_):
            types = {field.name: field.field_type for field in kind.fields}
            children = [
                column_from_spark(child, types[field.name]) if field.name in types else child
                for child, field in zip(_children(array), kind_, strict=True)
            ]
            return pa.StructArray.from_arrays(
                children, names=[field.name for field in kind_], mask=null_mask(array)
            )
        case ice.ListType() if pa.types.is_list(kind_):
            values = column_from_spark(array.values, kind.element_type)
            return _relisted(array, values, pa.list_(pa.field("element", values.type)))
        case ice.MapType() if pa.types.is_map(kind_):
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
    return isinstance(
        kind,
        ice.UUIDType | ice.FixedType | ice.GeometryType | ice.GeographyType | VariantType,
    )


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

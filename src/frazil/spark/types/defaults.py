"""Defaults of columns: SQL text in the metadata of Spark's fields, values in tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from frazil.errors import Unsupported
from frazil.format.values.types import plain_value
from frazil.iceberg import types as ice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType

CURRENT: Final = "CURRENT_DEFAULT"
"""The key of a field's metadata for what rows written without a value get."""


def default_metadata(field: ice.NestedField) -> dict[str, str]:
    """What a column of a file that lacks it reads as."""
    text = sql_text(plain_value(field.initial_default, field.field_type), field.field_type)
    return {"EXISTS_DEFAULT": text, CURRENT: text}


def write_default_metadata(field: ice.NestedField) -> dict[str, str]:
    """What rows written without a value get, for a table that Spark writes to."""
    if field.write_default is None:
        return {}
    return {CURRENT: sql_text(plain_value(field.write_default, field.field_type), field.field_type)}


def default_value(spark: SparkSession, text: str, kind: DataType) -> Any:
    """The value of a default that Spark SQL declares."""
    row = spark.sql(f"SELECT CAST(({text}) AS {kind.simpleString()}) AS v")
    return row.toArrow().column(0)[0].as_py()


def sql_text(value: Any, kind: ice.IcebergType) -> str:
    """A plain value of a table type as a SQL literal."""
    match kind:
        case ice.BooleanType():
            return "true" if value else "false"
        case ice.IntegerType():
            return f"CAST({value} AS INT)"
        case ice.LongType():
            return f"CAST({value} AS BIGINT)"
        case ice.FloatType():
            return f"CAST('{value!r}' AS FLOAT)"
        case ice.DoubleType():
            return f"CAST('{value!r}' AS DOUBLE)"
        case ice.DecimalType():
            return f"CAST('{value}' AS DECIMAL({kind.precision}, {kind.scale}))"
        case ice.StringType():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
        case ice.BinaryType() | ice.FixedType() | ice.UUIDType():
            return f"X'{value.hex()}'"
        case ice.DateType():
            return f"DATE'{np.datetime64(value, 'D')}'"
        case ice.TimestampType():
            return f"TIMESTAMP_NTZ'{np.datetime64(value, 'us')}'"
        case ice.TimestamptzType():
            return f"TIMESTAMP_LTZ'{np.datetime64(value, 'us')} UTC'"
        case ice.TimeType():
            return f"TIME'{str(np.datetime64(value, 'us')).partition('T')[2]}'"
    raise Unsupported(f"Spark has no literal of type {kind}", feature=str(kind))

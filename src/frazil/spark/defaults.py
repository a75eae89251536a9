"""Initial defaults of columns as Spark's Parquet reader takes them: SQL text in field metadata."""

from __future__ import annotations

from typing import Any

import numpy as np
from pyiceberg import types as ice

from frazil.errors import Unsupported
from frazil.format.types import plain


def default_metadata(field: ice.NestedField) -> dict[str, str]:
    """What a column of a file that lacks it reads as."""
    text = sql_text(plain(field.initial_default, field.field_type), field.field_type)
    return {"EXISTS_DEFAULT": text, "CURRENT_DEFAULT": text}


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

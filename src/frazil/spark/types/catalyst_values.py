"""Arrow values as JSON that the Java side turns into Spark's internal values.

Dates are days and times microseconds since the epoch, decimals texts, bytes base64.
"""

from __future__ import annotations

import base64
from typing import Any, Final

import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.iceberg import types as ice

COMPARABLE: Final = (
    ice.BooleanType,
    ice.IntegerType,
    ice.LongType,
    ice.DateType,
    ice.TimestampType,
    ice.TimestamptzType,
    ice.DecimalType,
    ice.StringType,
)
"""Types whose values Spark holds, orders and compares as the table does."""


def catalyst_values(values: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column, None for null."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        values = values.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    elif pa.types.is_date(kind):
        values = values.cast(pa.int32())
    elif pa.types.is_decimal(kind):
        values = pc.cast(values, pa.string())
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return [
            None if value is None else base64.b64encode(value).decode()
            for value in values.to_pylist()
        ]
    return list(values.to_pylist())

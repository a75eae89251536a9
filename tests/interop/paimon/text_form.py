"""Rows as text that every writer of expected rows prints the same way.

Dates are days, timestamps microseconds, bytes hex, decimals quoted, floats their bits; one JSON
object per row. The Java harness has the same rules in its `show`.
"""

from __future__ import annotations

import datetime
import decimal
import json
import struct
from typing import Any

import pyarrow as pa


def row_lines(rows: pa.Table) -> list[str]:
    """The rows as sorted lines."""
    types = {field.name: field.type for field in rows.schema}
    return sorted(
        "{" + ", ".join(f"{text(k)}: {show(v, types[k])}" for k, v in row.items()) + "}"
        for row in rows.to_pylist()
    )


def text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def show(value: Any, type: pa.DataType) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return text(value)
    if isinstance(value, bytes):
        return text(value.hex())
    if isinstance(value, decimal.Decimal):
        return text(format(value, "f"))
    if isinstance(value, datetime.datetime):
        naive = value.replace(tzinfo=None)
        return str((naive - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1))
    if isinstance(value, datetime.date):
        return str((value - datetime.date(1970, 1, 1)).days)
    if isinstance(value, float):
        narrow = pa.types.is_float32(type)
        packed = struct.pack("<f" if narrow else "<d", value)
        return str(struct.unpack("<i" if narrow else "<q", packed)[0])
    if isinstance(value, dict):
        parts = [f"{text(k)}: {show(v, type.field(k).type)}" for k, v in value.items()]
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, list):
        if pa.types.is_map(type):
            pairs = sorted((show(k, type.key_type), show(v, type.item_type)) for k, v in value)
            return "{" + ", ".join(f"{k}: {v}" for k, v in pairs) + "}"
        return "[" + ", ".join(show(item, type.value_type) for item in value) + "]"
    return str(value)

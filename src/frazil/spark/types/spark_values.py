"""Values that Spark spells differently: uuids as texts, spatial values as structs, and single
values as JSON that the Java side turns into Spark's internal values."""

from __future__ import annotations

import base64
from typing import Any, Final

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.errors import InvalidInput
from frazil.iceberg import types as ice

_HEX: Final = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), np.uint8).reshape(
    256, 2
)
_GROUPS: Final = ((0, 8, 0), (8, 12, 9), (12, 16, 14), (16, 20, 19), (20, 32, 24))
_UUID: Final = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
_UUID_BYTES: Final = 16
_TEXT_BYTES: Final = 36
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


def texts_of_uuids(array: pa.Array) -> pa.Array:
    """16-byte values in the canonical form of a uuid; null stays null."""
    rows = len(array)
    without_nulls = array.fill_null(b"\0" * _UUID_BYTES) if array.null_count else array
    raw = _bytes(without_nulls).reshape(rows, _UUID_BYTES)
    digits = _HEX[raw].reshape(rows, 2 * _UUID_BYTES)
    texts = np.full((rows, _TEXT_BYTES), ord("-"), dtype=np.uint8)
    for start, end, to in _GROUPS:
        texts[:, to : to + end - start] = digits[:, start:end]
    offsets = np.arange(rows + 1, dtype=np.int32) * _TEXT_BYTES
    texts_ = pa.StringArray.from_buffers(
        rows, pa.py_buffer(offsets.tobytes()), pa.py_buffer(texts.tobytes())
    )
    if not array.null_count:
        return texts_
    return pc.if_else(array.is_valid(), texts_, pa.scalar(None, pa.string()))


def _bytes(array: pa.Array) -> Any:
    start = array.offset * _UUID_BYTES
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros(0, dtype=np.uint8)
    return np.frombuffer(buffer, np.uint8)[start : start + len(array) * _UUID_BYTES]


def uuids_of_texts(array: pa.Array) -> pa.Array:
    """Texts of uuids as 16-byte values; rejects anything that is not a uuid."""
    good = pc.match_substring_regex(array, _UUID)
    if not pc.all(good).as_py() and len(array) > array.null_count:
        wrong = array.filter(pc.invert(good))
        if len(wrong):
            raise InvalidInput(f"{wrong[0].as_py()!r} is not a uuid")
    without_nulls = array.fill_null("0" * 2 * _UUID_BYTES)
    digits = "".join(pc.replace_substring(without_nulls, "-", "").to_pylist())
    uuids = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(_UUID_BYTES), len(array), [None, pa.py_buffer(bytes.fromhex(digits))]
    )
    if not array.null_count:
        return uuids
    return pc.if_else(array.is_valid(), uuids, pa.scalar(None, pa.binary(_UUID_BYTES)))


def geo_values(array: pa.Array, srid: int, target: pa.DataType) -> pa.Array:
    """Well-known binary as Spark's spatial structs."""
    srids = pa.repeat(pa.scalar(srid, pa.int32()), len(array))
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(
        [srids, array.fill_null(b"").cast(pa.binary())], fields=list(target), mask=mask
    )


def catalyst_values(values: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column for the Java side, None for null: dates are days and times
    microseconds since the epoch, decimals texts, bytes base64."""
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

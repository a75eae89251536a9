"""Paimon's bytes written the slow way, value by value, for tests: BinaryRow, vectors, Avro files.

Written from the description of the format, not from the decoder, and used as its model.
"""

from __future__ import annotations

import datetime
import decimal
import io
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import fastavro

from frazil.paimon.read.data_types import DataType, TypeName

EPOCH = datetime.datetime(1970, 1, 1)
_FIXED = {
    TypeName.TINYINT: "<b",
    TypeName.SMALLINT: "<h",
    TypeName.INT: "<i",
    TypeName.BIGINT: "<q",
    TypeName.FLOAT: "<f",
    TypeName.DOUBLE: "<d",
}


def binary_row(types: Sequence[DataType], values: Sequence[Any]) -> bytes:
    """A row with its arity in front, as manifests store it."""
    return struct.pack(">i", len(types)) + row_body(types, values)


def row_body(types: Sequence[DataType], values: Sequence[Any]) -> bytes:
    """The row itself: kind, null bits, slots, variable part."""
    head = bytearray((len(types) + 63 + 8) // 64 * 8)
    slots, tail = b"", b""
    start = len(head) + 8 * len(types)
    for index, (type, value) in enumerate(zip(types, values, strict=True)):
        if value is None:
            head[(index + 8) >> 3] |= 1 << ((index + 8) & 7)
            slots += bytes(8)
            continue
        slot, more = _slot(type, value, start + len(tail))
        slots += slot
        tail += more
    return bytes(head) + slots + tail


def _slot(type: DataType, value: Any, offset: int) -> tuple[bytes, bytes]:
    name = type.name
    if name is TypeName.BOOLEAN:
        return bytes([value]).ljust(8, b"\0"), b""
    if name in _FIXED:
        return struct.pack(_FIXED[name], value).ljust(8, b"\0"), b""
    if name is TypeName.DATE:
        days = (value - EPOCH.date()).days
        return struct.pack("<i", days).ljust(8, b"\0"), b""
    if name is TypeName.TIME:
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return struct.pack("<i", seconds * 1000 + value.microsecond // 1000).ljust(8, b"\0"), b""
    if name is TypeName.DECIMAL:
        unscaled = int(value.scaleb(type.scale, decimal.Context(prec=60)))
        if type.precision <= 18:
            return struct.pack("<q", unscaled), b""
        size = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
        raw = unscaled.to_bytes(size, "big", signed=True)
        return struct.pack("<II", size, offset), raw.ljust(16, b"\0")
    if name in (TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ):
        micros = (value.replace(tzinfo=None) - EPOCH) // datetime.timedelta(microseconds=1)
        millis, rest = divmod(micros, 1000)
        if type.precision <= 3:
            return struct.pack("<q", millis), b""
        return struct.pack("<II", rest * 1000, offset), struct.pack("<q", millis)
    raw = value.encode() if isinstance(value, str) else value
    if name in (TypeName.ARRAY, TypeName.MAP, TypeName.ROW):
        raw = _nested(type, value)
    elif len(raw) <= 7:
        return raw.ljust(7, b"\0") + bytes([0x80 | len(raw)]), b""
    return struct.pack("<II", len(raw), offset), raw + bytes(-len(raw) % 8)


def _nested(type: DataType, value: Any) -> bytes:
    if type.name is TypeName.ROW:
        return row_body([field.type for field in type.fields], list(value.values()))
    assert type.element is not None
    if type.name is TypeName.ARRAY:
        return _array(type.element, value)
    assert type.key is not None
    keys = _array(type.key, [key for key, _ in value])
    return struct.pack("<i", len(keys)) + keys + _array(type.element, [item for _, item in value])


def _array(type: DataType, values: Sequence[Any]) -> bytes:
    width = {"BOOLEAN": 1, "TINYINT": 1, "SMALLINT": 2, "INT": 4, "FLOAT": 4, "DATE": 4}
    size = width.get(type.name.value, 8)
    head = bytearray(struct.pack("<i", len(values)) + bytes((len(values) + 31) // 32 * 4))
    start = len(head) + (size * len(values) + 7) // 8 * 8
    slots, tail = b"", b""
    for index, value in enumerate(values):
        if value is None:
            head[4 + index // 8] |= 1 << (index % 8)
            slots += bytes(size)
            continue
        slot, more = _slot(type, value, start + len(tail))
        slots += slot[:size]
        tail += more
    return (bytes(head) + slots).ljust(start, b"\0") + tail


def framed(body: bytes) -> bytes:
    """A deletion vector as it lies in an index file."""
    return struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def avro_file(
    schema: Mapping[str, Any] | Sequence[Any], records: Sequence[Any], codec: str = "deflate"
) -> bytes:
    """A container file, written by fastavro."""
    sink = io.BytesIO()
    parsed = fastavro.parse_schema(schema)
    fastavro.writer(sink, parsed, records, codec=codec, sync_interval=1000)
    return sink.getvalue()


STATS_FIELDS = [
    {"name": "_MIN_VALUES", "type": "bytes"},
    {"name": "_MAX_VALUES", "type": "bytes"},
    {"name": "_NULL_COUNTS", "type": ["null", {"type": "array", "items": ["null", "long"]}]},
]
EMPTY_ROW = bytes(12)
EMPTY_STATS = {"_MIN_VALUES": EMPTY_ROW, "_MAX_VALUES": EMPTY_ROW, "_NULL_COUNTS": []}


def _stats(name: str) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": STATS_FIELDS}


MANIFEST_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "record",
    "fields": [
        {"name": "_VERSION", "type": "int"},
        {"name": "_KIND", "type": "int"},
        {"name": "_PARTITION", "type": "bytes"},
        {"name": "_BUCKET", "type": "int"},
        {"name": "_TOTAL_BUCKETS", "type": "int"},
        {
            "name": "_FILE",
            "type": {
                "type": "record",
                "name": "file",
                "fields": [
                    {"name": "_FILE_NAME", "type": "string"},
                    {"name": "_FILE_SIZE", "type": "long"},
                    {"name": "_ROW_COUNT", "type": "long"},
                    {"name": "_MIN_KEY", "type": "bytes"},
                    {"name": "_MAX_KEY", "type": "bytes"},
                    {"name": "_KEY_STATS", "type": _stats("key_stats")},
                    {"name": "_VALUE_STATS", "type": _stats("value_stats")},
                    {"name": "_MIN_SEQUENCE_NUMBER", "type": "long"},
                    {"name": "_MAX_SEQUENCE_NUMBER", "type": "long"},
                    {"name": "_SCHEMA_ID", "type": "long"},
                    {"name": "_LEVEL", "type": "int"},
                    {"name": "_EXTRA_FILES", "type": {"type": "array", "items": "string"}},
                    {"name": "_CREATION_TIME", "type": ["null", "long"]},
                ],
            },
        },
    ],
}
"""A data manifest as Paimon 0.4 wrote it, before any field was appended."""

NEWER_FIELDS: list[dict[str, Any]] = [
    {"name": "_DELETE_ROW_COUNT", "type": ["null", "long"], "default": None},
    {"name": "_EMBEDDED_FILE_INDEX", "type": ["null", "bytes"], "default": None},
    {"name": "_FILE_SOURCE", "type": ["null", "int"], "default": None},
    {
        "name": "_VALUE_STATS_COLS",
        "type": ["null", {"type": "array", "items": "string"}],
        "default": None,
    },
    {"name": "_EXTERNAL_PATH", "type": ["null", "string"], "default": None},
    {"name": "_FIRST_ROW_ID", "type": ["null", "long"], "default": None},
    {
        "name": "_WRITE_COLS",
        "type": ["null", {"type": "array", "items": "string"}],
        "default": None,
    },
]
"""Fields that Paimon 0.8 to 1.3 appended to the file record, in order."""


def manifest_schema(newer_fields: int = len(NEWER_FIELDS)) -> dict[str, Any]:
    """The manifest schema of a release, told by how many newer fields it has."""
    fields = MANIFEST_SCHEMA["fields"]
    file = fields[-1]["type"]
    wider = {**file, "fields": [*file["fields"], *NEWER_FIELDS[:newer_fields]]}
    return {**MANIFEST_SCHEMA, "fields": [*fields[:-1], {"name": "_FILE", "type": wider}]}


def entry(name: str, **changes: Any) -> dict[str, Any]:
    """A manifest entry; keyword arguments in lower case set fields, of the file record too."""
    file: dict[str, Any] = {
        "_FILE_NAME": name,
        "_FILE_SIZE": 1000,
        "_ROW_COUNT": 10,
        "_MIN_KEY": EMPTY_ROW,
        "_MAX_KEY": EMPTY_ROW,
        "_KEY_STATS": EMPTY_STATS,
        "_VALUE_STATS": EMPTY_STATS,
        "_MIN_SEQUENCE_NUMBER": 0,
        "_MAX_SEQUENCE_NUMBER": 0,
        "_SCHEMA_ID": 0,
        "_LEVEL": 0,
        "_EXTRA_FILES": [],
        "_CREATION_TIME": None,
    }
    made: dict[str, Any] = {
        "_VERSION": 2,
        "_KIND": 0,
        "_PARTITION": EMPTY_ROW,
        "_BUCKET": 0,
        "_TOTAL_BUCKETS": 1,
        "_FILE": file,
    }
    for key, value in changes.items():
        field = f"_{key.upper()}"
        target = made if field in made else file
        target[field] = value
    return made


def statistics(
    types: Sequence[DataType], low: Sequence[Any], high: Sequence[Any], nulls: Sequence[int | None]
) -> dict[str, Any]:
    """A SimpleStats record."""
    return {
        "_MIN_VALUES": binary_row(types, low),
        "_MAX_VALUES": binary_row(types, high),
        "_NULL_COUNTS": list(nulls),
    }

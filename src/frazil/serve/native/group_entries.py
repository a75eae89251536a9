"""Entries that a client sends to be appended: decoded from Arrow, and checked against the table.

Bytes come from outside, so nothing in them is trusted: compressed streams are refused before they
are unpacked, columns must be those of an entry with the types the table has now, and files must
lie in the table's own folder.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import pyarrow as pa

from frazil.commit.group_append import MAX_ENTRIES
from frazil.errors import FormatError, InvalidInput
from frazil.format import paths
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import LEAVES, PARTITION_PREFIX, STATS_PREFIX
from frazil.format.metadata.metadata import TableMetadata
from frazil.serve.limits import MAX_ENTRIES_BYTES
from frazil.tree.table_shape import TableShape, shape_of
from frazil.value_classes import frozen

_REQUIRED: Final = (
    "content_type",
    "location",
    "file_format",
    "record_count",
    "file_size_in_bytes",
)
_ALLOWED: Final = frozenset(
    {*_REQUIRED, "spec_id", "sort_order_id", "key_metadata", "split_offsets", "tracking.status"}
)
_FORMATS: Final = frozenset({"parquet", "avro", "orc"})
_PREFIX: Final = struct.Struct("<Ii")
_CONTINUES: Final = 0xFFFFFFFF
_ENDS: Final = (b"", _PREFIX.pack(_CONTINUES, 0))
"""A message of Arrow's own encoding starts with this number and its size. A stream just ends, or
says so."""


@frozen
class Decoded:
    """Entries of one append. `shape` are the bytes of their columns' names and types."""

    batch: pa.RecordBatch
    shape: bytes


def decoded(data: memoryview) -> Decoded:
    """Entries from the bytes of an Arrow stream of one batch."""
    if len(data) > MAX_ENTRIES_BYTES:
        raise InvalidInput(f"the entries have {len(data)} bytes (limit {MAX_ENTRIES_BYTES})")
    try:
        shape, message = _messages(data)
        batch: pa.RecordBatch = pa.ipc.read_record_batch(message, _schema(shape))
        batch.validate(full=True)
    except (pa.ArrowException, OSError, struct.error, IndexError, ValueError) as error:
        raise InvalidInput(f"the entries are not an Arrow stream of one batch: {error}") from error
    if not 0 < batch.num_rows <= MAX_ENTRIES:
        raise InvalidInput(f"{batch.num_rows} entries; expected 1 to {MAX_ENTRIES}")
    return Decoded(batch=batch, shape=shape)


def joined(appended: Sequence[Decoded]) -> EntryBatch:
    """Entries of one shape, one after the other."""
    batch = pa.concat_batches([part.batch for part in appended])
    return EntryBatch.of(dict(zip(batch.schema.names, batch.columns, strict=True)), batch.num_rows)


def _messages(data: memoryview) -> tuple[bytes, pa.Message]:
    """The message of the schema as bytes, and the message of the batch."""
    marker, size = _PREFIX.unpack_from(data)
    start = _PREFIX.size + size
    if marker != _CONTINUES or not 0 < size <= len(data) - _PREFIX.size:
        raise ValueError("it does not start with a schema")
    reader = pa.BufferReader(pa.py_buffer(data[start:]))
    message = pa.ipc.read_message(reader)
    if message.type != "record batch" or bytes(data[start + reader.tell() :]) not in _ENDS:
        raise ValueError("expected a schema and one batch")
    if _is_compressed(message.metadata):
        raise ValueError("the batch is compressed")
    return bytes(data[:start]), message


@lru_cache(maxsize=64)
def _schema(shape: bytes) -> pa.Schema:
    """Columns that were read before mostly come again."""
    message = pa.ipc.read_message(pa.py_buffer(shape))
    if message.type != "schema":
        raise ValueError("expected a schema and one batch")
    schema: pa.Schema = pa.ipc.read_schema(message)
    if len(set(schema.names)) != len(schema):
        raise InvalidInput("two columns of the entries have the same name")
    return schema


def _table(data: bytes, at: int) -> tuple[int, ...]:
    """Where the fields of a flatbuffer table are; 0 for one that is not there."""
    (back,) = struct.unpack_from("<i", data, at)
    start = at - back
    size, _ = struct.unpack_from("<HH", data, start)
    offsets = struct.unpack_from(f"<{(size - 4) // 2}H", data, start + 4)
    return tuple(at + offset if offset else 0 for offset in offsets)


def _is_compressed(metadata: pa.Buffer) -> bool:
    data = metadata.to_pybytes()
    (root,) = struct.unpack_from("<I", data, 0)
    fields = _table(data, root)
    (offset,) = struct.unpack_from("<I", data, fields[2])
    batch = _table(data, fields[2] + offset)
    return len(batch) > 3 and batch[3] != 0


def fitted(entries: EntryBatch, metadata: TableMetadata) -> EntryBatch:
    """The entries as the table takes them now; InvalidInput when it cannot."""
    shape = shape_of(metadata)
    _check_columns(entries, shape)
    _check_values(entries, metadata, shape)
    try:
        return shape.conformed(entries)
    except (pa.ArrowException, FormatError) as error:
        raise InvalidInput(
            f"the files do not fit the table as it is now ({error}); load it again and repeat"
        ) from error


def _check_columns(entries: EntryBatch, shape: TableShape) -> None:
    partitions: Mapping[str, pa.DataType] = {
        key: kind for spec in shape.partition_columns.values() for key, kind in spec.items()
    }
    for key, kind in entries.types():
        if key.startswith(STATS_PREFIX):
            if key.count(".") != 2 or not key.split(".")[1].isdigit():
                raise InvalidInput(f"column {key!r} is not one of an entry")
            continue
        if key.startswith(PARTITION_PREFIX):
            expected = partitions.get(key)
        elif key in _ALLOWED:
            expected = LEAVES[key].type
        else:
            raise InvalidInput(f"column {key!r} is not one of a new file's entry")
        if expected is None:
            raise InvalidInput(f"{key}: the table has no such partition field; load it again")
        if kind != expected and not pa.types.is_null(kind):
            raise InvalidInput(f"{key} is {kind}; expected {expected}")


def _check_values(entries: EntryBatch, metadata: TableMetadata, shape: TableShape) -> None:
    for key in _REQUIRED:
        if not entries.has(key) or entries.column(key).null_count:
            raise InvalidInput(f"{key} is missing; every entry has it")
    if entries.numpy("content_type").any():
        raise InvalidInput("only data files are appended together; content_type is not 0")
    for key in ("record_count", "file_size_in_bytes"):
        if (entries.numpy(key) < 0).any():
            raise InvalidInput(f"{key} is negative")
    formats = set(entries.pylist("file_format"))
    if not formats <= _FORMATS:
        raise InvalidInput(f"file_format is {min(formats - _FORMATS)!r}")
    for name in entries.pylist("location"):
        if name.startswith("/") or paths.is_absolute(name):
            raise InvalidInput(f"{name}: is not a path inside the table")
        try:
            paths.resolve(metadata.location, name)
        except FormatError as error:
            raise InvalidInput(str(error)) from error
    if entries.has("spec_id"):
        used = set(entries.pylist("spec_id")) - {None}
        unknown = used - shape.partition_columns.keys()
        if unknown:
            raise InvalidInput(f"partition spec {min(unknown)} is not one of the table's")

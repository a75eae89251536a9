"""A valid file for every decoder of foreign bytes, and the call that decodes it."""

from __future__ import annotations

import gzip
import io
import json
import struct
import uuid
import zlib
from collections.abc import Callable
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from frazil import avro
from frazil.avro import by_name
from frazil.avro.by_row import RowReader
from frazil.format.entries import manifest
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType, stats_key
from frazil.format.entries.nest import ColumnNames
from frazil.format.metadata import metadata_json
from frazil.format.metadata.metadata import History, TableMetadata, new_table
from frazil.format.parquet_footer import with_variants
from frazil.format.values import variant
from frazil.format.values.types import STORAGE
from frazil.format.vectors import bitmap, puffin, roaring
from frazil.iceberg.partitioning import PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import LongType, NestedField, StringType
from frazil.legacy.publish import write_manifests
from frazil.legacy.publish.write_manifests import ListRow
from frazil.legacy.read import java_112_tables, manifest_entries, manifest_list
from frazil.paimon.read import binary_row, manifest_tables, vector_files
from frazil.paimon.read.data_types import parse_type
from frazil.paimon.read.snapshot import parse_snapshot
from frazil.paimon.read.table_schema import parse_schema
from tests.unit.paimon.encode import EMPTY_STATS, avro_file, entry, manifest_schema
from tests.unit.paimon.place import schema_json, snapshot_json
from tests.unit.paimon.test_manifest_tables import LIST_FIELDS, index_file
from tests.unit.paimon.test_vector_files import NARROW, WIDE

Decode = Callable[[bytes], Any]
PATH = "file:///t/f"
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "name", StringType(), required=False),
)


def _metadata() -> TableMetadata:
    return new_table(schema=SCHEMA, location="file:///t", table_uuid=uuid.UUID(int=7), now_ms=1)


def _entries(rows: int = 40) -> EntryBatch:
    return EntryBatch.from_rows(
        [
            {
                "tracking.status": 1,
                "tracking.snapshot_id": 7,
                "tracking.sequence_number": 1,
                "tracking.file_sequence_number": 1,
                "content_type": 0,
                "format_version": 4,
                "location": f"data/{row:04d}.parquet",
                "file_format": "parquet",
                "record_count": 10 + row,
                "file_size_in_bytes": 1000,
                "split_offsets": [4, 500],
                stats_key(1, "value_count"): 10 + row,
                stats_key(1, "null_value_count"): 0,
                stats_key(1, "lower_bound"): row,
                stats_key(1, "upper_bound"): row + 9,
                stats_key(2, "lower_bound"): f"a{row}",
                stats_key(2, "upper_bound"): f"z{row}",
            }
            for row in range(rows)
        ]
    )


def _old_manifest(codec: str) -> bytes:
    return write_manifests.encode_manifest(
        _entries(),
        format_version=3,
        is_deletes=False,
        spec=PartitionSpec(),
        metadata=_metadata(),
        location="file:///t",
        codec=codec,
    )


def _read_old(data: bytes) -> EntryBatch:
    return manifest_entries.entries_of(
        data,
        path=PATH,
        content_type=ContentType.DATA_MANIFEST,
        spec_id=0,
        metadata=_metadata(),
        location="file:///t",
    )


def _old_list() -> bytes:
    row = ListRow(
        path="file:///t/m.avro",
        length=100,
        spec_id=0,
        is_deletes=False,
        sequence_number=1,
        min_sequence_number=1,
        added_snapshot_id=7,
        files=(3, 0, 0),
        rows=(30, 0, 0),
        first_row_id=0,
    )
    return write_manifests.encode_list(
        [row] * 5,
        format_version=3,
        snapshot_id=7,
        parent_snapshot_id=None,
        sequence_number=1,
        first_row_id=0,
        codec="uncompressed",
    )


def _read_list(data: bytes) -> EntryBatch:
    return manifest_list.entries_of(
        data, path=PATH, snapshot_id=7, metadata=_metadata(), location="file:///t"
    )


def _v4_manifest(rows: int) -> bytes:
    names = ColumnNames(partition={}, uuids=frozenset())
    encoded = manifest.encode(_entries(rows), content="data", names=names, codec="zstd")
    return bytes(encoded)


def _interim() -> bytes:
    """Parquet without checksums, with field ids as early writers of v4 left them."""

    def field(name: str, type_: pa.DataType, id_: int) -> pa.Field:
        return pa.field(name, type_, metadata={"PARQUET:field_id": str(id_)})

    data_file = pa.struct(
        [
            field("file_path", pa.string(), 100),
            field("file_format", pa.string(), 101),
            field("record_count", pa.int64(), 103),
        ]
    )
    schema = pa.schema([field("status", pa.int32(), 0), field("data_file", data_file, 2)])
    files = [{"file_path": f"p{n}", "file_format": "parquet", "record_count": n} for n in range(30)]
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.table({"status": pa.array([1] * 30, pa.int32()), "data_file": files}, schema=schema),
        sink,
        store_schema=False,
    )
    return bytes(sink.getvalue())


def _read_interim(data: bytes) -> Any:
    return java_112_tables.decode(data, [(0,), (2, 100), (2, 101), (2, 103)], path=PATH)


def _orc() -> bytes:
    sink = io.BytesIO()
    flat = {name: [value] * 20 for name, value in LIST_ROW.items() if name != "_PARTITION_STATS"}
    stats = pa.struct([("_MIN_VALUES", pa.binary()), ("_MAX_VALUES", pa.binary())])
    stored = {name: EMPTY_STATS[name] for name in ("_MIN_VALUES", "_MAX_VALUES")}
    orc.write_table(pa.table(flat | {"_PARTITION_STATS": pa.array([stored] * 20, stats)}), sink)
    return sink.getvalue()


def _containers(codec: str) -> bytes:
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "a", "field-id": 1, "type": "long"},
            {"name": "b", "field-id": 2, "type": ["null", "string"]},
            {"name": "c", "field-id": 3, "type": {"type": "array", "items": "long"}},
            {"name": "d", "field-id": 4, "type": {"type": "fixed", "name": "x", "size": 3}},
            {"name": "e", "field-id": 5, "type": {"type": "map", "values": "bytes"}},
        ],
    }
    rows = [
        {"a": n, "b": "t" * (n % 5), "c": list(range(n % 4)), "d": b"xyz", "e": {"k": b"v"}}
        for n in range(60)
    ]
    sink = io.BytesIO()
    fastavro.writer(sink, schema, rows, codec=codec, sync_interval=300, sync_marker=b"s" * 16)
    return sink.getvalue()


def _read_rows(data: bytes) -> Any:
    reader = RowReader(data, avro.read_header(data, path=PATH), path=PATH)
    return reader.num_rows, list(reader.batches(set(reader.schema.names), 25))


def _resealed(body: bytes) -> Any:
    """A vector whose framing fits its bytes, so that damage reaches the bitmap."""
    framed = puffin.VECTOR_MAGIC + body
    blob = struct.pack(">I", len(framed)) + framed + struct.pack(">I", zlib.crc32(framed))
    return puffin.read_vector(blob, path=PATH, record_count=1 << 40)


def _footer() -> bytes:
    """The footer of a file with a column of variants, as pyarrow writes it."""
    sink = pa.BufferOutputStream()
    column = pa.field("v", STORAGE, metadata={"PARQUET:field_id": "2"})
    pq.write_table(pa.table([pa.nulls(0, STORAGE)], schema=pa.schema([column])), sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data[-8 - int.from_bytes(data[-8:-4], "little") :]


FOOTER = _footer()
POSITIONS = np.unique(np.concatenate([np.arange(5000), np.arange(70_000, 90_000, 7), [1 << 33]]))
TYPES = [parse_type(text) for text in ("INT", "STRING", "BYTES")]
ROW = bytes.fromhex("0000000000000000") + b"\x01\0\0\0\0\0\0\0" + b"ab\0\0\0\0\0\x82" * 2
METADATA = metadata_json.dumps(_metadata(), History())
LIST_ROW = {
    "_VERSION": 2,
    "_FILE_NAME": "manifest-1",
    "_FILE_SIZE": 1,
    "_NUM_ADDED_FILES": 1,
    "_NUM_DELETED_FILES": 0,
    "_PARTITION_STATS": EMPTY_STATS,
    "_SCHEMA_ID": 0,
}

SAMPLES: dict[str, tuple[bytes, Decode]] = {
    "Avro by field id": (
        _containers("null"),
        lambda data: avro.decode(data, {(1,), (2,), (3,), (4,), (5,)}, path=PATH),
    ),
    "Avro by field id, deflate": (
        _containers("deflate"),
        lambda data: avro.decode(data, {(1,), (3,)}, path=PATH),
    ),
    "Avro by name": (
        _containers("null"),
        lambda data: by_name.read(data, ["a", "b", "c", "d"], path=PATH),
    ),
    "Avro by row": (_containers("null"), _read_rows),
    "Avro by row, deflate": (_containers("deflate"), _read_rows),
    "manifest of v3": (_old_manifest("uncompressed"), _read_old),
    "manifest of v3, gzip": (_old_manifest("gzip"), _read_old),
    "manifest of v3, zstd": (_old_manifest("zstd"), _read_old),
    "manifest list of v3": (_old_list(), _read_list),
    "interim manifest": (_interim(), _read_interim),
    "v4 manifest": (_v4_manifest(40), lambda data: manifest.decode(data, path=PATH)),
    "large v4 manifest": (_v4_manifest(3000), lambda data: manifest.decode(data, path=PATH)),
    "metadata JSON": (METADATA, lambda data: metadata_json.loads(data, path=PATH)),
    "metadata JSON, gzip": (
        gzip.compress(METADATA, mtime=0),
        lambda data: metadata_json.loads(data, path=PATH),
    ),
    "deletion vector": (
        puffin.encode_vector(POSITIONS),
        lambda data: puffin.read_vector(data, path=PATH),
    ),
    "bitmap of a deletion vector": (roaring.encode(POSITIONS), _resealed),
    "Puffin footer": (
        puffin.write_vectors([("f", POSITIONS)], location=PATH, created_by="x")[0],
        lambda data: puffin.read_footer(data, path=PATH).vectors(path=PATH),
    ),
    "manifest deletion vector": (
        bitmap.encode(np.unique(np.arange(0, 60_000, 3) // 2)),
        lambda data: bitmap.decode(data, limit=60_000, path=PATH),
    ),
    "Paimon manifest": (
        avro_file(manifest_schema(), [entry("a"), entry("b", kind=1)], "null"),
        manifest_tables.read_manifest,
    ),
    "Paimon manifest list": (
        avro_file({"type": "record", "name": "r", "fields": LIST_FIELDS}, [LIST_ROW] * 3, "null"),
        manifest_tables.read_manifest_list,
    ),
    "Paimon index manifest": (
        index_file(with_cardinality=True),
        manifest_tables.read_index_manifest,
    ),
    "Paimon manifest, ORC": (_orc(), manifest_tables.read_manifest_list),
    "Paimon vector": (
        NARROW,
        lambda data: vector_files.read_vector(data, offset=1, length=24, row_count=1000),
    ),
    "Paimon wide vector": (
        WIDE,
        lambda data: vector_files.read_vector(data, offset=1, length=44, row_count=1000),
    ),
    "Paimon row": (ROW, lambda data: binary_row.decode(pa.array([data, data]), TYPES)),
    "Paimon schema": (json.dumps(schema_json([("k", "DECIMAL(5, 2)")])).encode(), parse_schema),
    "variant": (
        b"".join(variant.encode({"a": [1, {"b": "x" * 70}], "c": {"d": 1.5, "e": None}})),
        lambda data: variant.decode(data, data[variant.metadata_size(data) :]),
    ),
    "Parquet footer with variants": (FOOTER, lambda data: with_variants(data, {2})),
    "Paimon snapshot": (
        json.dumps(snapshot_json(1)).encode(),
        parse_snapshot,
    ),
}

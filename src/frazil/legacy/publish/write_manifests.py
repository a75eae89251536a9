"""Manifests and manifest lists of v2 and v3, written from entry batches.

The counterpart of `manifest_entries` and `manifest_list`: the columns of an `EntryBatch` under
v3's fields, typed bounds as bytes in maps, the tuple of one spec. What v3 has no word for (derived
columns, deletion vectors inside a data file's entry, manifest deletion vectors) must have been
taken out before: every row is one live data or delete file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyiceberg.manifest import MANIFEST_ENTRY_SCHEMAS, MANIFEST_LIST_FILE_SCHEMAS
from pyiceberg.utils.decimal import decimal_required_bytes
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

from frazil import arrow_compute as pc
from frazil.avro import encode_columns
from frazil.avro.walker import Path
from frazil.errors import Unsupported
from frazil.format import paths
from frazil.format.entries import fields
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType
from frazil.format.metadata.metadata import TableMetadata
from frazil.format.values import single_value
from frazil.format.values.types import is_floating, is_geo
from frazil.iceberg import types as ice
from frazil.iceberg.partitioning import (
    PartitionField,
    PartitionSpec,
    field_documents,
    published_spec,
)
from frazil.iceberg.pyiceberg_values import from_pyiceberg, pyiceberg_schema
from frazil.iceberg.schema import Schema, schema_document
from frazil.iceberg.transforms import VoidTransform
from frazil.legacy.read import manifest_entries, manifest_list
from frazil.tree.table_shape import TableShape, shape_of
from frazil.value_classes import field, frozen

_DATA_FILE: Final = 2
_COLUMN_SIZES: Final = 108
_PARTITION: Final = 102
_EQUALITY_IDS: Final = 135
_ABSOLUTE: Final = ("location", "referenced_file")


@frozen
class FieldSummary:
    """What a manifest list says of one partition field of a manifest; bounds as bytes."""

    contains_null: bool
    contains_nan: bool | None
    lower_bound: bytes | None = None
    upper_bound: bytes | None = None


@frozen
class ListRow:
    """One manifest, as a manifest list names it."""

    path: str
    length: int
    spec_id: int
    is_deletes: bool
    sequence_number: int
    min_sequence_number: int
    added_snapshot_id: int
    files: tuple[int, int, int]
    """Added, existing and deleted."""
    rows: tuple[int, int, int]
    first_row_id: int | None = None
    summaries: tuple[FieldSummary, ...] = field(default=())


def encode_manifest(
    batch: EntryBatch,
    *,
    format_version: int,
    is_deletes: bool,
    spec: PartitionSpec,
    metadata: TableMetadata,
    location: str,
    codec: str = "gzip",
) -> bytes:
    """The bytes of a v2 or v3 manifest; all files are of one partition spec."""
    _refuse_joint_equality(batch, spec, location)
    spec = published_spec(spec)
    shape = shape_of(metadata)
    schema = metadata.schema()
    columns = _fixed_columns(batch, location)
    columns |= _partition_columns(batch, spec, shape)
    columns |= _stats_columns(batch, shape)
    header = {
        "schema": json.dumps(schema_document(schema), separators=(",", ":")),
        "schema-id": str(schema.schema_id),
        "partition-spec": json.dumps(field_documents(spec)),
        "partition-spec-id": str(spec.spec_id),
        "format-version": str(format_version),
        "content": "deletes" if is_deletes else "data",
    }
    text = _entry_schema(format_version, _partition_type(spec, shape))
    return encode_columns.encode(text, columns, batch.num_rows, metadata=header, codec=codec)


def _refuse_joint_equality(batch: EntryBatch, spec: PartitionSpec, location: str) -> None:
    """Clients see one partition where the table has many buckets of several columns: an equality
    delete of one bucket would delete rows of the others."""
    if not spec.is_joint:
        return
    if (batch.numpy("content_type") == ContentType.EQUALITY_DELETES).any():
        raise Unsupported(
            f"{location}: equality deletes of a partition that is made from several columns "
            "cannot be published; convert them to deletion vectors first",
            feature="equality deletes in partitions of several columns",
        )


def encode_list(
    rows: list[ListRow],
    *,
    format_version: int,
    snapshot_id: int,
    parent_snapshot_id: int | None,
    sequence_number: int,
    first_row_id: int | None = None,
    codec: str = "gzip",
) -> bytes:
    """The bytes of a v2 or v3 manifest list."""
    values: dict[Path, list[Any]] = {
        (500,): [row.path for row in rows],
        (501,): [row.length for row in rows],
        (502,): [row.spec_id for row in rows],
        (517,): [int(row.is_deletes) for row in rows],
        (515,): [row.sequence_number for row in rows],
        (516,): [row.min_sequence_number for row in rows],
        (503,): [row.added_snapshot_id for row in rows],
    }
    for index, (files, counted) in enumerate(((504, 512), (505, 513), (506, 514))):
        values[(files,)] = [row.files[index] for row in rows]
        values[(counted,)] = [row.rows[index] for row in rows]
    if format_version >= 3:
        values[(520,)] = [row.first_row_id for row in rows]
    # A manifest without partition fields has no summaries, which is not the same as not knowing.
    values[(manifest_list.PARTITIONS,)] = [True] * len(rows)
    for slot in range(max((len(row.summaries) for row in rows), default=0)):
        for part, name in manifest_list.SUMMARY_PARTS.items():
            values[(manifest_list.PARTITIONS, slot, part)] = [
                getattr(row.summaries[slot], name) if slot < len(row.summaries) else None
                for row in rows
            ]
    header = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_snapshot_id is None else str(parent_snapshot_id),
        "sequence-number": str(sequence_number),
        "format-version": str(format_version),
    }
    if format_version >= 3 and first_row_id is not None:
        header["first-row-id"] = str(first_row_id)
    schema = _list_schema(format_version)
    columns = {path: _list_column(path, column) for path, column in values.items()}
    return encode_columns.encode(schema, columns, len(rows), metadata=header, codec=codec)


def summarise(
    batch: EntryBatch, spec: PartitionSpec, metadata: TableMetadata
) -> tuple[FieldSummary, ...]:
    """The partition summaries of a manifest with these files, one per field of the spec."""
    shape = shape_of(metadata)
    summaries: list[FieldSummary] = []
    for part in published_spec(spec).fields:
        if isinstance(part.transform, VoidTransform):
            summaries.append(FieldSummary(contains_null=True, contains_nan=False))
            continue
        column = batch.column(fields.partition_key(part.field_id))
        kind = shape.partition_types.get(part.field_id)
        values = column.drop_null()
        floating = kind is not None and is_floating(kind)
        if floating:
            values = values.filter(pc.invert(pc.is_nan(values)))
        nan = len(values) + column.null_count < len(column)
        lower: bytes | None = None
        upper: bytes | None = None
        if kind is not None and len(values):
            ends = pc.min_max(values)
            pair = pa.array([ends["min"].as_py(), ends["max"].as_py()], values.type)
            lower, upper = single_value.encode_bounds(pair, kind).to_pylist()
        summaries.append(
            FieldSummary(
                contains_null=bool(column.null_count),
                contains_nan=nan,
                lower_bound=lower,
                upper_bound=upper,
            )
        )
    return tuple(summaries)


# --- columns ---------------------------------------------------------------------------------


def _fixed_columns(batch: EntryBatch, location: str) -> dict[Path, pa.Array]:
    columns: dict[Path, pa.Array] = {}
    for key, path in manifest_entries.PATHS.items():
        if not batch.has(key):
            continue
        column = batch.column(key)
        if key in _ABSOLUTE:
            column = paths.spelled(location, column)
        elif key == "file_format":
            column = pc.utf8_upper(column)
        columns[path] = _one(column)
    return columns


def _partition_columns(
    batch: EntryBatch, spec: PartitionSpec, shape: TableShape
) -> dict[Path, pa.Array]:
    columns: dict[Path, pa.Array] = {}
    for part in spec.fields:
        if isinstance(part.transform, VoidTransform):
            continue
        key = fields.partition_key(part.field_id)
        kind = shape.partition_types.get(part.field_id)
        if kind is not None and batch.has(key):
            array = _stored(_one(batch.column(key)), kind)
            columns[(_DATA_FILE, _PARTITION, part.field_id)] = array
    return columns


def _stored(array: pa.Array, kind: ice.IcebergType) -> pa.Array:
    """Partition values as Avro takes them: numbers, text or bytes."""
    if pa.types.is_date32(array.type):
        return array.cast(pa.int32())
    if pa.types.is_temporal(array.type):
        return array.cast(pa.int64())
    if isinstance(kind, ice.DecimalType):
        return _decimal_bytes(array, decimal_required_bytes(kind.precision))
    return array


def _decimal_bytes(array: pa.Array, width: int) -> pa.Array:
    """Unscaled values, big-endian, in as many bytes as the precision takes."""
    raw = np.frombuffer(array.buffers()[1], dtype=np.uint8).reshape(-1, 16)
    rows = raw[array.offset : array.offset + len(array), :width][:, ::-1]
    flat = pa.py_buffer(np.ascontiguousarray(rows))
    fixed = pa.Array.from_buffers(pa.binary(width), len(array), [None, flat])
    return pc.if_else(pc.is_valid(array), fixed, pa.scalar(None, fixed.type))


def _stats_columns(batch: EntryBatch, shape: TableShape) -> dict[Path, pa.Array]:
    # v4 keeps no sizes of columns. An empty map says so to readers that do not expect null.
    columns: dict[Path, pa.Array] = {(_DATA_FILE, _COLUMN_SIZES): pa.repeat(True, batch.num_rows)}
    points: dict[tuple[int, str], dict[str, pa.Array]] = {}
    for key in batch.keys:
        if not key.startswith(fields.STATS_PREFIX):
            continue
        field_id, name = fields.split_stats_key(key)
        kind = shape.column_types.get(field_id)
        if kind is None:  # a derived column, or one that no schema has any more
            continue
        column = _one(batch.column(key))
        map_id = manifest_entries.COUNTS.get(name)
        if map_id is not None:
            columns[(_DATA_FILE, map_id, field_id)] = column
        elif is_geo(kind) and name[:6] in ("lower_", "upper_"):
            points.setdefault((field_id, name[:5]), {})[name[6:]] = column
        elif name in ("lower_bound", "upper_bound"):
            map_id = manifest_entries.BOUNDS[name]
            columns[(_DATA_FILE, map_id, field_id)] = single_value.encode_bounds(column, kind)
    for (field_id, side), axes in points.items():
        absent = pa.nulls(batch.num_rows, pa.float64())
        coordinates = {axis: axes.get(axis, absent) for axis in single_value.AXES}
        map_id = manifest_entries.BOUNDS[f"{side}_bound"]
        columns[(_DATA_FILE, map_id, field_id)] = single_value.encode_points(coordinates)
    return columns


def _one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        return pa.concat_arrays(array.chunks) if array.chunks else pa.array([], array.type)
    return array


def _list_column(path: Path, values: list[Any]) -> pa.Array:
    if path == (500,):
        return pa.array(values, pa.string())
    if path == (manifest_list.PARTITIONS,):
        return pa.array(values, pa.bool_())
    if path[0] == manifest_list.PARTITIONS:
        name = manifest_list.SUMMARY_PARTS[path[-1]]
        return pa.array(values, pa.binary() if name.endswith("bound") else pa.bool_())
    return pa.array(values, pa.int64())


# --- schemas ---------------------------------------------------------------------------------


def _partition_type(spec: PartitionSpec, shape: TableShape) -> ice.StructType:
    return ice.StructType(
        *[
            ice.NestedField(
                part.field_id,
                part.name,
                _partition_field_type(part, shape),
                required=False,
            )
            for part in spec.fields
        ]
    )


def _partition_field_type(part: PartitionField, shape: TableShape) -> ice.IcebergType:
    """The transform's result; a void or unknown transform has its source's type, always null."""
    kind = shape.column_types.get(part.source_id)
    if not isinstance(part.transform, VoidTransform):
        kind = shape.partition_types.get(part.field_id) or kind
    return ice.StringType() if kind is None else kind


@cache
def _list_schema(format_version: int) -> str:
    return _avro(from_pyiceberg(MANIFEST_LIST_FILE_SCHEMAS[format_version]), "manifest_file")


@lru_cache(maxsize=64)
def _entry_schema(format_version: int, partition: ice.StructType) -> str:
    entry: list[ice.NestedField] = []
    for top in from_pyiceberg(MANIFEST_ENTRY_SCHEMAS[format_version]).fields:
        kind = top.field_type
        if isinstance(kind, ice.StructType):
            kind = ice.StructType(*[_data_file_field(one, partition) for one in kind.fields])
        entry.append(ice.NestedField(top.field_id, top.name, kind, required=top.required))
    return _avro(Schema(*entry), "manifest_entry")


def _data_file_field(one: ice.NestedField, partition: ice.StructType) -> ice.NestedField:
    kind: ice.IcebergType = one.field_type
    if one.field_id == _PARTITION:
        kind = partition
    elif one.field_id == _EQUALITY_IDS:  # the specification has ints here
        kind = ice.ListType(136, ice.IntegerType(), element_required=True)
    return ice.NestedField(one.field_id, one.name, kind, required=one.required, doc=one.doc)


def _avro(schema: Schema, name: str) -> str:
    converted = AvroSchemaConversion().iceberg_to_avro(pyiceberg_schema(schema), schema_name=name)
    return json.dumps(_named_apart(converted, set()))


def _named_apart(node: Any, seen: set[str]) -> Any:
    """The schema with a name of its own for every named type.

    Avro refuses a second definition of a name, and PyIceberg a reference to the first.
    """
    if isinstance(node, list):
        return [_named_apart(one, seen) for one in node]
    if not isinstance(node, Mapping):
        return node
    built = {key: _named_apart(value, seen) for key, value in node.items()}
    if node.get("type") in ("fixed", "record", "enum") and "name" in node:
        name, number = node["name"], 2
        while built["name"] in seen:
            built["name"] = f"{name}_{number}"
            number += 1
        seen.add(built["name"])
    return built

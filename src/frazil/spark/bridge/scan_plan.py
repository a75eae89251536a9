"""A scan that Spark asks for, as its Java side takes it: files, readers, and a recipe per column.

Spark names the columns and pushes filters; the tree says which files are left. Files are read by
Spark's own Parquet reader under names that are safe (`read_names`); deletion vectors travel with
their files. What that reader cannot read as the table means it is not planned here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import types as sql

from frazil import arrow_values
from frazil.data.metadata_columns import (
    FILE,
    LAST_UPDATED,
    METADATA_COLUMNS,
    POS,
    ROW_ID,
    SPEC_ID,
)
from frazil.errors import InvalidInput
from frazil.format.vectors.puffin import StoredVector
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import IdentityTransform
from frazil.rows.actions import KEY
from frazil.rows.duckdb.duckdb_parts import FilePart
from frazil.rows.planned import Planned
from frazil.spark.bridge import file_columns
from frazil.spark.bridge.file_columns import FileNames
from frazil.spark.bridge.metadata_answers import average_sizes
from frazil.spark.bridge.partition_groups import PartitionGroups
from frazil.spark.read.file_parts import Parts, file_parts, is_stored
from frazil.spark.read.native_files import native_files
from frazil.spark.session.file_list import addresses
from frazil.spark.types.read_names import ReadNames
from frazil.threads import in_threads
from frazil.tree.stored_vectors import read_vector
from frazil.value_classes import frozen, replace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POSITION = "_tmp_metadata_row_index"
"""The column under which Spark's Parquet reader gives a row's position in its file."""
_KINDS = {
    POS.field_id: "position",
    ROW_ID.field_id: "row id",
    LAST_UPDATED.field_id: "last updated",
    FILE.field_id: "file",
    SPEC_ID.field_id: "spec",
}
_WITH_POSITION = frozenset({"position", "row id", "key"})
_THREADS = 8


@frozen
class AskedColumns:
    """The columns that Spark asks for: those of the table as they are named, and computed ones."""

    schema: Schema
    names: tuple[str, ...]

    @staticmethod
    def of(requested: sql.StructType, table: Schema) -> AskedColumns:
        """Columns by the names and nested parts of a Spark schema."""
        known = {field.name: field for field in table.fields}
        fields = []
        for field in requested.fields:
            column = known.get(field.name) or METADATA_COLUMNS.get(field.name)
            if column is None and field.name != KEY:
                raise InvalidInput(f"the table has no column {field.name!r}")
            if column is not None:
                fields.append(_narrowed(column, field.dataType))
        return AskedColumns(
            schema=Schema(*fields), names=tuple(field.name for field in requested.fields)
        )


def scan_plan(
    planned: Planned,
    asked: AskedColumns,
    *,
    spark: SparkSession,
    of: int,
    columns_at: Path,
    grouped_by: Sequence[str] | bool | None = None,
) -> dict[str, Any]:
    """What the Java side reads; `native` is false where Python has to bring the rows.

    The files themselves are columns in a file at `columns_at`. `grouped_by` asks for the
    partitions of the files: by all fields, or by those of another plan.
    """
    parts = file_parts(planned, asked.schema)
    native = bool(native_files(planned, spark, parts).all())
    planned = _opened(planned, parts)
    files = planned.plan.files
    rows = int(planned.plan.live_records().sum())
    document: dict[str, Any] = {
        "native": native,
        "bytes": int(files.numpy("file_size_in_bytes").sum()) if planned.num_files else 0,
        "rows": rows,
        "sizes": average_sizes(files, asked.schema.fields),
        "of": of,
        "pruned by": planned.plan.report.filter,
        "partition columns": _partition_columns(planned),
    }
    if not native:
        return document
    readers = _Readers(planned, asked, parts)
    groups = np.zeros(planned.num_files, np.int32)
    if grouped_by:
        only = None if grouped_by is True else list(grouped_by)
        partitions = PartitionGroups.of(planned, asked.schema, only=only)
        document["groups"], groups = partitions.document, partitions.of_files
    names = FileNames.of(spark, planned)
    places = file_columns.write(
        columns_at,
        {
            "size": files.numpy("file_size_in_bytes", missing=0).astype(np.int64),
            "base": planned.bases,
            "first row id": planned.first_row_ids,
            "sequence": files.numpy("tracking.sequence_number", missing=0).astype(np.int64),
            "spec": files.numpy("spec_id", missing=0).astype(np.int32),
            "reader": readers.of_files,
            "group": groups,
            "name": names.names,
            "address": names.addresses,
            "deleted": _deleted(planned),
            "records": planned.records,
            "column files": _column_files(parts, spark, planned.num_files),
        },
    )
    document["files"] = {
        "at": str(columns_at),
        "count": planned.num_files,
        "piece": file_columns.PIECE_BYTES,
        "folder": names.folder,
        "folder address": names.folder_address,
        "columns": places,
    }
    document["readers"] = readers.described
    document["joins"] = readers.joins
    document["recipes"] = readers.recipes
    return document


class _Readers:
    """The ways to read the files of one plan: by own names or by id, with positions or without, and
    joins of several files. Files number readers first, then joins."""

    def __init__(self, planned: Planned, asked: AskedColumns, parts: Parts) -> None:
        scan = planned.scan
        self._names = ReadNames.of(scan._handle.metadata, scan.table_schema)
        self._numbers: dict[tuple[bool, bool, tuple[int, ...]], int] = {}
        self.described: list[dict[str, Any]] = []
        self.joins: list[dict[str, Any]] = []
        self.recipes: list[list[Any]] = []
        self._stored: list[ice.NestedField] = []
        self._needs_position = False
        fields = {field.name: field for field in asked.schema.fields}
        for name in asked.names:
            kind = "key" if name == KEY else self._kind(fields[name])
            self._needs_position |= kind in _WITH_POSITION
            at = -1
            if name != KEY and is_stored(fields[name]):
                at = len(self._stored)
                self._stored.append(fields[name])
            self.recipes.append([kind, at])
        self.of_files = self._of_files(planned, parts)
        """The number of each file."""

    def _of_files(self, planned: Planned, parts: Parts) -> npt.NDArray[np.int32]:
        positions = planned.has_vector | self._needs_position
        is_plain = np.ones(planned.num_files, np.bool_)
        is_plain[[row for row, opened in parts.items() if not _is_plain(opened)]] = False
        numbers = np.zeros(planned.num_files, np.int32)
        for own in (True, False):
            for position in (True, False):
                mask = is_plain & (planned.has_own_names == own) & (positions == position)
                if mask.any():
                    numbers[mask] = self._reader(self._stored, own=own, position=position)
        known: dict[Any, int] = {}
        joined = np.flatnonzero(~is_plain)
        for row in joined:
            opened, position = parts[int(row)], bool(positions[row])
            key = position, tuple((part.is_own, part.is_base, part.ids) for part in opened)
            if key not in known:
                known[key] = len(self.joins)
                self.joins.append(self._join(opened, position=position))
            numbers[row] = known[key]
        if not self.described:
            self._reader(self._stored, own=True, position=False)
        numbers[joined] += len(self.described)
        return numbers

    def _join(self, opened: Sequence[FilePart], *, position: bool) -> dict[str, Any]:
        """How columns of several files come together, or those of one column file."""
        position = position or len(opened) > 1
        places = {
            column.field_id: [number, at]
            for number, part in enumerate(opened)
            for at, column in enumerate(part.columns)
        }
        return {
            "parts": [
                {
                    "reader": self._reader(part.columns, own=part.is_own, position=position),
                    "field ids": [] if part.is_base else list(part.ids),
                }
                for part in opened
            ],
            "places": [
                *(places[column.field_id] for column in self._stored),
                *([[0, len(opened[0].columns)]] if position else []),
            ],
            "position": len(self._stored) if position else -1,
        }

    def _reader(self, columns: Sequence[ice.NestedField], *, own: bool, position: bool) -> int:
        """The number of a reader of these columns."""
        key = own, position, tuple(column.field_id for column in columns)
        if key in self._numbers:
            return self._numbers[key]
        names = self._names if own else replace(self._names, clean_ids=frozenset())
        fields = [names.read_field(field) for field in columns]
        if position:
            fields.append(sql.StructField(_POSITION, sql.LongType()))
        self._numbers[key] = len(self.described)
        self.described.append(
            {
                "schema": sql.StructType(fields).json(),
                "position": len(fields) - 1 if position else -1,
                "clean": own,
            }
        )
        return self._numbers[key]

    def _kind(self, field: ice.NestedField) -> str:
        if field.field_id in _KINDS:
            return _KINDS[field.field_id]
        if isinstance(field.field_type, ice.UnknownType):
            return "null"
        return "uuid" if isinstance(field.field_type, ice.UUIDType) else "stored"


def _narrowed(field: ice.NestedField, target: sql.DataType) -> ice.NestedField:
    """A column with only the nested parts that are asked for."""
    kind = _narrowed_type(field.field_type, target)
    return field if kind is field.field_type else replace(field, field_type=kind)


def _narrowed_type(kind: ice.IcebergType, target: sql.DataType) -> ice.IcebergType:
    if isinstance(kind, ice.StructType) and isinstance(target, sql.StructType):
        known = {field.name: field for field in kind.fields}
        parts = tuple(_narrowed(known[child.name], child.dataType) for child in target.fields)
        return kind if parts == kind.fields else ice.StructType(*parts)
    if isinstance(kind, ice.ListType) and isinstance(target, sql.ArrayType):
        element = _narrowed_type(kind.element_type, target.elementType)
        return kind if element is kind.element_type else replace(kind, element_type=element)
    if isinstance(kind, ice.MapType) and isinstance(target, sql.MapType):
        value = _narrowed_type(kind.value_type, target.valueType)
        return kind if value is kind.value_type else replace(kind, value_type=value)
    return kind


def _is_plain(opened: Sequence[FilePart]) -> bool:
    return len(opened) == 1 and opened[0].is_base


def _opened(planned: Planned, parts: Parts) -> Planned:
    """The plan with the files that are opened first: their rows are those of the data files, in
    order, so that positions and vectors hold."""
    first = {row: opened[0].source for row, opened in parts.items() if not opened[0].is_base}
    if not first:
        return planned
    files = planned.plan.files
    locations, sizes = files.pylist("location"), files.pylist("file_size_in_bytes")
    for row, source in first.items():
        locations[row], sizes[row] = source.path, source.file_size_in_bytes
    files = files.with_column("location", arrow_values.array(locations, pa.string()))
    files = files.with_column("file_size_in_bytes", arrow_values.array(sizes, pa.int64()))
    return replace(planned, plan=replace(planned.plan, files=files))


def _column_files(parts: Parts, spark: SparkSession, files: int) -> pa.ChunkedArray:
    """The addresses and sizes of what is opened beside the first file of each row."""
    rows = [row for row, opened in parts.items() if len(opened) > 1]
    sources = [[part.source for part in parts[row][1:]] for row in rows]
    found = iter(addresses(spark, [source.path for each in sources for source in each]))
    listed = [
        json.dumps([[next(found), source.file_size_in_bytes] for source in each])
        for each in sources
    ]
    return file_columns.texts(listed, np.array(rows, np.intp), files)


def _deleted(planned: Planned) -> pa.ChunkedArray:
    """Deleted positions of each file as portable bitmaps; empty for files without any."""
    rows = np.flatnonzero(planned.has_vector)
    storage = planned.scan._handle.storage

    def read(item: tuple[int, int, StoredVector]) -> bytes:
        _, records, vector = item
        positions = read_vector(storage, vector, record_count=records)
        return bytes(BitMap64(np.asarray(positions).astype(np.uint64)).serialize())

    vectors = planned.vectors(rows) if len(rows) else []
    bitmaps = in_threads(vectors, read, threads=_THREADS)
    return file_columns.texts(bitmaps, rows, planned.num_files)


def _partition_columns(planned: Planned) -> list[str]:
    scan = planned.scan
    known = {field.field_id: field.name for field in scan.table_schema.fields}
    return [
        known[part.source_id]
        for part in scan._handle.metadata.spec().fields
        if isinstance(part.transform, IdentityTransform) and part.source_id in known
    ]

"""A scan that Spark asks for, as its Java side takes it: files, readers, and a recipe per column.

Spark names the columns and pushes filters; the tree says which files are left. Files are read by
Spark's own Parquet reader under names that are safe (`read_names`); deletion vectors travel with
their files. What that reader cannot read as the table means it is not planned here.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pyiceberg import types as ice
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyroaring import BitMap64
from pyspark.sql import types as sql

from frazil.data.metadata_columns import (
    FILE,
    LAST_UPDATED,
    METADATA_COLUMNS,
    POS,
    ROW_ID,
    SPEC_ID,
)
from frazil.errors import InvalidInput
from frazil.rows.actions import KEY
from frazil.rows.planned import Planned
from frazil.spark.native_files import native_files
from frazil.spark.read_names import ReadNames

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


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedColumns:
    """The columns that Spark asks for: those of the table as they are named, and computed ones."""

    schema: Schema
    names: tuple[str, ...]

    @staticmethod
    def of(wanted: sql.StructType, table: Schema) -> AskedColumns:
        """Columns by the names and nested parts of a Spark schema."""
        known = {field.name: field for field in table.fields}
        fields = []
        for field in wanted.fields:
            found = known.get(field.name) or METADATA_COLUMNS.get(field.name)
            if found is None and field.name != KEY:
                raise InvalidInput(f"the table has no column {field.name!r}")
            if found is not None:
                fields.append(_narrowed(found, field.dataType))
        return AskedColumns(
            schema=Schema(*fields), names=tuple(field.name for field in wanted.fields)
        )


def scan_plan(
    planned: Planned, asked: AskedColumns, *, addresses: Iterable[str], of: int
) -> dict[str, Any]:
    """What the Java side reads; `native` is false where Python has to bring the rows."""
    files = planned.plan.files
    vectors = planned.has_vector
    rows = planned.records.sum() if len(planned.records) else 0
    made: dict[str, Any] = {
        "native": bool(native_files(planned).all()),
        "bytes": int(files.numpy("file_size_in_bytes").sum()) if planned.num_files else 0,
        "rows": int(rows),
        "of": of,
        "pruned by": planned.plan.report.filter,
        "partition columns": _partition_columns(planned),
    }
    if not made["native"]:
        return made
    if not len(planned.plan.matches):
        made["live rows"] = int(rows) - sum(
            vector.cardinality for _, _, vector in planned.vectors(np.flatnonzero(vectors))
        )
    readers = _Readers(planned, asked)
    keys = ("file_size_in_bytes", "tracking.sequence_number", "spec_id")
    columns = {key: files.pylist(key) for key in keys}
    deleted = _deleted(planned)
    made["files"] = [
        [
            path,
            columns["file_size_in_bytes"][at],
            readers.of(own=bool(planned.has_own_names[at]), deletes=bool(vectors[at])),
            int(planned.bases[at]),
            int(planned.first_row_ids[at]),
            columns["tracking.sequence_number"][at] or 0,
            columns["spec_id"][at] or 0,
            deleted.get(at),
            planned.paths[at],
        ]
        for at, path in enumerate(addresses)
    ]
    made["readers"] = readers.made or [readers.reader(own=True, position=False)]
    made["recipes"] = readers.recipes
    return made


class _Readers:
    """The ways to read the files of one plan: by own names or by id, with positions or without."""

    def __init__(self, planned: Planned, asked: AskedColumns) -> None:
        scan = planned.scan
        self._names = ReadNames.of(scan._handle.metadata, scan.table_schema)
        self._numbers: dict[tuple[bool, bool], int] = {}
        self.made: list[dict[str, Any]] = []
        self.recipes: list[list[Any]] = []
        self._stored: list[ice.NestedField] = []
        self._needs_position = False
        fields = {field.name: field for field in asked.schema.fields}
        for name in asked.names:
            kind = "key" if name == KEY else self._kind(fields[name])
            self._needs_position |= kind in _WITH_POSITION
            at = -1
            if kind in ("stored", "uuid", "row id", "last updated"):
                at = len(self._stored)
                self._stored.append(fields[name])
            self.recipes.append([kind, at])

    def of(self, *, own: bool, deletes: bool) -> int:
        """The number of the reader for a file."""
        key = (own, deletes or self._needs_position)
        if key not in self._numbers:
            self._numbers[key] = len(self.made)
            self.made.append(self.reader(own=own, position=key[1]))
        return self._numbers[key]

    def reader(self, *, own: bool, position: bool) -> dict[str, Any]:
        """What a reader is asked for."""
        names = self._names if own else replace(self._names, clean_ids=frozenset())
        fields = [names.read_field(field) for field in self._stored]
        if position:
            fields.append(sql.StructField(_POSITION, sql.LongType()))
        return {
            "schema": sql.StructType(fields).json(),
            "position": len(fields) - 1 if position else -1,
            "clean": own,
        }

    def _kind(self, field: ice.NestedField) -> str:
        if field.field_id in _KINDS:
            return _KINDS[field.field_id]
        if isinstance(field.field_type, ice.UnknownType):
            return "null"
        return "uuid" if isinstance(field.field_type, ice.UUIDType) else "stored"


def _narrowed(field: ice.NestedField, wanted: sql.DataType) -> ice.NestedField:
    """A column with only the nested parts that are asked for."""
    kind = _narrowed_type(field.field_type, wanted)
    return field if kind is field.field_type else field.model_copy(update={"field_type": kind})


def _narrowed_type(kind: ice.IcebergType, wanted: sql.DataType) -> ice.IcebergType:
    if isinstance(kind, ice.StructType) and isinstance(wanted, sql.StructType):
        known = {field.name: field for field in kind.fields}
        parts = tuple(_narrowed(known[each.name], each.dataType) for each in wanted.fields)
        return kind if parts == kind.fields else ice.StructType(*parts)
    if isinstance(kind, ice.ListType) and isinstance(wanted, sql.ArrayType):
        element = _narrowed_type(kind.element_type, wanted.elementType)
        return (
            kind if element is kind.element_type else kind.model_copy(update={"element": element})
        )
    if isinstance(kind, ice.MapType) and isinstance(wanted, sql.MapType):
        value = _narrowed_type(kind.value_type, wanted.valueType)
        return kind if value is kind.value_type else kind.model_copy(update={"value_type": value})
    return kind


def _deleted(planned: Planned) -> dict[int, str]:
    """Deleted positions as portable bitmaps, by the file's row in the plan."""
    rows = np.flatnonzero(planned.has_vector)
    if not len(rows):
        return {}
    storage = planned.scan._handle.storage

    def read(found: tuple[int, Any]) -> tuple[int, str]:
        at, (_, records, vector) = found
        positions = vector.positions(storage, record_count=records)
        packed = BitMap64(np.asarray(positions).astype(np.uint64)).serialize()
        return int(at), base64.b64encode(packed).decode()

    with ThreadPoolExecutor(_THREADS) as pool:
        return dict(pool.map(read, zip(rows, planned.vectors(rows), strict=True)))


def _partition_columns(planned: Planned) -> list[str]:
    scan = planned.scan
    known = {field.field_id: field.name for field in scan.table_schema.fields}
    return [
        known[part.source_id]
        for part in scan._handle.metadata.spec().fields
        if isinstance(part.transform, IdentityTransform) and part.source_id in known
    ]

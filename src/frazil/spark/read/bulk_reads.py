"""Bulk reads: planned with the tree on the driver, read by Spark's own Parquet reader.

On a classic session Frazil's own scan (`bridge`) reads them and prunes by any filter. Spark Connect
has no such scan: there Spark gets a list of the files that survive planning (`log`), columns by
field id under safe names, and deletion vectors by a join. Files that Spark cannot read as the table
means them go through Arrow (`arrow_route`) and join by union.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as sql

from frazil.data.metadata_columns import (
    FILE,
    LAST_UPDATED,
    PARTITION_ID,
    POS,
    RESERVED_IDS,
    ROW_ID,
    SPEC_ID,
)
from frazil.format.entries.batch import single_chunk
from frazil.iceberg import types as ice
from frazil.iceberg.expressions import AlwaysTrue
from frazil.iceberg.expressions import Column as Reference
from frazil.iceberg.schema import Schema
from frazil.rows.actions import KEY
from frazil.rows.planned import Planned
from frazil.rows.scan import DEFAULT_SPLIT_BYTES, Scan
from frazil.spark.expressions.conditions import condition, quoted
from frazil.spark.read import arrow_route
from frazil.spark.read.file_parts import file_parts, is_stored
from frazil.spark.read.group_reader import GroupReader
from frazil.spark.read.live_rows import VectorLimits, without_deleted
from frazil.spark.read.native_files import native_files
from frazil.spark.session import file_list
from frazil.spark.session.find_table import prepare
from frazil.spark.types.read_names import ReadNames
from frazil.spark.types.spark_arrow import arrow_of, column_into_spark
from frazil.spark.types.spark_types import spark_schema, spark_type
from frazil.value_classes import dataclass, replace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from frazil.spark.bridge.verbs import Bridge

_BASE = "__frazil_base"
_POSITION = "__frazil_position"
_FILE_BASE = "__frazil_file_base"
_OF_FILES = frozenset({FILE.field_id, SPEC_ID.field_id, PARTITION_ID, LAST_UPDATED.field_id})
_UUID_PARTS = "^(.{8})(.{4})(.{4})(.{4})(.{12})$"


def frame(
    spark: SparkSession,
    scan: Scan,
    *,
    metadata_columns: Sequence[str] = (),
    key: str | None = None,
    planned: Planned | None = None,
    limits: VectorLimits | None = None,
    split_bytes: int = DEFAULT_SPLIT_BYTES,
    bridge: Bridge | None,
) -> DataFrame:
    """The rows of a scan: its columns, then the metadata columns asked for, then the row key.

    `key` names a column that holds `Planned.bases` of the row's file plus its position; give
    `planned` (of the same scan) to find the rows again with `Planned.located`. Spark Connect has no
    bridge.
    """
    if metadata_columns:
        names = [field.name for field in scan.read_schema.fields]
        more = [name for name in metadata_columns if name not in names]
        scan = replace(scan, columns=(*names, *more))
        planned = None if planned is None else planned.seen_by(scan)
    planned = planned or Planned.of(scan)
    prepare(spark, (field.field_type for field in planned.read_schema.fields))
    expected = spark_schema(scan.read_schema)  # refuses, before anything is read
    if bridge is None or PARTITION_ID in {field.field_id for field in scan.read_schema.fields}:
        native = native_files(planned, spark)
        parts = _listed(spark, planned, native, key, limits)
    else:
        native = native_files(planned, spark, file_parts(planned, planned.read_schema))
        parts = _scanned(bridge, planned, np.flatnonzero(native), key)
    rest = np.flatnonzero(~native)
    if len(rest) or not parts:
        reader = GroupReader(reading=scan._reading(), key=key)
        parts.append(
            arrow_route.frame(spark, planned, rest, reader, split_bytes=split_bytes)
            if len(rest)
            else spark.createDataFrame([], reader.spark_schema())
        )
    rows = parts[0]
    for part in parts[1:]:
        rows = rows.union(part)
    if scan.max_rows is not None:
        rows = rows.limit(scan.max_rows)
    assert [field.name for field in expected] == rows.columns[: len(expected)]
    return rows


def _scanned(
    bridge: Bridge, planned: Planned, rows: npt.NDArray[np.intp], key: str | None
) -> list[DataFrame]:
    """Some files of a plan through Frazil's own scan."""
    if not len(rows):
        return []
    scan = planned.scan
    _, raw = bridge.held(planned.part(rows))

    def value(reference: Reference) -> Column:
        column = raw[quoted(reference.path[0])]
        for name in reference.path[1:]:
            column = column.getField(name)
        return column

    chosen = [chosen_column(raw, scan.table_schema, field) for field in scan.read_schema.fields]
    if key is not None:
        chosen.append(raw.metadataColumn(KEY).alias(key))
    kept = raw
    if not isinstance(scan.filter, AlwaysTrue):
        kept = raw.filter(condition(scan.filter, value))
    return [kept.select(*chosen)]


def chosen_column(rows: DataFrame, schema: Schema, field: ice.NestedField) -> Column:
    """A column of a scan's frame: a metadata column, or the parts of one that are asked for."""
    if field.field_id in RESERVED_IDS:
        return rows.metadataColumn(field.name)
    has = next(candidate for candidate in schema.fields if candidate.field_id == field.field_id)
    return _pruned(rows[quoted(field.name)], has.field_type, field.field_type).alias(field.name)


def _listed(
    spark: SparkSession,
    planned: Planned,
    native: npt.NDArray[np.bool_],
    key: str | None,
    limits: VectorLimits | None,
) -> list[DataFrame]:
    """Files of a plan through a list that Spark's reader takes (`log`)."""
    parts = []
    for own in (planned.has_own_names, ~planned.has_own_names):
        for deleted in (~planned.has_vector, planned.has_vector):
            rows = np.flatnonzero(native & own & deleted)
            if len(rows):
                parts.append(_NativeFrame(spark, planned, rows, key, limits).frame())
    return parts


@dataclass(frozen=True)
class _NativeFrame:
    """Some files of a plan through Spark's reader."""

    spark: SparkSession
    planned: Planned
    rows: npt.NDArray[np.intp]
    key: str | None
    limits: VectorLimits | None

    def frame(self) -> DataFrame:
        scan = self.planned.scan
        names = ReadNames.of(scan._handle.metadata, scan.table_schema)
        if not self.planned.has_own_names[self.rows].all():
            # Files from elsewhere may call a column by another one's name: trust no name.
            names = replace(names, clean_ids=frozenset())
        schema = self.planned.read_schema
        raw = self._raw(schema, names)
        vectors = self.planned.vectors(self.rows[self.planned.has_vector[self.rows]])
        if vectors:
            raw = without_deleted(
                self.spark,
                raw,
                vectors,
                base=_BASE,
                position=_POSITION,
                storage=scan._handle.storage,
                limits=self.limits,
            )
        if not isinstance(scan.filter, AlwaysTrue):
            raw = raw.filter(condition(scan.filter, _Values(raw, schema, names).of))
        raw = self._with_files(raw)
        output = [self._output(raw, field, names) for field in scan.read_schema.fields]
        if self.key is not None:
            output.append((raw[_BASE] + raw[_POSITION]).alias(self.key))
        return raw.select(*output)

    # What is read

    def _raw(self, read_schema: Schema, names: ReadNames) -> DataFrame:
        stored = [field for field in read_schema.fields if is_stored(field)]
        schema = sql.StructType([names.read_field(field) for field in stored])
        paths = self.planned.paths
        frame = file_list.read_files(
            self.spark,
            schema,
            paths=[paths[row] for row in self.rows],
            sizes=self.planned.plan.files.numpy("file_size_in_bytes")[self.rows].tolist(),
            numbers=self.planned.bases[self.rows].tolist(),
        )
        columns = [frame[quoted(field.name)] for field in schema.fields]
        if self._needs_place(read_schema):
            metadata = frame.metadataColumn("_metadata")
            base = F.unix_millis(metadata["file_modification_time"])
            columns += [base.alias(_BASE), metadata["row_index"].alias(_POSITION)]
        return frame.select(*columns)

    def _needs_place(self, schema: Schema) -> bool:
        return (
            self.key is not None
            or bool(self.planned.has_vector[self.rows].any())
            or any(field.field_id in RESERVED_IDS for field in schema.fields)
        )

    # What it becomes

    def _output(self, raw: DataFrame, field: ice.NestedField, names: ReadNames) -> Column:
        metadata: dict[str, Any] = {"comment": field.doc} if field.doc else {}
        return self._value(raw, field, names).alias(field.name, metadata=metadata)

    def _value(self, raw: DataFrame, field: ice.NestedField, names: ReadNames) -> Column:
        match field.field_id:
            case POS.field_id:
                return raw[_POSITION]
            case ROW_ID.field_id:
                first = raw[_BASE] if self.planned.has_row_ids else raw["__frazil_first_row_id"]
                return F.coalesce(raw[names.read_name(field)], first + raw[_POSITION])
            case LAST_UPDATED.field_id:
                return F.coalesce(raw[names.read_name(field)], raw["__frazil_sequence_number"])
            case FILE.field_id | SPEC_ID.field_id:
                return raw[f"__frazil{field.name}"]
            case ice_id if ice_id == PARTITION_ID:
                return raw[f"__frazil{field.name}"]
        read = next(
            candidate
            for candidate in self.planned.read_schema.fields
            if candidate.field_id == field.field_id
        )
        return _pruned(_stored_value(raw, read, names), read.field_type, field.field_type)

    def _with_files(self, raw: DataFrame) -> DataFrame:
        """Joined with what holds for a whole file, when a column asks for it."""
        by_id = {field.field_id: field for field in self.planned.scan.read_schema.fields}
        needed = set(by_id) & _OF_FILES
        if ROW_ID.field_id in by_id and not self.planned.has_row_ids:
            needed.add(ROW_ID.field_id)
        if not needed:
            return raw
        files = self.spark.createDataFrame(self._files(needed, by_id.get(PARTITION_ID)))
        return raw.join(F.broadcast(files), raw[_BASE] == files[_FILE_BASE], "inner")

    def _files(self, needed: set[int], partition: ice.NestedField | None) -> pa.Table:
        planned = self.planned
        files = planned.plan.files.take(self.rows)
        columns: dict[str, Any] = {_FILE_BASE: pa.array(planned.bases[self.rows])}
        if FILE.field_id in needed:
            paths = [planned.paths[row] for row in self.rows]
            columns["__frazil_file"] = pa.array(paths, pa.string())
        if SPEC_ID.field_id in needed:
            columns["__frazil_spec_id"] = files.column("spec_id").cast(pa.int32())
        if ROW_ID.field_id in needed:
            columns["__frazil_first_row_id"] = files.column("tracking.first_row_id")
        if LAST_UPDATED.field_id in needed:
            has_id = files.column("tracking.first_row_id").is_valid()
            sequence = files.column("tracking.sequence_number")
            columns["__frazil_sequence_number"] = pa.compute.if_else(
                has_id, sequence, pa.scalar(None, pa.int64())
            )
        if partition is not None:
            columns["__frazil_partition"] = _partitions(files, partition)
        return pa.table(columns)


@dataclass(frozen=True, slots=True)
class _Values:
    """Columns of the raw frame by the references of a filter."""

    raw: DataFrame
    schema: Schema
    names: ReadNames

    def of(self, reference: Reference) -> Column:
        field = next(field for field in self.schema.fields if _holds(field, reference))
        column = _stored_value(self.raw, field, self.names)
        for name in reference.path[1:]:
            column = column.getField(name)
        return column


def _holds(field: ice.NestedField, reference: Reference) -> bool:
    if field.field_id == reference.field.field_id:
        return True
    kind = field.field_type
    return isinstance(kind, ice.StructType) and any(
        _holds(child, reference) for child in kind.fields
    )


def _stored_value(raw: DataFrame, field: ice.NestedField, names: ReadNames) -> Column:
    kind = field.field_type
    if isinstance(kind, ice.UnknownType):
        return F.lit(None).cast(sql.NullType())
    column = raw[quoted(names.read_name(field))]
    if isinstance(kind, ice.UUIDType):
        return F.regexp_replace(F.lower(F.hex(column)), _UUID_PARTS, "$1-$2-$3-$4-$5")
    if not kind.is_primitive and not names.is_clean(field):
        return column.cast(spark_type(kind))  # structs are cast by position
    return column


def _pruned(column: Column, has: ice.IcebergType, target: ice.IcebergType) -> Column:
    """The parts of a nested column that are asked for, of those a filter made to be read."""
    if has == target:
        return column
    match has, target:
        case ice.StructType(), ice.StructType():
            of_id = {field.field_id: field for field in has.fields}
            parts = [
                _pruned(
                    column.getField(field.name), of_id[field.field_id].field_type, field.field_type
                ).alias(field.name)
                for field in target.fields
            ]
            return F.when(column.isNotNull(), F.struct(*parts))
        case ice.ListType(), ice.ListType():
            element = has.element_type, target.element_type
            return F.transform(column, lambda value: _pruned(value, *element))
        case ice.MapType(), ice.MapType():
            value = has.value_type, target.value_type
            return F.transform_values(column, lambda _, item: _pruned(item, *value))
    return column


def _partitions(files: Any, partition: ice.NestedField) -> pa.Array:
    kind = partition.field_type
    fields = kind.fields if isinstance(kind, ice.StructType) else ()
    target = arrow_of(spark_schema(Schema(partition)))[0].type
    children = [
        column_into_spark(
            single_chunk(files.column(f"partition.{field.field_id}")),
            field.field_type,
            target.field(at).type,
        )
        for at, field in enumerate(fields)
    ]
    if not children:
        return pa.array([{}] * files.num_rows, pa.struct([]))
    return pa.StructArray.from_arrays(children, fields=list(target))

"""A table as Spark has loaded it: which snapshot, in which schema, rows or metadata.

The token that Spark keeps says all of it, so that a frame can be planned again at any time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.partitioning import PartitionField
from pyiceberg.transforms import BucketTransform, TruncateTransform
from pyiceberg.types import NestedField
from pyspark.sql import types as sql

from frazil.data.metadata_columns import METADATA_COLUMNS, partition_column
from frazil.errors import NotFound
from frazil.rows.actions import KEY
from frazil.rows.scan import Scan
from frazil.spark.defaults import write_default_metadata
from frazil.spark.metadata_tables import metadata_frame, metadata_schema
from frazil.spark.source_options import METADATA_TABLES
from frazil.spark.spark_types import spark_schema, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from frazil.table.catalog import Catalog
    from frazil.table.table import Table

ROWS: Final = "rows"
CHANGES: Final = "changes"
ANY_SCHEMA: Final = "write.spark.accept-any-schema"
"""Leaves the check of columns to the write, which may then add some (option `mergeSchema`)."""
CURRENT_SNAPSHOT: Final = "current-snapshot-id"
"""Shown among a table's properties, as Iceberg's catalog does; never stored."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PLURALS: Final = {"year": "years", "month": "months", "day": "days", "hour": "hours"}
_METADATA_COLUMNS: Final = sql.StructType(
    [
        *(
            sql.StructField(field.name, spark_type(field.field_type), True)
            for field in METADATA_COLUMNS.values()
        ),
        sql.StructField(KEY, sql.LongType(), True),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """One table at one snapshot; `kind` is `rows`, `changes` or a metadata table's name.

    `split_bytes` is how much one task reads, if the reader said so.
    """

    table: Table
    scan: Scan
    kind: str = ROWS
    is_pinned: bool = False
    split_bytes: int | None = None

    @staticmethod
    def named(catalog: Catalog, request: Mapping[str, Any]) -> Loaded | None:
        """What a statement names: a table, or a part or state of one; None where there is none."""
        path = (*request["namespace"], request["name"])
        as_of = _as_of(request)
        if len(path) > 1 and catalog.table_exists(path):
            table = catalog.load_table(path)
            return Loaded(table=table, scan=table.scan(as_of=as_of), is_pinned=as_of is not None)
        if len(path) > 2 and catalog.table_exists(path[:-1]):
            return _part(catalog.load_table(path[:-1]), path[-1], as_of)
        return None

    @staticmethod
    def of(table: Table, token: Mapping[str, Any]) -> Loaded:
        """What a token stands for."""
        snapshot = None if token["snapshot"] is None else table.snapshot(token["snapshot"])
        schema = table.metadata.schema_by_id(token["schema"])
        scan = Scan(
            _handle=table._handle,
            snapshot=snapshot,
            schema_override=schema,
            matching=token.get("where"),
        )
        return Loaded(
            table=table,
            scan=scan,
            kind=token["kind"],
            is_pinned=token["pinned"],
            split_bytes=token.get("split"),
        )

    def token(self, key: str) -> str:
        """A text to load the same again by; `key` says where the table is found."""
        snapshot = self.scan.snapshot
        return json.dumps(
            {
                "table": key,
                "branch": self.table.branch_name,
                "snapshot": None if snapshot is None else int(snapshot.snapshot_id),
                "schema": self.scan.table_schema.schema_id,
                "kind": self.kind,
                "pinned": self.is_pinned,
                "where": self.scan.matching,
                "split": self.split_bytes,
            }
        )

    def described(self, key: str) -> dict[str, Any]:
        """The description that Spark gets."""
        table = self.table
        is_rows = self.kind == ROWS
        return {
            "token": self.token(key),
            "name": table.name if is_rows else f"{table.name}.{self.kind}",
            "schema": self.schema().json(),
            "partitioning": [_transform(table, part) for part in table.spec.fields]
            if is_rows
            else [],
            "properties": {**_shown(table), **table.properties} if is_rows else {},
            "writable": is_rows and not self.is_pinned,
            "any schema": table.properties.get(ANY_SCHEMA, "false").lower() == "true",
            "metadata columns": self._metadata_columns().json(),
        }

    def _metadata_columns(self) -> sql.StructType:
        if self.kind != ROWS:
            return sql.StructType()
        partition = partition_of(self.scan)
        if not getattr(partition.field_type, "fields", ()):
            return _METADATA_COLUMNS
        kind = spark_type(partition.field_type)
        return sql.StructType([*_METADATA_COLUMNS.fields, sql.StructField(partition.name, kind)])

    def schema(self) -> sql.StructType:
        """Its columns."""
        if self.kind == ROWS:
            made = spark_schema(self.scan.table_schema)
            for field, shown in zip(self.scan.table_schema.fields, made.fields, strict=True):
                shown.nullable = not field.required
                shown.metadata = {**(shown.metadata or {}), **write_default_metadata(field)}
            return made
        if self.kind == CHANGES:
            from frazil.spark.change_frame import change_schema

            return change_schema(self.table)
        return metadata_schema(self.table, self.kind)

    def frame(self, spark: SparkSession) -> DataFrame:
        """Rows of a metadata table or of the change feed."""
        if self.kind == CHANGES:
            from frazil.spark.change_frame import frame

            return frame(spark, self.table.changes())
        return metadata_frame(spark, self.table, self.scan.snapshot, self.kind)


def partition_of(scan: Scan) -> NestedField:
    """The column `_partition` of a table, which files do not hold."""
    return partition_column(scan._handle.metadata.partition_specs, scan.table_schema)


def _part(table: Table, name: str, as_of: Any) -> Loaded | None:
    if name in METADATA_TABLES or name == CHANGES:
        return Loaded(table=table, scan=table.scan(as_of=as_of), kind=name, is_pinned=True)
    kind, _, rest = name.partition("_")
    if kind == "branch":
        try:
            branch = table.branch(rest, create=False)
        except NotFound:
            return None
        return Loaded(table=branch, scan=branch.scan(as_of=as_of), is_pinned=as_of is not None)
    if kind == "tag":
        return Loaded(table=table, scan=table.scan(as_of=rest), is_pinned=True)
    if name.startswith("snapshot_id_") and name[12:].isdigit():
        return Loaded(table=table, scan=table.scan(as_of=int(name[12:])), is_pinned=True)
    return None


def _as_of(request: Mapping[str, Any]) -> int | str | datetime | None:
    version = request.get("version")
    if version is not None:
        return int(version) if version.isdigit() else str(version)
    micros = request.get("timestamp")
    return None if micros is None else _EPOCH + timedelta(microseconds=int(micros))


def _transform(table: Table, part: PartitionField) -> dict[str, Any]:
    name = str(part.transform).partition("[")[0]
    source = table.schema.find_column_name(part.source_id) or ""
    made: dict[str, Any] = {
        "transform": _PLURALS.get(name, name),
        "column": ".".join(f"`{level.replace('`', '``')}`" for level in source.split(".")),
    }
    if isinstance(part.transform, BucketTransform):
        made["width"] = part.transform.num_buckets
    elif isinstance(part.transform, TruncateTransform):
        made["width"] = part.transform.width
    return made


def _shown(table: Table) -> dict[str, str]:
    snapshot = table.current_snapshot()
    return {
        "provider": "frazil",
        "location": table.location,
        CURRENT_SNAPSHOT: "none" if snapshot is None else str(snapshot.snapshot_id),
    }

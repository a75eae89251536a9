"""A table as Spark has loaded it: which snapshot, in which schema, rows or metadata.

The token that Spark keeps says all of it, so that a frame can be planned again at any time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import types as sql

from frazil.data.metadata_columns import METADATA_COLUMNS, partition_column
from frazil.errors import InvalidInput, NotFound
from frazil.format.metadata.metadata import MAIN, RefKind
from frazil.iceberg.partitioning import PartitionField
from frazil.iceberg.transforms import BucketTransform, JointBucketTransform, TruncateTransform
from frazil.iceberg.types import NestedField
from frazil.properties.registry import ACCEPT_ANY_SCHEMA, WAP_ENABLED
from frazil.rows.actions import KEY
from frazil.rows.scan import Scan
from frazil.spark.options.options import ReadOptions
from frazil.spark.options.source_options import METADATA_TABLES
from frazil.spark.read.metadata_tables import metadata_frame, metadata_schema
from frazil.spark.types.defaults import write_default_metadata
from frazil.spark.types.spark_types import spark_schema, spark_type
from frazil.value_classes import frozen, replace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from frazil.table.catalog import Catalog
    from frazil.table.table import Table

ROWS: Final = "rows"
APPENDS: Final = "appends"
CHANGES: Final = "changes"
"""Leaves the check of columns to the write, which may then add some (option `mergeSchema`)."""
CURRENT_SNAPSHOT: Final = "current-snapshot-id"
"""Shown among a table's properties, as Iceberg's catalog does; never stored."""
_SNAPSHOT: Final = re.compile(r"snapshot_id_(\d+)")
_TIME: Final = re.compile(r"at_timestamp_(\d+)")
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


class Pin(StrEnum):
    """Why a table is read at one state."""

    RESOLVED = "resolved"
    """It was the state when the statement was resolved."""
    FRAME = "frame"
    """It was the state when a function made the frame."""
    CHOSEN = "chosen"
    """The reader asked for it."""


@frozen
class TableToken:
    """One table at one snapshot; `kind` is `rows`, `appends`, `changes` or a metadata table's name.

    `split_bytes` is how much one task reads, if the reader said so. `appended` are the ids of the
    snapshots between which appends are read.
    """

    table: Table
    scan: Scan
    kind: str = ROWS
    pin: Pin = Pin.RESOLVED
    split_bytes: int | None = None
    appended: tuple[int, int | None] | None = None

    @staticmethod
    def named(
        catalog: Catalog, request: Mapping[str, Any], *, wap_branch: str | None = None
    ) -> TableToken | None:
        """What a statement names: a table, or a part or state of one; None where there is none."""
        path = (*request["namespace"], request["name"])
        as_of = _as_of(request)
        if len(path) > 1 and (table := catalog.find_table(path)) is not None:
            table = table._as_loaded()
            if as_of is None and wap_branch is not None:
                table = audited(table, wap_branch)
            return TableToken(table=table, scan=table.scan(as_of=as_of), pin=_pin(as_of))
        if len(path) > 2 and (table := catalog.find_table(path[:-1])) is not None:
            return _part(table._as_loaded(), path[-1], as_of)
        return None

    @staticmethod
    def of(table: Table, token: Mapping[str, Any]) -> TableToken:
        """What a token stands for."""
        snapshot = None if token["snapshot"] is None else table.snapshot(token["snapshot"])
        schema = table.metadata.schema_by_id(token["schema"])
        scan = Scan(
            _handle=table._handle,
            snapshot=snapshot,
            schema_override=schema,
            matching=token.get("where"),
        )
        appended = token.get("appended")
        return TableToken(
            table=table,
            scan=scan,
            kind=token["kind"],
            pin=Pin(token["pin"]),
            split_bytes=token.get("split"),
            appended=None if appended is None else tuple(appended),
        )

    @property
    def is_writable(self) -> bool:
        """Whether statements may change it."""
        return self.kind == ROWS and self.pin is Pin.RESOLVED

    def changed_table(self) -> Table:
        """The table that a statement changes; refuses what can only be read."""
        if self.is_writable:
            return self.table
        name = self.table.name
        if self.kind not in (ROWS, APPENDS):
            what = "the changes" if self.kind == CHANGES else f"metadata, the {self.kind}"
            raise InvalidInput(
                f"{name}.{self.kind} shows {what} of {name} and can only be read; "
                f"statements that change rows name {name} or {name}.branch_<name>"
            )
        if self.pin is Pin.FRAME:
            raise InvalidInput(
                f"a frame of {name} can only be read; statements that change rows name the table"
            )
        raise InvalidInput(
            f"a past state of {name} can only be read; statements that change rows name {name} "
            f"or {name}.branch_<name>"
        )

    def with_options(self, options: ReadOptions) -> TableToken:
        """Another state of the table, in the columns that a query was resolved with."""
        token = replace(self, split_bytes=options.split_bytes or self.split_bytes)
        asks = (options.snapshot, options.as_of, options.tag, options.branch, options.appended)
        if all(value is None for value in asks):
            return token
        table = self.table
        if self.kind != ROWS or self.pin is not Pin.RESOLVED or table.branch_name != MAIN:
            raise InvalidInput(
                f"the name already chooses a state of {table.name}; options that choose one "
                "need the plain table name"
            )
        if options.branch is not None:
            branch = table.branch(options.branch, create=False)
            scan = replace(self.scan, snapshot=branch.current_snapshot())
            return replace(token, table=branch, scan=scan)
        if options.appended is not None:
            return replace(token, kind=APPENDS, pin=Pin.CHOSEN, appended=options.appended)
        if options.tag is not None and _ref_kind(table, options.tag) is not RefKind.TAG:
            raise NotFound(f"{table.name} has no tag {options.tag!r}")
        state = options.snapshot if options.as_of is None else options.as_of
        snapshot = table.snapshot(state if options.tag is None else options.tag)  # type: ignore[arg-type]
        return replace(token, scan=replace(self.scan, snapshot=snapshot), pin=Pin.CHOSEN)

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
                "pin": self.pin.value,
                "where": self.scan.matching,
                "split": self.split_bytes,
                "appended": self.appended,
            }
        )

    def described(self, key: str) -> dict[str, Any]:
        """The description that Spark gets."""
        table = self.table
        is_rows = self.kind in (ROWS, APPENDS)
        return {
            "token": self.token(key),
            "name": table.name if is_rows else f"{table.name}.{self.kind}",
            "schema": self.schema().json(),
            "partitioning": [_transform(table, part) for part in table.metadata.spec().fields]
            if is_rows
            else [],
            "properties": {**_table_properties(table), **table.properties} if is_rows else {},
            "writable": self.is_writable,
            "any schema": ACCEPT_ANY_SCHEMA.lenient(table.properties, otherwise=False),
            "metadata columns": self._metadata_columns().json(),
        }

    def _metadata_columns(self) -> sql.StructType:
        if self.kind not in (ROWS, APPENDS):
            return sql.StructType()
        partition = partition_of(self.scan)
        if not getattr(partition.field_type, "fields", ()):
            return _METADATA_COLUMNS
        kind = spark_type(partition.field_type)
        return sql.StructType([*_METADATA_COLUMNS.fields, sql.StructField(partition.name, kind)])

    def schema(self) -> sql.StructType:
        """Its columns."""
        if self.kind in (ROWS, APPENDS):
            struct = spark_schema(self.scan.table_schema)
            for field, spark_field in zip(
                self.scan.table_schema.fields, struct.fields, strict=True
            ):
                spark_field.nullable = not field.required
                spark_field.metadata = {
                    **(spark_field.metadata or {}),
                    **write_default_metadata(field),
                }
            return struct
        if self.kind == CHANGES:
            from frazil.spark.read.change_frame import change_schema

            return change_schema(self.table)
        return metadata_schema(self.table, self.kind)

    def frame(self, spark: SparkSession) -> DataFrame:
        """Rows of a metadata table or of the change feed."""
        if self.kind == CHANGES:
            from frazil.spark.read.change_frame import frame

            return frame(spark, self.table.changes())
        if self.appended is not None:
            return _appended(spark, self.table, *self.appended)
        return metadata_frame(spark, self.table, self.scan.snapshot, self.kind)


def partition_of(scan: Scan) -> NestedField:
    """The column `_partition` of a table, which files do not hold."""
    return partition_column(scan._handle.metadata.partition_specs, scan.table_schema)


def named_table(catalog: Catalog, path: Sequence[str]) -> tuple[str, ...]:
    """The name of a table whose definition a statement changes; refuses names of its parts."""
    name = tuple(path)
    if len(name) > 2 and not catalog.table_exists(name):
        owner = catalog.find_table(name[:-1])
        if owner is not None and _is_part(owner, name[-1]):
            raise InvalidInput(
                f"{'.'.join(name)} is a part or state of the table {owner.name}, not a table: it "
                f"cannot be created, altered, renamed or dropped. {_instead(owner.name, name[-1])}"
            )
    return name


def _is_part(table: Table, name: str) -> bool:
    kind, _, rest = name.partition("_")
    if kind in ("branch", "tag") and rest in table.metadata.refs:
        return True
    is_state = _SNAPSHOT.fullmatch(name) or _TIME.fullmatch(name)
    return name in METADATA_TABLES or name == CHANGES or is_state is not None


def _instead(table: str, part: str) -> str:
    kind, _, rest = part.partition("_")
    if kind in ("branch", "tag"):
        return f"ALTER TABLE {table} DROP {kind.upper()} {rest} drops it"
    return f"Name {table} itself"


def audited(table: Table, branch: str, *, create: bool = False) -> Table:
    """The branch that a session writes to for audits (`spark.wap.branch`), if the table takes part
    in that and has it."""
    if not WAP_ENABLED.lenient(table.properties, otherwise=False):
        return table
    return table.branch(branch, create=True) if create or branch in table.metadata.refs else table


def _part(table: Table, name: str, as_of: Any) -> TableToken | None:
    if name in METADATA_TABLES:
        return TableToken(table=table, scan=table.scan(as_of=as_of), kind=name, pin=_pin(as_of))
    kind, _, rest = name.partition("_")
    if kind == "branch" and _ref_kind(table, rest) is RefKind.BRANCH:
        branch = table.branch(rest, create=False)
        return TableToken(table=branch, scan=branch.scan(as_of=as_of), pin=_pin(as_of))
    if name == CHANGES:
        _refuse_twice(table, name, as_of)
        return TableToken(table=table, scan=table.scan(), kind=name)
    if kind == "tag" and _ref_kind(table, rest) is RefKind.TAG:
        _refuse_twice(table, name, as_of)
        return TableToken(table=table, scan=table.scan(as_of=rest), pin=Pin.CHOSEN)
    snapshot = _SNAPSHOT.fullmatch(name)
    if snapshot is not None:
        _refuse_twice(table, name, as_of)
        return TableToken(table=table, scan=table.scan(as_of=int(snapshot[1])), pin=Pin.CHOSEN)
    moment = _TIME.fullmatch(name)
    if moment is not None:
        _refuse_twice(table, name, as_of)
        then = _EPOCH + timedelta(milliseconds=int(moment[1]))
        return TableToken(table=table, scan=table.scan(as_of=then), pin=Pin.CHOSEN)
    return None


def _ref_kind(table: Table, name: str) -> RefKind | None:
    ref = table.metadata.refs.get(name)
    return None if ref is None else ref.kind


def _refuse_twice(table: Table, name: str, as_of: Any) -> None:
    if as_of is not None:
        raise InvalidInput(
            f"{table.name}.{name} names what to read; VERSION AS OF and TIMESTAMP AS OF go with "
            f"{table.name}"
        )


def _pin(as_of: Any) -> Pin:
    return Pin.RESOLVED if as_of is None else Pin.CHOSEN


def _appended(spark: SparkSession, table: Table, start: int, end: int | None) -> DataFrame:
    """The rows that appends added after one snapshot, up to and including another."""
    from frazil.spark.read.change_frame import frame

    feed = table.changes(start, end)
    appends = [
        int(snapshot.snapshot_id) for snapshot in feed.snapshots if snapshot.operation == "append"
    ]
    rows = frame(spark, feed).where("_change_type = 'insert'")
    return rows.where(rows["_commit_snapshot_id"].isin(appends))


def _as_of(request: Mapping[str, Any]) -> int | str | datetime | None:
    version = request.get("version")
    if version is not None:
        return int(version) if version.isdigit() else str(version)
    micros = request.get("timestamp")
    return None if micros is None else _EPOCH + timedelta(microseconds=int(micros))


def _transform(table: Table, part: PartitionField) -> dict[str, Any]:
    name = str(part.transform).partition("[")[0]
    sources = [table.metadata.schema().find_column_name(source) or "" for source in part.source_ids]
    document: dict[str, Any] = {
        "transform": _PLURALS.get(name, name),
        "columns": [
            ".".join(f"`{level.replace('`', '``')}`" for level in source.split("."))
            for source in sources
        ],
    }
    if isinstance(part.transform, BucketTransform | JointBucketTransform):
        document["width"] = part.transform.num_buckets
    elif isinstance(part.transform, TruncateTransform):
        document["width"] = part.transform.width
    return document


def _table_properties(table: Table) -> dict[str, str]:
    snapshot = table.current_snapshot()
    return {
        "provider": "frazil",
        "location": table.location,
        CURRENT_SNAPSHOT: "none" if snapshot is None else str(snapshot.snapshot_id),
    }

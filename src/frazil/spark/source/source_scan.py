"""What the data source reads: the scan that its options describe, pinned to one snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import types as sql

from frazil.errors import InvalidInput
from frazil.format.metadata.metadata import Snapshot
from frazil.iceberg.schema import Schema
from frazil.spark.options.source_options import SourceOptions
from frazil.spark.types.spark_types import spark_schema
from frazil.table.refs import schema_at
from frazil.value_classes import replace

if TYPE_CHECKING:
    from frazil.rows.scan import Scan
    from frazil.table.table import Table


def scan_of(
    table: Table, options: SourceOptions, snapshot: Snapshot | None, schema: Schema
) -> Scan:
    """The scan that the options ask for."""
    from frazil.rows.scan import Scan

    return Scan(
        _handle=table._handle,
        snapshot=snapshot,
        matching=options.where,
        columns=options.columns,
        schema_override=schema,
    )


def pinned(table: Table, options: SourceOptions) -> tuple[Snapshot | None, Schema]:
    """The snapshot and the schema to read it in."""
    if options.snapshot == 0:
        snapshot, schema = None, table.metadata.schema()
    else:
        at = options.moment(table)
        if at is None:
            snapshot, schema = table.current_snapshot(), table.metadata.schema()
        else:
            snapshot = table.snapshot(at)
            schema = schema_at(table.metadata, at, snapshot)
    if options.schema_id is not None:
        schema = table.metadata.schema_by_id(options.schema_id)
    return snapshot, schema


def narrowed(scan: Scan, asked: sql.StructType) -> Scan:
    """The scan with only the columns asked for, in their order."""
    types = {field.name: field.dataType for field in spark_schema(scan.read_schema)}
    problems = [
        f"\n  - column '{field.name}': asked for as {field.dataType.simpleString()}; the table has "
        + (types[field.name].simpleString() if field.name in types else "no such column")
        for field in asked
        if field.name not in types
        or types[field.name].simpleString() != field.dataType.simpleString()
    ]
    if problems:
        raise InvalidInput("The schema asked for does not fit the table:" + "".join(problems))
    names = tuple(field.name for field in asked)
    if names == tuple(types):
        return scan
    return replace(scan, columns=names)

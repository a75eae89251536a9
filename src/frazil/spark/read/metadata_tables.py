"""Metadata tables as Spark takes them: `Table.inspect`'s Arrow tables in Spark's types."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as sql
from pyspark.sql.pandas.types import from_arrow_schema

from frazil.format.metadata.metadata import Snapshot
from frazil.spark.types.spark_arrow import arrow_of
from frazil.table.inspect import Inspect
from frazil.table.table import Table

_ROWS_PER_TASK = 50_000
_PROPERTIES = {"metadata_log_entries": "metadata_log"}


def metadata_schema(table: Table, name: str) -> sql.StructType:
    """The Spark schema of a metadata table; no manifest is read for it."""
    return _spark_schema(_table(Inspect(table._handle, None), name).schema)


def metadata_frame(
    spark: SparkSession, table: Table, snapshot: Snapshot | None, name: str
) -> DataFrame:
    """The rows of a metadata table."""
    rows = _table(Inspect(table._handle, snapshot), name)
    schema = _spark_schema(rows.schema)
    return spark.createDataFrame(rows.cast(arrow_of(schema)), schema)


def metadata_parts(inspect: Inspect, name: str) -> Iterator[bytes]:
    """The rows of a metadata table as Arrow streams, one per task."""
    table = _table(inspect, name)
    converted = table.cast(arrow_of(_spark_schema(table.schema)))
    for start in range(0, max(converted.num_rows, 1), _ROWS_PER_TASK):
        part = converted.slice(start, _ROWS_PER_TASK).combine_chunks()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, part.schema) as stream:
            stream.write_table(part)
        yield bytes(sink.getvalue())


def _table(inspect: Inspect, name: str) -> pa.Table:
    rows: pa.Table = getattr(inspect, _PROPERTIES.get(name, name))
    schema = pa.schema([_plain_field(field) for field in rows.schema])
    return rows.cast(schema, safe=False)


def _spark_schema(arrow: pa.Schema) -> sql.StructType:
    struct: sql.StructType = from_arrow_schema(arrow, prefer_timestamp_ntz=True)
    return struct


def _plain_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _plain(field.type), True)


def _plain(kind: pa.DataType) -> pa.DataType:
    """Types that Spark has. Times of commits are UTC milliseconds; bounds keep their meaning."""
    if pa.types.is_struct(kind):
        return pa.struct([_plain_field(child) for child in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), pa.field("value", _plain(kind.item_type), True))
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _plain(kind.value_type), True))
    if pa.types.is_timestamp(kind):
        zone = "UTC" if kind.tz is not None or kind.unit == "ms" else None
        return pa.timestamp("us", zone)
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_time(kind):
        return pa.time64("ns")
    return kind

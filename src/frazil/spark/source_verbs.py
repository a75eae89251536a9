"""The data source in a session whose driver is asked: batches through Frazil's own scan.

Options, columns and rows are those of the Python source (`source`), which serves where there is no
such driver, and for streams.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import types as sql

from frazil.spark.find_table import prepare
from frazil.spark.loaded import ROWS, Loaded
from frazil.spark.metadata_tables import metadata_schema
from frazil.spark.source_options import CHANGES_ARE_STREAMS, SourceOptions
from frazil.spark.source_scan import narrowed, pinned, scan_of
from frazil.spark.spark_types import spark_schema
from frazil.spark.stream_options import STREAM_OPTIONS, StreamMode, StreamOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from frazil.table.table import Table


class SourceVerbs:
    """Answers for the data source of one session; `tables` is where tokens find theirs."""

    def __init__(self, spark: SparkSession, tables: dict[str, Table]) -> None:
        self._spark = spark
        self._tables = tables

    def described(self, request: str) -> dict[str, Any]:
        """The table that options name, pinned; with the columns of a schema, if one is given."""
        asked = json.loads(request)
        options = _parsed(asked["options"])
        streams = StreamOptions.parse(asked["options"])
        table = options.load()
        if streams.mode is StreamMode.CHANGES:
            from frazil.spark.stream_source import stream_schema

            schema = stream_schema(table, streams, options.columns)
            return {"schema": schema.json(), "refused": CHANGES_ARE_STREAMS}
        scan = scan_of(table, options, *pinned(table, options))
        if options.where is not None:
            _ = scan.filter  # refuses what only another engine can evaluate
        loaded = Loaded(
            table=table,
            scan=scan,
            kind=options.metadata or ROWS,
            is_pinned=True,
            split_bytes=options.split_bytes,
        )
        if loaded.kind != ROWS:
            schema = metadata_schema(table, loaded.kind)
        else:
            if "schema" in asked:
                scan = narrowed(scan, sql.StructType.fromJson(json.loads(asked["schema"])))
            schema = spark_schema(scan.schema)
            prepare(self._spark, (field.field_type for field in scan.schema.fields))
        key = f"{options.catalog} {options.catalog_name} {table.name} at {table.location}"
        self._tables[key] = table
        return {**loaded.described(key), "schema": schema.json()}

    def insert(self, request: Any) -> dict[str, Any]:
        """Add the rows of a frame, or put them in the place of all rows; one snapshot."""
        from frazil.spark.writer import append, commit_added, replacing_all, write_frame

        asked = json.loads(request[0])
        options = _parsed(asked["options"])
        options.check_writable()
        table = options.load()
        rows = DataFrame(request[1], self._spark)
        if asked["overwrite"]:
            entries = write_frame(rows, table)
            commit_added(table, entries, lambda: replacing_all(table, entries))
        else:
            append(table, rows)
        return {}


def _parsed(options: Mapping[str, str]) -> SourceOptions:
    return SourceOptions.parse(options, extra=STREAM_OPTIONS)

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

from frazil.spark.bridge.table_token import APPENDS, ROWS, Pin, TableToken
from frazil.spark.options.source_options import CHANGES_ARE_STREAMS, SourceOptions
from frazil.spark.options.stream_options import STREAM_OPTIONS, StreamMode, StreamOptions
from frazil.spark.options.write_terms import WriteTerms
from frazil.spark.read.metadata_tables import metadata_schema
from frazil.spark.session.find_table import prepare
from frazil.spark.source.source_scan import narrowed, pinned, scan_of
from frazil.spark.types.spark_types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from frazil.spark.bridge.verbs import Bridge


class SourceVerbs:
    """Answers for the data source of one session."""

    def __init__(self, spark: SparkSession, bridge: Bridge) -> None:
        self._spark = spark
        self._bridge = bridge

    def described(self, request: str) -> dict[str, Any]:
        """The table that options name, pinned; with the columns of a schema, if one is given."""
        asked = json.loads(request)
        options = _parsed(asked["options"])
        streams = StreamOptions.parse(asked["options"])
        table = options.load()
        if streams.mode is StreamMode.CHANGES:
            from frazil.spark.source.stream_source import stream_schema

            schema = stream_schema(table, streams, options.columns)
            return {"schema": schema.json(), "refused": CHANGES_ARE_STREAMS}
        scan = scan_of(table, options, *pinned(table, options))
        if options.where is not None:
            _ = scan.filter  # refuses what only another engine can evaluate
        is_chosen = options.moment(table) is not None or options.appended is not None
        loaded = TableToken(
            table=table,
            scan=scan,
            kind=options.metadata or (ROWS if options.appended is None else APPENDS),
            pin=Pin.CHOSEN if is_chosen else Pin.FRAME,
            split_bytes=options.split_bytes,
            appended=options.appended,
        )
        if options.metadata is not None:
            schema = metadata_schema(table, loaded.kind)
        else:
            if "schema" in asked:
                scan = narrowed(scan, sql.StructType.fromJson(json.loads(asked["schema"])))
            schema = spark_schema(scan.read_schema)
            prepare(self._spark, (field.field_type for field in scan.read_schema.fields))
        key = f"{options.catalog} {options.catalog_name} {table.name} at {table.location}"
        self._bridge.tables[key] = table
        return {**loaded.described(key), "schema": schema.json()}

    def insert(self, request: Any) -> dict[str, Any]:
        """Add the rows of a frame, or put them in the place of all rows; one snapshot."""
        from frazil.spark.session.session_bridge import refresh_cache
        from frazil.spark.write.writer import append_rows, replace_rows

        asked = json.loads(request[0])
        options = _parsed(asked["options"])
        options.check_writable()
        table = options.load()
        rows = DataFrame(request[1], self._spark)
        terms = WriteTerms(table=table, base=self._bridge.base_of(table, asked["scanned"]))
        if asked["overwrite"]:
            replace_rows(terms, rows)
        else:
            append_rows(terms, rows)
        refresh_cache(self._spark, table)
        return {}


def _parsed(options: Mapping[str, str]) -> SourceOptions:
    return SourceOptions.parse(options, extra=STREAM_OPTIONS)

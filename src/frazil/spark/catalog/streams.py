"""Tables of a catalog as streams: what the Python data source is told, to find them again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from frazil.errors import InvalidInput, Unsupported
from frazil.format.metadata.metadata import MAIN
from frazil.spark.bridge.table_token import CHANGES, ROWS, Pin, TableToken
from frazil.spark.options.source_options import SourceOptions
from frazil.spark.options.stream_options import STREAM_OPTIONS, StreamMode, StreamOptions

if TYPE_CHECKING:
    from frazil.table.catalog import Catalog


def stream_of(
    catalog: Catalog, loaded: TableToken, options: Mapping[str, str], *, writes: bool
) -> dict[str, Any]:
    """The options of the data source for a table that a stream names, and the columns it gives."""
    table = loaded.changed_table() if writes else loaded.table
    if catalog._origin is None:
        raise Unsupported(
            "a stream opens its catalog in a process of its own, which needs an address: open the "
            "catalog with frazil.connect",
            feature="streams of a catalog without an address",
        )
    lower_options = {key.lower(): value for key, value in options.items()}
    if loaded.kind == CHANGES:
        lower_options["stream-mode"] = StreamMode.CHANGES
    elif loaded.kind != ROWS or loaded.pin is not Pin.RESOLVED:
        raise InvalidInput(
            f"streams read {table.name}, a branch of it or {table.name}.changes; metadata "
            "tables and past states do not grow"
        )
    if table.branch_name != MAIN:
        lower_options["branch"] = table.branch_name
    place = {key: value for key, value in catalog._origin.items() if key not in ("uri", "name")}
    options = {
        **lower_options,
        **place,
        "catalog": catalog._origin["uri"],
        "catalog-name": catalog._origin["name"],
        "path": table.name,
    }
    source = SourceOptions.parse(options, extra=STREAM_OPTIONS)
    stream = StreamOptions.parse(options)
    if writes:
        from frazil.spark.types.spark_types import spark_schema

        return {"options": options, "schema": spark_schema(table.metadata.schema()).json()}
    try:
        from frazil.spark.source.stream_source import stream_schema
    except ImportError as error:
        raise Unsupported(
            "tables are read as streams on Spark 4.2 or newer", feature="streams on this Spark"
        ) from error
    return {"options": options, "schema": stream_schema(table, stream, source.columns).json()}

"""ALTER TABLE as Spark describes it: columns and properties, all changes in one commit."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import types as sql

from frazil.errors import InvalidInput, Unsupported
from frazil.spark.types.defaults import default_value
from frazil.spark.types.spark_types import declared_schema, spark_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from frazil.iceberg.types import IcebergType
    from frazil.table.columns.evolve import EvolveSchema
    from frazil.table.table import Table

log = logging.getLogger("frazil.spark")
_KEY: Final = "format-version"
_KNOWN: Final = ("2", "3", "4")
_RESERVED: Final = frozenset({"location", "provider"})


def without_format_version(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that are stored: a version that readers of the table can do with is noted and
    left out, any other stays and is refused with them."""
    version = properties.get(_KEY)
    if version not in _KNOWN:
        return dict(properties)
    if version != "4":
        log.warning("format-version %s is not stored: tables are of version 4", version)
    return {key: value for key, value in properties.items() if key != _KEY}


Change = Mapping[str, Any]


def alter(spark: SparkSession, table: Table, changes: Sequence[Change]) -> None:
    """Carry the changes out."""
    updates = {
        change["property"]: change["value"]
        for change in changes
        if change["change"] == "SetProperty"
    }
    removals = [change["property"] for change in changes if change["change"] == "RemoveProperty"]
    reserved = sorted(_RESERVED & {*updates, *removals})
    if reserved:
        raise Unsupported(
            f"ALTER TABLE cannot change the {reserved[0]} of a table", feature="alter"
        )
    columns = [change for change in changes if "column" in change]
    if len(columns) + len(updates) + len(removals) < len(changes):
        other = next(
            change for change in changes if "column" not in change and "property" not in change
        )
        raise Unsupported(f"ALTER TABLE: {other['change']} is not supported", feature="alter")
    updates = without_format_version(updates)
    with table.transaction() as tx:
        if columns:
            with tx.evolve_schema() as schema:
                for change in columns:
                    _column(spark, schema, change)
        if updates or removals:
            tx.set_properties(updates, remove=removals)


def _column(spark: SparkSession, columns: EvolveSchema, change: Change) -> None:
    path = tuple(change["column"])
    match change["change"]:
        case "AddColumn":
            columns.add_column(
                path,
                _type(change["type"]),
                doc=change.get("comment"),
                required=not change["nullable"],
                default=_default(spark, change, _spark_type(change["type"])),
                first=change.get("first", False),
                after=change.get("after"),
            )
        case "RenameColumn":
            columns.rename_column(path, change["to"])
        case "UpdateColumnType":
            columns.update_column(path, type=_type(change["type"]))
        case "UpdateColumnNullability":
            if not change["nullable"]:
                raise InvalidInput(f"column {'.'.join(path)} cannot be made NOT NULL")
            columns.update_column(path, required=False)
        case "UpdateColumnComment":
            columns.update_column(path, doc=change["comment"])
        case "UpdateColumnDefaultValue":
            field = columns.draft_schema.find_field(".".join(path))
            columns.update_column(
                path, default=_default(spark, change, spark_type(field.field_type))
            )
        case "UpdateColumnPosition":
            columns.move(path, first=change.get("first", False), after=change.get("after"))
        case "DeleteColumn":
            columns.drop_column(path)
        case other:
            raise Unsupported(f"ALTER TABLE: {other} is not supported", feature="alter")


def _spark_type(text: str) -> sql.DataType:
    """The type of the one column of a schema: by itself a type would lose its collation."""
    return sql.StructType.fromJson(json.loads(text)).fields[0].dataType


def _type(text: str) -> IcebergType:
    schema = sql.StructType.fromJson(json.loads(text))
    return declared_schema(schema).fields[0].field_type


def _default(spark: SparkSession, change: Change, kind: sql.DataType) -> Any:
    text = change.get("default")
    return default_value(spark, text, kind) if text else None

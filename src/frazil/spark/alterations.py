"""ALTER TABLE as Spark describes it: columns and properties, all changes in one commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as sql

from frazil.errors import InvalidInput, Unsupported
from frazil.spark.defaults import default_value
from frazil.spark.spark_types import declared_schema, spark_type

if TYPE_CHECKING:
    from pyiceberg.types import IcebergType
    from pyspark.sql import SparkSession

    from frazil.table.evolve import EvolveSchema
    from frazil.table.table import Table

Change = Mapping[str, Any]


def alter(spark: SparkSession, table: Table, changes: Sequence[Change]) -> None:
    """Carry the changes out."""
    updates = {
        each["property"]: each["value"] for each in changes if each["change"] == "SetProperty"
    }
    removals = [each["property"] for each in changes if each["change"] == "RemoveProperty"]
    columns = [each for each in changes if "column" in each]
    if len(columns) + len(updates) + len(removals) < len(changes):
        other = next(each for each in changes if "column" not in each and "property" not in each)
        raise Unsupported(f"ALTER TABLE: {other['change']} is not supported", feature="alter")
    with table.transaction() as tx:
        if columns:
            with tx.evolve_schema() as schema:
                for each in columns:
                    _column(spark, schema, each)
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
            field = columns.schema.find_field(".".join(path))
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
    return sql._parse_datatype_json_string(text)


def _type(text: str) -> IcebergType:
    field = sql.StructField("c", _spark_type(text))
    return declared_schema(sql.StructType([field])).fields[0].field_type


def _default(spark: SparkSession, change: Change, kind: sql.DataType) -> Any:
    text = change.get("default")
    return default_value(spark, text, kind) if text else None

"""The public functions of schemas, which take and give PyIceberg's. Nothing inside calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import types as sql

from frazil.iceberg import types as ice
from frazil.iceberg.pyiceberg_values import AnySchema, from_pyiceberg, pyiceberg_schema
from frazil.spark.types import spark_types

if TYPE_CHECKING:
    from pyiceberg.schema import Schema as PyIcebergSchema


def spark_schema(schema: AnySchema | ice.StructType) -> sql.StructType:
    """The Spark schema of a table. Raises an error that names every column without a Spark type."""
    return spark_types.spark_schema(from_pyiceberg(schema))


def table_schema(schema: sql.StructType) -> PyIcebergSchema:
    """A table schema for Spark rows, as PyIceberg's, with fresh field ids; every problem is listed
    at once.

    All columns are optional: that the rows of one frame have no nulls does not make them required.
    """
    return pyiceberg_schema(spark_types.frame_schema(schema))

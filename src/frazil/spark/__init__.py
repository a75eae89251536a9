"""Frazil on Spark: SQL, bulk reads and writes, and distributed row-level changes.

>>> import frazil.spark                                                   # doctest: +SKIP
>>> frazil.spark.register(spark, "warehouse")                             # doctest: +SKIP
>>> spark.sql("SELECT * FROM frazil.shop.orders WHERE price > 100")       # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from frazil.spark import jobs
    from frazil.spark.catalog.connect_sql import sql
    from frazil.spark.catalog.iceberg_runtime import iceberg_session
    from frazil.spark.catalog.register import register
    from frazil.spark.read.change_frame import changes
    from frazil.spark.rows.columns import add_columns, merge_columns
    from frazil.spark.rows.delete import delete
    from frazil.spark.rows.foreach import foreach_batch
    from frazil.spark.rows.merge import Merge, merge
    from frazil.spark.rows.overwrites import overwrite, overwrite_partitions
    from frazil.spark.rows.paimon_merge import merge_paimon
    from frazil.spark.rows.spark_engine import SparkEngine
    from frazil.spark.rows.table_frame import table
    from frazil.spark.rows.update import update
    from frazil.spark.session.jar import jar_path
    from frazil.spark.types.pyiceberg_schemas import spark_schema, table_schema
    from frazil.spark.write.writer import append

__all__ = [
    "Merge",
    "SparkEngine",
    "add_columns",
    "append",
    "changes",
    "delete",
    "foreach_batch",
    "iceberg_session",
    "jar_path",
    "jobs",
    "merge",
    "merge_columns",
    "merge_paimon",
    "overwrite",
    "overwrite_partitions",
    "register",
    "spark_schema",
    "sql",
    "table",
    "table_schema",
    "update",
]

_PLACES: Final = {
    "Merge": "rows.merge",
    "SparkEngine": "rows.spark_engine",
    "add_columns": "rows.columns",
    "append": "write.writer",
    "changes": "read.change_frame",
    "delete": "rows.delete",
    "foreach_batch": "rows.foreach",
    "iceberg_session": "catalog.iceberg_runtime",
    "jar_path": "session.jar",
    "jobs": "jobs",
    "merge": "rows.merge",
    "merge_columns": "rows.columns",
    "merge_paimon": "rows.paimon_merge",
    "overwrite": "rows.overwrites",
    "overwrite_partitions": "rows.overwrites",
    "register": "catalog.register",
    "spark_schema": "types.pyiceberg_schemas",
    "sql": "catalog.connect_sql",
    "table": "rows.table_frame",
    "table_schema": "types.pyiceberg_schemas",
    "update": "rows.update",
}
"""The module of every name. They are loaded when first used: the workers of a job load what their
task needs, and nothing else of this package."""


def __dir__() -> list[str]:
    """What there is to use, loaded or not."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """A name that is used for the first time."""
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'frazil.spark' has no attribute {name!r}")
    module = importlib.import_module(f"frazil.spark.{place}")
    value = globals()[name] = module if name == "jobs" else getattr(module, name)
    return value

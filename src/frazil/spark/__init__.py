"""Frazil on Spark: SQL, bulk reads and writes, and distributed row-level changes.

>>> import frazil.spark                                                   # doctest: +SKIP
>>> frazil.spark.register(spark, "warehouse")                             # doctest: +SKIP
>>> spark.sql("SELECT * FROM frazil.shop.orders WHERE price > 100")       # doctest: +SKIP
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from frazil.spark import jobs
    from frazil.spark.change_frame import changes
    from frazil.spark.connect_sql import sql
    from frazil.spark.delete import delete
    from frazil.spark.foreach import foreach_batch
    from frazil.spark.iceberg_runtime import iceberg_session
    from frazil.spark.jar import jar_path
    from frazil.spark.merge import Merge, merge
    from frazil.spark.overwrites import overwrite, overwrite_partitions
    from frazil.spark.paimon_merge import merge_paimon
    from frazil.spark.register import register
    from frazil.spark.spark_engine import SparkEngine
    from frazil.spark.spark_types import spark_schema, table_schema
    from frazil.spark.table_frame import table
    from frazil.spark.update import update
    from frazil.spark.writer import append

__all__ = [
    "Merge",
    "SparkEngine",
    "append",
    "changes",
    "delete",
    "foreach_batch",
    "iceberg_session",
    "jar_path",
    "jobs",
    "merge",
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
    "Merge": "merge",
    "SparkEngine": "spark_engine",
    "append": "writer",
    "changes": "change_frame",
    "delete": "delete",
    "foreach_batch": "foreach",
    "iceberg_session": "iceberg_runtime",
    "jar_path": "jar",
    "jobs": "jobs",
    "merge": "merge",
    "merge_paimon": "paimon_merge",
    "overwrite": "overwrites",
    "overwrite_partitions": "overwrites",
    "register": "register",
    "spark_schema": "spark_types",
    "sql": "connect_sql",
    "table": "table_frame",
    "table_schema": "spark_types",
    "update": "update",
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
    found = globals()[name] = module if name == place == "jobs" else getattr(module, name)
    return found


class _Package(ModuleType):
    """Some functions have the names of their modules; the name is the function's."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in _PLACES and name != "jobs"):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package

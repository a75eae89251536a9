"""Frazil on Spark: SQL, bulk reads and writes, and distributed row-level changes.

>>> import frazil.spark                                                   # doctest: +SKIP
>>> frazil.spark.register(spark, "warehouse")                             # doctest: +SKIP
>>> spark.sql("SELECT * FROM frazil.shop.orders WHERE price > 100")       # doctest: +SKIP
"""

from frazil.spark import jobs
from frazil.spark.change_frame import changes
from frazil.spark.connect_sql import sql
from frazil.spark.delete import delete
from frazil.spark.engine import SparkEngine
from frazil.spark.foreach import foreach_batch
from frazil.spark.iceberg_runtime import iceberg_session
from frazil.spark.jar import jar_path
from frazil.spark.merge import Merge, merge
from frazil.spark.overwrites import overwrite, overwrite_partitions
from frazil.spark.paimon_merge import merge_paimon
from frazil.spark.register import register
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

"""The data pipeline on Spark: bulk reads and writes, SQL, and whatever works on many rows.

>>> import frazil.spark                                                   # doctest: +SKIP
>>> orders = frazil.spark.table(spark, "shop.orders", where="price > 100")  # doctest: +SKIP
"""

from frazil.spark import jobs
from frazil.spark.attach import Attached, attach
from frazil.spark.change_frame import changes
from frazil.spark.delete import delete
from frazil.spark.foreach import foreach_batch
from frazil.spark.iceberg import iceberg_session
from frazil.spark.merge import Merge, merge
from frazil.spark.native import table
from frazil.spark.paimon_merge import merge_paimon
from frazil.spark.spark_types import spark_schema, table_schema
from frazil.spark.update import update
from frazil.spark.writer import append, overwrite, overwrite_partitions

__all__ = [
    "Attached",
    "Merge",
    "append",
    "attach",
    "changes",
    "delete",
    "foreach_batch",
    "iceberg_session",
    "jobs",
    "merge",
    "merge_paimon",
    "overwrite",
    "overwrite_partitions",
    "spark_schema",
    "table",
    "table_schema",
    "update",
]

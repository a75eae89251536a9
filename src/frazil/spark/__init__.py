"""The data pipeline on Spark: bulk reads and writes, SQL, and whatever works on many rows.

>>> import frazil.spark                                                   # doctest: +SKIP
>>> orders = frazil.spark.table(spark, "shop.orders", where="price > 100")  # doctest: +SKIP
"""

from frazil.spark.attach import Attached, attach
from frazil.spark.native import table
from frazil.spark.types import spark_schema, table_schema
from frazil.spark.writer import append, overwrite, overwrite_partitions

__all__ = [
    "Attached",
    "append",
    "attach",
    "overwrite",
    "overwrite_partitions",
    "spark_schema",
    "table",
    "table_schema",
]

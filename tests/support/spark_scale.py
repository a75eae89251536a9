"""Plans and counts all files of a table in Spark with a task per file, in a driver of little heap.

python -m tests.support.spark_scale <warehouse> <heap>
"""

from __future__ import annotations

import gc
import json
import sys
from typing import Any

import frazil
import frazil.spark
from tests.support.spark_session import CONF, shared_session


def main() -> None:
    """Plan twice and count; no plan is held."""
    warehouse, heap = sys.argv[1:]
    CONF["spark.driver.memory"] = heap
    CONF["spark.sql.files.maxPartitionBytes"] = "4194304"
    spark = shared_session()
    frazil.spark.register(spark, frazil.connect(warehouse))
    memory = spark._jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
    tasks = [_tasks(spark), _tasks(spark)]
    count = spark.sql("SELECT count(*) FROM frazil.shop.orders").first()[0]
    one = _tasks(spark, " WHERE order_id = 12345")
    gc.collect()
    spark._jvm.System.gc()
    held = memory.getHeapMemoryUsage().getUsed() / 2**20
    print(json.dumps({"tasks": tasks, "rows": count, "one": one, "held_mb": held}))
    spark.stop()


def _tasks(spark: Any, where: str = "") -> int:
    """The tasks of a query of all columns; none is run."""
    query = spark.sql(f"SELECT * FROM frazil.shop.orders{where}")
    return int(query._jdf.queryExecution().toRdd().getNumPartitions())


if __name__ == "__main__":
    main()

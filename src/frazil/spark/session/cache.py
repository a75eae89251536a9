"""Spark's cache of tables: what a session has cached it reads again after its own changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frazil.spark.session import jar
from frazil.spark.session.session_bridge import known_bridge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from frazil.table.table import Table


def refresh_cache(spark: SparkSession, table: Table) -> None:
    """Have a session read again what it has cached of a table. (Statements do so by themselves.)"""
    bridge = known_bridge(spark)
    for parts in () if bridge is None else bridge.names_of(table):
        levels = spark._jvm.java.util.ArrayList()
        for part in parts:
            levels.add(part)
        jar.call(spark, "Caches", "refresh", spark._jsparkSession, levels)

"""Where the bridge of a session is kept, for those who only use one that is there, and what a
session has cached of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from frazil.spark.session import jar
from frazil.spark.session.file_list import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from frazil.spark.bridge.verbs import Bridge
    from frazil.table.table import Table

_ATTRIBUTE: Final = "_frazil_bridges"


def bridges(spark: SparkSession) -> dict[str, Bridge]:
    """The bridges of a classic context, by the ids of their sessions."""
    by_session: dict[str, Bridge] = spark.sparkContext._gateway.__dict__.setdefault(_ATTRIBUTE, {})
    return by_session


def session_id(spark: SparkSession) -> str:
    """What tells the sessions of a context apart."""
    return str(spark._jsparkSession.sessionUUID())


def bridge_if_any(spark: SparkSession) -> Bridge | None:
    """The bridge of a session that has one; without it, the session has read no table."""
    return None if is_connect(spark) else bridges(spark).get(session_id(spark))


def refresh_cache(spark: SparkSession, table: Table) -> None:
    """Have a session read again what it has cached of a table. (Statements do so by themselves.)"""
    bridge = bridge_if_any(spark)
    for parts in () if bridge is None else bridge.names_of(table):
        levels = spark._jvm.java.util.ArrayList()
        for part in parts:
            levels.add(part)
        jar.call(spark, "Caches", "refresh", spark._jsparkSession, levels)

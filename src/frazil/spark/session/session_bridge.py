"""Where the bridge of a session is kept, for those who only use one that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from frazil.spark.session.file_list import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from frazil.spark.bridge.verbs import Bridge

_ATTRIBUTE: Final = "_frazil_bridges"


def bridges(spark: SparkSession) -> dict[str, Bridge]:
    """The bridges of a classic context, by the ids of their sessions."""
    known: dict[str, Bridge] = spark.sparkContext._gateway.__dict__.setdefault(_ATTRIBUTE, {})
    return known


def session_id(spark: SparkSession) -> str:
    """What tells the sessions of a context apart."""
    return str(spark._jsparkSession.sessionUUID())


def known_bridge(spark: SparkSession) -> Bridge | None:
    """The bridge of a session that has one; without it, the session has read no table."""
    return None if is_connect(spark) else bridges(spark).get(session_id(spark))

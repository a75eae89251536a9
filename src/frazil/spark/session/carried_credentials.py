"""Credentials on their way from the driver to its tasks: settings of a session, sent with tasks.

Spark keeps settings in memory and hides the values of those that are called secret, in its event
log too. A pickle, which a shuffle or a broadcast may write to disk, only names them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from frazil.credentials import Carrier, carry_by

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PREFIX: Final = "spark.frazil.secret."
_sent: Final[WeakKeyDictionary[SparkSession, set[str]]] = WeakKeyDictionary()
"""The sessions that were seen, and the names that each has."""


def carry_with(spark: SparkSession) -> None:
    """Send the credentials that tasks of a session need with its settings."""
    _sent.setdefault(spark, set())
    carry_by(_CARRIER)


def send(name: str, secrets: Mapping[str, str]) -> None:
    """Give credentials to every session that is running."""
    text = json.dumps(dict(secrets))
    for spark, names in list(_sent.items()):
        if _is_stopped(spark):
            del _sent[spark]
            continue
        if name not in names:
            spark.conf.set(f"{PREFIX}{name}", text)
            names.add(name)
        context = getattr(spark, "_sc", None)
        if context is not None:  # a job without SQL has no settings of a session
            context.setLocalProperty(f"{PREFIX}{name}", text)


def fetch(name: str) -> Mapping[str, str] | None:
    """The credentials that came with the task that runs here."""
    from pyspark import TaskContext

    context = TaskContext.get()
    text = None if context is None else context.getLocalProperty(f"{PREFIX}{name}")
    return None if text is None else json.loads(text)


_CARRIER: Final = Carrier(send, fetch)


def _is_stopped(spark: Any) -> bool:
    context = getattr(spark, "_sc", None)
    return bool(spark.is_stopped) if context is None else context._jsc is None

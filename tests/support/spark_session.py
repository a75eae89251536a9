"""The Spark session that tests of one process share."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

SRC = str(Path(__file__).resolve().parents[2] / "src")
CONF = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "America/Los_Angeles",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.ui.showConsoleProgress": "false",
}


def shared_session() -> Any:
    """The session that owns the context; executors find the package through PYTHONPATH."""
    from pyspark.sql import SparkSession

    before = os.environ.get("PYTHONPATH", "")
    if SRC not in before.split(os.pathsep):
        os.environ["PYTHONPATH"] = f"{SRC}{os.pathsep}{before}" if before else SRC
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[2]").appName("frazil-tests")
    for key, value in CONF.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def own_session(shared: Any) -> Any:
    """A session of a test's own: settings and views do not leak."""
    made = shared.newSession()
    classes = type(made)._get_j_spark_session_class(made._jvm)
    classes.setActiveSession(made._jsparkSession)
    return made

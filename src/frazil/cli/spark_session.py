"""A Spark session for commands that need one: on this machine, quiet, stopped at the end."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from frazil.errors import Unsupported

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
}


def has_spark() -> bool:
    """Whether PySpark is installed."""
    return importlib.util.find_spec("pyspark") is not None


@contextmanager
def local_spark(name: str, **conf: str) -> Iterator[SparkSession]:
    """A session in local mode, unless `SPARK_MASTER` names a cluster."""
    if not has_spark():
        raise Unsupported("this needs Spark: pip install 'frazil[spark]'", feature="Spark")
    from pyspark.sql import SparkSession

    # Workers find the package where this process found it.
    source = str(Path(__file__).resolve().parents[2])
    python_path = os.environ.get("PYTHONPATH", "")
    if source not in python_path.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(part for part in (source, python_path) if part)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName(name).master(os.environ.get("SPARK_MASTER", "local[*]"))
    cores = str(os.cpu_count() or 2)
    for key, value in {**_CONF, "spark.sql.shuffle.partitions": cores, **conf}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()

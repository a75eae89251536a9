"""One Spark session for all tests here; every test gets a new session on its context."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import frazil

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


@pytest.fixture(scope="session")
def spark_context() -> Iterator[Any]:
    """The session that owns the context; executors find the package through PYTHONPATH."""
    from pyspark.sql import SparkSession

    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = SRC if not before else f"{SRC}{os.pathsep}{before}"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[2]").appName("frazil-tests")
    for key, value in CONF.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def spark(spark_context: Any) -> Any:
    """A session of the test's own: settings and views do not leak."""
    made = spark_context.newSession()
    classes = type(made)._get_j_spark_session_class(made._jvm)
    classes.setActiveSession(made._jsparkSession)
    return made


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[frazil.Catalog]:
    """An empty embedded catalog."""
    with frazil.connect(tmp_path / "warehouse") as made:
        yield made

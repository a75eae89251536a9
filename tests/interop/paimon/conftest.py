"""Paimon tables by their own writers, and a catalog to take them over into."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.paimon.peers import PeerTables, java_tables, pypaimon_tables
from tests.support.memory_catalog import MemoryCatalog
from tests.support.project import ROOT


@pytest.fixture(scope="session")
def java_paimon() -> PeerTables:
    """Tables by Paimon's Java API."""
    return java_tables()


@pytest.fixture(scope="session")
def pypaimon() -> PeerTables:
    """Tables by pypaimon."""
    return pypaimon_tables()


@pytest.fixture
def catalog(tmp_path: Path) -> MemoryCatalog:
    """An empty catalog with one namespace."""
    made = MemoryCatalog(warehouse=f"file://{tmp_path}/warehouse")
    made.namespaces.create("db")
    return made


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A Spark session whose time zone is far from UTC."""
    from pyspark.sql import SparkSession

    before = os.environ.get("PYTHONPATH")
    source = str(ROOT / "src")
    os.environ["PYTHONPATH"] = source if not before else f"{source}{os.pathsep}{before}"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    was_active = SparkSession.getActiveSession() is not None
    builder = SparkSession.builder.master("local[2]").appName("paimon")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "America/Los_Angeles",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    if not was_active:
        session.stop()

"""One Spark session for all tests here; every test gets a new session on its context."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import frazil
import frazil.spark
from tests.spark.shop import ORDERS, orders
from tests.support.spark_session import own_session, shared_session


@pytest.fixture(scope="session")
def spark_context() -> Iterator[Any]:
    """The session that owns the context."""
    session = shared_session()
    yield session
    session.stop()


@pytest.fixture
def spark(spark_context: Any) -> Any:
    """A session of the test's own: settings and views do not leak."""
    return own_session(spark_context)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[frazil.Catalog]:
    """An empty embedded catalog."""
    with frazil.connect(tmp_path / "warehouse") as made:
        yield made


@pytest.fixture
def table(spark: Any, catalog: frazil.Catalog) -> frazil.Table:
    """Ninety orders in three files, one per day, registered as `frazil.shop.orders`."""
    made = catalog.create_table("shop.orders", ORDERS, partition_by=["day"])
    made.append(orders(range(90)))
    frazil.spark.register(spark, catalog)
    return made

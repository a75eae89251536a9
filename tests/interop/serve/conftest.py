"""One served catalog and one Spark session for all tests of this folder that need them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import frazil
from frazil import serve
from frazil.table import Catalog
from tests.interop.serve.spark_client import Spark


@pytest.fixture(scope="session")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    """A catalog with the namespace `shop`."""
    with frazil.connect(tmp_path_factory.mktemp("served")) as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture(scope="session")
def spark(catalog: Catalog) -> Iterator[Spark]:
    """Spark on that catalog."""
    with serve.start(catalog) as server:
        started = Spark(server.uri)
        yield started
        started.close()

"""A served catalog: through the test client, and on a port for real clients."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import frazil
from frazil import serve
from frazil.serve.app import build
from frazil.serve.running import Running
from frazil.serve.service import Service
from frazil.table import Catalog


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    """An empty embedded catalog."""
    with frazil.connect(tmp_path / "warehouse") as opened:
        yield opened


@pytest.fixture
def service(catalog: Catalog) -> Service:
    """The catalog, ready to be served."""
    return Service(catalog)


@pytest.fixture
def client(service: Service) -> Iterator[TestClient]:
    """Requests without a network."""
    with TestClient(build(service), base_url="http://127.0.0.1:8181") as made:
        yield made


@pytest.fixture
def server(catalog: Catalog) -> Iterator[Running]:
    """The catalog on a port of this machine."""
    with serve.start(catalog) as running:
        yield running


@pytest.fixture
def remote(server: Running) -> Iterator[Catalog]:
    """The catalog as Frazil's own client sees it."""
    with frazil.connect(server.uri) as opened:
        yield opened

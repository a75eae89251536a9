"""A catalog and its server, for one test of an engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import frazil
from frazil import serve
from frazil.serve.running import Running
from frazil.table import Catalog


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with frazil.connect(tmp_path / "warehouse") as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture
def server(catalog: Catalog) -> Iterator[Running]:
    with serve.start(catalog) as running:
        yield running

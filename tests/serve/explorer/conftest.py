"""A small table with real rows, served; requests come from the machine itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from starlette.testclient import TestClient

import frazil
from frazil.serve.app import build
from frazil.serve.service import Service
from frazil.serve.settings import Settings
from frazil.table import Catalog, Table
from tests.support.explorer_shop import small_orders

API = "/explorer/api"
ORDERS = f"{API}/tables/shop/orders"
HERE = "http://127.0.0.1"


class Get(Protocol):
    """A question to the explorer about the table of orders, answered with 200."""

    def __call__(self, view: str, **query: str) -> dict[str, Any]: ...


@pytest.fixture(scope="session")
def shop_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse that tests only read."""
    folder = tmp_path_factory.mktemp("explorer") / "warehouse"
    with frazil.connect(folder) as catalog:
        catalog.create_namespace("shop")
        small_orders(catalog)
    return folder


@pytest.fixture
def shop(shop_folder: Path) -> Iterator[Catalog]:
    """The warehouse, opened."""
    with frazil.connect(shop_folder) as opened:
        yield opened


@pytest.fixture
def orders(shop: Catalog) -> Table:
    """The table of orders."""
    return shop.load_table("shop.orders")


@pytest.fixture
def page(shop: Catalog) -> Iterator[TestClient]:
    """A browser without a window."""
    with TestClient(build(Service(shop)), base_url=HERE) as client:
        yield client


@pytest.fixture
def get(page: TestClient) -> Get:
    """Ask about the table."""

    def ask(view: str, **query: str) -> dict[str, Any]:
        answer = page.get(f"{ORDERS}/{view}", params=query)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    return ask


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Catalog]:
    """A warehouse with the same table, to be changed."""
    with frazil.connect(tmp_path / "warehouse") as opened:
        opened.create_namespace("shop")
        small_orders(opened)
        yield opened


def browse(catalog: Catalog, settings: Settings | None = None, **options: Any) -> TestClient:
    """A page of a server of one's own, with its session's token on every request."""
    client = TestClient(build(Service(catalog, settings, **options)), base_url=HERE)
    token = client.get(f"{API}/session").json()["token"]
    if token is not None:
        client.headers["x-frazil-session"] = token
    return client

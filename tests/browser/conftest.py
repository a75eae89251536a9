"""A chromium that looks at a served catalog, and fails a test that leaves an error in its console.

Pictures of the pages are written to the folder FRAZIL_SCREENSHOTS, by default .cache/screenshots.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, sync_playwright

import frazil
from frazil import serve
from frazil.serve.running import Running
from frazil.table import Catalog
from tests.browser.window import Window
from tests.support.explorer_shop import forest, small_orders

HERE = Path(__file__).parent
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Catalog]:
    """A catalog that a test may change."""
    with frazil.connect(tmp_path / "warehouse") as opened:
        yield opened


# Playwright keeps an event loop in this thread while it runs, so it ends with each module.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window."""
    if not Path(CHROMIUM).exists():
        pytest.skip("chromium is not installed: make setup-dev installs it")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="session")
def pictures() -> Path:
    """Where pictures go."""
    folder = Path(os.environ.get("FRAZIL_SCREENSHOTS", ".cache/screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    """A catalog with a small table of real rows, shop.orders, which tests leave as it is."""
    with frazil.connect(tmp_path_factory.mktemp("shop") / "warehouse") as opened:
        small_orders(opened)
        yield opened


@pytest.fixture(scope="session")
def server(catalog: Catalog) -> Iterator[Running]:
    """The catalog, served on a port of this machine."""
    with serve.start(catalog) as running:
        yield running


@pytest.fixture(scope="session")
def forest_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A catalog with big.forest: 400,004 files, of which 400,000 are in 1,000 leaves."""
    with frazil.connect(tmp_path_factory.mktemp("forest") / "warehouse") as opened:
        forest(opened, "big.forest")
        with serve.start(opened) as running:
            yield running


@pytest.fixture
def window(browser: Browser, server: Running, pictures: Path) -> Iterator[Window]:
    """A window of 1280 by 800 pixels on the small catalog."""
    with Window(browser, server.uri, pictures).open() as opened:
        yield opened


def where(text: str) -> str:
    """A filter as a part of an address."""
    return f"where={quote(text)}"

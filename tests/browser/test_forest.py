"""400,000 files in 1,000 leaves: one canvas, few elements, one small request per keystroke."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from frazil.serve.running import Running
from tests.browser.window import Window

ELEMENTS = 900
TREE_BYTES = 900_000
PLAN_BYTES = 20_000


@pytest.fixture
def wood(browser: Browser, forest_server: Running, pictures: Path) -> Iterator[Window]:
    """A window on the large table."""
    with Window(browser, forest_server.uri, pictures).open() as opened:
        yield opened


def test_many_leaves_are_one_canvas(wood: Window) -> None:
    page = wood.go("#/big/forest/tree")
    expect(page.locator(".caption")).to_contain_text("One root lists all 400,004 files")
    expect(page.locator(".root")).to_contain_text("1,000 leaves")
    assert page.locator(".leaf").count() == 0
    assert page.evaluate("document.querySelectorAll('*').length") < ELEMENTS
    assert wood.received() < TREE_BYTES
    wood.picture("forest")
    assert wood.violations() == []


def test_keystrokes_cost_one_small_plan_each(wood: Window) -> None:
    page = wood.go("#/big/forest/tree")
    before = len(wood.asked())
    page.locator(".fbox input").press_sequentially("order_day = '2024-02-11'", delay=20)
    # 1,000 files a day, in the leaves of 400 that the day touches.
    expect(page.locator(".caption")).to_contain_text("1,000 of 400,004 files are left")
    expect(page.locator("canvas.forest")).to_have_attribute("data-kept", "3")
    asked = wood.asked()[before:]
    assert all("/plan?" in path for path in asked)
    assert len(asked) <= len("order_day = '2024-02-11'")
    last = [r for r in wood.answers if "/plan?" in r.url and r.status == 200][-1]
    assert len(last.body()) < PLAN_BYTES
    assert page.evaluate("document.querySelectorAll('*').length") < ELEMENTS
    wood.picture("forest-filter")


def test_leaves_of_the_canvas_open_by_keyboard(wood: Window) -> None:
    page = wood.go("#/big/forest/tree")
    page.locator("canvas.forest").focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator(".side.det h2").first).to_have_text("Leaf M5")
    expect(page.locator(".entries tbody tr")).to_have_count(25)
    wood.picture("forest-leaf")


def test_neighbours_are_merged_above_1500_leaves(wood: Window) -> None:
    page = wood.go("#/big/forest/tree")
    made = page.evaluate("import('/explorer/tree/layout.js').then((m) => m.groups(4000, 1500))")
    assert len(made) == 1334
    assert (made[0]["from"], made[0]["to"]) == (0, 3)
    assert (made[-1]["from"], made[-1]["to"]) == (3999, 4000)

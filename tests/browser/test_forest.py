"""400,000 files in 1,000 leaves: one canvas, few elements, one small request per keystroke."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from frazil.serve.running import Running
from tests.browser.window import Window

ELEMENTS = 900
TREE_BYTES = 900_000
PLAN_BYTES = 20_000
STEP_BYTES = 4_000
NEWS_BYTES = 200


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
    expect(page.locator(".side.det h2").first).to_have_text("Leaf 5")
    expect(page.locator(".entries tbody tr")).to_have_count(25)
    wood.picture("forest-leaf")


def test_scrub_step_sends_no_leaf_again(wood: Window) -> None:
    page = wood.go("#/big/forest/tree")
    before = len(wood.answers)
    for number in (4, 3, 2):
        page.get_by_role("button", name="Previous commit").click()
        expect(page.locator("#say")).to_contain_text(f"Commit {number} of 5")
        expect(page.locator(".caption")).to_contain_text(f"{399_999 + number:,} files")
        wood.settled()
    steps = [r for r in wood.answers[before:] if "/tree?" in r.url]
    assert len(steps) == 3
    assert all(len(r.body()) < STEP_BYTES for r in steps), [len(r.body()) for r in steps]
    wood.picture("forest-step")


def test_scrub_step_with_a_filter_is_two_small_requests(wood: Window) -> None:
    page = wood.go("#/big/forest/tree?where=order_day%20%3D%20%272024-02-11%27")
    before = len(wood.answers)
    page.get_by_role("button", name="Previous commit").click()
    expect(page.locator(".caption")).to_contain_text("1,000 of 400,003 files are left")
    wood.settled()
    news = "/api/changes"
    asked = [r for r in wood.answers[before:] if "/api/" in r.url and news not in r.url]
    assert sorted(r.url.partition("?")[0].rpartition("/")[2] for r in asked) == ["plan", "tree"]
    assert sum(len(r.body()) for r in asked) < STEP_BYTES + PLAN_BYTES


def test_news_cost_few_bytes_when_there_are_none(wood: Window) -> None:
    page = wood.go("#/big/forest/tree")
    with page.expect_response(lambda r: "/changes?since=" in r.url) as news:
        pass
    assert len(news.value.body()) < NEWS_BYTES
    assert news.value.json()["changed"] == []


def test_neighbours_are_merged_above_1500_leaves(wood: Window) -> None:
    """The server's answers with every leaf four times: 4,000 leaves in 1,334 boxes of three."""

    def fourfold(tree: dict[str, Any]) -> dict[str, Any]:
        leaves = tree["leaves"]
        for name, values in leaves.items():
            if isinstance(values, list) and len(values) == 1000:
                leaves[name] = [v for v in values for _ in range(4)]
        leaves["id"] = [f"{id}#{at}" for at, id in enumerate(leaves["id"])]
        for column in tree["columns"]:
            for name, values in column["leaves"].items():
                column["leaves"][name] = [v for v in values for _ in range(4)]
        return tree

    def planned(plan: dict[str, Any]) -> dict[str, Any]:
        for name in ("leaf_why", "leaf_left"):
            plan[name] = [v for v in plan[name] for _ in range(4)]
        return {**plan, "of": plan["of"] * 4, "opened": plan["opened"] * 4}

    def answer(route: Route) -> None:
        found = route.fetch()
        made = fourfold if "/tree?" in route.request.url else planned
        route.fulfill(response=found, json=made(found.json()))

    wood.page.route("**/api/tables/big/forest/tree?*", answer)
    wood.page.route("**/api/tables/big/forest/plan?*", answer)
    page = wood.go("#/big/forest/tree?where=order_day%20%3D%20%272024-02-11%27")
    canvas = page.locator("canvas.forest")
    expect(canvas).to_have_attribute("aria-label", re.compile("4,000 leaves .* 12 leaves opened"))
    # Leaves 556 to 558 of a thousand have the day; four of each are twelve neighbours.
    kept = int(canvas.get_attribute("data-kept") or 0)
    assert 4 <= kept <= 5
    assert page.evaluate("document.querySelectorAll('*').length") < ELEMENTS
    canvas.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".leaves [aria-live]")).to_contain_text("Leaves 4 to 6, 1,200 entries")
    page.locator(".caption").click()
    canvas.hover(position={"x": 4, "y": 4})
    expect(page.locator("#tip")).to_contain_text("3 leaves drawn as one")
    wood.picture("merged")
    assert wood.violations() == []

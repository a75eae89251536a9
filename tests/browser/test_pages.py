"""Every page opens in light, dark and narrow windows, within its budget and readable by all."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.window import Window

ADDRESSES = {
    "catalog": "#/",
    "overview": "#/shop/orders",
    "tree": "#/shop/orders/tree",
    "filter": "#/shop/orders/tree?where=order_day%20%3D%20%272024-03-10%27",
    "history": "#/shop/orders/history",
    "schema": "#/shop/orders/schema",
    "rows": "#/shop/orders/rows",
    "changes": "#/shop/orders/rows?show=changes",
    "sql": "#/shop/orders/sql",
    "health": "#/shop/orders/health",
}
SAYS = {
    "catalog": "1 table",
    "overview": "1,048 rows of 6 columns",
    "tree": "One root lists all",
    "filter": "Your filter touched",
    "history": "30 commits",
    "schema": "6 columns",
    "rows": "The first 50 rows",
    "changes": "12 changes: 12 inserted",
    "sql": "Run a query to see its rows here.",
    "health": "1 thing to do",
}
API_REQUESTS = {
    "catalog": 2, "overview": 6, "tree": 5, "filter": 5, "history": 3, "schema": 2,
    "rows": 4, "changes": 4, "sql": 3, "health": 4,
}  # fmt: skip
PAGE_BYTES = 300_000
"""Everything that a view loads, data included."""


@pytest.mark.parametrize("name", ADDRESSES)
def test_page_opens_in_its_budget_and_works_light_dark_and_narrow(
    window: Window, name: str
) -> None:
    page = window.go(ADDRESSES[name])
    expect(page.locator("main")).to_contain_text(SAYS[name])
    told = page.locator("body").inner_text()
    assert not [word for word in ("[object", "undefined", "NaN") if word in told]
    assert len(window.asked()) <= API_REQUESTS[name], window.asked()
    assert window.received() < PAGE_BYTES
    assert all(r.url.startswith(window.uri) for r in window.answers)
    window.picture(f"{name}-light")
    assert window.violations() == []
    window.scheme("dark")
    window.picture(f"{name}-dark")
    assert window.violations() == []
    window.scheme("light")
    window.narrow()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    window.picture(f"{name}-narrow")


def test_theme_is_toggled_and_kept(window: Window) -> None:
    page = window.go("#/")
    body = page.locator("body")
    expect(body).to_have_css("background-color", "rgb(245, 247, 249)")
    page.get_by_role("button", name="Switch to dark").click()
    expect(body).to_have_css("background-color", "rgb(10, 16, 22)")
    window.go("#/shop/orders/tree")
    expect(body).to_have_css("background-color", "rgb(10, 16, 22)")


def test_search_narrows_the_tables_and_is_in_the_address(window: Window) -> None:
    page = window.go("#/?search=nothing-like-this")
    expect(page.locator(".lead")).to_have_text("No table matches.")
    page.get_by_role("searchbox", name="Search tables").fill("ord")
    expect(page.locator(".lead")).to_contain_text("1 table found")
    assert page.url.endswith("#/?search=ord")
    page.get_by_role("link", name="shop.orders").click()
    expect(page.locator("#title")).to_have_text("shop / orders")
    expect(page.locator(".lead")).to_contain_text("1,048 rows")


def test_overview_shows_columns_health_partitions_and_commits(window: Window) -> None:
    page = window.go("#/shop/orders")
    country = page.get_by_role("row", name="country")
    expect(country).to_contain_text("AT … US")
    expect(country.get_by_role("img")).to_have_attribute(
        "aria-label", re.compile("^Rows by country: ")
    )
    expect(page.get_by_role("row", name="note")).to_contain_text("%")
    expect(page.locator(".glance")).to_contain_text("1,048")
    recent = page.locator(".card", has_text="Recent commits").last
    expect(recent.get_by_role("link", name="Commit 30", exact=True)).to_be_visible()
    expect(page.get_by_role("list", name="Largest partitions")).to_contain_text(
        "order_day=2024-03-02"
    )
    recent.get_by_role("link", name="Commit 30", exact=True).click()
    expect(page.get_by_role("button", name="Commit 30", expanded=True)).to_be_visible()


def test_the_tree_says_what_its_boxes_mean(window: Window) -> None:
    page = window.go("#/shop/orders/tree")
    expect(page.locator(".words")).to_contain_text("Each box is a leaf")
    labels = page.locator(".leaf .sr").all_inner_texts()
    live = [int(re.findall(r"(\d+) entr", label)[0]) for label in labels]
    expect(page.locator(".caption")).to_contain_text(f"{len(live)} leaves hold {sum(live)}")


def test_views_are_reached_by_keyboard_alone(window: Window) -> None:
    page = window.go("#/shop/orders/tree")
    page.locator("#tabs a", has_text="Schema").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".lead")).to_contain_text("6 columns")
    assert page.url.endswith("#/shop/orders/schema")
    page.go_back()
    expect(page.locator(".caption")).to_contain_text("One root lists all")


def test_unknown_table_is_said_and_leads_back(window: Window) -> None:
    window.expected.append("404")
    page = window.go("#/shop/nothing/tree")
    expect(page.get_by_role("alert")).to_contain_text("shop.nothing")
    page.get_by_role("link", name="All tables").last.click()
    expect(page.locator(".lead")).to_contain_text("1 table")

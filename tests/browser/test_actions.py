"""Actions with a preview and a confirmation, and news of what others committed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from frazil import serve
from frazil.serve.running import Running
from frazil.table import Catalog, Table
from tests.browser.window import Window, rows


@pytest.fixture
def table(own: Catalog) -> Table:
    """Three commits of 10, 20 and 30 rows; the first one is tagged."""
    made = own.create_table("shop.undo", rows(0, 0).schema)
    made.append(rows(0, 10))
    made.tag("first")
    made.append(rows(10, 20))
    made.append(rows(30, 30))
    return made


@pytest.fixture
def desk(
    own: Catalog, table: Table, browser: Browser, pictures: Path
) -> Iterator[tuple[Window, Running]]:
    """A window on the catalog that may be changed."""
    with serve.start(own) as running, Window(browser, running.uri, pictures).open() as window:
        yield window, running


def test_confirmed_rollback_happens_in_the_table(
    desk: tuple[Window, Running], table: Table
) -> None:
    window, _ = desk
    page = window.go("#/shop/undo/tree?snapshot=first")
    page.get_by_role("button", name="Roll back to here").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("60")
    expect(dialog).to_contain_text("10")
    window.picture("rollback")
    assert window.violations() == []
    assert table.refresh().scan().count() == 60
    dialog.get_by_role("button", name="Roll back").click()
    expect(page.locator(".toast")).to_be_visible()
    expect(dialog).to_have_count(0)
    assert table.refresh().scan().count() == 10
    assert table.current_snapshot is not None


def test_cancelled_rollback_changes_nothing(desk: tuple[Window, Running], table: Table) -> None:
    window, _ = desk
    page = window.go("#/shop/undo/history")
    page.get_by_role("button", name="Commit 1", exact=True).click()
    page.get_by_role("button", name="Roll back to here").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Roll back")).to_be_enabled()
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    assert table.refresh().scan().count() == 60


def test_tag_and_branch_are_made_where_they_are_asked_for(
    desk: tuple[Window, Running], table: Table
) -> None:
    window, _ = desk
    page = window.go("#/shop/undo/history")
    page.get_by_role("button", name="Commit 2", exact=True).click()
    page.get_by_role("button", name="Tag…", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("second")
    expect(dialog.get_by_role("button", name="Create tag")).to_be_enabled()
    dialog.get_by_role("button", name="Create tag").click()
    expect(page.locator(".card", has_text="Branches and tags").first).to_contain_text("second")
    page.get_by_role("button", name="New branch…").click()
    dialog.get_by_label("Name").fill("audit")
    expect(dialog.get_by_role("button", name="Create branch")).to_be_enabled()
    dialog.get_by_role("button", name="Create branch").click()
    expect(page.locator(".ref.branch", has_text="audit").first).to_be_visible()
    refs = table.refresh().metadata.refs
    assert set(refs) == {"main", "first", "second", "audit"}
    assert table.scan(as_of="second").count() == 30
    window.picture("refs")


def test_two_commits_are_compared(desk: tuple[Window, Running]) -> None:
    window, _ = desk
    page = window.go("#/shop/undo/history")
    page.get_by_role("checkbox", name="Compare commit 1", exact=True).check()
    page.get_by_role("checkbox", name="Compare commit 3", exact=True).check()
    compared = page.locator(".compared")
    expect(compared).to_contain_text("10 → 60")
    expect(compared).to_contain_text("50 more")
    expect(compared).to_contain_text("2 commits apart")
    expect(compared).to_contain_text("+2 −0")
    expect(compared).to_contain_text("The same columns")
    assert "compare=" in page.url
    window.picture("compare")


def test_commit_of_another_writer_appears(desk: tuple[Window, Running], table: Table) -> None:
    window, _ = desk
    page = window.go("#/shop/undo/tree")
    expect(page.locator("#say")).to_contain_text("Commit 3 of 3")
    with page.expect_response(lambda r: "/changes" in r.url):
        pass
    table.append(rows(60, 5))
    expect(page.locator("#say")).to_contain_text("Commit 4 of 4")
    window.go("#/")
    expect(page.locator("main tbody")).to_contain_text("65")
    with page.expect_response(lambda r: "/changes" in r.url):
        pass
    table.append(rows(65, 5))
    expect(page.locator("main tbody")).to_contain_text("70")


def test_back_closes_a_dialog_and_stays_on_the_page(desk: tuple[Window, Running]) -> None:
    window, _ = desk
    page = window.go("#/shop/undo/health")
    address = page.url
    page.get_by_role("button", name="Preview: Compact data files").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    page.go_back()
    expect(dialog).to_have_count(0)
    assert page.url == address
    page.get_by_role("button", name="Preview: Compact data files").click()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.get_by_role("link", name="Schema").click()
    expect(page.locator(".lead")).to_contain_text("2 columns")
    page.go_back()
    expect(page.get_by_role("heading", name="Maintenance")).to_be_visible()


def test_expiry_asks_for_an_age(desk: tuple[Window, Running], table: Table) -> None:
    window, _ = desk
    page = window.go("#/shop/undo/health")
    page.get_by_role("button", name="Preview: Expire snapshots").click()
    dialog = page.get_by_role("dialog")
    age = dialog.get_by_label("Expire snapshots older than")
    expect(age).to_have_attribute("placeholder", re.compile("^5 days; "))
    expect(dialog).to_contain_text("No snapshot is old enough to expire.")
    age.fill("0 seconds")
    expect(dialog).to_contain_text("1 snapshot and")
    assert window.violations() == []
    window.picture("expire")
    dialog.get_by_role("button", name="Expire snapshots").click()
    expect(page.locator(".toast")).to_be_visible()
    assert len(table.refresh().snapshots()) == 2  # the tagged one, and the current one


def test_a_small_table_shows_its_files_in_place_of_leaves(desk: tuple[Window, Running]) -> None:
    window, _ = desk
    page = window.go("#/shop/undo/tree")
    files = page.get_by_role("table", name="Files of the root").locator("tbody tr")
    expect(files).to_have_count(3)
    page.locator(".fbox input").fill("id < 10")
    expect(files.filter(has_text="to read")).to_have_count(1)
    expect(files.filter(has_text="skipped")).to_have_count(2)


def test_a_view_has_a_page(desk: tuple[Window, Running], own: Catalog) -> None:
    window, _ = desk
    own.create_view("shop.few", "SELECT id FROM shop.undo WHERE id < 3")
    page = window.go("#/")
    page.get_by_role("link", name="shop.few").click()
    expect(page.locator(".lead")).to_contain_text("A view of 1 column")
    expect(page.get_by_role("region", name="SQL")).to_contain_text("WHERE id < 3")
    assert window.violations() == []
    page.get_by_role("button", name="Show 50 rows").click()
    expect(page.get_by_role("table", name="Rows").locator("tbody tr")).to_have_count(3)


def test_sql_is_coloured_kept_downloaded_and_its_plan_follows(
    desk: tuple[Window, Running],
) -> None:
    window, _ = desk
    page = window.go("#/shop/undo/sql")
    box = page.get_by_role("textbox", name="SQL")
    box.fill("SELECT id, 'a,b' AS t FROM shop.undo WHERE id < 2 ORDER BY id")
    expect(page.locator(".sqlfield .sq-k")).to_have_text(
        ["SELECT", "AS", "FROM", "WHERE", "ORDER", "BY"]
    )
    expect(page.locator(".sqlfield .sq-s")).to_have_text("'a,b'")
    expect(page.locator(".card", has_text="Plan")).to_contain_text("where id < 2")
    assert page.locator(".values").count() == 0  # explained, not run
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("table", name="Result").locator("tbody tr")).to_have_count(2)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    assert download.value.path().read_bytes() == b'id,t\r\n0,"a,b"\r\n1,"a,b"\r\n'
    box.fill("SELECT 1")
    page.get_by_label("Queries that were run in this browser").select_option(index=1)
    expect(box).to_have_value(re.compile("^SELECT id, 'a,b'"))
    assert window.violations() == []


def test_a_query_is_cancelled(desk: tuple[Window, Running]) -> None:
    window, _ = desk
    page = window.go("#/shop/undo/sql")
    page.get_by_role("textbox", name="SQL").fill("SELECT sum(range) FROM range(1000000000000)")
    page.keyboard.press("Control+Enter")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".res").first).to_contain_text("The query was cancelled.")
    page.get_by_role("button", name="Count", exact=True).click()
    expect(page.get_by_role("table", name="Result")).to_contain_text("60")


def test_sql_that_writes_is_refused(desk: tuple[Window, Running], table: Table) -> None:
    window, _ = desk
    page = window.go("#/shop/undo/sql")
    page.get_by_role("textbox", name="SQL").fill("DELETE FROM shop.undo WHERE id < 5")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text("The query was refused")
    assert table.refresh().scan().count() == 60


def test_dead_entries_stand_apart_from_live_ones(
    desk: tuple[Window, Running], own: Catalog
) -> None:
    window, _ = desk
    small = {"write.root.max-data-entries": "4"}
    table = own.create_table("shop.dead", rows(0, 0).schema, properties=small)
    for first in range(0, 60, 10):
        table.append(rows(first, 10))
    table.delete("id < 10")
    page = window.go("#/shop/dead/tree")
    dead = page.locator(".leaf .rust").first
    expect(dead).to_contain_text("1 dead")
    gap = dead.evaluate(
        """(element) => {
        const before = document.createRange(), after = document.createRange();
        before.selectNodeContents(element.previousSibling);
        const text = element.firstChild;
        after.setStart(text, text.data.indexOf("·"));
        after.setEnd(text, text.length);
        return after.getBoundingClientRect().left - before.getBoundingClientRect().right;
        }"""
    )
    assert gap > 1
    expect(page.locator(".words")).to_contain_text("The line and the colour")

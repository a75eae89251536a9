"""Maintenance from the page: every button shows what it will do, and does it when confirmed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from frazil import serve
from frazil.table import Catalog, Table
from tests.browser.window import Window, rows

WEEK_S = 7 * 24 * 3600


@pytest.fixture
def table(own: Catalog) -> Table:
    """Eight commits of 10 rows, a file each, in leaves of two and the root."""
    made = own.create_table(
        "shop.care",
        rows(0, 0).schema,
        properties={
            "write.root.max-data-entries": "2",
            "write.leaf.target-entries": "2",
            "history.expire.max-snapshot-age-ms": "1",
            "history.expire.min-snapshots-to-keep": "1",
        },
    )
    for at in range(8):
        made.append(rows(at * 10, 10))
    return made


@pytest.fixture
def desk(own: Catalog, table: Table, browser: Browser, pictures: Path) -> Iterator[Window]:
    """A window on the catalog that may be changed."""
    with serve.start(own) as running, Window(browser, running.uri, pictures).open() as window:
        yield window


def preview(page: Page, label: str) -> Locator:
    page.get_by_role("button", name=f"Preview: {label}").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".preview")).to_be_visible()
    return dialog


def confirm(page: Page, dialog: Locator, verb: str) -> None:
    dialog.get_by_role("button", name=verb).click()
    expect(page.locator(".toast")).to_be_visible()
    expect(dialog).to_have_count(0)


def leaves(table: Table) -> set[str]:
    found: list[str] = table.refresh().inspect.manifests.column("path").to_pylist()
    return set(found)


def test_small_files_are_compacted_after_a_preview(desk: Window, table: Table) -> None:
    page = desk.go("#/shop/care/health")
    dialog = preview(page, "Compact data files")
    expect(dialog.locator(".preview")).to_contain_text("8 data files")
    expect(dialog.get_by_role("row", name="Rows copied")).to_contain_text("80")
    desk.picture("compact")
    assert desk.violations() == []
    assert table.refresh().inspect.files.num_rows == 8
    confirm(page, dialog, "Compact data files")
    assert table.refresh().inspect.files.num_rows == 1
    assert table.scan().count() == 80


def test_leaves_are_rewritten_after_a_preview(desk: Window, table: Table) -> None:
    before = leaves(table)
    assert before
    page = desk.go("#/shop/care/health")
    dialog = preview(page, "Rewrite leaves")
    row = dialog.get_by_role("row", name="Leaves rewritten")
    expect(row).to_contain_text(str(len(before)))
    dialog.get_by_role("button", name="Cancel").click()
    assert leaves(table) == before
    confirm(page, preview(page, "Rewrite leaves"), "Rewrite leaves")
    assert not leaves(table) & before
    assert table.scan().count() == 80


def test_snapshots_expire_after_a_preview(desk: Window, table: Table) -> None:
    page = desk.go("#/shop/care/health")
    dialog = preview(page, "Expire snapshots")
    expect(dialog.locator(".preview")).to_contain_text("7 snapshots")
    expect(dialog).to_contain_text("Expired snapshots cannot be brought back.")
    desk.picture("expire")
    assert len(table.refresh().snapshots()) == 8
    confirm(page, dialog, "Expire snapshots")
    assert len(table.refresh().snapshots()) == 1
    assert table.scan().count() == 80


def test_orphans_are_found_and_removed_after_a_preview(desk: Window, table: Table) -> None:
    place = Path(table.location.removeprefix("file://")) / "data"
    orphan, young = place / "left-behind.parquet", place / "being-written.parquet"
    for path in (orphan, young):
        path.write_bytes(b"x" * 1000)
    old = time.time() - WEEK_S
    os.utime(orphan, (old, old))
    page = desk.go("#/shop/care/health")
    page.get_by_role("button", name="Look for orphans").click()
    page.get_by_role("button", name="Remove orphans").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".preview")).to_contain_text("1 file of 1.0 kB")
    expect(dialog.get_by_role("row", name="Younger ones, kept")).to_contain_text("1")
    desk.picture("orphans")
    assert orphan.exists()
    confirm(page, dialog, "Remove orphan files")
    assert not orphan.exists()
    assert young.exists()
    assert table.refresh().scan().count() == 80


def test_what_needs_nothing_cannot_be_confirmed(desk: Window, table: Table) -> None:
    page = desk.go("#/shop/care/health")
    dialog = preview(page, "Remove orphan files")
    expect(dialog.locator(".preview")).to_contain_text("No orphan file is older than three days.")
    expect(dialog.get_by_role("button", name="Remove orphan files")).to_be_disabled()


def test_branch_is_published_and_removed(desk: Window, table: Table) -> None:
    audit = table.branch("audit", create=True)
    audit.append(rows(80, 5))
    page = desk.go("#/shop/care/history")
    page.get_by_role("button", name="Fast-forward main").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".preview")).to_contain_text("Branch main takes up 1 commit.")
    expect(dialog.get_by_role("row", name="Rows")).to_contain_text("85")
    desk.picture("fast-forward")
    assert table.refresh().scan().count() == 80
    confirm(page, dialog, "Fast-forward")
    assert table.refresh().scan().count() == 85
    page.get_by_role("button", name="Remove audit").click()
    expect(dialog.locator(".preview")).to_contain_text("The branch audit is removed.")
    assert "audit" in table.refresh().metadata.refs
    dialog.get_by_role("button", name="Remove").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name="Remove audit")).to_have_count(0)
    assert "audit" not in table.refresh().metadata.refs


def test_schema_changes_are_told_in_schema_and_compare(desk: Window, table: Table) -> None:
    table.evolve_schema().add_column("amount", "double").rename_column("country", "market").commit()
    table.append(pa.table({"id": pa.array([900], pa.int64()), "market": ["DE"], "amount": [1.5]}))
    page = desk.go("#/shop/care/schema")
    expect(page.locator(".lead")).to_contain_text("3 columns after")
    steps = page.locator(".steps")
    expect(steps).to_contain_text("amount was added as double")
    expect(steps).to_contain_text("country was renamed to market")
    expect(steps).to_contain_text("The first schema.")
    desk.picture("evolution")
    assert desk.violations() == []
    desk.go("#/shop/care/history")
    page.get_by_role("checkbox", name="Compare commit 1", exact=True).check()
    page.get_by_role("checkbox", name="Compare commit 9", exact=True).check()
    compared = page.locator(".compared")
    expect(compared).to_contain_text("amount was added as double")
    expect(compared).to_contain_text("country was renamed to market")
    expect(compared).to_contain_text("10 → 81")

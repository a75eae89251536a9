"""Names and values with markup, and servers that want a token."""

from __future__ import annotations

import hashlib
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest
from playwright.sync_api import Browser, expect

import frazil
from frazil import serve
from frazil.serve.access.principals import TokenFile
from frazil.serve.settings import Settings
from tests.browser.window import Window

SCRIPT = "<script>alert(1)</script>"
IMAGE = "<img src=x onerror=alert(2)>"
VIEWS = ("tree", "history", "schema", "rows", "sql", "health")


def test_markup_in_names_and_values_is_shown_not_run(
    browser: Browser, pictures: Path, tmp_path: Path
) -> None:
    with frazil.connect(tmp_path / "warehouse") as catalog:
        table = catalog.create_table(("<b>shop</b>", SCRIPT), pa.schema([(IMAGE, pa.string())]))
        table.append(pa.table({IMAGE: [SCRIPT, IMAGE, "</td><h1>big"]}))
        table.tag("<i>tag</i>")
        levels, name = "%3Cb%3Eshop%3C%2Fb%3E", "%3Cscript%3Ealert(1)%3C%2Fscript%3E"
        with serve.start(catalog) as server, Window(browser, server.uri, pictures).open() as window:
            page = window.go("#/")
            expect(page.locator("main tbody")).to_contain_text(SCRIPT)
            window.picture("markup")
            for view in VIEWS:
                window.go(f"#/{levels}/{name}/{view}")
                expect(page.locator("#title")).to_have_text(f"<b>shop</b> / {SCRIPT}")
                assert page.locator("main script, main img, main i i, main h1").count() == 0
            window.go(f"#/{levels}/{name}/rows")
            expect(page.locator("main tbody")).to_contain_text("</td><h1>big")
            expect(page.locator("main thead")).to_contain_text(IMAGE)


def test_a_link_fills_the_sql_box_and_runs_nothing(
    browser: Browser, pictures: Path, tmp_path: Path
) -> None:
    with frazil.connect(tmp_path / "warehouse") as catalog:
        table = catalog.create_table("shop.orders", pa.schema([("id", pa.int64())]))
        table.append([{"id": number} for number in range(7)])
        settings = Settings(sql_writes=True)
        with (
            serve.start(catalog, settings=settings) as server,
            Window(browser, server.uri, pictures).open() as window,
        ):
            posted: list[str] = []
            page = window.page
            page.on("request", lambda r: posted.append(r.url) if r.method == "POST" else None)
            box = page.get_by_role("textbox", name="SQL")
            for text in ("DELETE FROM shop.orders", "DELETE FROM shop.orders WHERE id < 3"):
                # The second is a link from one query to another: the page is open already.
                window.go(f"#/shop/orders/sql?q={quote(text)}")
                expect(box).to_have_value(text)
                expect(page.locator("main")).to_contain_text("Run a query to see its rows here.")
            page.reload()
            expect(box).to_have_value(text)
            page.wait_for_load_state("networkidle")
            assert posted == []
            assert table.refresh().scan().count() == 7
            page.get_by_role("button", name="Run", exact=True).click()
            expect(page.locator(".sqlfoot [role=status]")).to_contain_text("ms")
            assert [url.rpartition("/")[2] for url in posted] == ["sql"]
            assert table.refresh().scan().count() == 4


@pytest.fixture
def tokens(tmp_path: Path) -> TokenFile:
    """One token that may do everything, and one that reads another namespace."""
    text = ""
    for name, rule in (("good", "write:*"), ("poor", "read:elsewhere")):
        digest = hashlib.sha256(f"{name}-secret".encode()).hexdigest()
        text += f'[tokens.{name}]\nsha256 = "{digest}"\nrules = ["{rule}"]\n'
    path = tmp_path / "tokens.toml"
    path.write_text(text)
    return TokenFile.read(path)


def test_token_is_asked_for_until_it_is_right(
    browser: Browser, pictures: Path, tmp_path: Path, tokens: TokenFile
) -> None:
    with frazil.connect(tmp_path / "warehouse") as catalog:
        catalog.create_table("shop.orders", pa.schema([("id", pa.int64())]))
        with (
            serve.start(catalog, access=tokens) as server,
            Window(browser, server.uri, pictures).open() as window,
        ):
            window.expected.append("401")
            page = window.page
            page.goto(server.uri)
            dialog = page.get_by_role("dialog")
            expect(dialog).to_contain_text("This server needs a token")
            window.picture("token")
            assert window.violations() == []
            dialog.get_by_label("Token").fill("wrong")
            page.keyboard.press("Enter")
            expect(page.get_by_role("dialog").last).to_contain_text("not accepted")
            page.get_by_role("dialog").last.get_by_label("Token").fill("good-secret")
            page.keyboard.press("Enter")
            expect(page.locator("main tbody")).to_contain_text("orders")
            assert "secret" not in page.url

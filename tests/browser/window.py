"""A window of the browser: where it goes, what it asked the server for, what went wrong in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from playwright.sync_api import Browser, ConsoleMessage, Page, Response, expect

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
QUIET = "/explorer/api/changes"
"""Asked for every few seconds: not part of what a view costs."""


def rows(first: int, n: int) -> pa.Table:
    """Rows with ids from a first one on."""
    ids = pa.array(range(first, first + n), pa.int64())
    return pa.table({"id": ids, "country": pa.array(["DE"] * n, pa.string())})


class Window:
    """One page with its own storage. Leaving it fails on errors in the console."""

    page: Page

    def __init__(
        self,
        browser: Browser,
        uri: str,
        pictures: Path,
    ) -> None:
        self._browser = browser
        self._pictures = pictures
        self.uri = uri
        self.troubles: list[str] = []
        self.expected: list[str] = []
        self.answers: list[Response] = []

    def open(self) -> Window:
        """Open the window."""
        self._context = self._browser.new_context(
            viewport={"width": 1280, "height": 800}, color_scheme="light", reduced_motion="reduce"
        )
        self._context.set_default_timeout(20_000)
        self.page = self._context.new_page()
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("dialog", lambda dialog: self._opened_dialog(dialog.message))
        self.page.on("response", self._answered)
        return self

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.troubles.append(f"{message.text} {message.location.get('url', '')}")

    def _answered(self, response: Response) -> None:
        self.answers.append(response)

    def _opened_dialog(self, message: str) -> None:
        self.troubles.append(f"a script opened a dialog: {message}")

    def go(self, address: str) -> Page:
        """Go to an address inside the explorer, such as #/shop/orders/tree, and wait for it."""
        self.page.goto("about:blank")
        self.answers.clear()
        self.page.goto(f"{self.uri}/{address}")
        self.settled()
        return self.page

    def settled(self) -> None:
        """Wait until nothing is loading."""
        self.page.wait_for_selector("main .host > :not(.waiting)")
        self.page.wait_for_load_state("networkidle")
        expect(self.page.locator("main .waiting")).to_have_count(0, timeout=20_000)

    def asked(self) -> list[str]:
        """Paths that the API was asked for since the last address, polling aside."""
        paths = [r.url.removeprefix(self.uri) for r in self.answers]
        return [p for p in paths if p.startswith("/explorer/api/") and not p.startswith(QUIET)]

    def received(self) -> int:
        """Bytes of all bodies since the last address, as they were before compression."""
        return sum(len(r.body()) for r in self.answers if r.status == 200)

    def scheme(self, name: Literal["light", "dark"]) -> None:
        """Switch what the system prefers."""
        self.page.emulate_media(color_scheme=name, reduced_motion="reduce")
        expect(self.page.locator("html")).to_have_attribute("data-theme", name)

    def narrow(self) -> None:
        """Shrink the window to that of a telephone."""
        self.page.set_viewport_size({"width": 390, "height": 844})
        self.page.wait_for_timeout(150)

    def picture(self, name: str) -> None:
        """Keep a picture for people."""
        self.page.screenshot(path=str(self._pictures / f"{name}.png"))

    def violations(self) -> list[str]:
        """What axe-core calls serious or critical on the page as it stands."""
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found: dict[str, Any] = self.page.evaluate(
            "() => axe.run(document, {resultTypes: ['violations']})"
        )
        return [
            f"{each['id']}: {each['help']}: {node['html'][:160]} {node['failureSummary'][:200]}"
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"][:3]
        ]

    def __enter__(self) -> Window:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        left = [t for t in self.troubles if not any(e in t for e in self.expected)]
        self._context.close()
        if kind is None:
            assert left == []

"""Makes the pictures of the explorer for the README and the docs: one picture, one animation.

    python tools/explorer_pictures.py [folder]

A table of metadata alone is made in a temporary folder and served; chromium looks at it. Times
and names of files differ from run to run, so the pictures are made when the pages change.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

import frazil  # noqa: E402
from frazil import serve  # noqa: E402
from tests.support.explorer_shop import busy_orders  # noqa: E402

FOLDER = ROOT / "docs" / "assets"
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
FILTER = "amount > 4000"
SECOND = "order_day = '2023-12-24'"
WIDE, HIGH = 1280, 800
SHOWN = (960, 600)


def main() -> None:
    """Make both pictures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    with tempfile.TemporaryDirectory() as place, frazil.connect(place) as catalog:
        busy_orders(catalog, "shop.orders")
        with serve.start(catalog) as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=CHROMIUM, args=["--no-sandbox", "--hide-scrollbars"]
            )
            page = browser.new_page(viewport={"width": WIDE, "height": HIGH})
            page.goto(f"{server.uri}/#/shop/orders/tree")
            page.wait_for_selector(".leaf")
            page.wait_for_load_state("networkidle")
            page.locator(".fbox input").fill(FILTER)
            page.locator(".caption").click()
            page.wait_for_timeout(1800)
            picture(page).save(folder / "explorer-pruning.png", optimize=True)
            page.locator(".fbox input").fill("")
            frames = list(story(page))
            browser.close()
    animate(frames, folder / "explorer.gif")
    for name in ("explorer-pruning.png", "explorer.gif"):
        print(f"{name}: {(folder / name).stat().st_size:,} bytes")


def story(page: Page) -> Iterator[tuple[Image.Image, int]]:
    """Frames and how many milliseconds each is shown: two filters, then a walk through commits."""
    page.wait_for_timeout(800)
    yield picture(page), 1600
    box = page.locator(".fbox input")
    box.click()
    for text in (FILTER, SECOND):
        for end in range(3, len(text) + 1, 3):
            box.fill(text[:end])
            page.keyboard.press("Escape") if page.locator(".sug:visible").count() else None
            page.wait_for_timeout(60)
            yield picture(page), 110
        box.fill(text)
        for _ in range(6):
            page.wait_for_timeout(90)
            yield picture(page), 130
        page.wait_for_timeout(600)
        yield picture(page), 2600
    box.fill("")
    page.wait_for_timeout(700)
    yield picture(page), 500
    for _ in range(12):
        page.get_by_role("button", name="Previous commit").click()
        page.wait_for_load_state("networkidle")
        page.wait_for_timeout(250)
        yield picture(page), 420
    yield picture(page), 1800


def picture(page: Page) -> Image.Image:
    """The page as it stands."""
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def animate(frames: list[tuple[Image.Image, int]], path: Path) -> None:
    """One palette for all frames, so that only what moves is stored."""
    small = [image.resize(SHOWN, Image.Resampling.LANCZOS) for image, _ in frames]
    middle = small[len(small) // 2]
    both = Image.new("RGB", (SHOWN[0], SHOWN[1] * 3))
    for row, each in enumerate((small[0], middle, small[-1])):
        both.paste(each, (0, row * SHOWN[1]))
    palette = both.quantize(160, method=Image.Quantize.FASTOCTREE)
    flat = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in small]
    flat[0].save(
        path,
        save_all=True,
        append_images=flat[1:],
        duration=[shown for _, shown in frames],
        loop=0,
        optimize=True,
    )


if __name__ == "__main__":
    main()

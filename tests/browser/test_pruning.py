"""The pruning view: typing a filter, errors under the character, leaves and files, scrubbing."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
from playwright.sync_api import Browser, expect

import frazil
from frazil import serve
from tests.browser.window import Window

DAY = "order_day = '2024-03-10'"
PLAN_BYTES = 4_000


def opened(text: str) -> tuple[int, int]:
    """The two numbers of "6 of 21 leaves"."""
    found = re.search(r"touched (\d+) of (\d+) lea", text)
    assert found is not None, text
    return int(found[1]), int(found[2])


def test_boxes_fall_away_as_a_filter_is_typed(window: Window) -> None:
    page = window.go("#/shop/orders/tree")
    boxes = page.locator(".leaf").count()
    assert boxes > 3
    assert page.locator(".leaf.off").count() == 0
    before = len(window.asked())
    page.keyboard.press("/")
    page.keyboard.type(DAY, delay=25)
    expect(page.locator(".caption")).to_contain_text("Your filter touched")
    expect(page.locator(".caption")).to_contain_text("2 of 28 files are left to read")
    touched, every = opened(page.locator(".caption").inner_text())
    assert every == boxes
    assert page.locator(".leaf.off").count() == boxes - touched
    assert page.locator(".leaf.hit").count() == touched
    expect(page.locator(".leaf.off .in").first).to_contain_text("order_day")
    asked = window.asked()[before:]
    assert all("/plan?" in path for path in asked)
    assert len(asked) <= len(DAY)
    last = [r for r in window.answers if "/plan?" in r.url and r.status == 200][-1]
    assert len(last.body()) < PLAN_BYTES
    side = page.locator(".side")
    expect(side).to_contain_text("Planning this filter")
    expect(side).to_contain_text("An Iceberg v2 or v3 reader would open")
    assert "where=order_day" in page.url
    window.picture("typed")


def test_error_stands_under_its_character(window: Window) -> None:
    page = window.go("#/shop/orders/tree")
    box = page.locator(".fbox input")
    text = "country = 'DE' and contry = 'FR'"
    box.fill(text)
    error = page.locator(".err")
    expect(error).to_contain_text("contry")
    expect(error).to_contain_text("country")
    assert error.get_attribute("data-at") == str(text.index("contry"))
    expect(page.locator(".caption")).to_contain_text("This filter cannot be read yet.")
    expect(box).to_have_attribute("aria-invalid", "true")
    tip = page.evaluate(
        """() => {
        const ruler = document.createElement('span'), input = document.querySelector('.fbox input');
        ruler.style.position = 'absolute';
        ruler.style.fontFamily = getComputedStyle(input).fontFamily;
        ruler.style.fontSize = getComputedStyle(input).fontSize;
        ruler.textContent = '0'.repeat(100);
        document.body.append(ruler);
        const wide = ruler.getBoundingClientRect().width / 100;
        ruler.remove();
        const err = document.querySelector('.err'), left = err.getBoundingClientRect().left;
        const arrow = left + parseFloat(getComputedStyle(err).getPropertyValue('--px'));
        const start = input.getBoundingClientRect().left + 10;
        return (arrow - start) / wide;
        }"""
    )
    assert abs(tip - text.index("contry")) < 0.5
    window.picture("error")
    assert window.violations() == []
    box.fill("country = 'DE'")
    expect(error).to_be_hidden()


def test_columns_are_completed_without_a_request(window: Window) -> None:
    page = window.go("#/shop/orders/tree")
    page.locator(".fbox input").press_sequentially("cust")
    option = page.locator(".sug").get_by_role("option", name="customer_id")
    expect(option).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Tab")
    expect(page.locator(".fbox input")).to_have_value("customer_id ")
    assert not [path for path in window.asked() if "/complete" in path]


def test_values_are_completed_by_the_server_on_demand(window: Window) -> None:
    page = window.go("#/shop/orders/tree")
    box = page.locator(".fbox input")
    box.press_sequentially("order_day = '2024-03-1")
    page.keyboard.press("Control+Space")
    options = page.locator(".sug").get_by_role("option")
    # A file a day, so each day from the 10th on is a bound: up to the 13th, and the 15th.
    expect(options).to_have_text([f"'2024-03-{day}'" for day in (10, 11, 12, 13, 15)])
    assert len([path for path in window.asked() if "/complete" in path]) == 1
    window.picture("completion")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(box).to_have_value("order_day = '2024-03-11' ")
    expect(page.locator(".caption")).to_contain_text("2 of 28 files are left to read")
    box.fill("country in (")
    page.keyboard.press("Control+Space")
    expect(options).to_have_text(["'AT'", "'IT'", "'NL'", "'US'"])


def test_leaf_and_file_open_by_keyboard(window: Window) -> None:
    page = window.go("#/shop/orders/tree")
    page.locator(".leaf").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    panel = page.locator(".side.det")
    expect(panel.locator("h2").first).to_have_text("Leaf 2")
    expect(panel.locator(".entries tbody tr").first).to_be_visible()
    assert "leaf=" in page.url
    window.picture("leaf")
    assert window.violations() == []
    panel.locator(".entries .link").first.click()
    expect(panel).to_contain_text("1 row group")
    expect(panel).to_contain_text("History")
    window.picture("file")
    assert window.violations() == []
    page.keyboard.press("Escape")
    expect(page.locator(".side.det")).to_have_count(0)
    address = page.url
    assert "leaf=" not in address


def test_deep_link_restores_filter_leaf_and_drawing(window: Window) -> None:
    page = window.go("#/shop/orders/tree")
    page.locator(".leaf").nth(2).click()
    page.locator(".fbox input").fill("order_id > 900")
    page.get_by_role("button", name="Ranges").click()
    expect(page.locator(".leaf.bar").first).to_be_visible()
    window.settled()
    link = page.url.removeprefix(window.uri + "/")
    window.go(link)
    expect(page.locator(".fbox input")).to_have_value("order_id > 900")
    expect(page.locator(".leaf.bar.cur")).to_have_count(1)
    expect(page.locator(".side.det h2").first).to_have_text("Leaf 3")


def test_leaves_are_listed_in_a_table_too(window: Window) -> None:
    page = window.go("#/shop/orders/tree?where=order_day%20%3D%20%272024-03-10%27")
    skipped = page.locator(".leaf.off").count()
    page.get_by_role("button", name="Table").click()
    rows = page.locator(".leaf-list tbody tr")
    assert rows.filter(has_text="skipped").count() == skipped
    assert rows.filter(has_text="opened").count() == rows.count() - skipped
    assert window.violations() == []


def test_scrubbing_redraws_the_tree_of_each_commit(window: Window) -> None:
    page = window.go("#/shop/orders/tree")
    scrub = page.get_by_role("slider", name="Commit")
    expect(page.locator("#say")).to_contain_text("Commit 30 of 30")
    scrub.focus()
    page.keyboard.press("Home")
    expect(page.locator("#say")).to_contain_text("Commit 1 of 30")
    expect(page.locator(".caption")).to_contain_text("One root lists all 1 file")
    expect(page.locator(".root")).to_contain_text("new root")
    plot = page.locator(".plot").bounding_box()
    assert plot is not None
    page.mouse.move(plot["x"] + plot["width"] * 0.1, plot["y"] + 40)
    page.mouse.down()
    page.mouse.move(plot["x"] + plot["width"] * 0.4, plot["y"] + 40, steps=12)
    page.mouse.up()
    window.settled()
    said = re.search(r"Commit (\d+) of 30", page.locator("#say").inner_text())
    assert said is not None
    number = int(said[1])
    assert 10 < number < 15
    # Each of the first 26 commits appended one file.
    expect(page.locator(".caption")).to_contain_text(f"One root lists all {number} files")
    assert "snapshot=" in page.url
    window.picture("scrubbed")
    page.get_by_role("button", name="Previous commit").click()
    expect(page.locator(".caption")).to_contain_text(f"One root lists all {number - 1} files")
    page.get_by_role("button", name="Latest").click()
    expect(page.locator("#say")).to_contain_text("Commit 30 of 30")


def test_what_a_commit_did_to_the_tree_is_marked(window: Window) -> None:
    page = window.go("#/shop/orders/tree?snapshot=half")
    root = page.locator(".root")
    # Four files fit the root: the fifth append moves them, the ninth does, the twelfth does not.
    expect(root).to_contain_text("new root")
    expect(root).not_to_contain_text("flush")
    for _ in range(3):
        page.get_by_role("button", name="Previous commit").click()
    expect(page.locator("#say")).to_contain_text("Commit 9 of 30")
    expect(root).to_contain_text("flush of 4 entries")
    expect(page.locator(".leaf.new .tag")).to_have_text("flush")
    window.picture("flush")
    for _ in range(18):
        page.get_by_role("button", name="Next commit").click()
    expect(page.locator("#say")).to_contain_text("Commit 27 of 30")
    expect(root).to_contain_text("4 rows deleted")
    expect(root).to_contain_text("positions died")
    expect(page.locator(".leaf.died").first).to_be_visible()
    window.picture("died")
    assert window.violations() == []


def test_split_is_marked(browser: Browser, pictures: Path, tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "warehouse") as catalog:
        table = catalog.create_table(
            "shop.split",
            pa.schema([("id", pa.int64())]),
            properties={"write.root.max-data-entries": "6", "write.leaf.target-entries": "3"},
        )
        for at in range(7):
            table.append(pa.table({"id": [at]}))
        assert table.current_snapshot is not None
        with serve.start(catalog) as server, Window(browser, server.uri, pictures).open() as window:
            page = window.go(f"#/shop/split/tree?snapshot={table.snapshots()[-1].snapshot_id}")
            # Six entries left the root for two leaves of three.
            expect(page.locator(".root")).to_contain_text("split over 2 leaves")
            expect(page.locator(".leaf.split .tag")).to_have_text(["split", "split"])
            expect(page.locator(".tkey")).to_contain_text("split")
            window.picture("split")
            assert window.violations() == []


def test_steps_lead_to_the_same_tree(window: Window) -> None:
    page = window.go("#/shop/orders/tree")
    worst = page.evaluate(
        """async () => {
        const { grown } = await import('/explorer/tree/steps.js');
        const base = '/explorer/api/tables/shop/orders';
        const ask = async (what) => (await fetch(`${base}/${what}`)).json();
        const { id } = await ask('commits');
        const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
        let worst = 0;
        for (const column of [2, 3, 5]) {
          let tree = await ask(`tree?snapshot=${id[0]}&columns=${column}`);
          for (const next of [...id.slice(1), id[3], id[20], id[0]]) {
            const from = `tree?snapshot=${next}&columns=${column}`;
            const step = await ask(`${from}&base=${tree.snapshot}`), full = await ask(from);
            tree = grown(tree, step);
            for (const name of Object.keys(full.leaves))
              if (!same(tree.leaves[name], full.leaves[name])) return `${next} ${name}`;
            for (const name of ['root', 'inline', 'gone', 'totals'])
              if (!same(tree[name], full[name])) return `${next} ${name}`;
            const [mine, theirs] = [tree.columns[0]?.leaves, full.columns[0]?.leaves];
            for (const name of ['lo_text', 'hi_text', 'nulls'])
              if (!same(mine?.[name], theirs?.[name])) return `${next} ${name} of ${column}`;
            for (const name of ['lo', 'hi'])
              (theirs?.[name] ?? []).forEach((t, i) => {
                worst = Math.max(worst, Math.abs(t - mine[name][i]));
              });
          }
        }
        return worst;
        }"""
    )
    assert isinstance(worst, int | float), worst
    assert worst < 0.001


def test_playing_reaches_the_head(window: Window) -> None:
    page = window.go("#/shop/orders/tree?snapshot=half")
    expect(page.locator("#say")).to_contain_text("Commit 12 of 30")
    for _ in range(15):
        page.get_by_role("button", name="Next commit").click()
    page.get_by_role("button", name="Play the commits").click()
    expect(page.locator("#say")).to_contain_text("Commit 30 of 30")
    expect(page.get_by_role("button", name="Play the commits")).to_be_visible()

"""Every command counts the same rows."""

from __future__ import annotations

import re

from tests.cli.conftest import Run


def test_deleted_rows_are_counted_nowhere(shop: Run) -> None:
    assert shop("delete", "shop.orders", "-w", "order_id = 1").code == 0
    assert shop("delete", "shop.orders", "-w", "order_id = 4").code == 0
    assert shop("scan", "shop.orders", "--count").out == "3\n"
    (line,) = shop("tables", "--json").json
    assert line["rows"] == 3
    assert shop("describe", "shop.orders", "--json").json["rows"] == 3
    assert shop("log", "shop.orders", "--json").json[0]["rows"] == 3
    assert shop("analyze", "shop.orders", "--json").json["rows"] == 3
    assert re.search(r", 3 rows,", shop("analyze", "shop.orders").out)
    assert re.search(r"^rows +\| 3$", shop("describe", "shop.orders").out, re.MULTILINE)


def test_a_log_counts_rows_that_came_and_went_once(shop: Run) -> None:
    """A second delete in a file writes a vector of both rows, compaction takes the file out."""
    assert shop("append", "shop.orders", "monday.csv").code == 0
    for order in ("1", "2"):
        assert shop("delete", "shop.orders", "-w", f"order_id = {order}").code == 0
    compacted = shop("maintain", "compact", "shop.orders", "--all")
    assert compacted.code == 0, compacted.err
    lines = shop("log", "shop.orders", "--json").json
    changed = [(line["rows-added"], line["rows-removed"], line["rows"]) for line in lines]
    assert changed == [(4, 4, 4), (0, 2, 4), (0, 2, 6), (3, 0, 8), (2, 0, 5), (3, 0, 3)]

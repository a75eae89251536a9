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

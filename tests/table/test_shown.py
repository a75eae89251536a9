"""What a notebook shows: one line, or a small card, never the internals."""

from __future__ import annotations

import pyarrow as pa

import frazil
from tests.table.conftest import orders


def test_everything_shown_is_one_line_and_has_a_card(table: frazil.Table) -> None:
    done = table.append(orders(0, 6))
    scan = table.scan("order_id < 3", ["order_id"], limit=5)
    for value in (
        table,
        scan,
        done,
        table.changes(),
        table.analyze(),
        scan.explain(),
        table.check(),
    ):
        text = repr(value)
        assert "\n" not in text
        assert len(text) < 200
        assert text.startswith(f"{type(value).__name__}(")
        card = value._repr_html_()
        assert card.startswith("<div><strong>")
        assert "object at 0x" not in card


def test_the_lines_say_what_matters(table: frazil.Table) -> None:
    table.append(orders(0, 6))
    tip = table.current_snapshot()
    assert tip is not None
    scan = table.scan("order_id < 3", ["order_id"], limit=5)
    at = f"snapshot {tip.snapshot_id}"
    assert repr(scan) == f"Scan(shop.orders: order_id where order_id < 3 limit 5; {at})"
    assert repr(table.changes()) == "Changes(changes of 1 snapshot after the beginning)"
    assert repr(table.check()) == "CheckReport(shop.orders: ok)"
    assert repr(table.analyze()) == "Health(shop.orders: 6 rows in 3 files, 1 snapshot)"


def test_a_table_is_a_key_and_an_arrow_stream(table: frazil.Table) -> None:
    table.append(orders(0, 6))
    assert {table: 1}[table] == 1
    assert pa.table(table).equals(table.scan().to_arrow())

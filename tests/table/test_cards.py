"""Cards of notebooks: what they say of a table, a comparison and a plan."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

import frazil
from tests.table.conftest import orders


def test_a_table_shows_columns_partitions_size_health_and_commits(table: frazil.Table) -> None:
    table.append(orders(0, 6))
    table.append(orders(6, 8))
    table.delete("order_id = 1")
    html = table._repr_html_()
    for column in table.schema.fields:
        assert f">{column.name}</td>" in html
    for fact in (">7<", "partitioned by", " files", "health", "just now", "3 commits"):
        assert fact in html
    assert html.count("<rect") == 3


def test_an_empty_table_has_a_card_without_commits(table: frazil.Table) -> None:
    html = table._repr_html_()
    assert "never" in html
    assert "<svg" not in html


def test_names_in_cards_are_escaped(table: frazil.Table) -> None:
    table.evolve_schema().add_column("<b>", "long", doc="<script>").commit()
    html = table._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<script" not in html


def test_a_comparison_is_a_table_of_what_differs(table: frazil.Table) -> None:
    table.append(orders(0, 6))
    table.tag("before")
    table.append(orders(6, 8))
    html = table.compare("before")._repr_html_()
    assert "<td" in html
    assert ">8<" in html.replace(" ", "")
    assert ">6<" in html.replace(" ", "")
    assert "nothing is different" in table.compare("main")._repr_html_()
    assert repr(table.compare("main")).startswith("Comparison(")


def test_a_plan_draws_what_became_of_every_leaf(table: frazil.Table) -> None:
    for day in range(6):
        table.append(orders(day * 10, day * 10 + 3))
    table.set_properties({"write.leaf.target-entries": "2"})
    table.rewrite_manifests()
    report = table.scan("order_id < 3").explain(per_leaf=True)
    html = report._repr_html_()
    opened = sum(leaf.files is not None for leaf in report.per_leaf)
    assert f"{opened} of {len(report.per_leaf)} leaves opened" in html
    assert html.count("width:12px") == len(report.per_leaf)
    assert "order_id" in html
    assert "pruned by" in html


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a notebook shows below the cell."""
    shown: list[str] = []

    def display(html: str, *, display_id: bool) -> Any:
        shown.append(html)
        return SimpleNamespace(update=shown.append)

    fake = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", fake)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(HTML=str, display=display))
    return shown


def test_a_bar_in_a_notebook_is_drawn_and_brought_up_to_date(
    table: frazil.Table, drawn: list[str]
) -> None:
    for _ in range(3):
        table.append(orders(0, 2))
    table.check(progress=frazil.progress_bar())
    assert drawn
    assert "width:100.0%" in drawn[-1]


def test_long_work_in_a_notebook_shows_a_bar_without_being_asked(
    table: frazil.Table, drawn: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frazil.maintenance.progress._UNASKED_AFTER_S", 1_000.0)
    table.check()
    assert drawn == [], "the work was short"
    monkeypatch.setattr("frazil.maintenance.progress._UNASKED_AFTER_S", 0.0)
    table.check()
    assert "width:100.0%" in drawn[-1]
    drawn.clear()
    table.check(progress=lambda done, total, what: None)
    assert drawn == []


def test_nothing_is_drawn_outside_of_a_notebook(
    table: frazil.Table, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frazil.maintenance.progress._UNASKED_AFTER_S", 0.0)
    table.check()
    frazil.progress_bar()(1, 2, "work")
    assert capsys.readouterr().err == ""

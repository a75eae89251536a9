"""EXPLAIN fits a terminal: names of the user, what the tree pruned, the engine's steps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import frazil

ROWS = 20_000


@pytest.fixture
def catalog(tmp_path: Path) -> frazil.Catalog:
    """A table with deleted rows, one of whose files calls a column otherwise."""
    catalog = frazil.connect(tmp_path)
    rows = {"id": list(range(ROWS)), "label": ["x"] * ROWS, "Unit Price": [1.5] * ROWS}
    table = catalog.create_table("shop.orders", rows)
    table.evolve_schema().rename_column("label", "status").commit()
    table.append({"id": [ROWS], "status": ["y"], "Unit Price": [2.5]})
    table.delete("id % 3 = 1")
    return catalog


@pytest.mark.parametrize("word", ["EXPLAIN", "EXPLAIN ANALYZE"])
def test_deleted_rows_are_words_and_every_line_fits(catalog: frazil.Catalog, word: str) -> None:
    query = 'SELECT status, sum("Unit Price") FROM shop.orders WHERE id > 5 GROUP BY ALL'
    shown = repr(catalog.sql(f"{word} {query}"))
    lines = shown.splitlines()
    assert len(lines) < 60
    assert max(map(len, lines)) <= 80
    assert "not deleted" in shown
    assert "::BIT" not in shown
    assert "Unit Price" in shown
    assert "2 files" in shown
    assert "id > 5" in shown


def test_deleted_rows_do_not_change_what_the_engine_expects(tmp_path: Path) -> None:
    """DuckDB orders joins by the number of rows it expects from each side."""
    catalog = frazil.connect(tmp_path / "warehouse")
    table = catalog.create_table("shop.orders", {"id": list(range(ROWS))})
    table.append({"id": list(range(ROWS, 2 * ROWS))})
    queries = [
        "SELECT count(*) FROM shop.orders WHERE id > 5",
        "SELECT id FROM shop.orders",
        "SELECT o.id FROM shop.orders o JOIN shop.orders p ON o.id = p.id + 1",
    ]

    def expected() -> list[list[str]]:
        for query in queries:  # the second time, DuckDB has the footers of all files
            catalog.sql(query).to_arrow()
        plans = [repr(catalog.sql(f"EXPLAIN {query}")) for query in queries]
        steps = r"(?:join|parquet|aggregate): about ([\d,]+) rows?"
        return [re.findall(steps, plan) for plan in plans]

    before = expected()
    assert all(before)
    table.delete("id % 100 = 1")
    assert expected() == before


def test_columns_that_are_found_by_id_have_their_names(catalog: frazil.Catalog) -> None:
    table = catalog.load_table("shop.orders")
    table.evolve_schema().add_column("note", "string").commit()
    table.append({"id": [1], "status": ["z"], "Unit Price": [3.5], "note": ["n"]})
    shown = repr(catalog.sql("EXPLAIN SELECT note, status FROM shop.orders WHERE id > 5"))
    assert "note" in shown
    assert " c1" not in shown
    assert " c4" not in shown


def test_steps_name_columns_instead_of_counting_them(catalog: frazil.Catalog) -> None:
    query = 'SELECT status, sum("Unit Price" * 2) AS total FROM shop.orders GROUP BY 1'
    shown = repr(catalog.sql(f"EXPLAIN {query}"))
    assert "groups: status" in shown
    assert re.search(r"aggregates: sum\(.*Unit Price.* \* 2", shown)
    assert "#" not in shown


def test_a_condition_of_the_user_stays_beside_the_deleted_rows(catalog: frazil.Catalog) -> None:
    shown = repr(catalog.sql("EXPLAIN SELECT id FROM shop.orders WHERE status = 'a) AND (b' "))
    assert "a) AND (b" in shown
    assert "::BIT" not in shown


def test_a_report_of_a_scan_fits_a_terminal(catalog: frazil.Catalog) -> None:
    where = " OR ".join(f"id = {at * 1000}" for at in range(12))
    text = str(catalog.load_table("shop.orders").scan(where).explain())
    assert max(map(len, text.splitlines())) <= 80
    assert "1 pruned by bounds" in str(
        catalog.load_table("shop.orders").scan("id = 20000").explain()
    )


def test_functions_that_the_engine_adds_for_itself_are_left_out(catalog: frazil.Catalog) -> None:
    query = "SELECT status, count(*) AS n FROM shop.orders GROUP BY ALL ORDER BY n, status"
    shown = repr(catalog.sql(f"EXPLAIN {query}"))
    assert "__internal" not in shown
    assert "count(*)" in shown
    assert "count_star" not in shown


def test_numbers_of_columns_without_names_are_left_out(catalog: frazil.Catalog) -> None:
    table = catalog.create_table("shop.plain", {"id": [1, 2], "a": ["x", "y"]})
    table.append({"id": [3, 4], "a": ["x", "y"]})
    table.append({"id": [5], "a": ["z"]})
    table.delete("id in (1, 3)")
    shown = repr(catalog.sql("EXPLAIN SELECT * FROM shop.plain LIMIT 20"))
    assert "#" not in shown
    assert "not deleted" in shown


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM shop.orders WHERE id = 5 ORDER BY id",
        "SELECT id + 1 AS next, status FROM shop.orders ORDER BY next LIMIT 3",
        "SELECT sum(id) AS s FROM (SELECT id FROM shop.orders ORDER BY status LIMIT 9)",
        "SELECT o.id, sum(p.id) FROM shop.orders o JOIN shop.orders p USING (id) GROUP BY 1 "
        "ORDER BY 2",
    ],
)
def test_columns_above_a_sorted_step_are_not_numbers(catalog: frazil.Catalog, query: str) -> None:
    shown = repr(catalog.sql(f"EXPLAIN {query}"))
    assert "#" not in shown
    assert "about 0 rows" not in shown


def test_texts_with_number_signs_stay(catalog: frazil.Catalog) -> None:
    query = "SELECT id FROM shop.orders WHERE status IN ('#0', '#91') ORDER BY status"
    shown = repr(catalog.sql(f"EXPLAIN {query}"))
    assert "'#0'" in shown
    assert "'#91'" in shown


def test_a_leaf_that_is_in_memory_is_not_read_again(tmp_path: Path) -> None:
    frazil.connect(tmp_path).create_table(
        "shop.small", {"id": [0]}, properties={"write.root.max-data-entries": "4"}
    )
    table = frazil.connect(tmp_path)["shop.small"]
    for at in range(1, 8):
        table.append({"id": [at]})
    fresh = frazil.connect(tmp_path)["shop.small"]
    first, again = (" ".join(str(fresh.scan("id < 3").explain()).split()) for _ in range(2))
    assert "leaves 4 entries" in first
    assert "1 manifest read," in first
    assert "1 manifest from memory," in again
    assert "0 bytes" not in again

"""What the overview says of columns, and the page of a view. Numbers are counted by hand or by
Python from the rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from frazil.serve.explorer.endpoints import ENDPOINTS
from frazil.serve.explorer.pages import columns_page
from frazil.serve.explorer.pages.columns_page import BINS, spread
from frazil.table import Catalog, Table
from tests.serve.explorer.conftest import API, Get, browse


def column(body: dict[str, Any], table: Table, name: str) -> dict[str, Any]:
    field = table.schema.find_field(name)
    return next(each for each in body["columns"] if each["id"] == field.field_id)


def test_a_small_table_is_counted_from_its_rows(get: Get, orders: Table) -> None:
    body = get("columns")
    rows = orders.scan().to_pylist()
    assert body["exact"]
    for name in ("order_id", "country", "amount", "order_day", "note"):
        values = [row[name] for row in rows if row[name] is not None]
        told = column(body, orders, name)
        assert told["nulls"] == len(rows) - len(values)
        assert told["distinct"] == len(set(values))
        assert (told["low"], told["high"]) == (str(min(values)), str(max(values)))
    country = column(body, orders, "country")
    counts = Counter(row["country"] for row in rows)
    assert dict(country["values"]).items() <= counts.items()
    assert [count for _, count in country["values"]] == sorted(counts.values(), reverse=True)[:6]
    assert country["others"] == len(rows) - sum(count for _, count in country["values"])
    assert sum(column(body, orders, "amount")["bins"]) == len(rows)


def test_a_larger_table_is_told_from_its_root(get: Get, orders: Table, monkeypatch: Any) -> None:
    monkeypatch.setattr(columns_page, "EXACT_ROWS", 10)
    body = get("columns")
    assert not body["exact"]
    day = column(body, orders, "order_day")
    assert (day["low"], day["high"], day["nulls"]) == ("2024-03-01", "2024-03-15", 0)
    # The root cannot tell that rows of a leaf are deleted: 9 are, and a file of 40 is dead.
    assert 1_048 <= sum(day["bins"]) <= 1_048 + 9 + 40
    assert column(body, orders, "country")["bins"] is None


def test_rows_are_spread_over_the_bounds_of_their_file() -> None:
    half = spread(np.array([0.0]), np.array([0.5]), np.array([240.0]))
    assert half == [20] * (BINS // 2) + [0] * (BINS // 2)
    ends = spread(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.array([3.0, 5.0]))
    assert ends == [3, *[0] * (BINS - 2), 5]


def test_files_that_span_everything_show_no_spread() -> None:
    assert spread(np.array([0.0, 0.1]), np.array([1.0, 1.0]), np.array([10.0, 10.0])) is None


def test_an_empty_table_has_columns_without_values(own: Catalog) -> None:
    own.create_table("shop.empty", pa.schema([("a", pa.int64()), ("b", pa.string())]))
    with browse(own) as client:
        body = client.get(f"{API}/tables/shop/empty/columns").json()
    assert [each["low"] for each in body["columns"]] == [None, None]


def test_names_with_dots_quotes_and_nesting_are_read(own: Catalog) -> None:
    odd = own.create_table(
        "shop.odd",
        [{"a.b": 1, 'say "x"': "y", "deep": {"er": {"est": 3.5}}, "list": [1, 2], "raw": b"z"}],
    )
    with browse(own) as client:
        body = client.get(f"{API}/tables/shop/odd/columns").json()
    assert body["exact"]
    lows = {each["id"]: each["low"] for each in body["columns"]}
    names = ["a.b", 'say "x"', "deep.er.est", "raw"]
    ids = [odd.schema.find_field(name).field_id for name in names]
    assert lows == dict(zip(ids, ["1", "y", "3.5", None], strict=True))


def test_the_page_of_a_view_has_its_query_and_columns(own: Catalog) -> None:
    own.create_view("shop.few", "SELECT order_id, country FROM shop.orders WHERE order_id < 3")
    with browse(own) as client:
        body = client.get(f"{API}/views/shop/few").json()
        missing = client.get(f"{API}/views/shop/nothing")
    assert body["sql"] == "SELECT order_id, country FROM shop.orders WHERE order_id < 3"
    assert [(each["name"], each["type"]) for each in body["columns"]] == [
        ("order_id", "long"),
        ("country", "string"),
    ]
    assert (body["versions"], missing.status_code) == (1, 404)


def test_a_text_is_explained_without_being_run(own: Catalog, orders: Table) -> None:
    before = len(own.load_table("shop.orders").snapshots())
    with browse(own) as client:
        explained = client.post(
            f"{API}/sql",
            json={
                "sql": "SELECT * FROM shop.orders WHERE order_id = 3",
                "explain": True,
                "run": False,
            },
        ).json()
        change = client.post(
            f"{API}/sql", json={"sql": "DELETE FROM shop.orders", "explain": True, "run": False}
        ).json()
    assert explained["ok"]
    assert "rows" not in explained
    assert "where order_id = 3" in explained["explain"][0]["plan"]
    assert not change["ok"]
    assert len(own.load_table("shop.orders").snapshots()) == before


def test_expiry_takes_an_age(own: Catalog) -> None:
    with browse(own) as client:
        for age, says in (("1 hour", "snapshots and"), ("9000 days", "No snapshot is old enough")):
            body = client.post(
                f"{API}/tables/shop/orders/actions/expire_snapshots",
                json={"params": {"older_than": age}},
            ).json()
            assert says in body["sentence"]
        wrong = client.post(
            f"{API}/tables/shop/orders/actions/expire_snapshots",
            json={"params": {"older_than": "soon"}},
        )
    assert wrong.status_code == 400
    assert "'soon'" in wrong.json()["error"]["message"]


def test_pages_that_open_an_engine_wait_for_the_threads_of_statements() -> None:
    lanes = {endpoint.template.rpartition("/")[2]: endpoint.lane for endpoint in ENDPOINTS}
    assert lanes["columns"] == lanes["sql"] == "statements"


def test_a_result_says_how_many_of_its_values_are_cut(own: Catalog) -> None:
    sql = "SELECT repeat('x', 201) AS long, repeat('y', 200) AS fits, NULL AS none FROM range(3)"
    with browse(own) as client:
        page = client.post(f"{API}/sql", json={"sql": sql}).json()
    assert page["cut"] == 3
    assert page["rows"][0][1:] == ["y" * 200, None]
    assert page["rows"][0][0] == "x" * 199 + "…"

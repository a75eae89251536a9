"""A filter on the page is planned as a scan plans it, and every leaf that falls says why."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from frazil.iceberg.schema import Schema
from frazil.iceberg.types import GeometryType, NestedField, StringType
from frazil.serve.exchange import Request
from frazil.serve.explorer.pages import plan_page as endpoint
from frazil.serve.service import Service
from frazil.table import Catalog, Table
from tests.serve.explorer.conftest import API, Get, browse
from tests.support.wkb import point

FILTERS = [
    "",
    "order_id = 500",
    "order_id < 41",
    "order_id > 5000",
    "order_id between 100 and 300",
    "order_id in (1, 999)",
    "order_day = '2024-03-05'",
    "order_day >= '2024-03-10' and country = 'DE'",
    "order_day < '2024-03-03' or order_day > '2024-03-12'",
    "country = 'ZZ'",
    "country like 'A%'",
    "amount > 399.5",
    "note = 'order 3'",
    "note is null",
    "not (order_id < 900)",
    "order_id > 100 and lower(country) = 'de'",
    "customer_id = 1037 and order_id < 200",
]


@pytest.mark.parametrize("where", FILTERS)
@pytest.mark.parametrize("snapshot", ["", "half", "audit"])
def test_a_plan_is_the_plan_of_a_scan(where: str, snapshot: str, get: Get, orders: Table) -> None:
    found = get("plan", where=where, snapshot=snapshot)
    report = orders.scan(where or None, as_of=snapshot or None).explain()
    assert found["ok"]
    assert (found["files"], found["rows"], found["data_bytes"]) == (
        report.files,
        report.records,
        report.bytes,
    )
    assert found["opened"] == report.leaves.manifests_read
    opened = [left for left in found["leaf_left"] if left is not None]
    assert len(opened) == found["opened"]
    assert sum(opened) + sum(found["inline_left"]) == report.files
    assert [why >= 0 for why in found["leaf_why"]] == [each is None for each in found["leaf_left"]]
    assert [why >= 0 for why in found["inline_why"]] == [not left for left in found["inline_left"]]


def spans(table: Table, column: str) -> list[tuple[Any, Any]]:
    """The range of a column in each leaf, as `inspect` tells it."""
    metrics = table.inspect.manifests.column("readable_metrics").to_pylist()
    return [(each[column]["lower_bound"], each[column]["upper_bound"]) for each in metrics]


def test_leaves_fall_by_the_column_whose_range_lies_elsewhere(get: Get, orders: Table) -> None:
    days, ids = spans(orders, "order_day"), spans(orders, "order_id")
    found = get("plan", where="order_day >= '2024-03-08' and order_id < 400")
    expected: list[str | None] = []
    for day, order in zip(days, ids, strict=True):
        if day[1] < date(2024, 3, 8):
            expected.append("order_day >= '2024-03-08'")
        elif order[0] >= 400:
            expected.append("order_id < 400")
        else:
            expected.append(None)
    said = [None if why < 0 else found["reasons"][why]["text"] for why in found["leaf_why"]]
    assert said == expected
    assert {"order_day >= '2024-03-08'", "order_id < 400"} <= set(said)
    reason = next(each for each in found["reasons"] if each["ids"] == [1])
    assert reason["columns"] == ["order_id"]
    assert reason["by"] == "bounds"


def test_or_needs_every_side_to_rule_a_leaf_out(get: Get, orders: Table) -> None:
    found = get("plan", where="order_day > '2024-03-12' or order_id < 5")
    texts = {"order_day > '2024-03-12' or order_id < 5"}
    fallen = [found["reasons"][why] for why in found["leaf_why"] if why >= 0]
    assert fallen
    assert {each["text"] for each in fallen} == texts
    assert {tuple(each["columns"]) for each in fallen} == {("order_day", "order_id")}
    kept = [
        day[1] > date(2024, 3, 12) or order[0] < 5
        for day, order in zip(spans(orders, "order_day"), spans(orders, "order_id"), strict=True)
    ]
    assert [why < 0 for why in found["leaf_why"]] == kept


def test_files_of_the_root_fall_by_their_partition(get: Get) -> None:
    found = get("plan", where="order_day = '1999-01-01'")
    whys = {found["reasons"][why]["by"] for why in found["inline_why"]}
    assert found["files"] == 0
    assert whys == {"partition"}


def test_a_report_says_what_became_of_each_leaf(orders: Table) -> None:
    report = orders.scan("order_id < 400").explain(per_leaf=True)
    said = [(each.pruned_by, each.files is not None) for each in report.per_leaf]
    assert said == [
        ((), True) if low < 400 else (("order_id",), False) for low, _ in spans(orders, "order_id")
    ]
    assert orders.scan("order_id < 400").explain().per_leaf == ()


def test_older_iceberg_prunes_by_partition_alone(get: Get, orders: Table) -> None:
    entries = orders.inspect.entries.to_pylist()
    in_root = {
        each["snapshot_id"] for each in entries if each["manifest"] is None and each["is_live"]
    }
    everything = get("plan", where="")["iceberg"]
    leaves = orders.inspect.manifests.num_rows
    assert everything["manifests"] == everything["all"] == leaves + len(in_root)
    by_id = get("plan", where="order_id = 1")["iceberg"]
    assert by_id["manifests"] == by_id["all"]
    assert by_id["pruned_by"] is None
    by_day = get("plan", where="order_day = '2024-03-01'")["iceberg"]
    touched = sum(low <= date(2024, 3, 1) <= high for low, high in spans(orders, "order_day"))
    assert touched <= by_day["manifests"] < by_day["all"]
    assert by_day["pruned_by"] == "partition"


@pytest.mark.parametrize(
    ("where", "at", "end", "message", "hint"),
    [
        ("contry = 'DE'", 0, 6, "unknown column 'contry'", "Did you mean country?"),
        (
            "order_id = 1 and ordr_id = 2",
            17,
            24,
            "unknown column 'ordr_id'",
            "Did you mean order_id",
        ),
        ("order_id >", 10, 11, "expected", None),
        ("country = 'DE", 10, 13, "no closing quote", None),
        ("order_id = 1 order_id = 2", 13, 21, "expected", None),
    ],
)
def test_a_complaint_points_at_the_character(
    where: str, at: int, end: int, message: str, hint: str | None, get: Get
) -> None:
    found = get("plan", where=where)
    assert not found["ok"]
    error = found["error"]
    assert (error["at"], error["end"]) == (at, end)
    assert message in error["message"]
    assert (error["hint"] or "").startswith(hint or "")
    assert (error["hint"] is None) == (hint is None)


def test_bands_lie_where_the_values_do(get: Get) -> None:
    found = get("plan", where="order_day >= '2024-03-13'", columns="2")
    assert found["bands"] == {"2": [[pytest.approx(12 / 14, abs=1e-4), 1.0]]}
    # The days go from 1 to 15 March.
    equal = get("plan", where="order_day = '2024-03-15'", columns="2")
    assert equal["bands"] == {"2": [[1.0, 1.0]]}


def test_a_column_without_bounds_cannot_prune(get: Get) -> None:
    found = get("plan", where="note = 'x'")
    assert not found["prunable"]
    assert found["opened"] == found["of"]


def test_completion_offers_columns_then_operators(get: Get) -> None:
    assert get("complete", where="cou", at="3")["names"] == ["country"]
    middle = get("complete", where="order_id = 1 and am", at="19")
    assert (middle["from"], middle["to"], middle["names"]) == (17, 19, ["amount"])
    assert get("complete", where="country ", at="8")["kind"] == "operator"
    assert get("complete", where="country = 'D", at="12")["kind"] == "value"


def test_a_plan_opens_the_files_that_a_scan_opens(shop_folder: Any) -> None:
    import frazil

    where = "order_day >= '2024-03-06' and order_id < 700"

    def paths(ask: Any) -> tuple[set[str], int]:
        with frazil.connect(shop_folder) as catalog:
            table = catalog.load_table("shop.orders")
            with table._handle.storage.recording() as calls:
                ask(catalog)
            read = [call for call in calls if call.bytes]
            opened = {call.path for call in calls if call.verb != "list"}  # a server looks around
            return {call.path for call in read}, len(opened)

    def native(catalog: Catalog) -> None:
        catalog.load_table("shop.orders").scan(where).plan()

    def explored(catalog: Catalog) -> None:
        names = {"namespace": "shop", "table": "orders"}
        call = Request(method="GET", path="", parameters=names, query={"where": where}, headers={})
        endpoint.show(Service(catalog), call)

    assert paths(explored) == paths(native)


def test_a_window_prunes_by_boxes(own: Catalog) -> None:
    schema = Schema(NestedField(1, "geom", GeometryType()))
    table = own.create_table("shop.places", schema)
    for x in (1, 5, 9):
        table.append([{"geom": point(x, x)}])
    page = browse(own)
    address = f"{API}/tables/shop/places/plan"
    answer = page.get(address, params={"where": "bbox(geom, 4, 4, 6, 6)"}).json()
    assert (answer["files"], answer["prunable"]) == (1, True)
    assert [reason["text"] for reason in answer["reasons"]] == ["bbox(geom, 4, 4, 6, 6)"]
    assert {reason["by"] for reason in answer["reasons"]} == {"bounds"}


def test_a_condition_on_an_expression_prunes_by_its_statistics(own: Catalog) -> None:
    schema = Schema(NestedField(1, "name", StringType()))
    table = own.create_table("shop.people", schema, expressions=["lower(name)"])
    for name in ("Ann", "BOB", "Cy"):
        table.append([{"name": name}])
    page = browse(own)
    address = f"{API}/tables/shop/people/plan"
    answer = page.get(address, params={"where": "lower(name) = 'bob'"}).json()
    assert (answer["files"], answer["prunable"], answer["columns"]) == (1, True, [])
    (reason,) = answer["reasons"]
    assert (reason["by"], reason["text"]) == ("derived", "lower(name) = 'bob'")
    assert reason["columns"] == ["lower(name) = 'bob'"]

"""Commands on rows."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.cli.conftest import Run


def ids(rows: list[dict[str, object]]) -> list[object]:
    return sorted(row["order_id"] for row in rows)  # type: ignore[type-var]


def test_scan_filters_chooses_columns_and_limits(shop: Run) -> None:
    rows = shop(
        "scan", "shop.orders", "--where", "country = 'US'", "--columns", "order_id,price", "--json"
    ).json
    assert ids(rows) == [1, 3, 5]
    assert list(rows[0]) == ["order_id", "price"]
    assert len(shop("scan", "shop.orders", "--limit", "2", "--json").json) == 2


def test_scan_counts_without_printing_rows(shop: Run) -> None:
    assert shop("scan", "shop.orders", "--count", "--json").json == {"count": 5}


def test_scan_writes_files(shop: Run, tmp_path: Path) -> None:
    assert shop("scan", "shop.orders", "--to", "out.parquet").code == 0
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 5
    assert shop("scan", "shop.orders", "--to", "out.xml").code == 2


def test_scan_goes_back_in_time(shop: Run) -> None:
    first = shop("log", "shop.orders", "--json").json[-1]["snapshot"]
    assert ids(shop("scan", "shop.orders", "--as-of", first, "--json").json) == [1, 2, 3]


def test_a_bad_filter_names_the_column(shop: Run) -> None:
    done = shop("scan", "shop.orders", "--where", "contry = 'US'")
    assert done.code == 2
    assert "country" in done.err


def test_append_reads_every_kind_of_file(shop: Run, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"order_id": 6, "day": "2024-01-17", "country": "IT"}\n')
    (tmp_path / "b.json").write_text('[{"order_id": 7, "country": "ES"}]')
    pq.write_table(pa.table({"order_id": [8], "price": [1.0]}), tmp_path / "c.parquet")
    done = shop("append", "shop.orders", "a.jsonl", "b.json", "c.parquet", "--json")
    assert done.code == 0, done.err
    assert done.json["summary"]["added-records"] == "3"
    assert ids(shop("scan", "shop.orders", "--json").json) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_append_refuses_files_it_cannot_read(shop: Run, tmp_path: Path) -> None:
    assert shop("append", "shop.orders", "none.csv").code == 3
    (tmp_path / "rows.xml").write_text("<a/>")
    assert shop("append", "shop.orders", "rows.xml").code == 2
    (tmp_path / "bad.parquet").write_text("no")
    assert shop("append", "shop.orders", "bad.parquet").code == 2
    (tmp_path / "more.csv").write_text("order_id,colour\n1,red\n")
    done = shop("append", "shop.orders", "more.csv")
    assert done.code == 2
    assert "colour" in done.err


def test_one_small_append_writes_one_metadata_file(shop: Run) -> None:
    assert shop("append", "shop.orders", "monday.csv", "--json").json["metadata-files"] == 1


def test_delete_and_update(shop: Run) -> None:
    assert shop("delete", "shop.orders", "--where", "order_id = 1").code == 0
    assert "no row matched" in shop("delete", "shop.orders", "--where", "order_id = 99").out
    done = shop("update", "shop.orders", "--set", "price=price * 2", "-w", "order_id = 2")
    assert done.code == 0, done.err
    rows = shop("scan", "shop.orders", "--json").json
    assert ids(rows) == [2, 3, 4, 5]
    assert {row["order_id"]: row["price"] for row in rows}[2] == 41.0


def test_upsert_updates_and_inserts(shop: Run, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text(
        "order_id,day,country,price\n1,2024-01-15,US,99\n6,2024-01-17,IT,1\n"
    )
    done = shop("upsert", "shop.orders", "new.csv", "--on", "order_id", "--json")
    assert done.json["rows"] == {"added": 1, "removed": 0, "updated": 1}
    assert ids(shop("scan", "shop.orders", "--where", "price = 99", "--json").json) == [1]


def test_plan_tells_what_was_pruned(shop: Run) -> None:
    done = shop("plan", "shop.orders", "--where", "day = '2024-01-16'", "--json")
    report = done.json
    assert (report["root"]["considered"], report["root"]["survived"]) == (2, 1)
    assert report["filter"] == "day = '2024-01-16'"
    text = shop("explain", "shop.orders", "--where", "day = '2024-01-16'").out
    assert "where day = '2024-01-16'" in text
    assert "1 file, 2 records" in text


def test_plan_lists_files(shop: Run) -> None:
    (line,) = shop("plan", "shop.orders", "-w", "order_id > 3", "--files", "--json").json
    assert line["record_count"] == 2


def test_values_json_cannot_hold_are_text(run: Run) -> None:
    run("create", "a.b", "--column", "x:double", "--column", "y:binary", "--column", "z:date")
    Path("v.json").write_text(json.dumps([{"x": 1.5, "z": "2024-01-15"}]))
    assert run("append", "a.b", "v.json").code == 0
    assert run("scan", "a.b", "--json").json == [{"x": 1.5, "y": None, "z": "2024-01-15"}]

"""Bounds of fields inside variants: collected, stored, aggregated, published, and pruned by."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from pyiceberg import types as ice
from pyiceberg.schema import Schema

import frazil
from frazil.format.values import variant

SCHEMA = Schema(
    ice.NestedField(1, "id", ice.LongType(), False),
    ice.NestedField(2, "v", frazil.VariantType(), False),
    ice.NestedField(
        3,
        "s",
        ice.StructType(ice.NestedField(4, "inner", frazil.VariantType(), False)),
        False,
    ),
)
FILES = 6
"""One for each ten of prices."""


def document(file: int, row: int) -> dict[str, Any]:
    return {
        "price": file * 10 + row,
        "ratio": file + row / 10,
        "cost": Decimal(file) + Decimal("0.25"),
        "name": f"n{file}{'n' * 20}{row}",  # longer than the bounds of text
        "deep": {"er": {"day": dt.date(2026, 1, 1 + file)}},
        "at": dt.datetime(2026, 1, 1 + file, row),
        "mixed": "text" if row else file,
        "sometimes": [file] if row else file,
        "list": [file],
    }


@pytest.fixture
def table(catalog: frazil.Catalog) -> frazil.Table:
    made = catalog.create_table("shop.t", SCHEMA)
    for file in range(FILES):
        rows = [(file * 10 + row, document(file, row)) for row in range(3)]
        made.append([{"id": id, "v": v, "s": {"inner": v["price"]}} for id, v in rows])
    return made


def files(table: frazil.Table, where: str) -> int:
    return table.scan(where).plan().files.num_rows


def ids(table: frazil.Table, where: str) -> list[int]:
    return sorted(table.scan(where).to_arrow()["id"].to_pylist())


PRUNED = [
    ("v.price > 45", 1, [50, 51, 52]),
    ("v.price::INT = 21", 1, [21]),
    ("v['price']::BIGINT >= 50", 1, [50, 51, 52]),
    ("TRY_CAST(v.price AS INT) < 2", 1, [0, 1]),
    ("v.price IN (1, 31)", 2, [1, 31]),
    ("v.price > 5 AND v.price < 12", 1, [10, 11]),
    ("v.ratio::DOUBLE >= 5", 1, [50, 51, 52]),
    ("v.ratio::INT = 4", 2, [40, 41, 42]),  # 3.2 is rounded up to a bound of 4
    ("v.cost = 3.25", 1, [30, 31, 32]),
    ("v.cost > 4", 2, [40, 41, 42, 50, 51, 52]),
    ("v.name = 'x'", 0, []),
    ("v.name::VARCHAR LIKE 'n3%'", 1, [30, 31, 32]),
    ("v.deep.er.day::DATE = DATE '2026-01-04'", 1, [30, 31, 32]),
    ("v.at::TIMESTAMP < TIMESTAMP '2026-01-01 01:00:00'", 1, [0]),
    ("s.inner > 45", 1, [50, 51, 52]),
    ("NOT (v.price > 5)", FILES, [0, 1, 2]),
]
KEPT = [
    # Variants of another kind than the value are ordered by their kind; text may become a number.
    "v.mixed > 5",
    "v.name > 5",
    "v.price > 'a'",
    "v.price < 5e0",
    "v.sometimes > 1000",
    "v.price IS NULL",
    "v.nowhere > 5",
    "v.price::VARCHAR > '9'",
]


@pytest.mark.parametrize(("where", "left", "found"), PRUNED)
def test_conditions_on_fields_prune_files(
    catalog: frazil.Catalog, table: frazil.Table, where: str, left: int, found: list[int]
) -> None:
    assert ids(table, where) == found
    assert files(table, where) == left
    rows = catalog.sql(f"SELECT id FROM shop.t AS t WHERE {where} ORDER BY id").to_pylist()
    assert [row["id"] for row in rows] == found


@pytest.mark.parametrize("where", KEPT)
def test_what_bounds_do_not_say_prunes_nothing(
    catalog: frazil.Catalog, table: frazil.Table, where: str
) -> None:
    assert files(table, where) == FILES
    every = catalog.sql(f"SELECT id FROM (SELECT id, ({where}) AS ok FROM shop.t) WHERE ok")
    assert ids(table, where) == sorted(row["id"] for row in every.to_pylist())


def test_leaves_have_bounds_and_are_left_unopened(catalog: frazil.Catalog) -> None:
    table = catalog.create_table(
        "shop.many",
        SCHEMA,
        properties={"write.leaf.target-entries": "8", "write.root.max-data-entries": "4"},
    )
    for file in range(32):
        table.append([{"id": file, "v": {"price": file, "name": f"n{file:02}"}}])
    table.rewrite_manifests()
    for where in ("v.price = 17", "v.name = 'n17'", "v.price::INT = 17"):
        report = table.scan(where).plan().report
        assert (report.leaves.manifests_read, report.files) == (1, 1), where
    assert table.scan("v.price > 99").plan().report.leaves.manifests_read == 0
    # A file without the field is unknown, and so is the leaf that has it.
    table.append([{"id": 99, "v": {}}])
    table.rewrite_manifests()
    report = table.scan("v.price > 99").plan().report
    assert (report.leaves.manifests_read, report.files) == (1, 1)


def test_one_row_of_another_kind_takes_the_bound_away(table: frazil.Table) -> None:
    table.append([{"id": 100, "v": {"price": 1}}, {"id": 101, "v": {"price": "much"}}])
    assert files(table, "v.price > 1000") == 1
    assert ids(table, "v.price > 1000") == [101]  # text is above all numbers
    table.append([{"id": 102, "v": {"price": float("nan"), "ratio": float("nan")}}])
    assert files(table, "v.ratio::DOUBLE > 1000") == 2  # the file without a ratio is unknown
    assert ids(table, "v.ratio::DOUBLE > 1000") == [102]


def test_the_average_size_counts_both_parts(catalog: frazil.Catalog) -> None:
    table = catalog.create_table("shop.sizes", SCHEMA)
    # A number takes 3 + 2 bytes, the object 5 + 7: metadata and value.
    table.append([{"id": 1, "v": 5}, {"id": 2, "v": {"a": 5}}, {"id": 3, "v": None}])
    key = "content_stats.2.avg_value_size_in_bytes"
    handle = table._handle
    (entry,) = handle.context.reader(handle.metadata).tree(handle.tip("main")).root.pylist(key)
    assert entry == (3 + 2 + 5 + 7) // 2


def test_metrics_that_are_off_leave_no_bounds(catalog: frazil.Catalog) -> None:
    table = catalog.create_table(
        "shop.off", SCHEMA, properties={"write.metadata.metrics.column.v": "counts"}
    )
    table.append([{"id": 1, "v": {"price": 1}}])
    assert files(table, "v.price > 5") == 1


def test_published_bounds_are_those_of_iceberg_v3(
    catalog: frazil.Catalog, table: frazil.Table
) -> None:
    other = catalog.register_table("shop.other", table.publish().metadata_location)
    assert other.metadata.format_version == 3
    assert files(other, "v.price > 45") == 1
    bounds = {}
    for row in other.inspect.files.to_pylist():
        lower = dict(row["lower_bounds"])[2]
        size = variant.metadata_size(lower)
        bound = variant.decode(lower[:size], lower[size:])
        bounds[bound["$['price']"]] = bound
    assert sorted(bounds) == [0, 10, 20, 30, 40, 50]
    assert set(bounds[10]) == {
        "$['price']",
        "$['ratio']",
        "$['cost']",
        "$['name']",
        "$['deep']['er']['day']",
        "$['at']",
    }
    assert bounds[10]["$['deep']['er']['day']"] == dt.date(2026, 1, 2)
    assert bounds[10]["$['name']"] == "n1" + "n" * 14
    other.upgrade()
    assert files(other, "v.price > 45") == 1


def test_footers_of_shredded_files_have_bounds(catalog: frazil.Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("shop.added", SCHEMA)
    for file in range(3):
        path = str(tmp_path / f"{file}.parquet")
        first = file * 10
        duckdb.sql(
            f"""COPY (SELECT i + {first} AS id, {{'price': i::INT + {first}, 'name': 'n{file}',
            'd': DATE '2026-01-0{file + 1}', 'dec': ({file} + 0.5)::DECIMAL(9, 2),
            'in': {{'q': i::BIGINT + {first}}}}}::VARIANT AS v FROM range(3) r(i)) TO '{path}'"""
        )
        assert "typed_value" in str(pq.ParquetFile(path).schema)
        table.add_files([path])
    for where in (
        "v.price > 15",
        "v.name = 'n2'",
        "v.d::DATE = DATE '2026-01-03'",
        "v.dec = 2.5",
        "v['in'].q::BIGINT >= 20",
    ):
        assert (files(table, where), ids(table, where)) == (1, [20, 21, 22]), where
    path = str(tmp_path / "mixed.parquet")
    duckdb.sql(
        f"""COPY (SELECT 30 + i AS id, CASE i WHEN 0 THEN {{'price': 'dear'}}::VARIANT
        ELSE {{'price': i::INT}}::VARIANT END AS v FROM range(20) r(i)) TO '{path}'"""
    )
    table.add_files([path])
    assert files(table, "v.price > 900") == 1
    assert ids(table, "v.price > 900") == [30]


def test_changed_rows_have_bounds_again(catalog: frazil.Catalog, table: frazil.Table) -> None:
    catalog.sql("UPDATE shop.t SET v = {'price': 1000 + id}::VARIANT WHERE id = 11")
    table = catalog.load_table("shop.t")
    assert ids(table, "v.price > 900") == [11]
    assert files(table, "v.price > 900") == 1
    table.compact()
    assert ids(table, "v.price > 900") == [11]
    assert ids(table, "v.price > 2000") == []
    assert files(table, "v.price > 2000") == 0

"""Bulk reads: every result is compared with the same rows computed without Spark."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import frazil
import frazil.spark
from frazil.rows.planned import Planned
from frazil.spark.bridge.verbs import bridge_of
from frazil.spark.read import bulk_reads
from frazil.spark.read.live_rows import VectorLimits

pytestmark = pytest.mark.spark

ORDERS = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("country", pa.string()),
        ("price", pa.float64()),
    ]
)


def orders(first: int, last: int) -> pa.Table:
    ids = range(first, last)
    return pa.table(
        {
            "id": list(ids),
            "day": [date(2024, 1, 1 + i % 3) for i in ids],
            "country": [None if i % 7 == 0 else "US" if i % 2 else "DE" for i in ids],
            "price": [float("nan") if i % 5 == 0 else i / 4 for i in ids],
        },
        schema=ORDERS,
    )


@pytest.fixture
def table(catalog: frazil.Catalog) -> frazil.Table:
    made = catalog.create_table("shop.orders", ORDERS, partition_by=["day"])
    made.append(orders(0, 60))
    made.append(orders(60, 100))
    return made


def ids(frame: Any) -> list[int]:
    return sorted(row[0] for row in frame.select("id").collect())


def test_a_frame_holds_the_rows_that_were_appended(spark: Any, table: frazil.Table) -> None:
    rows = frazil.spark.table(table).toArrow().sort_by("id")
    wanted = orders(0, 100)
    assert rows.column("id") == wanted.column("id")
    assert rows.column("day") == wanted.column("day")
    assert rows.column("country") == wanted.column("country")
    assert str(rows.column("price").to_pylist()) == str(wanted.column("price").to_pylist())


@pytest.mark.parametrize(
    ("where", "keeps"),
    [
        ("id < 10", lambda i: i < 10),
        ("day = '2024-01-02' and id > 50", lambda i: i % 3 == 1 and i > 50),
        ("country is null", lambda i: i % 7 == 0),
        ("country in ('US', 'FR')", lambda i: i % 7 and i % 2),
        ("country != 'US'", lambda i: i % 7 and not i % 2),
        ("price > 20", lambda i: i % 5 == 0 or i > 80),
        ("isnan(price) or id = 1", lambda i: i % 5 == 0 or i == 1),
        ("price != 1.0", lambda i: i != 4),
        ("country like 'U%'", lambda i: i % 7 and i % 2),
    ],
)
def test_a_filter_keeps_the_same_rows_as_plain_python(
    spark: Any, table: frazil.Table, where: str, keeps: Any
) -> None:
    found = ids(frazil.spark.table(table, where=where))
    assert found == [i for i in range(100) if keeps(i)]


def test_columns_come_in_the_order_asked_for_with_row_lineage(
    spark: Any, table: frazil.Table
) -> None:
    names = ["_row_id", "price", "id", "_pos", "_last_updated_sequence_number", "_spec_id"]
    frame = frazil.spark.table(table, where="id in (3, 61)", columns=names)
    assert frame.columns == names
    with_spark = sorted(tuple(row) for row in frame.collect())
    alone = table.scan(where="id in (3, 61)", columns=names).to_pylist()
    assert with_spark == sorted(tuple(row[name] for name in names) for row in alone)
    assert {row[4] for row in with_spark} == {1, 2}


def test_file_and_partition_of_a_row_are_those_of_its_file(spark: Any, table: frazil.Table) -> None:
    frame = frazil.spark.table(table, columns=["id", "_file", "_partition"])
    for row in frame.collect():
        assert row["_partition"]["day"] == date(2024, 1, 1 + row["id"] % 3)
        assert f"day={row['_partition']['day']}" in row["_file"]


LIMITS = [
    VectorLimits(),
    VectorLimits(on_driver=0),
    VectorLimits(on_driver=0, broadcast=0),
]


@pytest.mark.parametrize("limits", LIMITS, ids=["driver", "executors", "row by row"])
def test_deleted_rows_are_gone_however_vectors_are_applied(
    spark: Any, table: frazil.Table, limits: VectorLimits
) -> None:
    table.delete("id in (1, 2, 50, 70) or price = 3.0")
    gone = {1, 2, 50, 70, 12}
    found = ids(bulk_reads.frame(spark, table.scan(), limits=limits, bridge=None))
    assert found == [i for i in range(100) if i not in gone]
    some = bulk_reads.frame(spark, table.scan("id < 60", ["id"]), limits=limits, bridge=None)
    assert ids(some) == [i for i in range(60) if i not in gone]


def test_updated_rows_keep_their_ids(spark: Any, table: frazil.Table) -> None:
    before = {row["id"]: row["_row_id"] for row in table.scan(columns=["id", "_row_id"])}
    table.update({"country": "FR"}, where="id in (5, 6)")
    rows = frazil.spark.table(table, columns=["id", "country", "_row_id"]).collect()
    assert {row["id"]: row["_row_id"] for row in rows} == before
    assert sorted(row["id"] for row in rows if row["country"] == "FR") == [5, 6]
    changed = frazil.spark.table(table, columns=["id", "_last_updated_sequence_number"])
    assert {tuple(row) for row in changed.collect() if row[0] in (5, 6, 7)} == {
        (5, 3),
        (6, 3),
        (7, 1),
    }


def test_row_keys_lead_back_to_files_and_positions(spark: Any, table: frazil.Table) -> None:
    table.delete("id = 3")
    scan = table.scan("id in (4, 5, 90)")
    planned = Planned.of(scan)
    frame = bulk_reads.frame(spark, scan, key="k", planned=planned, bridge=bridge_of(spark))
    keys = {row["id"]: row["k"] for row in frame.collect()}
    wanted = {
        (row["_file"], row["_pos"]): row["id"]
        for row in table.scan("id in (4, 5, 90)", ["id", "_file", "_pos"])
    }
    found = {}
    for name, key in keys.items():
        ((row, positions),) = planned.located(np.array([key]))
        found[(planned.paths[row], int(positions[0]))] = name
    assert found == wanted


def test_a_frame_shows_the_snapshot_it_was_made_for(spark: Any, table: frazil.Table) -> None:
    first = table.snapshots()[0].snapshot_id
    frame = frazil.spark.table(table)
    table.tag("before")
    table.append(orders(100, 110))
    table.delete("id < 50")
    assert ids(frame) == list(range(100))
    assert ids(frazil.spark.table(table)) == list(range(50, 110))
    assert ids(frazil.spark.table(table, as_of="before")) == list(range(100))
    assert ids(frazil.spark.table(table, as_of=first)) == list(range(60))


def test_only_surviving_files_are_handed_to_spark_and_none_is_listed(
    spark: Any, table: frazil.Table
) -> None:
    frame = frazil.spark.table(table, where="day = '2024-01-02' and id >= 60")
    assert "(1 of 6 files; " in frame._jdf.queryExecution().toString()
    assert ids(frame) == [i for i in range(60, 100) if i % 3 == 1]


def test_an_empty_table_gives_an_empty_frame(spark: Any, catalog: frazil.Catalog) -> None:
    made = catalog.create_table("shop.none", ORDERS)
    frame = frazil.spark.table(made, columns=["id", "_row_id"])
    assert frame.columns == ["id", "_row_id"]
    assert frame.count() == 0


def test_a_limit_is_kept(spark: Any, table: frazil.Table) -> None:
    assert bulk_reads.frame(spark, table.scan(limit=7), bridge=bridge_of(spark)).count() == 7


def test_unknown_columns_are_refused(spark: Any, table: frazil.Table) -> None:
    with pytest.raises(frazil.InvalidInput, match="unknown column nope"):
        frazil.spark.table(table, columns=["nope"])
    with pytest.raises(frazil.InvalidInput, match="no catalog"):
        frazil.spark.table("shop.orders")


def test_a_table_is_found_by_name_in_a_catalog(
    spark: Any, catalog: frazil.Catalog, table: frazil.Table
) -> None:
    assert frazil.spark.table("shop.orders", catalog=catalog).count() == 100
    spark.conf.set("spark.frazil.catalog", catalog._origin["uri"])  # type: ignore[index]
    assert frazil.spark.table("shop.orders", where="id < 5").count() == 5


def test_a_flipped_bit_in_a_page_is_an_error(
    spark: Any, catalog: frazil.Catalog, tmp_path: Path
) -> None:
    properties = {"write.parquet.compression-codec": "uncompressed"}
    table = catalog.create_table(
        "shop.damaged", pa.schema([("x", pa.int64())]), properties=properties
    )
    table.append(pa.table({"x": list(range(1000, 2000))}))
    (file,) = (tmp_path / "warehouse").rglob("data/**/*.parquet")
    damaged = bytearray(file.read_bytes())
    damaged[damaged.index((1500).to_bytes(8, "little"))] ^= 1
    file.write_bytes(damaged)
    with pytest.raises((PySparkException, Py4JJavaError), match=r"cannot read file:.*\.parquet"):
        frazil.spark.table(table).collect()


def test_columns_in_column_files_are_read(spark: Any, table: frazil.Table) -> None:
    start = table.current_snapshot()
    table.add_columns({"double": "id * 2"})
    table.update({"double": -1}, "id between 10 and 20", mode="columns")
    table.delete("id = 15")
    table.append({"id": [200], "day": [date(2024, 1, 1)], "country": ["US"], "price": [1.0]})
    columns = ["id", "country", "double"]
    expected = table.scan(columns=columns).to_arrow().sort_by("id").to_pylist()
    frame = frazil.spark.table(table).select(*columns)
    assert frame.toArrow().sort_by("id").to_pylist() == expected
    matching = [row["id"] for row in table.scan("double < 0").to_pylist()]
    assert len(matching) == 10
    assert ids(frazil.spark.table(table).where("double < 0")) == sorted(matching)
    feed = frazil.spark.changes(table, since=start).groupBy("_change_type").count()
    assert {row[0]: row[1] for row in feed.collect()} == {
        "update_preimage": 111,
        "update_postimage": 111,
        "delete": 1,
        "insert": 1,
    }

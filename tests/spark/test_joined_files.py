"""A data file and its column files, joined by position in Spark's virtual machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
import frazil.spark
from frazil.spark.read import file_parts
from tests.support import joined_table
from tests.support.column_files import commit_file, handmade, live
from tests.support.other_spark import ran
from tests.support.venvs import ICEBERG_SPARK

pytestmark = pytest.mark.spark

NAME = "frazil.shop.joined"
SETTINGS = {
    "as it is": {},
    "small batches": {"spark.sql.parquet.columnarReaderBatchSize": "7"},
    "split files": {
        "spark.sql.files.maxPartitionBytes": "3000",
        "spark.sql.files.openCostInBytes": "1",
        "spark.sql.parquet.columnarReaderBatchSize": "64",
    },
    "row by row": {
        "spark.sql.parquet.enableVectorizedReader": "false",
        "spark.sql.files.maxPartitionBytes": "3000",
    },
    "nested row by row": {"spark.sql.parquet.enableNestedColumnVectorizedReader": "false"},
}


@pytest.fixture
def joined(spark: Any, catalog: frazil.Catalog) -> tuple[frazil.Table, list[dict[str, Any]]]:
    """The table with columns in many files, and its rows."""
    frazil.spark.register(spark, catalog)
    return joined_table.made(catalog, "shop.joined")


@pytest.mark.parametrize("settings", list(SETTINGS))
def test_rows_are_those_of_a_model(
    spark: Any, joined: tuple[frazil.Table, list[dict[str, Any]]], settings: str
) -> None:
    for key, value in SETTINGS[settings].items():
        spark.conf.set(key, value)
    table, rows = joined
    if settings == "split files":
        assert spark.table(NAME).rdd.getNumPartitions() > 6
    assert joined_table.mistakes(spark, NAME, rows) == []
    alone = table.refresh().scan().to_arrow().to_pylist()
    model = joined_table.expected(rows, "*")
    assert joined_table.by_text(alone) == joined_table.by_text(list(model))


def test_limits_counts_and_jobs_hold_what_the_model_holds(
    spark: Any, joined: tuple[frazil.Table, list[dict[str, Any]]]
) -> None:
    table, rows = joined
    some = joined_table.seen(spark.sql(f"SELECT id, title, price FROM {NAME} LIMIT 37"))
    model = {row["id"]: row for row in rows}
    assert len(some) == len({row["id"] for row in some}) == 37
    assert all(row[name] == model[row["id"]][name] for row in some for name in ("title", "price"))
    total = spark.sql(f"SELECT count(*), count(price), sum(price) FROM {NAME} WHERE id < 390")
    prices = [row["price"] for row in rows if row["id"] < 390]
    values = [price for price in prices if price is not None]
    assert tuple(total.first()) == (len(prices), len(values), sum(values))
    changed = frazil.spark.update(table, {"title": frazil.expr("concat(title, '!')")}, "flag")
    flagged = [row for row in rows if row["flag"]]
    assert changed.rows_updated == len(flagged)
    frazil.spark.delete(table, "price < -500")
    left = [row for row in rows if row["price"] is None or row["price"] >= -500]
    for row in flagged:
        row["title"] = None if row["title"] is None else f"{row['title']}!"
    found = joined_table.seen(spark.sql(f"SELECT id, title, place FROM {NAME}"))
    expected = [{name: row[name] for name in ("id", "title", "place")} for row in left]
    assert joined_table.by_text(found) == joined_table.by_text(expected)
    frazil.spark.jobs.rewrite_data_files(table, rewrite_all=True)
    assert not any(entry.get("column_files") for entry in live(table.refresh()))
    found = joined_table.seen(spark.sql(f"SELECT id, title, place FROM {NAME}"))
    assert joined_table.by_text(found) == joined_table.by_text(expected)


def small(catalog: frazil.Catalog) -> frazil.Table:
    """Ten rows in one file."""
    schema = pa.schema([("id", pa.int64()), ("price", pa.float64()), ("name", pa.string())])
    made = catalog.create_table("shop.t", schema)
    made.append(pa.table([list(range(10)), [0.0] * 10, ["x"] * 10], schema=schema))
    return made


def prices(values: list[float], field_id: int = 2) -> pa.Table:
    """A column of prices for a file."""
    field = pa.field("price", pa.float64(), metadata={"PARQUET:field_id": str(field_id)})
    return pa.table([values], schema=pa.schema([field]))


def test_column_files_that_spark_would_skip_come_through_python(
    spark: Any, catalog: frazil.Catalog
) -> None:
    made = small(catalog)
    new = prices([float(at) for at in range(10)])
    commit_file(made, new, ids=(2,), row_group_size=4, name="data/_hidden.parquet")
    frazil.spark.register(spark, catalog)
    frame = spark.sql("SELECT id, price FROM frazil.shop.t ORDER BY id")
    assert joined_table.is_through_python(frame)
    assert [tuple(row) for row in frame.collect()] == [(at, float(at)) for at in range(10)]


def test_every_combination_of_files_is_not_a_reader(
    spark: Any, catalog: frazil.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = small(catalog)
    handmade(made, {"price": (2, [float(at) for at in range(10)])})
    frazil.spark.register(spark, catalog)
    monkeypatch.setattr(file_parts, "_MAX_READERS", 1)
    frame = spark.sql("SELECT id, price FROM frazil.shop.t ORDER BY id")
    assert joined_table.is_through_python(frame)
    assert [tuple(row) for row in frame.collect()] == [(at, float(at)) for at in range(10)]


@pytest.mark.parametrize("columns", ["price", "id, price"])
@pytest.mark.parametrize(
    ("rows", "field_id", "message"),
    [
        (9, 2, "has 9 rows; its data file has 10"),
        (11, 2, "has 11 rows; its data file has 10"),
        (10, 77, "has no field 2; the entry says it has"),
    ],
)
def test_column_files_that_do_not_fit_are_refused(
    spark: Any, catalog: frazil.Catalog, columns: str, rows: int, field_id: int, message: str
) -> None:
    made = small(catalog)
    commit_file(made, prices([1.0] * rows, field_id), ids=(2,), row_group_size=4)
    frazil.spark.register(spark, catalog)
    with pytest.raises(Exception, match=message):
        spark.sql(f"SELECT {columns} FROM frazil.shop.t").collect()


def test_variants_and_new_files_are_joined(spark: Any, catalog: frazil.Catalog) -> None:
    frazil.spark.register(spark, catalog)
    catalog.create_namespace("shop")
    spark.sql("CREATE TABLE frazil.shop.v (id BIGINT, v VARIANT, n INT)")
    document = """parse_json(concat('{"a":', id, '}'))"""
    spark.sql(f"INSERT INTO frazil.shop.v SELECT id, {document}, 0 FROM range(9)")
    made = catalog.load_table("shop.v")
    made.set_properties({"write.column-update.mode": "columns"})
    spark.sql("UPDATE frazil.shop.v SET n = id * 2 WHERE id <> 4")
    spark.sql("DELETE FROM frazil.shop.v WHERE id = 2")
    assert live(made.refresh())[0]["column_files"]
    frame = spark.sql("SELECT id, to_json(v), n FROM frazil.shop.v ORDER BY id")
    assert not joined_table.is_through_python(frame)
    expected = [(id, f'{{"a":{id}}}', 0 if id == 4 else id * 2) for id in range(9) if id != 2]
    assert [tuple(row) for row in frame.collect()] == expected


_BESIDE = """
import json, sys
import pyspark
import frazil, frazil.spark
from tests.support import joined_table
from tests.support.spark_session import shared_session

spark = shared_session()
with frazil.connect(sys.argv[1]) as catalog:
    frazil.spark.register(spark, catalog)
    _, rows = joined_table.made(catalog, "shop.joined")
    spark.conf.set("spark.sql.parquet.columnarReaderBatchSize", "64")
    wrong = joined_table.mistakes(spark, "frazil.shop.joined", rows)
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", "false")
    wrong += joined_table.mistakes(spark, "frazil.shop.joined", rows)
print("FOUND " + json.dumps({"version": pyspark.__version__, "wrong": wrong}))
spark.stop()
"""


@pytest.mark.peers
@pytest.mark.timeout(900)
def test_the_oldest_spark_joins_files(tmp_path: Path) -> None:
    path = (str(ICEBERG_SPARK.ready().site_packages),)
    found = ran(_BESIDE, str(tmp_path / "warehouse"), cwd=tmp_path, path=path)
    assert found == {"version": "4.1.4", "wrong": []}

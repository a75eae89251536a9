"""Variants in Spark: its own types, statements and files, beside those of Frazil and DuckDB."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from pyiceberg import types as ice
from pyiceberg.schema import Schema

import frazil
import frazil.spark
from frazil.spark.bridge import verbs
from frazil.spark.bridge.scan_plan import scan_plan

pytestmark = pytest.mark.spark

DOCUMENTS = {
    1: {"price": 5, "name": "pen", "tags": ["a", "b"]},
    2: {"price": 7, "name": None},
    3: {"price": "high", "deep": {"er": [1, {"x": 1.5}]}},
    4: [1, "two", None],
    5: "text",
    6: None,
}


@pytest.fixture
def shop(spark: Any, catalog: frazil.Catalog) -> frazil.Catalog:
    frazil.spark.register(spark, catalog)
    catalog.create_namespace("shop")
    return catalog


@pytest.fixture
def planned_files(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files each scan that Spark plans has."""
    numbers: list[int] = []

    def counted(planned: Any, *given: Any, **named: Any) -> Any:
        numbers.append(planned.num_files)
        return scan_plan(planned, *given, **named)

    monkeypatch.setattr(verbs, "scan_plan", counted)
    return numbers


def _insert(spark: Any, table: str) -> None:
    for id, document in DOCUMENTS.items():
        value = "NULL" if document is None else f"parse_json('{json.dumps(document)}')"
        spark.sql(f"INSERT INTO frazil.{table} VALUES ({id}, {value})")


def _in_spark(spark: Any, text: str) -> dict[int, Any]:
    rows = spark.sql(text).collect()
    return {id: None if found is None else json.loads(found) for id, found in rows}


def test_spark_writes_and_frazil_and_duckdb_read(spark: Any, shop: frazil.Catalog) -> None:
    spark.sql("CREATE TABLE frazil.shop.t (id BIGINT, v VARIANT)")
    _insert(spark, "shop.t")
    table = shop.load_table("shop.t")
    assert str(table.schema.find_type("v")) == "variant"
    assert {row["id"]: row["v"] for row in table.scan().to_pylist()} == DOCUMENTS
    found = shop.sql("SELECT id, v FROM shop.t").to_pylist()
    assert {row["id"]: row["v"] for row in found} == DOCUMENTS
    files = [row["file_path"] for row in shop.sql("SELECT file_path FROM shop.t.files").to_pylist()]
    local = [path.removeprefix("file://") for path in files]
    by_duckdb = duckdb.sql(f"SELECT id, v FROM read_parquet({local})").fetchall()
    assert dict(by_duckdb) == DOCUMENTS


def test_spark_reads_what_python_and_sql_wrote(spark: Any, shop: frazil.Catalog) -> None:
    schema = Schema(
        ice.NestedField(1, "id", ice.LongType(), False),
        ice.NestedField(2, "v", frazil.VariantType(), False),
    )
    table = shop.create_table("shop.t", schema)
    table.append([{"id": id, "v": document} for id, document in DOCUMENTS.items()])
    text = "SELECT id, to_json(v) FROM frazil.shop.t"
    assert _in_spark(spark, text) == DOCUMENTS
    shop.sql("UPDATE shop.t SET id = id + 10 WHERE id < 4")
    changed = {id + 10 if id < 4 else id: document for id, document in DOCUMENTS.items()}
    assert _in_spark(spark, text) == changed
    prices = spark.sql(
        "SELECT id FROM frazil.shop.t WHERE try_variant_get(v, '$.price', 'int') > 5"
    )
    assert [row.id for row in prices.collect()] == [12]


def test_types_that_json_lacks_keep_their_type(spark: Any, shop: frazil.Catalog) -> None:
    values = {
        "date": dt.date(2026, 1, 2),
        "timestamp_ntz": dt.datetime(2026, 1, 2, 3, 4, 5, 6),
        "timestamp": dt.datetime(2026, 1, 2, 3, 4, 5, 6, dt.UTC),
        "decimal(4,2)": Decimal("12.34"),
        "binary": b"\x00\xff",
        "double": 0.1,
        "boolean": True,
        "bigint": 1 << 40,
    }
    schema = Schema(
        ice.NestedField(1, "kind", ice.StringType(), False),
        ice.NestedField(2, "v", frazil.VariantType(), False),
    )
    table = shop.create_table("shop.t", schema)
    table.append([{"kind": kind, "v": value} for kind, value in values.items()])
    found = spark.sql("SELECT kind, schema_of_variant(v) FROM frazil.shop.t").collect()
    assert {row[0]: row[1].lower() for row in found} == {kind: kind for kind in values}
    spark.sql("CREATE TABLE frazil.shop.back AS SELECT * FROM frazil.shop.t")
    back = shop.load_table("shop.back").scan().to_pylist()
    assert {row["kind"]: row["v"] for row in back} == values


def test_statements_of_spark_keep_variants(spark: Any, shop: frazil.Catalog) -> None:
    spark.sql("CREATE TABLE frazil.shop.t (id BIGINT, v VARIANT)")
    _insert(spark, "shop.t")
    spark.sql("UPDATE frazil.shop.t SET id = 30 WHERE id = 3")
    spark.sql("UPDATE frazil.shop.t SET v = parse_json('{\"n\": 1}') WHERE id = 4")
    spark.sql("DELETE FROM frazil.shop.t WHERE id = 5")
    spark.sql(
        "MERGE INTO frazil.shop.t t USING (SELECT 1 AS id, parse_json('[9]') AS v UNION ALL "
        "SELECT 8, parse_json('8')) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    spark.sql("CALL frazil.system.rewrite_data_files('shop.t')")
    expected = {1: [9], 2: DOCUMENTS[2], 30: DOCUMENTS[3], 4: {"n": 1}, 6: None, 8: 8}
    assert _in_spark(spark, "SELECT id, to_json(v) FROM frazil.shop.t") == expected
    rows = shop.load_table("shop.t").scan().to_pylist()
    assert {row["id"]: row["v"] for row in rows} == expected


def test_columns_of_variants_are_added_and_nested(spark: Any, shop: frazil.Catalog) -> None:
    spark.sql("CREATE TABLE frazil.shop.t (id INT)")
    spark.sql("INSERT INTO frazil.shop.t VALUES (1)")
    spark.sql("ALTER TABLE frazil.shop.t ADD COLUMNS (v VARIANT, l ARRAY<VARIANT>)")
    spark.sql("INSERT INTO frazil.shop.t SELECT 2, parse_json('{}'), array(parse_json('1'), NULL)")
    rows = shop.load_table("shop.t").scan().to_pylist()
    assert sorted(rows, key=lambda row: row["id"]) == [
        {"id": 1, "v": None, "l": None},
        {"id": 2, "v": {}, "l": [1, None]},
    ]
    with pytest.raises(Exception, match=r"(?i)variant"):
        spark.sql("CREATE TABLE frazil.shop.p (v VARIANT) PARTITIONED BY (v)")
    assert shop.list_tables("shop") == ["shop.t"]


def test_files_that_spark_shredded_are_added_read_and_pruned(
    spark: Any, shop: frazil.Catalog, tmp_path: Path
) -> None:
    table = shop.create_table(
        "shop.t",
        Schema(
            ice.NestedField(1, "id", ice.LongType(), False),
            ice.NestedField(2, "v", frazil.VariantType(), False),
        ),
    )
    for number in range(3):
        folder = tmp_path / str(number)
        document = "to_json(named_struct('price', id, 'name', concat('n', id), 'tags', array(id)))"
        spark.sql(
            f"SELECT id, CASE WHEN id % 10 = 9 THEN NULL ELSE parse_json({document}) "
            f"END AS v FROM range({number * 10}, {number * 10 + 10})"
        ).coalesce(1).write.parquet(str(folder))
        (file,) = folder.glob("*.parquet")
        assert "typed_value" in str(pq.ParquetFile(file).schema)
        table.add_files([str(file)])
    expected = {
        id: None if id % 10 == 9 else {"price": id, "name": f"n{id}", "tags": [id]}
        for id in range(30)
    }
    assert {row["id"]: row["v"] for row in table.scan().to_pylist()} == expected
    assert _in_spark(spark, "SELECT id, to_json(v) FROM frazil.shop.t") == expected
    scan = table.scan("v.price::BIGINT = 17")
    assert (scan.plan().files.num_rows, scan.to_pylist()) == (1, [{"id": 17, "v": expected[17]}])
    shop.sql("DELETE FROM shop.t WHERE v.price::BIGINT < 25")
    kept = {id: found for id, found in expected.items() if id >= 25 or id % 10 == 9}
    assert _in_spark(spark, "SELECT id, to_json(v) FROM frazil.shop.t") == kept


PRUNED = [
    ("variant_get(v, '$.price', 'int') > 45", 1, [50, 51, 52]),
    ("try_variant_get(v, '$.price', 'bigint') = 21", 1, [21]),
    ("variant_get(v, '$.price', 'int') IN (1, 31)", 2, [1, 31]),
    ("variant_get(v, '$.ratio', 'double') >= 5", 1, [50, 51, 52]),
    ("variant_get(v, '$.name', 'string') = 'n3'", 1, [30, 31, 32]),
    ("variant_get(v, '$.deep.day', 'date') = DATE '2026-01-04'", 1, [30, 31, 32]),
    ("id > 25 AND variant_get(v, '$.price', 'int') < 35", 1, [30, 31, 32]),
    ("NOT (variant_get(v, '$.price', 'int') > 5)", 1, [0, 1, 2]),
    ("try_variant_get(v, '$.mixed', 'int') > 100", 6, []),
    ("variant_get(v, '$.list[0]', 'int') = 3", 6, [30, 31, 32]),
    ("variant_get(v, '$.price', 'string') > '9'", 6, []),
]


@pytest.mark.parametrize(("where", "left", "found"), PRUNED)
def test_variant_get_prunes(
    spark: Any,
    shop: frazil.Catalog,
    planned_files: list[int],
    where: str,
    left: int,
    found: list[int],
) -> None:
    if spark.version < "4.3":
        pytest.skip("older versions of Spark hand no call of variant_get to a source")
    schema = Schema(
        ice.NestedField(1, "id", ice.LongType(), False),
        ice.NestedField(2, "v", frazil.VariantType(), False),
    )
    table = shop.create_table("shop.t", schema)
    for file in range(6):
        table.append(
            [
                {
                    "id": file * 10 + row,
                    "v": {
                        "price": file * 10 + row,
                        "ratio": file + row / 10,
                        "name": f"n{file}",
                        "deep": {"day": dt.date(2026, 1, 1 + file)},
                        "mixed": "text" if row else file,
                        "list": [file],
                    },
                }
                for row in range(3)
            ]
        )
    rows = spark.sql(f"SELECT id FROM frazil.shop.t WHERE {where}").collect()
    assert sorted(row.id for row in rows) == found
    assert planned_files[-1] == left
    counted = spark.sql(f"SELECT count(*) AS n FROM frazil.shop.t WHERE {where}").collect()
    assert counted[0].n == len(found)

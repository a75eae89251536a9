"""A name that another column had must never bring back wrong rows, with or without a filter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

import frazil
import frazil.spark
from frazil.spark.types.read_names import ReadNames
from tests.spark.shop import rows_of

pytestmark = pytest.mark.spark


def named(catalog: frazil.Catalog, *columns: str) -> frazil.Table:
    schema = pa.schema([("k", pa.int64()), *((name, pa.int64()) for name in columns)])
    limit = {"write.parquet.row-group-limit": "2"}
    made = catalog.create_table("shop.named", schema, properties=limit)
    made.append([{"k": k, **{c: 10 * at + k for at, c in enumerate(columns, 1)}} for k in range(4)])
    return made


def test_swapped_names_never_mix_columns(spark: Any, catalog: frazil.Catalog) -> None:
    made = named(catalog, "a", "b")
    with made.evolve_schema() as columns:
        columns.rename_column("a", "t")
    with made.evolve_schema() as columns:
        columns.rename_column("b", "a")
    with made.evolve_schema() as columns:
        columns.rename_column("t", "b")
    made.append([{"k": 9, "a": 29, "b": 19}])
    # b is the column that was a: 10 + k; a is the one that was b: 20 + k
    everything = frazil.spark.table(made).select("k", "a", "b")
    assert rows_of(everything) == [(k, 20 + k, 10 + k) for k in (0, 1, 2, 3, 9)]
    assert rows_of(everything.where("b = 12")) == [(2, 22, 12)]
    assert rows_of(everything.where("a = 12")) == []
    where = frazil.spark.table(made, where="b = 19 or a = 21")
    assert rows_of(where.select("k", "a", "b")) == [(1, 21, 11), (9, 29, 19)]


def test_chained_renames_of_unlike_types_read_right(spark: Any, catalog: frazil.Catalog) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.float64())])
    made = catalog.create_table("shop.chain", schema)
    made.append([{"a": n, "b": str(n), "c": n / 2} for n in range(3)])
    with made.evolve_schema() as columns:
        columns.drop_column("c")
    with made.evolve_schema() as columns:
        columns.rename_column("b", "c")
    with made.evolve_schema() as columns:
        columns.rename_column("a", "b")
    made.append([{"b": 7, "c": "seven"}])
    frame = frazil.spark.table(made)
    assert rows_of(frame.select("b", "c")) == [(0, "0"), (1, "1"), (2, "2"), (7, "seven")]
    assert rows_of(frame.where("c = '1'").select("b")) == [(1,)]
    assert rows_of(frazil.spark.table(made, where="b > 1").select("c")) == [
        ("2",),
        ("seven",),
    ]


def test_a_dropped_and_added_again_name_starts_empty(spark: Any, catalog: frazil.Catalog) -> None:
    made = named(catalog, "a", "b")
    with made.evolve_schema() as columns:
        columns.drop_column("b")
    with made.evolve_schema() as columns:
        columns.add_column("b", "long")
    made.append([{"k": 9, "a": 19, "b": 1}])
    frame = frazil.spark.table(made)
    assert rows_of(frame.where("b is null").select("k")) == [(0,), (1,), (2,), (3,)]
    assert rows_of(frame.where("b is not null").select("k", "b")) == [(9, 1)]
    assert rows_of(frame.where("b = 21")) == []
    some = frazil.spark.table(made, where="b is null and a > 12", columns=["k"])
    assert rows_of(some) == [(3,)]


def test_clean_names_are_read_as_they_are_and_filters_reach_the_files(
    spark: Any, catalog: frazil.Catalog
) -> None:
    made = named(catalog, "a", "b")
    plan = frazil.spark.table(made).where("b = 21")._jdf.queryExecution().toString()
    assert "(b = 21" in plan.split("PushedFilters: ")[-1]
    with made.evolve_schema() as columns:
        columns.rename_column("b", "fresh")
    frame = frazil.spark.table(made)
    assert rows_of(frame.where("fresh = 21").select("k")) == [(1,)]
    names = ReadNames.of(made.metadata, made.metadata.schema())
    assert [names.read_name(field) for field in made.metadata.schema().fields] == [
        "k",
        "a",
        "fresh",
    ]


def test_names_differ_by_more_than_case(spark: Any, catalog: frazil.Catalog) -> None:
    made = named(catalog, "a", "b")
    with made.evolve_schema() as columns:
        columns.drop_column("b")
    with made.evolve_schema() as columns:
        columns.add_column("B", "long")
    frame = frazil.spark.table(made)
    assert rows_of(frame.where("B is null").select("k")) == [(0,), (1,), (2,), (3,)]


def test_case_counts_where_the_session_says_so(spark: Any, catalog: frazil.Catalog) -> None:
    first = {"id": 1, "Price": 2.0, "Where": {"City": "a"}}
    made = catalog.create_table("s.t", [first, {**first, "id": 2, "Price": 3.0}])
    frazil.spark.register(spark, catalog)
    spark.sql("UPDATE frazil.s.t SET PRICE = price + 1, `where`.CITY = 'b' WHERE ID = 1")
    spark.sql("DELETE FROM frazil.s.t WHERE pRiCe = 3.0 AND iD = 2")
    spark.sql("INSERT INTO frazil.s.t (PRICE, ID) VALUES (9.0D, 7L)")
    spark.sql("""
        MERGE INTO frazil.s.t t USING (SELECT 7L AS K, 1D AS p UNION ALL SELECT 8L, 4D) S
        ON T.ID = s.k
        WHEN MATCHED THEN UPDATE SET T.PRICE = t.price + S.P
        WHEN NOT MATCHED THEN INSERT (PRICE, iD) VALUES (s.p, s.K)
    """)
    found = spark.sql("SELECT ID, PRICE, `WHERE`.city FROM frazil.s.t")
    left = [(1, 3.0, "b"), (7, 10.0, None), (8, 4.0, None)]
    assert rows_of(found) == left
    assert [field.name for field in made.refresh().schema.fields] == ["id", "Price", "Where"]
    spark.conf.set("spark.sql.caseSensitive", "true")
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        spark.sql("DELETE FROM frazil.s.t WHERE price = 10.0")
    frame = spark.createDataFrame([(9, 1.0)], "id long, PRICE double")
    with pytest.raises(frazil.InvalidInput, match="'PRICE'"):
        frazil.spark.append(made, frame)
    assert rows_of(spark.sql("SELECT id, Price, `Where`.City FROM frazil.s.t")) == left


def test_when_a_schema_was_removed_no_name_is_trusted(catalog: frazil.Catalog) -> None:
    made = named(catalog, "a", "b")
    with made.evolve_schema() as columns:
        columns.add_column("c", "long")
    with made.evolve_schema() as columns:
        columns.add_column("d", "long")
    whole = made.metadata
    assert ReadNames.of(whole, made.metadata.schema()).clean_ids == {1, 2, 3, 4, 5}
    fewer = replace(whole, schemas=tuple(each for each in whole.schemas if each.schema_id != 1))
    assert ReadNames.of(fewer, made.metadata.schema()).clean_ids == frozenset()

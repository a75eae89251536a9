"""What UPDATE and MERGE assign: nested fields by name, nothing twice, nothing of another type."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

import frazil
import frazil.spark

pytestmark = pytest.mark.spark

T = "frazil.shop.parts"
MERGE = "MERGE INTO {0} t USING (SELECT 1 AS id, {1} AS s) x ON t.id = x.id WHEN "


@pytest.fixture
def parts(spark: Any, catalog: frazil.Catalog) -> frazil.Table:
    frazil.spark.register(spark, catalog)
    spark.sql(
        f"CREATE TABLE {T} (id INT, s STRUCT<a: INT, b: INT>, "
        "l ARRAY<STRUCT<a: INT, b: INT>>, m MAP<STRING, STRUCT<a: INT, b: INT>>)"
    )
    spark.sql(
        f"INSERT INTO {T} VALUES (1, named_struct('a', 1, 'b', 2), array(), map()), "
        "(2, NULL, NULL, NULL)"
    )
    return catalog.load_table("shop.parts")


def rows(table: frazil.Table) -> dict[int, dict[str, Any]]:
    return {each.pop("id"): each for each in table.refresh().scan().to_pylist()}


SWAPPED = "named_struct('b', 20, 'a', 10)"


def test_update_assigns_nested_fields_by_name(spark: Any, parts: frazil.Table) -> None:
    spark.sql(
        f"UPDATE {T} SET s = {SWAPPED}, l = array({SWAPPED}), m = map('k', {SWAPPED}) WHERE id = 1"
    )
    assert rows(parts)[1] == {
        "s": {"a": 10, "b": 20},
        "l": [{"a": 10, "b": 20}],
        "m": [("k", {"a": 10, "b": 20})],
    }


@pytest.mark.parametrize("clause", ["UPDATE SET *", "UPDATE SET s = x.s"])
def test_merge_updates_nested_fields_by_name(spark: Any, parts: frazil.Table, clause: str) -> None:
    source = "SELECT 1 AS id, {0} AS s, array({0}) AS l, map('k', {0}) AS m"
    spark.sql(
        f"MERGE INTO {T} t USING ({source.format(SWAPPED)}) x ON t.id = x.id "
        f"WHEN MATCHED THEN {clause}"
    )
    assert rows(parts)[1]["s"] == {"a": 10, "b": 20}


def test_merge_inserts_nested_fields_by_name(spark: Any, parts: frazil.Table) -> None:
    spark.sql(
        f"MERGE INTO {T} t USING (SELECT 3 AS id, {SWAPPED} AS s) x ON t.id = x.id "
        "WHEN NOT MATCHED THEN INSERT (id, s) VALUES (x.id, x.s)"
    )
    assert rows(parts)[3] == {"s": {"a": 10, "b": 20}, "l": None, "m": None}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"UPDATE {T} SET s = named_struct('a', 1, 'c', 2)", "s"),
        (f"UPDATE {T} SET s = named_struct('a', 1)", "b"),
        (f"UPDATE {T} SET s = named_struct('a', 1, 'b', 2, 'c', 3)", "c"),
        (f"UPDATE {T} SET id = 1, id = 2", "id"),
        (f"UPDATE {T} SET s = NULL, s.a = 2", "s"),
        (f"UPDATE {T} SET id = 'seven'", "id"),
        (f"UPDATE {T} SET s.a = 'seven'", "a"),
        (MERGE.format(T, "named_struct('a', 1)") + "MATCHED THEN UPDATE SET s = x.s", "b"),
        (MERGE.format(T, "1") + "MATCHED THEN UPDATE SET id = 'x'", "id"),
        (MERGE.format(T, "1") + "MATCHED THEN UPDATE SET id = 1, id = 2", "id"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    spark: Any, parts: frazil.Table, text: str, told: str
) -> None:
    before = rows(parts)
    with pytest.raises(Exception, match=f"[`']{told}[`']") as caught:
        spark.sql(text)
    assert "\tat " not in str(caught.value)
    assert rows(parts) == before


def test_a_part_of_a_missing_struct_makes_the_struct(spark: Any, parts: frazil.Table) -> None:
    spark.sql(f"UPDATE {T} SET s.a = 5")
    assert {id: each["s"] for id, each in rows(parts).items()} == {
        1: {"a": 5, "b": 2},
        2: {"a": 5, "b": None},
    }


def test_the_functions_assign_in_the_same_way(spark: Any, parts: frazil.Table) -> None:
    swapped = F.struct(F.lit(20).alias("b"), F.lit(10).alias("a"))
    frazil.spark.update(parts, {"s": swapped, "l": F.array(swapped)}, "id = 1")
    frazil.spark.update(parts, {"s.a": 5}, "id = 2")
    assert rows(parts)[1]["s"] == {"a": 10, "b": 20}
    assert rows(parts)[1]["l"] == [{"a": 10, "b": 20}]
    assert rows(parts)[2]["s"] == {"a": 5, "b": None}
    source = spark.sql("SELECT 1 AS id, named_struct('b', 21, 'a', 11) AS s")
    frazil.spark.merge(parts, source, on=["id"]).when_matched_update(
        {"s": frazil.expr("s.s")}
    ).execute()
    assert rows(parts)[1]["s"] == {"a": 11, "b": 21}
    wider = spark.sql("SELECT 4 AS id, named_struct('b', 22, 'a', 12) AS s, NULL AS l, NULL AS m")
    frazil.spark.merge(parts, wider, on=["id"]).upsert().execute()
    assert rows(parts)[4]["s"] == {"a": 12, "b": 22}
    with pytest.raises(frazil.InvalidInput, match="assigned twice"):
        frazil.spark.update(parts, {"s": None, "s.a": 5})
    with pytest.raises(frazil.InvalidInput, match="the value for s has no field b"):
        frazil.spark.update(parts, {"s": F.struct(F.lit(1).alias("a"))})


def test_functions_of_python_may_decide_and_assign(spark: Any, parts: frazil.Table) -> None:
    spark.udf.register("plus", lambda number: number + 1, "int")
    spark.udf.register("is_two", lambda number: number == 2, "boolean")
    spark.sql(f"UPDATE {T} SET s.b = plus(id) WHERE is_two(id)")
    assert rows(parts)[2]["s"] == {"a": None, "b": 3}
    spark.sql(
        f"MERGE INTO {T} t USING (SELECT 1 AS id) x ON t.id = x.id "
        "WHEN MATCHED AND NOT is_two(t.id) THEN UPDATE SET s.a = plus(t.id), s.b = 0"
    )
    assert rows(parts)[1]["s"] == {"a": 2, "b": 0}
    spark.sql(f"DELETE FROM {T} WHERE is_two(id)")
    assert set(rows(parts)) == {1}

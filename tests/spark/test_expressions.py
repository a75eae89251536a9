"""Statistics of expressions in Spark: declared in its SQL, written by it, used by its filters."""

from __future__ import annotations

from typing import Any

import pytest

import frazil
import frazil.spark
from frazil.spark.bridge import verbs
from frazil.spark.bridge.scan_plan import scan_plan

pytestmark = pytest.mark.spark


@pytest.fixture
def planned_files(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files each scan that Spark plans has."""
    numbers: list[int] = []

    def counted(planned: Any, *given: Any, **named: Any) -> Any:
        numbers.append(planned.num_files)
        return scan_plan(planned, *given, **named)

    monkeypatch.setattr(verbs, "scan_plan", counted)
    return numbers


FILES = 4


def test_spark_declares_writes_and_prunes_by_expressions(
    spark: Any, catalog: frazil.Catalog, planned_files: list[int]
) -> None:
    frazil.spark.register(spark, catalog)
    spark.sql("CREATE TABLE frazil.shop.people (id INT, name STRING)")
    spark.sql("ALTER TABLE frazil.shop.people SET EXPRESSIONS (lower(name), upper(name))")
    for number in range(FILES):
        spark.sql(
            f"INSERT INTO frazil.shop.people VALUES ({number}, 'Name{number}'), (-1, 'İ{number}')"
        )
    table = catalog.load_table("shop.people")
    assert table.expressions == ("lower(name)", "upper(name)")
    assert table.scan("lower(name) = 'name2'").plan().files.num_rows == 1

    def found(where: str) -> tuple[list[int], int]:
        rows = spark.sql(f"SELECT id FROM frazil.shop.people WHERE {where}")
        ids = sorted(row.id for row in rows.collect())
        return ids, planned_files[-1]

    assert found("lower(name) = 'name2'") == ([2], 1)
    assert found("'name2' = lower(name) AND id > 0") == ([2], 1)
    assert found("lower(name) IN ('name1', 'name3')") == ([1, 3], 2)
    assert found("upper(name) = 'NAME2'") == ([2], 1)
    # Spark makes two letters of a dotted I, DuckDB makes one: such texts prune nothing.
    every = table.scan().plan().files.num_rows
    assert found("lower(name) = lower('İ2')") == ([-1], every)
    assert found("lower(name) > 'name2'") == ([3], every)

    spark.sql("DELETE FROM frazil.shop.people WHERE lower(name) = lower('İ3')")
    spark.sql("UPDATE frazil.shop.people SET name = 'x' WHERE lower(name) = 'name3'")
    rows = spark.sql("SELECT id, name FROM frazil.shop.people WHERE id IN (-1, 3)").collect()
    assert sorted((row.id, row.name) for row in rows) == [
        (-1, "İ0"),
        (-1, "İ1"),
        (-1, "İ2"),
        (3, "x"),
    ]
    spark.sql("ALTER TABLE frazil.shop.people UNSET EXPRESSIONS")
    assert catalog.load_table("shop.people").expressions == ()

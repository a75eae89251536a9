"""Boxes of shapes in Spark: written by it, and used by `frazil.system.bbox`."""

from __future__ import annotations

from typing import Any

import pytest

import frazil
import frazil.spark
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema
from frazil.spark.bridge import verbs
from frazil.spark.bridge.scan_plan import scan_plan
from tests.support.wkb import line, point, rectangle

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


SHAPES = {
    1: point(1, 1),
    2: rectangle(4, 4, 6, 6),
    3: line((8, 8), (9, 12)),
    4: point(-179, 0),
}
WINDOWS = [
    ((0, 0, 2, 2), [1]),
    ((5, 5, 5.5, 5.5), [2]),
    ((0, 12, 20, 3), [2, 3]),
    ((170, -1, -170, 1), [4]),
    ((100, 0, 1, 1), [1, 4]),
    ((20, 20, 30, 30), []),
]


def test_windows_find_what_they_find_elsewhere_and_prune(
    spark: Any, catalog: frazil.Catalog, planned_files: list[int]
) -> None:
    frazil.spark.register(spark, catalog)
    schema = Schema(
        ice.NestedField(1, "id", ice.LongType()), ice.NestedField(2, "g", ice.GeometryType())
    )
    table = catalog.create_table("t.places", schema)
    for id, shape in SHAPES.items():
        value = f"ST_GeomFromWKB(X'{shape.hex()}', 4326)"
        spark.sql(f"INSERT INTO frazil.t.places SELECT {id}, {value}")
    spark.sql("INSERT INTO frazil.t.places SELECT 5, NULL")
    table.refresh()
    for ends, ids in WINDOWS:
        window = ", ".join(map(str, ends))
        condition = f"bbox(g, {window})"
        assert sorted(row["id"] for row in table.scan(condition).to_pylist()) == ids
        assert table.scan(condition).plan().files.num_rows == len(ids)
        rows = spark.sql(f"SELECT id FROM frazil.t.places WHERE frazil.system.{condition}")
        assert sorted(row.id for row in rows.collect()) == ids
        assert planned_files[-1] == len(ids)
    rows = spark.sql("SELECT id FROM frazil.t.places WHERE NOT frazil.system.bbox(g, 0, 0, 7, 7)")
    assert sorted(row.id for row in rows.collect()) == [3, 4]
    rows = spark.sql(
        "SELECT id FROM frazil.t.places WHERE frazil.system.bbox(g, 0, 0, 2, 2) OR id = 5"
    )
    assert sorted(row.id for row in rows.collect()) == [1, 5]


def test_what_is_no_window_is_refused(spark: Any, catalog: frazil.Catalog) -> None:
    frazil.spark.register(spark, catalog)
    for call, problem in (
        ("bbox('text', 0, 0, 1, 1)", "string"),
        ("bbox(X'00', 0, 0, 1)", "arguments"),
        ("bbox(X'00', 'a', 0, 1, 1)", "numbers"),
    ):
        with pytest.raises(Exception, match=problem):
            spark.sql(f"SELECT frazil.system.{call}").collect()

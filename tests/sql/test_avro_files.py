"""Tables with Avro data files: queries, changes and compaction, as of any other table."""

from __future__ import annotations

from pathlib import Path

import pytest

import frazil
from tests.support.avro_table import ROWS, upgraded_avro_table


@pytest.fixture
def catalog(tmp_path: Path) -> frazil.Catalog:
    return frazil.connect(tmp_path / "warehouse")


@pytest.fixture
def table(catalog: frazil.Catalog, tmp_path: Path) -> frazil.Table:
    (tmp_path / "theirs").mkdir()
    return upgraded_avro_table(catalog, tmp_path / "theirs")


def formats(table: frazil.Table) -> set[str]:
    return {str(task.source.file_format) for task in table.scan().tasks()}


def test_queries_read_them(catalog: frazil.Catalog, table: frazil.Table) -> None:
    named = sum(1 for row in ROWS if row["name"] is not None)
    answer = catalog.sql("SELECT count(*) n, sum(id) total, count(name) named FROM old.avro")
    assert answer.to_pylist() == [{"n": 40, "total": sum(range(40)), "named": named}]
    few = catalog.sql("SELECT * FROM old.avro WHERE id BETWEEN 18 AND 21 ORDER BY id")
    assert few.to_pylist() == ROWS[18:22]


def test_rows_of_them_are_changed_and_compacted(
    catalog: frazil.Catalog, table: frazil.Table
) -> None:
    catalog.sql("DELETE FROM old.avro WHERE id = 3")
    catalog.sql("UPDATE old.avro SET name = 'new' WHERE id = 30")
    catalog.sql(
        "MERGE INTO old.avro t USING (SELECT 39 AS id UNION ALL SELECT 99) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = 'met' WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    table.append([{"id": 100, "name": "parquet"}])
    expected = {row["id"]: row["name"] for row in ROWS}
    del expected[3]
    expected |= {30: "new", 39: "met", 99: None, 100: "parquet"}

    def found() -> dict[object, object]:
        rows = table.refresh().scan().to_pylist()
        assert len(rows) == len(expected)
        return {row["id"]: row["name"] for row in rows}

    assert found() == expected
    table.compact(rewrite_all=True)
    assert found() == expected
    assert formats(table) == {"parquet"}

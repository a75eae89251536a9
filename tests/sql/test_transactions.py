"""Transactions over several tables: all land, or none."""

from __future__ import annotations

from pathlib import Path

import pytest

import frazil
from frazil.errors import CommitConflict, InvalidInput


def counts(catalog: frazil.Catalog) -> list[dict[str, int]]:
    text = "SELECT (SELECT count(*) FROM s.a) AS a, (SELECT count(*) FROM s.b) AS b"
    return catalog.sql(text).to_pylist()


@pytest.fixture
def catalog(tmp_path: Path) -> frazil.Catalog:
    made = frazil.connect(tmp_path / "w")
    made.sql("CREATE TABLE s.a (id BIGINT); INSERT INTO s.a VALUES (1), (2)")
    made.sql("CREATE TABLE s.b (id BIGINT); INSERT INTO s.b VALUES (1), (2)")
    return made


def test_a_conflict_in_one_table_keeps_the_other_as_it_was(catalog: frazil.Catalog) -> None:
    session = catalog.session()
    session.sql("BEGIN")
    session.sql("INSERT INTO s.a VALUES (3)")
    session.sql("UPDATE s.b SET id = 10 WHERE id = 1")
    catalog.sql("UPDATE s.b SET id = 20 WHERE id = 1")
    with pytest.raises(CommitConflict):
        session.sql("COMMIT")
    assert not session.in_transaction
    assert counts(catalog) == [{"a": 2, "b": 2}]
    found = catalog.sql("SELECT id FROM s.b ORDER BY id").to_pylist()
    assert found == [{"id": 2}, {"id": 20}]


def test_appends_of_others_in_between_do_not_hinder(catalog: frazil.Catalog) -> None:
    session = catalog.session()
    session.sql("BEGIN; INSERT INTO s.a VALUES (3); INSERT INTO s.b VALUES (3)")
    catalog.sql("INSERT INTO s.a VALUES (4)")
    assert counts(catalog) == [{"a": 3, "b": 2}]
    session.sql("COMMIT")
    assert counts(catalog) == [{"a": 4, "b": 3}]


def test_a_call_that_leaves_a_transaction_open_changes_nothing(catalog: frazil.Catalog) -> None:
    with pytest.raises(InvalidInput, match="BEGIN without COMMIT"):
        catalog.sql("BEGIN; DELETE FROM s.a")
    catalog.sql("BEGIN; DELETE FROM s.a; DELETE FROM s.b WHERE id = 1; COMMIT")
    assert counts(catalog) == [{"a": 0, "b": 1}]


def test_a_change_inside_a_transaction_says_how_many_rows_it_changed(
    catalog: frazil.Catalog,
) -> None:
    session = catalog.session()
    session.sql("BEGIN")
    said = [
        session.sql(text).to_pylist()
        for text in (
            "INSERT INTO s.a VALUES (3), (4), (5)",
            "UPDATE s.a SET id = id + 10 WHERE id IN (2, 3)",
            "DELETE FROM s.a WHERE id > 12",
            "DELETE FROM s.a WHERE id = 99",
            "MERGE INTO s.a USING (SELECT unnest([1, 4, 20, 21, 22]) AS id) AS n ON a.id = n.id "
            "WHEN MATCHED AND n.id = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET id = 40 "
            "WHEN NOT MATCHED THEN INSERT (id) VALUES (n.id)",
            "DELETE FROM s.a",
        )
    ]
    assert said == [
        [{"inserted": 3}],
        [{"updated": 2}],
        [{"deleted": 1}],
        [{"deleted": 0}],
        [{"inserted": 3, "updated": 1, "deleted": 1}],
        [{"deleted": 6}],
    ]
    session.sql("COMMIT")
    assert counts(catalog) == [{"a": 0, "b": 2}]

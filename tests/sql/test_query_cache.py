"""A query that was bound before is run again as it is, and never on a state that has passed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import frazil
from frazil.errors import FrazilError, NotFound
from frazil.rows.planned import Planned
from frazil.sql.engine.query_cache import MAX_QUERIES
from frazil.table.catalog import Catalog

ALL = "SELECT * FROM shop.orders ORDER BY id"


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with frazil.connect(tmp_path / "warehouse") as made:
        made.sql("CREATE TABLE shop.orders AS SELECT 1 AS id, 'a' AS note")
        yield made


def ids(catalog: Catalog, text: str = ALL) -> list[Any]:
    return [row["id"] for row in catalog.sql(text).to_pylist()]


def kept(catalog: Catalog) -> int:
    assert catalog._engine is not None
    return len(catalog._engine.ready)


def test_the_same_query_is_planned_once(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "SELECT id, sum(id) AS total FROM shop.orders WHERE id < ? GROUP BY id"
    assert catalog.sql(text, [5]).to_pylist() == [{"id": 1, "total": 1}]

    def refuse(scan: object) -> Planned:
        raise AssertionError("planned again")

    monkeypatch.setattr(Planned, "of", staticmethod(refuse))
    again = catalog.sql(text, [5])
    assert again.columns == ["id", "total"]
    assert again.to_pylist() == [{"id": 1, "total": 1}]
    with pytest.raises(AssertionError):
        catalog.sql(text, [0])
    monkeypatch.undo()
    assert catalog.sql(text, [0]).to_pylist() == []


def test_commits_of_others_are_seen(catalog: Catalog, tmp_path: Path) -> None:
    assert ids(catalog) == [1]
    with frazil.connect(tmp_path / "warehouse") as other:
        other.sql("INSERT INTO shop.orders VALUES (2, 'b')")
        assert ids(catalog) == [1, 2]
        other.sql("DELETE FROM shop.orders WHERE id = 1")
        assert ids(catalog) == [2]
        assert ids(catalog) == [2]
    writing = (
        "import frazil, sys; "
        "frazil.connect(sys.argv[1]).sql(\"INSERT INTO shop.orders VALUES (3, 'c')\")"
    )
    subprocess.run([sys.executable, "-c", writing, str(tmp_path / "warehouse")], check=True)
    assert ids(catalog) == [2, 3]


def test_a_table_that_was_made_anew_is_another_one(catalog: Catalog) -> None:
    assert ids(catalog) == [1]
    catalog.sql("DROP TABLE shop.orders")
    with pytest.raises(NotFound):
        catalog.sql(ALL)
    catalog.sql("CREATE TABLE shop.orders AS SELECT 7 AS id")
    assert catalog.sql(ALL).to_pylist() == [{"id": 7}]


def test_columns_are_those_of_now(catalog: Catalog) -> None:
    assert catalog.sql(ALL).columns == ["id", "note"]
    catalog.sql("ALTER TABLE shop.orders ADD COLUMN price INT")
    assert catalog.sql(ALL).to_pylist() == [{"id": 1, "note": "a", "price": None}]
    catalog.sql("ALTER TABLE shop.orders RENAME COLUMN id TO number")
    with pytest.raises(FrazilError, match="id"):
        catalog.sql(ALL)


def test_branches_tags_and_times_have_rows_of_their_own(catalog: Catalog) -> None:
    catalog.sql("ALTER TABLE shop.orders CREATE BRANCH audit")
    catalog.sql("ALTER TABLE shop.orders CREATE TAG old")
    audit = "SELECT id FROM shop.orders.branch_audit ORDER BY id"
    old = "SELECT id FROM shop.orders VERSION AS OF 'old' ORDER BY id"
    for _ in range(2):
        assert ids(catalog, audit) == ids(catalog, old) == ids(catalog) == [1]
    catalog.sql("INSERT INTO shop.orders.branch_audit VALUES (2, 'b')")
    assert (ids(catalog, audit), ids(catalog, old), ids(catalog)) == ([1, 2], [1], [1])
    catalog.sql("INSERT INTO shop.orders VALUES (3, 'c')")
    catalog.sql("ALTER TABLE shop.orders REPLACE TAG old")
    assert (ids(catalog, audit), ids(catalog, old), ids(catalog)) == ([1, 2], [1, 3], [1, 3])


def test_a_nearer_table_takes_the_name(catalog: Catalog) -> None:
    session = catalog.session()
    session.sql("CREATE NAMESPACE far")
    session.sql("USE far")
    assert [row["id"] for row in session.sql(ALL)] == [1]
    catalog.sql("CREATE TABLE far.shop.orders AS SELECT 9 AS id")
    assert [row["id"] for row in session.sql(ALL)] == [9]


def test_views_follow_their_definition(catalog: Catalog) -> None:
    catalog.sql("CREATE VIEW shop.few AS SELECT id FROM shop.orders")
    assert ids(catalog, "SELECT id FROM shop.few") == [1]
    catalog.sql("CREATE OR REPLACE VIEW shop.few AS SELECT id + 10 AS id FROM shop.orders")
    assert ids(catalog, "SELECT id FROM shop.few") == [11]


def test_a_transaction_sees_what_it_wrote(catalog: Catalog) -> None:
    assert ids(catalog) == [1]
    session = catalog.session()
    session.sql("BEGIN")
    session.sql("INSERT INTO shop.orders VALUES (2, 'b')")
    assert [row["id"] for row in session.sql(ALL)] == [1, 2]
    assert ids(catalog) == [1]
    session.sql("ROLLBACK")
    assert [row["id"] for row in session.sql(ALL)] == [1]


def test_results_of_one_text_do_not_disturb_each_other(catalog: Catalog) -> None:
    text = "SELECT o.id + range AS id FROM shop.orders o, range(100000) ORDER BY 1"
    ids(catalog, text)
    first, second = (iter(catalog.sql(text)) for _ in range(2))
    pairs = [(next(first)["id"], next(second)["id"]) for _ in range(3)]
    assert pairs == [(1, 1), (2, 2), (3, 3)]
    relation = catalog.sql(text).to_duckdb()
    assert ids(catalog, text)[-1] == 100000
    assert next(first)["id"] == next(second)["id"] == 4
    assert relation.aggregate("count(*)").fetchall() == [(100000,)]


def test_an_unfinished_or_failed_query_is_not_kept(catalog: Catalog) -> None:
    many = "SELECT o.id + range AS id FROM shop.orders o, range(1000000)"
    assert catalog.sql(many).head(1).num_rows == 1
    assert kept(catalog) == 0
    fails = "SELECT CAST(note AS INT) AS id FROM shop.orders"
    for _ in range(2):
        with pytest.raises(FrazilError, match="line 1"):
            catalog.sql(fails).to_arrow()
    assert ids(catalog) == [1]


def test_only_the_latest_queries_are_kept(catalog: Catalog) -> None:
    for number in range(MAX_QUERIES + 5):
        assert ids(catalog, f"SELECT id + {number} AS id FROM shop.orders") == [1 + number]
    assert kept(catalog) == MAX_QUERIES


def test_threads_share_queries_while_others_write(catalog: Catalog) -> None:
    def count(_: int) -> int:
        return int(catalog.sql("SELECT count(*) AS n FROM shop.orders").to_pylist()[0]["n"])

    with ThreadPoolExecutor(4) as pool:
        for total in range(1, 6):
            assert set(pool.map(count, range(8))) == {total}
            catalog.sql("INSERT INTO shop.orders VALUES (?, 'more')", [total + 1])

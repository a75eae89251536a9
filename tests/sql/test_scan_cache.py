"""What was planned for one query serves the others, and never on a state that has passed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frazil
from frazil.catalog.lazy_catalog import LazyCatalog
from frazil.catalog.sql.sql_catalog import SqlCatalog
from frazil.errors import FrazilError
from frazil.filter.prune import tree_filter
from frazil.parser import duckdb_parser
from frazil.rows.duckdb.duckdb_scan import ScanSql
from frazil.rows.planned import Planned
from frazil.sql.bind import bound_scans
from frazil.sql.engine import sql_engine
from frazil.sql.engine.database import new_database
from frazil.sql.engine.scan_cache import MAX_BYTES, PlannedScan, ScanCache
from frazil.sql.run.execution import Execution
from frazil.table.catalog import Catalog


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with frazil.connect(tmp_path / "warehouse") as made:
        made.sql("CREATE TABLE shop.orders AS SELECT 1 AS id, DATE '2024-05-01' AS day")
        yield made


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that are planned, in order."""
    seen: list[str] = []
    original = Planned.of

    def noted(scan: Any) -> Planned:
        seen.append(scan._handle.metadata.location.rsplit("/", 1)[-1])
        return original(scan)

    monkeypatch.setattr(Planned, "of", staticmethod(noted))
    return seen


def rows(catalog: Catalog, text: str, *values: Any) -> list[Any]:
    return [tuple(row.values()) for row in catalog.sql(text, list(values)).to_pylist()]


def test_other_queries_use_the_plan_of_a_table(catalog: Catalog, planned: list[str]) -> None:
    assert rows(catalog, "SELECT id FROM shop.orders") == [(1,)]
    assert rows(catalog, "SELECT day, id + 1 FROM shop.orders o") == [(date(2024, 5, 1), 2)]
    assert rows(catalog, "SELECT count(*) FROM shop.orders ORDER BY 1") == [(1,)]
    assert len(planned) == 1
    assert rows(catalog, "SELECT id FROM shop.orders WHERE id > 0") == [(1,)]
    assert rows(catalog, "SELECT max(id) FROM shop.orders x WHERE x.id > 0") == [(1,)]
    assert rows(catalog, "SELECT max(id) FROM shop.orders x WHERE x.id > 1") == [(None,)]
    assert len(planned) == 3


def test_a_query_plans_a_table_once(catalog: Catalog, planned: list[str]) -> None:
    catalog.sql("CREATE VIEW shop.same AS SELECT * FROM shop.orders")
    planned.clear()
    text = (
        "SELECT (SELECT max(id) FROM shop.orders), a.id, (SELECT count(*) FROM shop.same) "
        "FROM shop.orders a, shop.orders b WHERE a.id = b.id"
    )
    assert rows(catalog, text) == [(1, 1, 1)]
    assert len(planned) == 1


def test_equal_parts_of_a_query_are_equal_for_the_engine(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[str] = []
    original = Execution.prepared

    def noted(self: Execution, ran: Any) -> Any:
        texts.append(ran.text)
        return original(self, ran)

    monkeypatch.setattr(Execution, "prepared", noted)
    catalog.sql("SELECT (SELECT max(id) FROM shop.orders), (SELECT min(id) FROM shop.orders)")
    first, second = re.findall(r"read_parquet\(.*?hive_partitioning", texts[0])
    assert first == second


def test_every_commit_is_seen_by_every_text(catalog: Catalog, tmp_path: Path) -> None:
    texts = ("SELECT count(*) FROM shop.orders", "SELECT sum(1) AS n FROM shop.orders WHERE id > 0")
    assert [rows(catalog, text) for text in texts] == [[(1,)], [(1,)]]
    with frazil.connect(tmp_path / "warehouse") as other:
        other.sql("INSERT INTO shop.orders VALUES (2, DATE '2024-06-01')")
        assert [rows(catalog, f"{text} -- again") for text in texts] == [[(2,)], [(2,)]]
        other.sql("DELETE FROM shop.orders WHERE id = 1")
        assert [rows(catalog, f"{text} -- and again") for text in texts] == [[(1,)], [(1,)]]
        other.sql("ALTER TABLE shop.orders RENAME COLUMN id TO number")
        assert rows(catalog, "SELECT number FROM shop.orders") == [(2,)]
        with pytest.raises(FrazilError, match="id"):
            catalog.sql("SELECT id FROM shop.orders WHERE id > 0")
        other.sql("DROP TABLE shop.orders")
        other.sql("CREATE TABLE shop.orders AS SELECT 9 AS number")
        assert rows(catalog, "SELECT number FROM shop.orders o") == [(9,)]


def test_branches_times_and_transactions_have_plans_of_their_own(catalog: Catalog) -> None:
    first = catalog.load_table("shop.orders").current_snapshot()
    assert first is not None
    catalog.sql("ALTER TABLE shop.orders CREATE BRANCH audit")
    catalog.sql("INSERT INTO shop.orders.branch_audit VALUES (2, DATE '2024-06-01')")
    catalog.sql("INSERT INTO shop.orders VALUES (3, DATE '2024-06-01')")
    session = catalog.session()
    session.sql("BEGIN")
    session.sql("INSERT INTO shop.orders VALUES (4, DATE '2024-06-01')")
    for word in ("a", "b"):
        assert rows(catalog, f"SELECT sum(id) AS {word} FROM shop.orders") == [(4,)]
        assert rows(catalog, f"SELECT sum(id) AS {word} FROM shop.orders.branch_audit") == [(3,)]
        past = f"SELECT sum(id) AS {word} FROM shop.orders VERSION AS OF {first.snapshot_id}"
        assert rows(catalog, past) == [(1,)]
        inside = session.sql(f"SELECT sum(id) AS {word} FROM shop.orders").to_pylist()
        assert inside == [{word: 8}]


def test_metadata_columns_do_not_stick_to_a_scan(catalog: Catalog) -> None:
    assert rows(catalog, "SELECT id, _pos FROM shop.orders") == [(1, 0)]
    assert catalog.sql("SELECT * FROM shop.orders").columns == ["id", "day"]
    assert rows(catalog, "SELECT _pos FROM shop.orders o") == [(0,)]


def test_threads_with_other_texts_share_scans_while_others_write(catalog: Catalog) -> None:
    def count(number: int) -> int:
        text = f"SELECT count(*) AS n{number} FROM shop.orders"
        return int(rows(catalog, text)[0][0])

    with ThreadPoolExecutor(4) as pool:
        for total in range(1, 5):
            assert set(pool.map(count, range(8))) == {total}
            catalog.sql("INSERT INTO shop.orders VALUES (?, DATE '2024-06-01')", [total + 1])


def test_files_in_the_text_and_in_a_variable_are_the_same_rows(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.load_table("shop.orders")
    made: list[ScanSql] = []
    original = ScanSql.bind

    def noted(self: ScanSql, connection: Any) -> None:
        made.append(self)
        original(self, connection)

    monkeypatch.setattr(ScanSql, "bind", noted)
    assert rows(catalog, "SELECT id FROM shop.orders") == [(1,)]
    for id in range(2, 36):
        table.append(
            pa.table({"id": pa.array([id], pa.int32()), "day": [date(2024, 5, id % 28 + 1)]})
        )
    assert rows(catalog, "SELECT id FROM shop.orders ORDER BY id") == [(n,) for n in range(1, 36)]
    assert [(len(each.variables), each.num_files) for each in made] == [(0, 1), (1, 35)]


def test_paths_with_signs_that_mean_something(tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "it's [a] $1") as made:
        made.sql("CREATE TABLE s.t AS SELECT 1 AS id")
        assert rows(made, "SELECT id FROM s.t") == [(1,)]
        assert rows(made, "SELECT id + $1 FROM s.t", 2) == [(3,)]


def test_only_so_much_is_kept(catalog: Catalog) -> None:
    planned = Planned.of(catalog.load_table("shop.orders").scan())
    large = ScanSql(text="SELECT 1", bitmaps={"b": bytes(MAX_BYTES // 5)})
    kept = ScanCache()

    def ready(made: ScanSql) -> PlannedScan:
        scan = PlannedScan(planned)
        vars(scan)["scan"] = made
        return scan

    for number in range(8):
        kept.keep((number, "", None), ready(large))
    assert len(kept) == 4
    assert kept.find((0, "", None)) is None
    assert kept.find((7, "", None)) is not None
    for other in (
        ScanSql(relations={"r": object()}),
        ScanSql(bitmaps={"b": bytes(MAX_BYTES // 3)}),
    ):
        kept.keep((9, "", None), ready(other))
    assert kept.find((9, "", None)) is None


def test_days_are_known_without_the_engine(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    original = duckdb_parser.values_of

    def values_of(expressions: Any) -> Any:
        asked.extend(expressions)
        return original(expressions)

    monkeypatch.setattr(tree_filter, "values_of", values_of)
    assert rows(catalog, "SELECT id FROM shop.orders WHERE day = DATE '2024-05-01'") == [(1,)]
    assert rows(catalog, "SELECT id FROM shop.orders WHERE day > '2024-05-01'::DATE") == []
    assert asked == []
    text = "SELECT id FROM shop.orders WHERE day >= DATE '2024-04-30' + INTERVAL 1 DAY"
    assert rows(catalog, text) == [(1,)]
    assert len(asked) == 1
    with pytest.raises(FrazilError, match="2024-02-31"):
        catalog.sql("SELECT id FROM shop.orders WHERE day = DATE '2024-02-31'").to_arrow()


def test_all_connections_of_an_engine_are_set_alike() -> None:
    database = new_database()
    for connection in (database, database.cursor(), database.cursor().cursor()):
        names = ("TimeZone", "arrow_lossless_conversion", "parquet_metadata_cache")
        chosen = ", ".join(f"current_setting('{name}')" for name in names)
        assert connection.sql(f"SELECT {chosen}").fetchall() == [("UTC", True, True)]


@pytest.mark.parametrize(("most", "are_kept"), [(1, False), (2, True)])
def test_footers_of_many_files_are_not_kept(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, most: int, are_kept: bool
) -> None:
    catalog.sql("CREATE TABLE shop.two AS SELECT 1 AS id")
    catalog.sql("INSERT INTO shop.two VALUES (2)")
    monkeypatch.setattr(sql_engine, "MAX_FOOTERS", most)
    text = "SELECT current_setting('parquet_metadata_cache') AS kept, id FROM shop.two ORDER BY id"
    found = catalog.sql(text, allow_files=True).to_arrow().to_pydict()
    assert found == {"kept": [are_kept] * 2, "id": [1, 2]}


def test_a_footer_that_was_kept_is_not_that_of_another_file(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    database = new_database()
    for values in ([1], [2, 3], [4, 5, 6]):
        pq.write_table(pa.table({"a": values}), path)
        for connection in (database.cursor(), database.cursor()):
            found = connection.sql(f"SELECT a FROM read_parquet('{path}')").fetchall()
            assert found == [(value,) for value in values]


def test_the_catalog_is_asked_once_for_each_table(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE shop.lines AS SELECT 1 AS id, 5 AS price")
    database = cast(SqlCatalog, cast(LazyCatalog, catalog._pointers).create()).database
    texts = [
        f"SELECT (SELECT max(id) FROM shop.lines) + {number} AS n FROM shop.orders a "
        "JOIN shop.orders b ON a.id = b.id WHERE a.id IN (SELECT id FROM shop.lines)"
        for number in (0, 0, 1)  # bound, kept, and bound with plans that are kept
    ]
    for text in texts:
        before = database.statements
        assert len(rows(catalog, text)) == 1
        assert database.statements - before == 2


def test_keys_that_a_kept_scan_learns_are_counted(catalog: Catalog) -> None:
    planned = Planned.of(catalog.load_table("shop.orders").scan())
    kept = ScanCache()
    scans = [PlannedScan(planned) for _ in range(8)]
    for number, scan in enumerate(scans):
        kept.keep((number, "", None), scan)
    assert len(kept) == 8
    keys = pa.chunked_array([pa.array(range(MAX_BYTES // 5 // 8), pa.int64())])
    for number, scan in enumerate(scans):
        scan.keys["id"] = keys
        kept.keep((number, "", None), scan)
    assert len(kept) == 4


def test_a_commit_to_the_small_table_makes_other_keys(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bound_scans, "_MANY_FILES", 2)
    monkeypatch.setattr(bound_scans, "_MANY_ROWS", 0)
    catalog.sql("CREATE TABLE shop.lines AS SELECT range AS id, 'x' || range AS v FROM range(3000)")
    catalog.sql("INSERT INTO shop.lines SELECT range, 'y' || range FROM range(3000, 6000)")
    catalog.sql("CREATE TABLE shop.few AS SELECT 5::BIGINT AS id")
    text = "SELECT v FROM shop.lines l JOIN shop.few f ON l.id = f.id ORDER BY l.id"
    other = "SELECT count(*) FROM shop.lines l, shop.few WHERE l.id = few.id"
    asked: list[str] = []
    original = bound_scans._distinct

    def noted(engine: Any, key: str, found: str) -> Any:
        asked.append(key)
        return original(engine, key, found)

    monkeypatch.setattr(bound_scans, "_distinct", noted)
    assert rows(catalog, text) == [("x5",)]
    assert rows(catalog, other) == [(1,)]
    assert asked == ["id"]
    catalog.sql("INSERT INTO shop.few VALUES (4000)")
    assert rows(catalog, other) == [(2,)]
    assert rows(catalog, text) == [("x5",), ("y4000",)]
    assert asked == ["id", "id"]

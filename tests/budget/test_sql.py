"""What SQL may read: bytes and files of an object store, counted by the storage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import frazil
from frazil.parser import duckdb_parser
from frazil.sql.bind import bound_scans
from frazil.storage import StorageCall
from frazil.table.catalog import Catalog
from tests.budget.test_start import loaded
from tests.support.s3 import s3_server

FILES, ROWS, GROUP = 12, 180_000, 45_000
BLOCKS = 600_000
"""What a file costs besides its values: the end with the footer, and whole blocks of 256 KiB."""


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    """Twelve files of four row groups, too large to be read at once, and a small table of keys."""
    folder: Path = tmp_path_factory.mktemp("budget")
    with s3_server() as s3:
        place: dict[str, Any] = {"warehouse": s3.warehouse, **s3.properties}
        with frazil.connect(f"sqlite:///{folder}/catalog.db", **place) as made:
            made.sql(
                "CREATE TABLE s.big (id BIGINT, noise BIGINT, more BIGINT) "
                f"TBLPROPERTIES ('write.parquet.row-group-limit' = '{GROUP}')"
            )
            random = np.random.default_rng(7)
            for at in range(FILES):
                ids = np.arange(at * ROWS, (at + 1) * ROWS)
                noise, more = (random.integers(0, 2**62, ROWS) for _ in range(2))
                rows = pa.table({"id": ids, "noise": noise, "more": more})
                made.load_table("s.big").append(rows)
            made.sql("CREATE TABLE s.keys (id BIGINT, name STRING)")
            made.sql(f"INSERT INTO s.keys VALUES (5, 'a'), ({ROWS + 7}, 'b')")
            yield made


def reads(catalog: Catalog, text: str) -> tuple[int, list[StorageCall]]:
    """Rows of a query, and the reads of data files that it took."""
    storage = catalog._pointers.storage(catalog.load_table("s.big").location)
    with storage.recording() as calls:
        rows = catalog.sql(text).to_arrow().num_rows
    return rows, [call for call in calls if "/data/" in call.path and call.verb == "read"]


def group_bytes(columns: int) -> int:
    """What one row group takes, with this number of columns."""
    return columns * GROUP * 8 + BLOCKS


def test_a_selective_query_reads_one_row_group_of_one_file(catalog: Catalog) -> None:
    rows, calls = reads(catalog, f"SELECT noise FROM s.big WHERE id = {5 * ROWS + 17}")
    assert rows == 1
    assert len({call.path for call in calls}) == 1
    assert 0 < sum(call.bytes for call in calls) <= group_bytes(2)


def test_a_limit_reads_one_row_group(catalog: Catalog) -> None:
    rows, calls = reads(catalog, "SELECT noise FROM s.big LIMIT 1")
    assert rows == 1
    assert 0 < sum(call.bytes for call in calls) <= group_bytes(1)


def test_a_count_of_one_column_reads_that_column_once(catalog: Catalog) -> None:
    rows, calls = reads(catalog, "SELECT count(noise) FROM s.big")
    assert rows == 1
    assert sum(call.bytes for call in calls) <= FILES * (ROWS * 8 + BLOCKS)


def test_no_byte_is_read_twice(catalog: Catalog) -> None:
    text = f"SELECT sum(noise) FROM s.big WHERE id BETWEEN {ROWS} AND {3 * ROWS - 1}"
    rows, calls = reads(catalog, text)
    assert rows == 1
    assert len({call.path for call in calls}) == 2
    assert sum(call.bytes for call in calls) <= 2 * (2 * ROWS * 8 + BLOCKS)


def test_a_join_with_few_keys_reads_the_files_that_hold_them(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bound_scans, "_MANY_FILES", FILES)
    text = "SELECT b.noise FROM s.big b JOIN s.keys k ON b.id = k.id"
    rows, calls = reads(catalog, text)
    assert rows == 2
    big = [call for call in calls if "/big/" in call.path]
    assert len({call.path for call in big}) == 2
    small = [call for call in calls if "/keys/" in call.path]
    assert sum(call.bytes for call in small) < 10_000


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE s.parts SET v = k.v FROM s.few k WHERE parts.id = k.id",
        "UPDATE s.parts AS p SET v = few.v FROM s.few WHERE p.ID = few.id AND few.v > 0",
        "DELETE FROM s.parts USING s.few k WHERE parts.id = k.id",
    ],
)
def test_a_change_beside_few_keys_reads_the_files_that_hold_them(
    catalog: Catalog, statement: str
) -> None:
    for table in ("parts", "few"):
        catalog.sql(f"CREATE OR REPLACE TABLE s.{table} (id BIGINT, v BIGINT)")
    for at in range(6):
        catalog.sql(f"INSERT INTO s.parts SELECT range, 0 FROM range({at * 10}, {at * 10 + 10})")
    catalog.sql("INSERT INTO s.few VALUES (3, 7), (44, 8), (1000, 9), (NULL, 10)")
    storage = catalog._pointers.storage(catalog.load_table("s.parts").location)
    with storage.recording() as calls:
        catalog.sql(statement)
    opened = {c.path for c in calls if "/parts/data/" in c.path and c.verb == "read"}
    assert len(opened) == 2
    rows = catalog.sql("SELECT id, v FROM s.parts WHERE v <> 0 ORDER BY id").to_pylist()
    left = catalog.sql("SELECT count(*) AS n FROM s.parts").to_pylist()
    if statement.startswith("DELETE"):
        assert (rows, left) == ([], [{"n": 58}])
    else:
        assert (rows, left) == ([{"id": 3, "v": 7}, {"id": 44, "v": 8}], [{"n": 60}])


def test_making_a_result_reads_one_footer(catalog: Catalog) -> None:
    storage = catalog._pointers.storage(catalog.load_table("s.big").location)
    with storage.recording() as calls:
        result = catalog.sql("SELECT * FROM s.big ORDER BY noise")
    assert result.columns == ["id", "noise", "more"]
    data = [call for call in calls if "/data/" in call.path and call.verb == "read"]
    assert sum(call.bytes for call in data) <= 256 * 1024


def test_showing_a_result_reads_its_first_rows(catalog: Catalog) -> None:
    storage = catalog._pointers.storage(catalog.load_table("s.big").location)
    result = catalog.sql("SELECT noise FROM s.big")
    with storage.recording() as calls:
        assert "… the first 20 rows" in repr(result)
    files = {call.path for call in calls if "/data/" in call.path}
    assert len(files) <= FILES // 2


def taken(catalog: Catalog, take: Any) -> list[StorageCall]:
    """The reads of data files for a row that is taken of a lazy scan."""
    table = catalog.load_table("s.big")
    with table._handle.storage.recording() as calls:
        assert take(table) == 1
    return [call for call in calls if "/data/" in call.path and call.verb == "read"]


@pytest.mark.parametrize(
    "take",
    [
        lambda table: len(table.scan(columns=["noise"]).to_duckdb().limit(1).fetchall()),
        lambda table: table.scan(columns=["noise"]).to_polars(lazy=True).head(1).collect().height,
    ],
    ids=["duckdb", "polars"],
)
def test_the_first_row_of_a_lazy_scan_reads_one_row_group(catalog: Catalog, take: Any) -> None:
    assert 0 < sum(call.bytes for call in taken(catalog, take)) <= group_bytes(1)


WANTED = 5 * ROWS + 17


@pytest.mark.parametrize(
    "take",
    [
        lambda table: len(table.scan("id = ?", params=[WANTED]).to_duckdb().fetchall()),
        lambda table: len(
            table.scan().to_polars(lazy=True).filter(pl.col("id") == WANTED).collect()
        ),
        lambda table: table.scan().to_dataset().count_rows(filter=pc.field("id") == WANTED),
    ],
    ids=["duckdb", "polars", "dataset"],
)
def test_a_filter_on_a_lazy_scan_reads_one_file(catalog: Catalog, take: Any) -> None:
    assert len({call.path for call in taken(catalog, take)}) == 1


def test_a_filter_on_a_duckdb_relation_reads_one_row_group(catalog: Catalog) -> None:
    """DuckDB does not tell Frazil of it, so that it looks at the end of every file."""
    calls = taken(
        catalog, lambda table: len(table.scan().to_duckdb().filter(f"id = {WANTED}").fetchall())
    )
    assert sum(call.bytes for call in calls) <= FILES * 300_000 + group_bytes(3)


def test_a_new_text_is_parsed_twice_and_a_known_one_not_at_all(tmp_path: Path) -> None:
    with frazil.connect(tmp_path) as made:
        made.create_table("s.t", [{"a": 1}])
        text = "SELECT a FROM s.t AS counted WHERE a > 0 AND a < 5"
        before = duckdb_parser.calls
        made.sql(text).to_arrow()
        assert duckdb_parser.calls - before == 2
        made.sql(text).to_arrow()
        assert duckdb_parser.calls - before == 2


def test_the_first_query_of_a_process_opens_one_database(tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "warehouse") as catalog:
        catalog.sql("CREATE TABLE s.t AS SELECT range AS a, range::VARCHAR AS b FROM range(10)")
    code = (
        "import sys, frazil, _duckdb\n"
        "opened, connect = [], _duckdb.connect\n"
        "_duckdb.connect = lambda *args, **more: opened.append(1) or connect(*args, **more)\n"
        "with frazil.connect(sys.argv[1]) as catalog:\n"
        "    found = catalog.sql('SELECT max(b) AS b FROM s.t WHERE a > 3 AND a < 6').to_pylist()\n"
        "assert found == [{'b': '5'}], found\n"
        "assert len(opened) == 1, len(opened)\n"
    )
    loaded(code, str(tmp_path / "warehouse"))


def test_the_first_query_loads_no_other_parser_and_no_older_format(tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "warehouse") as made:
        made.create_table("s.t", [{"a": 1}])
    code = (
        "import sys, frazil; c = frazil.connect(sys.argv[1]); "
        "assert c.sql('SELECT a FROM s.t WHERE a > 0').to_arrow().num_rows == 1"
    )
    modules = loaded(code, str(tmp_path / "warehouse"))
    tops = {name.partition(".")[0] for name in modules}
    assert not tops & {"sqlglot", "polars", "sqlalchemy", "pyspark", "typer"}
    older = {name for name in modules if name.startswith(("frazil.legacy.", "frazil.avro"))}
    assert older == {"frazil.legacy.read.legacy_decoder"}
    assert len([name for name in modules if name.startswith("frazil.")]) <= 248

"""Rows that stream out of DuckDB: errors that come late, wide rows, long expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frazil
from frazil.errors import FormatError, FrazilError, InvalidInput, NotFound, StorageError
from frazil.rows.duckdb import duckdb_connection, duckdb_failures
from frazil.rows.duckdb.duckdb_engine import BATCH_ROWS, DuckDbEngine
from frazil.rows.duckdb.duckdb_streams import streamed

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("s", pa.string())])
ROWS = 3 * BATCH_ROWS
SETTINGS = ("arrow_large_buffer_size", "disabled_optimizers")


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> frazil.Table:
    """A table whose last row alone is no number: the first batches are good."""
    catalog = frazil.connect(tmp_path_factory.mktemp("late"))
    table = catalog.create_table("s.t", SCHEMA)
    texts = ["1"] * (ROWS - 1) + ["x"]
    table.append(pa.table({"id": range(ROWS), "n": [1] * ROWS, "s": texts}, schema=SCHEMA))
    return table


def _files(table: frazil.Table) -> set[Path]:
    return set(Path(table.location.removeprefix("file://")).rglob("*.parquet"))


@pytest.mark.parametrize(
    "work",
    [
        lambda table: table.update({"n": frazil.expr("cast(s as int)")}),
        lambda table: table.delete("cast(s as int) = 1"),
        lambda table: table.scan("cast(s as int) = 1 and id >= 0").to_arrow(),
        lambda table: table.scan("cast(s as int) = 1 and id >= 0").count(),
        lambda table: table._catalog_sql("SELECT cast(s AS int) FROM s.t").to_arrow(),
        lambda table: list(table._catalog_sql("SELECT cast(s AS int) FROM s.t").to_reader()),
        lambda table: table._catalog_sql("INSERT INTO s.t SELECT id, cast(s AS int), s FROM s.t"),
    ],
    ids=["update", "delete", "scan", "count", "query", "stream", "insert"],
)
def test_an_error_in_a_later_batch_is_one_of_ours(
    late: frazil.Table, work: Callable[[Any], object]
) -> None:
    before = _files(late)
    with pytest.raises(InvalidInput, match=r"(?i)could not convert string 'x'"):
        work(_WithSql(late))
    assert _files(late) == before


BAD = "SELECT CAST(CASE WHEN range = 9999 THEN 'x' ELSE '1' END AS INT) AS n FROM range(10000)"


@pytest.mark.parametrize(
    ("message", "query", "expected"),
    [
        ("INTERRUPT Error: Interrupted!", BAD, "Could not convert string 'x'"),
        ("INTERRUPT Error: Interrupted!", "SELECT 1", "INTERRUPT Error"),
        ("IO Error: no such file", BAD, "IO Error"),
    ],
)
def test_a_stream_that_was_interrupted_is_asked_for_its_cause(
    message: str, query: str, expected: str
) -> None:
    """DuckDB gives this message if another thread fails first, now and then on a busy machine."""
    connection = duckdb.connect()

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": [1]})
        raise OSError(message)

    reader = pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), batches())
    with streamed(reader, connection, query) as stream:
        assert stream.read_next_batch().to_pylist() == [{"n": 1}]
        with pytest.raises((OSError, duckdb.Error), match=expected):
            stream.read_next_batch()


class _WithSql:
    """A table that can also be asked in SQL."""

    def __init__(self, table: frazil.Table) -> None:
        self._table = table

    def _catalog_sql(self, text: str) -> Any:
        folder = Path(self._table.location.removeprefix("file://")).parents[1]
        return frazil.connect(folder).sql(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Conversion Error: Could not convert string 'x'", InvalidInput),
        ("IO Error: Cannot open file", StorageError),
        ("HTTP Error: 503", StorageError),
        ("Out of Memory Error: could not allocate", FrazilError),
        ("[Errno 28] No space left on device", None),
    ],
)
def test_errors_of_a_stream_are_told_apart_by_their_text(
    text: str, kind: type[FrazilError] | None
) -> None:
    assert duckdb_failures.duckdb_kind(OSError(text)) is kind
    with pytest.raises(kind or OSError), duckdb_failures.explained("scan"):
        raise OSError(text)


def _settings(connection: duckdb.DuckDBPyConnection) -> list[str]:
    return [
        connection.execute(f"SELECT current_setting('{name}')::VARCHAR").fetchall()[0][0]
        for name in SETTINGS
    ]


@pytest.fixture
def table(tmp_path: Path) -> frazil.Table:
    made = frazil.connect(tmp_path).create_table("s.t", SCHEMA)
    made.append(pa.table({"id": [1, 2], "n": [5, 6], "s": ["a", "b"]}, schema=SCHEMA))
    return made


def test_a_long_sum_is_planned_without_the_search_for_common_parts(table: frazil.Table) -> None:
    connection = duckdb_connection.connect()
    connection.execute("SET disabled_optimizers = 'join_order'")
    seen: list[list[str]] = []

    class Watching(DuckDbEngine):
        def _into(self, sink: Any, query: str, **options: Any) -> Any:
            with duckdb_connection.streaming(self.connection, query):
                seen.append(_settings(self.connection))
            return super()._into(sink, query, **options)

    long = " + ".join(["id"] * 300)
    with table.transaction(engine=Watching(connection)) as tx:
        tx.update({"n": frazil.expr(long)}, f"{long} = 300")
        tx.update({"s": "c"}, "id = 2")
    without_search = "common_subexpressions,partial_aggregate_pushdown"
    assert [optimizers for _, optimizers in seen] == [without_search, "join_order"]
    assert _settings(connection) == ["false", "join_order"]
    found = sorted(table.scan().to_pylist(), key=lambda row: row["id"])
    assert found == [{"id": 1, "n": 300, "s": "a"}, {"id": 2, "n": 6, "s": "c"}]
    assert table.scan(f"{long} = 600").count() == 1


def test_settings_are_as_before_after_an_error(table: frazil.Table) -> None:
    connection = duckdb_connection.connect()
    before = _settings(connection)
    tx = table.transaction(engine=DuckDbEngine(connection))
    with pytest.raises(InvalidInput):
        tx.update({"n": frazil.expr("cast(s as int)")})
    assert _settings(connection) == before


def test_a_connection_whose_settings_are_locked_is_used_as_it_is(table: frazil.Table) -> None:
    connection = duckdb_connection.connect()
    connection.execute("SET lock_configuration = true")
    with table.transaction(engine=DuckDbEngine(connection)) as tx:
        tx.update({"s": "c"}, "id = 2")
    assert table.scan("s = 'c'").count() == 1


def test_offsets_of_a_stream_have_64_bits() -> None:
    connection = duckdb_connection.connect()
    query = "SELECT 'a' AS t, 'a'::BLOB AS b, [1] AS l"
    with duckdb_connection.streaming(connection, query):
        stream = connection.sql(query).to_arrow_reader(10)
        assert stream.schema.types[:2] == [pa.large_string(), pa.large_binary()]
        assert pa.types.is_large_list(stream.schema.types[2])
        assert stream.read_all().num_rows == 1


def test_texts_are_sorted_in_any_order(table: frazil.Table) -> None:
    table.append(pa.table({"id": [3, 4], "n": [0, 0], "s": ["ba", None]}, schema=SCHEMA))
    table.compact(sort_by=["truncate[1](s) desc", "s desc"])
    assert table.scan().to_arrow()["s"].to_pylist() == ["ba", "b", "a", None]
    table.compact(zorder_by=["s", "n"])
    assert table.scan().to_arrow()["s"].to_pylist()[0] is None


def test_a_damaged_file_is_named_as_by_any_other_scan(table: frazil.Table) -> None:
    """With equality deletes, DuckDB gets the rows from Frazil's reader."""
    table.set_properties({"write.equality-deletes.enabled": "true"})
    table.row_delta().add_equality_deletes(pa.table({"id": [1]}), on=["id"]).commit()
    (file,) = {path for path in _files(table) if path.parent.name == "data" and _has_ids(path)}
    whole = file.read_bytes()
    asked = _WithSql(table)
    for data, kind in ((whole[:-20], FormatError), (None, NotFound)):
        file.write_bytes(data) if data is not None else file.unlink()
        for work in (
            lambda: table.scan("id % 2 = 0 and length(s) = 1").to_arrow(),
            lambda: table.update({"s": frazil.expr("s || n")}, "id % 2 = 0"),
            lambda: asked._catalog_sql("SELECT sum(n) FROM s.t").to_arrow(),
        ):
            with pytest.raises(kind, match=file.name) as caught:
                work()
            assert "Traceback" not in str(caught.value)


def _has_ids(path: Path) -> bool:
    return "s" in pq.read_schema(path).names


def test_an_interrupt_below_duckdb_comes_out_as_itself() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        with duckdb_failures.kept():
            yield pa.record_batch({"a": [1]})
            raise KeyboardInterrupt

    schema = pa.schema([("a", pa.int64())])
    with duckdb_connection.connect() as connection:
        connection.register("stream", pa.RecordBatchReader.from_batches(schema, batches()))
        with pytest.raises(KeyboardInterrupt), duckdb_failures.explained("scan"):
            connection.sql("SELECT sum(a) FROM stream").fetchall()

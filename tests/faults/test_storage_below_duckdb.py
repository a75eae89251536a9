"""What fails below DuckDB is reported as what it is, without the words of what lies between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.errors import FormatError, FrazilError, InvalidInput, NotFound, StorageError
from frazil.rows.duckdb import duckdb_failures, duckdb_scan
from frazil.rows.duckdb.duckdb_connection import connect
from frazil.rows.duckdb.storage_files import StorageFiles

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])


class Shop:
    """A table whose files DuckDB reads through the table's storage, which fails when told to."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.failure: Exception | None = None
        monkeypatch.setattr(duckdb_scan, "is_local", lambda path: False)
        original = StorageFiles.open

        def opened(files: StorageFiles, path: str, mode: str = "rb", **options: object) -> object:
            file = original(files, path, mode, **options)
            read = file.read

            def failing(size: int) -> bytes:
                with duckdb_failures.kept():
                    if self.failure is not None:
                        raise self.failure
                return bytes(read(size))

            file.read = failing
            return file

        monkeypatch.setattr(StorageFiles, "open", opened)
        self.catalog = frazil.connect(folder)
        self.table = self.catalog.create_table("s.t", SCHEMA)
        self.table.append(pa.table({"id": range(100), "s": ["x"] * 100}, schema=SCHEMA))


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    made = Shop(tmp_path, monkeypatch)
    yield made
    made.catalog.close()


WORK: dict[str, Callable[[Shop], object]] = {
    "query": lambda shop: shop.catalog.sql("SELECT sum(id) FROM s.t").to_arrow(),
    "filter": lambda shop: shop.table.scan("id * 2 > 7").to_arrow(),
    "count": lambda shop: shop.table.scan("id * 2 > 7").count(),
    "update": lambda shop: shop.table.update({"s": "y"}, "id % 2 = 0"),
    "delete": lambda shop: shop.table.delete("id % 2 = 0"),
    "upsert": lambda shop: shop.table.upsert([{"id": 1, "s": "z"}], on=["id"]),
    "sorted": lambda shop: shop.table.compact(sort_by=["s"], rewrite_all=True),
}


@pytest.mark.parametrize("what", WORK)
@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (StorageError("s3://b/f: read failed: 503 slow down"), StorageError),
        (NotFound("s3://b/f: no such file"), NotFound),
        (OSError("connection reset by peer"), StorageError),
        (FormatError("the page is damaged", path="s3://b/f"), FormatError),
    ],
    ids=["storage", "gone", "os", "damaged"],
)
def test_the_failure_below_is_the_one_that_is_raised(
    shop: Shop, what: str, failure: Exception, kind: type[FrazilError]
) -> None:
    shop.failure = failure
    with pytest.raises(kind) as caught:
        WORK[what](shop)
    assert type(caught.value) is kind
    message = str(caught.value)
    assert str(failure) in message
    assert not any(word in message for word in ("Traceback", "frazil-failure", "Exception", "0x"))
    shop.failure = None
    WORK[what](shop)


def test_a_failure_of_a_stream_is_kept() -> None:
    class Rows:
        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            def batches() -> Iterator[pa.RecordBatch]:
                with duckdb_failures.kept():
                    yield pa.record_batch({"n": [1]})
                    raise StorageError("the disk is gone")

            schema = pa.schema([("n", pa.int64())])
            return pa.RecordBatchReader.from_batches(schema, batches()).__arrow_c_stream__()

    connection = connect()
    connection.register("rows", Rows())
    with pytest.raises(StorageError) as caught, duckdb_failures.explained("scan"):
        connection.execute("SELECT sum(n) FROM rows").fetchall()
    assert str(caught.value) == "scan: the disk is gone"


def test_a_wrong_expression_is_still_the_callers_mistake(shop: Shop) -> None:
    with pytest.raises(InvalidInput):
        shop.table.scan("cast(s as int) = 1").to_arrow()


def test_a_local_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with frazil.connect(tmp_path) as catalog:
        table = catalog.create_table("s.t", SCHEMA)
        table.append(pa.table({"id": [1], "s": ["x"]}, schema=SCHEMA))
        (file,) = (tmp_path / "s" / "t" / "data").rglob("*.parquet")
        file.unlink()
        for work in (
            lambda: catalog.sql("SELECT sum(id) FROM s.t").to_arrow(),
            lambda: table.scan("id * 2 > 1").to_arrow(),
            lambda: table.update({"s": "y"}, "id % 2 = 1"),
        ):
            with pytest.raises((StorageError, NotFound), match=file.name):
                work()

"""DuckDB does not look at checksums: files it reads are verified before, once per process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import frazil
from frazil.data.read import sources, verified
from frazil.errors import FormatError
from frazil.storage import Storage

SCHEMA = pa.schema([("id", pa.int64()), ("price", pa.float64()), ("country", pa.string())])
ROWS = 20_000


class Shop:
    """Two tables; the data file of the first can be damaged."""

    def __init__(self, folder: Path) -> None:
        self.catalog = frazil.connect(folder)
        uncompressed = {"write.parquet.compression-codec": "uncompressed"}
        self.orders = self.catalog.create_table("shop.orders", SCHEMA, properties=uncompressed)
        rng = np.random.default_rng(7)
        self.orders.append(
            pa.table(
                {
                    "id": np.arange(ROWS),
                    "price": rng.random(ROWS),
                    "country": rng.choice(["DE", "FR", "US"], ROWS),
                },
                schema=SCHEMA,
            )
        )
        (self.file,) = folder.rglob("data/**/*.parquet")
        self.catalog.create_table("shop.other", SCHEMA)
        self.good = self.file.read_bytes()

    def flip(self) -> None:
        """Another value in the column of random numbers, which decodes without an error."""
        damaged = bytearray(self.good)
        damaged[len(damaged) // 2] ^= 1
        self.file.write_bytes(damaged)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path)
    yield made
    made.catalog.close()


READS: dict[str, Callable[[Shop], object]] = {
    "sql": lambda shop: shop.catalog.sql("SELECT sum(price) FROM shop.orders").to_arrow(),
    "sql of a view": lambda shop: (
        shop.catalog.sql("CREATE VIEW shop.v AS SELECT * FROM shop.orders"),
        shop.catalog.sql("SELECT count(price) FROM shop.v").to_arrow(),
    ),
    "to_duckdb": lambda shop: shop.orders.scan().to_duckdb().fetchall(),
    "a filter in SQL": lambda shop: shop.orders.scan("price * 2 > 1").to_arrow(),
}
WRITES: dict[str, Callable[[Shop], object]] = {
    "update": lambda shop: shop.orders.update({"country": "'IT'"}, "country = 'DE'"),
    "delete": lambda shop: shop.orders.delete("price * 2 > 1"),
    "upsert": lambda shop: shop.orders.upsert([{"id": 1, "price": 1.0, "country": "X"}], on=["id"]),
    "merge": lambda shop: shop.catalog.sql(
        "MERGE INTO shop.orders t USING (SELECT 1 AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET country = 'IT'"
    ),
    "insert from a query": lambda shop: shop.catalog.sql(
        "INSERT INTO shop.other SELECT * FROM shop.orders"
    ),
    "create from a query": lambda shop: shop.catalog.sql(
        "CREATE TABLE shop.new AS SELECT * FROM shop.orders"
    ),
    "compact": lambda shop: shop.orders.compact(sort_by=["price"], rewrite_all=True),
}


@pytest.mark.parametrize("what", [*READS, *WRITES])
def test_a_flipped_bit_is_an_error_that_names_the_file(shop: Shop, what: str) -> None:
    shop.flip()
    with pytest.raises(FormatError, match="checksum of the pages") as found:
        {**READS, **WRITES}[what](shop)
    assert shop.file.name in str(found.value)
    assert shop.catalog.load_table("shop.other").scan().count() == 0


def test_damage_after_the_first_read_is_found(shop: Shop) -> None:
    READS["sql"](shop)
    shop.flip()
    with pytest.raises(FormatError, match="damaged"):
        READS["sql"](shop)


def test_a_file_is_verified_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def check_whole(storage: Storage, path: str) -> None:
        read.append(path)
        sources.check_whole(storage, path)

    monkeypatch.setattr(verified, "check_whole", check_whole)
    for _ in range(3):
        READS["sql"](shop)
        WRITES["insert from a query"](shop)
    assert [Path(path).name for path in read] == [shop.file.name]
    os.utime(shop.file)
    READS["sql"](shop)
    assert [Path(path).name for path in read] == [shop.file.name] * 2


@pytest.mark.parametrize("what", WRITES)
def test_what_is_written_again_is_verified_whatever_its_size(
    shop: Shop, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verified, "QUERY_BYTES", 1_000)
    shop.flip()
    READS["sql"](shop)  # more than a query verifies
    with pytest.raises(FormatError, match="damaged"):
        WRITES[what](shop)


@pytest.mark.parametrize("text", ["SELECT * FROM shop.orders LIMIT 1", "EXPLAIN SELECT 1"])
def test_a_query_of_a_few_rows_reads_no_whole_file(
    shop: Shop, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    monkeypatch.setattr(verified, "check_whole", lambda storage, path: read.append(path))
    shop.catalog.sql(text).to_arrow()
    shop.catalog.sql("SELECT * FROM shop.orders")  # nobody asks for its rows
    assert not read
    shop.catalog.sql("SELECT * FROM shop.orders ORDER BY price LIMIT 1").to_arrow()
    assert len(read) == 1


def test_another_size_than_metadata_records_is_an_error(shop: Shop) -> None:
    shop.file.write_bytes(shop.good + b"x")
    with pytest.raises(FormatError, match=f"has {len(shop.good) + 1} bytes"):
        READS["sql"](shop)


def test_the_property_switches_it_off(shop: Shop) -> None:
    shop.orders.set_properties({"read.parquet.verify-checksums": "false"})
    shop.flip()
    for read in READS.values():
        read(shop)

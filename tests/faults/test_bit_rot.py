"""One flipped bit in a data file ends in an error that names the file, never in other rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frazil
from frazil.errors import FormatError

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("price", pa.float64()),
        pa.field("country", pa.string()),
        pa.field("paid", pa.bool_()),
    ]
)


def rows(count: int) -> pa.Table:
    rng = np.random.default_rng(7)
    return pa.table(
        {
            "id": np.arange(count),
            "price": rng.random(count),
            "country": rng.choice(["DE", "FR", "US"], count),
            "paid": rng.random(count) < 0.5,
        },
        schema=SCHEMA,
    )


class Written:
    """A table of one data file, which can be damaged and mended."""

    def __init__(self, folder: Path, count: int, properties: dict[str, str]) -> None:
        self.catalog = frazil.connect(folder)
        self.table = self.catalog.create_table("shop.orders", SCHEMA, properties=properties)
        self.rows = rows(count)
        self.table.append(self.rows)
        (self.file,) = folder.rglob("data/**/*.parquet")
        self.good = self.file.read_bytes()

    def flip(self, byte: int, bit: int) -> None:
        damaged = bytearray(self.good)
        damaged[byte] ^= 1 << bit
        self.file.write_bytes(damaged)

    def read(self) -> pa.Table | None:
        """The rows, or None when the damage was found."""
        try:
            return self.table.scan().to_arrow()
        except FormatError as error:
            found = error
        assert self.file.name in str(found)
        return None

    def pages(self) -> list[tuple[int, int]]:
        """Start and end of the bytes between a column chunk's first page and its last."""
        footer = pq.read_metadata(pa.BufferReader(self.good))
        found = []
        for group in range(footer.num_row_groups):
            for column in range(footer.num_columns):
                chunk = footer.row_group(group).column(column)
                first = chunk.dictionary_page_offset or chunk.data_page_offset
                found.append((first, first + chunk.total_compressed_size))
        return found

    @property
    def footer(self) -> int:
        return len(self.good) - 8 - int.from_bytes(self.good[-8:-4], "little")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    """A file that is read in one piece."""
    made = Written(tmp_path_factory.mktemp("small"), 60, {})
    assert len(made.good) < 64 * 1024
    yield made
    made.catalog.close()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    """A file that is read in ranges: two row groups, several pages a column, no compression."""
    properties = {
        "write.parquet.row-group-limit": "12000",
        "write.parquet.page-row-limit": "3000",
        "write.parquet.compression-codec": "uncompressed",
    }
    made = Written(tmp_path_factory.mktemp("large"), 20_000, properties)
    assert len(made.good) > 2 * 64 * 1024
    yield made
    made.catalog.close()


def test_any_bit_of_a_small_file_is_covered(small: Written) -> None:
    rng = random.Random(1)
    for byte in range(0, len(small.good), 5):
        small.flip(byte, rng.randrange(8))
        assert (found := small.read()) is None or found.equals(small.rows), f"byte {byte}"
    pages = small.pages()
    for start, end in pages:
        small.flip((start + end) // 2, 3)
        assert small.read() is None


def test_any_bit_of_a_page_is_covered(large: Written) -> None:
    rng = random.Random(2)
    for start, end in large.pages():
        for byte in (*(rng.randrange(start + 64, end) for _ in range(6)), end - 1):
            large.flip(byte, rng.randrange(8))
            found = large.read()
            assert found is None or found.equals(large.rows), f"byte {byte}"
            assert not large.table.check(deep=True).ok


def test_no_bit_of_a_page_header_gives_other_rows(large: Written) -> None:
    for start, _ in large.pages():
        for byte in range(start, start + 40):
            large.flip(byte, byte % 8)
            found = large.read()
            assert found is None or found.equals(large.rows), f"byte {byte}"


def test_any_bit_of_a_footer_is_covered(large: Written) -> None:
    rng = random.Random(3)
    for byte in range(large.footer, len(large.good), 11):
        large.flip(byte, rng.randrange(8))
        assert large.read() is None, f"byte {byte}"


def test_a_deep_check_names_the_damaged_file_wherever_the_damage_is(large: Written) -> None:
    large.file.write_bytes(large.good)
    assert large.table.check(deep=True).ok
    rng = random.Random(4)
    for byte in sorted(rng.randrange(len(large.good)) for _ in range(24)):
        large.flip(byte, rng.randrange(8))
        report = large.table.check(deep=True)
        seal = range(large.footer - 12, large.footer - 8)
        assert byte in seal or not report.ok, f"byte {byte}"
        assert byte in seal or large.file.name in str(report)


def test_verification_can_be_switched_off(tmp_path: Path) -> None:
    made = Written(tmp_path / "warehouse", 60, {"read.parquet.verify-checksums": "false"})
    made.flip(made.footer - 6, 0)  # the checksum itself
    assert made.table.scan().to_arrow().equals(made.rows)
    made.table.set_properties(remove=["read.parquet.verify-checksums"])
    with pytest.raises(FormatError, match="damaged"):
        made.table.scan().to_arrow()


def test_files_of_other_writers_have_no_seal_and_are_read(tmp_path: Path) -> None:
    made = Written(tmp_path / "warehouse", 60, {})
    pq.write_table(made.rows.slice(0, 5), tmp_path / "other.parquet")
    made.table.add_files([str(tmp_path / "other.parquet")])
    assert made.table.scan().to_arrow().num_rows == 65
    assert made.table.check(deep=True).ok


def test_a_file_is_read_by_other_readers_as_it_is(large: Written) -> None:
    large.file.write_bytes(large.good)
    footer = pq.read_metadata(large.file)
    assert footer.num_row_groups == 2
    found = pq.read_table(large.file, page_checksum_verification=True)
    assert found.cast(SCHEMA).equals(large.rows)
    duckdb = pytest.importorskip("duckdb")
    total = duckdb.sql(f"select sum(id), count(*) from '{large.file}'").fetchall()[0]
    assert total == (sum(range(20_000)), 20_000)

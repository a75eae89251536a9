"""Small files rewritten in fewer bytes: what every Parquet reader finds in them stays the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from frazil.format.entries.lean_file import footer_of, lean

ROWS = pa.table(
    {
        "a": pa.array([1, None, 3], pa.int64()),
        "b": pa.array(["x", "y", None]),
        "c": pa.array([1, None, 3], pa.int64()),
        "d": pa.array([[1, 2], None, []], pa.list_(pa.int32())),
        "e": pa.array([{"f": 1, "g": True}, None, {"f": 3, "g": None}]),
        "h": pa.array([1, None, 3], pa.int32()),
    }
)


def _written(table: pa.Table = ROWS, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    usual = {"use_dictionary": False, "write_statistics": False, "store_schema": False}
    pq.write_table(table, sink, **{**usual, **options})
    return bytes(sink.getvalue())


def _lean(file: bytes, **metadata: str) -> bytes:
    footer = footer_of(file)
    assert footer is not None
    return lean(file, footer, rows=pq.read_metadata(pa.py_buffer(file)).num_rows, metadata=metadata)


def test_a_file_is_smaller_and_reads_the_same(tmp_path: Path) -> None:
    file = _written()
    smaller = _lean(file, purpose="test", empty="")
    assert len(smaller) < 0.8 * len(file)
    assert pq.read_table(pa.py_buffer(smaller)).to_pylist() == ROWS.to_pylist()
    path = tmp_path / "lean.parquet"
    path.write_bytes(smaller)
    assert duckdb.sql(f"FROM '{path}'").to_arrow_table().to_pylist() == ROWS.to_pylist()
    footer = pq.read_metadata(path)
    assert footer.metadata == {b"purpose": b"test", b"empty": b""}
    assert footer.created_by == pq.read_metadata(pa.py_buffer(file)).created_by
    assert footer.schema.equals(pq.read_metadata(pa.py_buffer(file)).schema)


def test_equal_columns_share_a_page() -> None:
    group = pq.read_metadata(pa.py_buffer(_lean(_written()))).row_group(0)
    places = {
        group.column(at).path_in_schema: group.column(at).data_page_offset
        for at in range(group.num_columns)
    }
    assert places["a"] == places["c"]
    assert len(set(places.values())) == len(places) - 1


def test_one_column_is_read_without_the_others() -> None:
    smaller = pa.py_buffer(_lean(_written()))
    for name in ROWS.column_names:
        assert pq.read_table(smaller, columns=[name]).to_pylist() == ROWS.select([name]).to_pylist()


def test_more_columns_than_a_short_list_holds() -> None:
    wide = pa.table({f"c{n}": pa.array([n, n + 1]) for n in range(40)})
    smaller = _lean(_written(wide), **{f"k{n}": str(n) for n in range(20)})
    assert pq.read_table(pa.py_buffer(smaller)).to_pylist() == wide.to_pylist()
    assert len(pq.read_metadata(pa.py_buffer(smaller)).metadata) == 20


def test_numbers_of_several_bytes() -> None:
    long = pa.table({"a": pa.array(range(0, 9_000_000, 900)), "b": ["é" * 300] * 10_000})
    smaller = _lean(_written(long, compression="none"))
    assert pq.read_table(pa.py_buffer(smaller)).equals(long)


def test_a_file_of_another_shape_stays_as_it_is() -> None:
    plain = footer_of(_written())
    assert plain is not None
    for options in (
        {"use_dictionary": True},
        {"data_page_version": "2.0"},
        {"write_page_checksum": True},
    ):
        file = _written(**options)
        assert lean(file, plain, rows=3, metadata={}) == file
    empty = _written(ROWS.slice(0, 0))
    assert lean(empty, plain, rows=0, metadata={}) == empty
    many_pages = _written(pa.table({"a": range(5_000)}), data_page_size=100, write_batch_size=100)
    footer = footer_of(many_pages)
    assert footer is not None
    assert lean(many_pages, footer, rows=5_000, metadata={}) == many_pages


def test_footers_that_say_more_are_kept() -> None:
    assert footer_of(_written(write_statistics=True)) is None
    assert footer_of(_written(write_page_index=True)) is None
    assert footer_of(_written(row_group_size=1)) is None

"""pyarrow's compiled Parquet classes beside `pyarrow.parquet`, which is written on them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from frazil import arrow_parquet

ROWS = pa.table(
    {
        "n": pa.array([1, 2, None, 2], pa.int64()),
        "t": ["a", "b", None, "a"],
        "s": [{"x": 1.5}, None, {"x": None}, {"x": 2.5}],
        "d": pa.array([1, None, 3, 4], pa.decimal128(9, 2)),
    }
)
OPTIONS: list[dict[str, Any]] = [
    {},
    {"compression": "zstd", "compression_level": 5, "write_page_index": True},
    {"use_dictionary": ["t"], "write_statistics": ["n"], "write_page_checksum": True},
    {"store_schema": False, "store_decimal_as_integer": True, "data_page_size": 10},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_the_writer_writes_the_bytes_of_pyarrow_parquet(options: dict[str, Any]) -> None:
    ours, theirs = pa.BufferOutputStream(), pa.BufferOutputStream()
    with arrow_parquet.ParquetWriter(ours, ROWS.schema, **options) as writer:
        writer.write_table(ROWS, row_group_size=3)
        writer.add_key_value_metadata({"k": "v"})
    with pyarrow.parquet.ParquetWriter(theirs, ROWS.schema, **options) as other:
        other.write_table(ROWS, row_group_size=3)
        other.add_key_value_metadata({"k": "v"})
    written = ours.getvalue()
    assert written.equals(theirs.getvalue())
    assert writer.metadata.num_row_groups == 2
    footer = arrow_parquet.footer_of(pa.BufferReader(written))
    assert footer.equals(pyarrow.parquet.read_metadata(pa.BufferReader(written)))


def test_rows_of_other_columns_are_refused() -> None:
    sink = pa.BufferOutputStream()
    with (
        arrow_parquet.ParquetWriter(sink, ROWS.schema) as writer,
        pytest.raises(ValueError, match="schema"),
    ):
        writer.write_table(ROWS.select(["n"]), row_group_size=3)


def test_options_that_the_writer_does_not_know_are_found_out() -> None:
    assert arrow_parquet.accepts("write_page_index")
    assert not arrow_parquet.accepts("write_poems")

"""Which columns of a data file get a dictionary, and how small chunks are written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import frazil
from frazil.data.parquet_file import dictionary_columns

ROWS = 20_000
MB = 1 << 20


def encodings(table: frazil.Table) -> dict[str, bool]:
    """Whether each column of the table's one file has a dictionary."""
    (path,) = table.inspect.data_files["file_path"].to_pylist()
    group = pq.ParquetFile(path.removeprefix("file://")).metadata.row_group(0)
    columns = [group.column(at) for at in range(group.num_columns)]
    return {each.path_in_schema: each.has_dictionary_page for each in columns}


def test_values_that_do_not_repeat_get_no_dictionary(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "id": np.arange(ROWS),
            "country": pa.array([f"c{n % 7}" for n in range(ROWS)]),
            "key": pa.array([f"key {n}" for n in range(ROWS)]),
            "nothing": pa.nulls(ROWS, pa.int64()),
            "hundreds": np.arange(ROWS) // 100,
        }
    )
    with frazil.connect(tmp_path) as catalog:
        table = catalog.create_table("s.t", rows.schema)
        table.append(pa.concat_tables([rows.slice(at, 100) for at in range(0, ROWS, 100)]))
        found = encodings(table)
        assert table.scan().to_arrow().sort_by("id").equals(rows)
    assert [name for name, has in found.items() if not has and name != "nothing"] == ["id", "key"]


def test_a_dictionary_that_would_outgrow_its_limit_is_not_begun() -> None:
    """Ten thousand values of eight bytes take 80 kB."""
    rows = pa.table({"v": np.random.default_rng(3).integers(0, 10_000, 200_000)})
    assert dictionary_columns(rows, 2 * MB) == ["v"]
    assert dictionary_columns(rows, 20_000) == []


def test_small_and_nested_rows_keep_dictionaries() -> None:
    assert dictionary_columns(pa.table({"v": np.arange(1000)}), MB) is True
    nested = pa.table({"v": pa.array([{"x": n} for n in range(ROWS)])})
    assert dictionary_columns(nested, MB) is True

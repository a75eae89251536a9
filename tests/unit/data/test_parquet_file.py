"""Which columns of a data file get a dictionary, and how small chunks are written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frazil
from frazil.data.write.parquet_file import FileShape, ParquetFile, dictionary_columns
from frazil.data.write.write_options import WriteOptions
from frazil.errors import InvalidInput
from frazil.format.entries.metrics import MetricsConfig
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import LongType, NestedField
from frazil.storage import LocalStorage
from frazil.storage.streams import Sink

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


def test_few_rows_get_dictionaries_where_every_other_value_repeats() -> None:
    rows = pa.table({"id": np.arange(1000), "pair": np.arange(1000) // 2, "none": pa.nulls(1000)})
    assert dictionary_columns(rows, MB) == ["pair", "none"]
    assert dictionary_columns(rows, 1000) == ["none"]


@pytest.mark.parametrize("rows", [100, ROWS])
def test_uuids_and_other_extensions_are_counted_as_what_they_hold(rows: int) -> None:
    ids = pa.array([(n % 50).to_bytes(16, "big") for n in range(rows)], pa.binary(16))
    assert dictionary_columns(pa.table({"id": ids.cast(pa.uuid())}), 16 * MB) == ["id"]


def test_nested_rows_keep_dictionaries() -> None:
    nested = pa.table({"v": pa.array([{"x": n} for n in range(ROWS)])})
    assert dictionary_columns(nested, MB) is True


def test_a_small_file_is_written_in_few_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parquet hands over every header and page by itself: more than fifty for these columns."""
    pieces: list[int] = []
    write = Sink.write

    def counted(sink: Sink, data: memoryview | bytes) -> int:
        pieces.append(write(sink, data))
        return pieces[-1]

    monkeypatch.setattr(Sink, "write", counted)
    schema = Schema(*(NestedField(n, f"c{n}", LongType(), required=False) for n in range(1, 13)))
    shape = FileShape(schema, WriteOptions.from_properties({}), MetricsConfig())
    file = ParquetFile(LocalStorage(), str(tmp_path / "a.parquet"), shape)
    rows = pa.table({f"c{n}": [1, 2, 3] for n in range(1, 13)})
    file.write_row_group(rows)
    written = file.close()
    assert len(pieces) <= 2
    assert sum(pieces) == written.size_in_bytes == (tmp_path / "a.parquet").stat().st_size
    assert pq.read_table(tmp_path / "a.parquet").cast(rows.schema).equals(rows)


def test_rows_of_which_no_column_can_be_stored_are_refused(tmp_path: Path) -> None:
    with frazil.connect(tmp_path) as catalog:
        table = catalog.create_table("s.t", pa.schema([("nothing", pa.null())]))
        with pytest.raises(InvalidInput, match="of unknown type alone"):
            table.append(pa.table({"nothing": pa.nulls(2)}))
        assert table.scan().to_arrow().num_rows == 0

"""What row-level changes may read and hold: bytes of data files, and memory of the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import frazil
from frazil.errors import FrazilError
from frazil.rows.duckdb.duckdb_engine import DuckDbEngine
from tests.support.s3 import s3_server

FILES, ROWS, GROUP = 6, 180_000, 45_000
BLOCKS = 600_000
"""What a file costs besides its values: the end with the footer, and whole blocks of 256 KiB."""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[frazil.Table]:
    """Six files of four row groups, too large to be read at once, in an object store."""
    folder: Path = tmp_path_factory.mktemp("budget")
    with s3_server() as s3:
        place: dict[str, Any] = {"warehouse": s3.warehouse, **s3.properties}
        with frazil.connect(f"sqlite:///{folder}/catalog.db", **place) as catalog:
            schema = pa.schema([(name, pa.int64()) for name in ("id", "noise", "more")])
            properties = {"write.parquet.row-group-limit": str(GROUP)}
            made = catalog.create_table("s.big", schema, properties=properties)
            random = np.random.default_rng(7)
            for at in range(FILES):
                ids = np.arange(at * ROWS, (at + 1) * ROWS)
                noise, more = (random.integers(0, 2**62, ROWS) for _ in range(2))
                made.append(pa.table({"id": ids, "noise": noise, "more": more}))
            yield made


@pytest.mark.parametrize(
    ("where", "columns"),
    [
        (f"id = {3 * ROWS + 40_000}", 1),
        (f"id = {4 * ROWS + 40_000} AND noise % 2 < 2", 2),
    ],
)
def test_a_selective_delete_reads_one_row_group_of_the_columns_it_names(
    table: frazil.Table, where: str, columns: int
) -> None:
    with table._handle.storage.recording() as calls:
        done = table.delete(where)
    assert (done.rows_removed, done.files_updated) == (1, 1)
    reads = [call for call in calls if "/data/" in call.path and call.verb == "read"]
    assert len({call.path for call in reads}) == 1
    assert sum(call.bytes for call in reads) <= columns * GROUP * 8 + BLOCKS


def test_a_delete_of_whole_files_reads_none(table: frazil.Table) -> None:
    with table._handle.storage.recording() as calls:
        done = table.delete(f"id < {ROWS}")
    assert (done.rows_removed, done.files_removed) == (ROWS, 1)
    assert not [call for call in calls if "/data/" in call.path]


def upserted(tx: frazil.Transaction, source: pa.Table) -> None:
    tx.upsert(source, on=["id"])


def merged(tx: frazil.Transaction, source: pa.Table) -> None:
    tx.merge(source, on=["id"]).upsert().execute()


@pytest.mark.parametrize(("act", "limit"), [(upserted, "24MB"), (merged, "64MB")])
def test_a_merge_larger_than_the_memory_limit_spills(
    tmp_path: Path, act: Callable[[frazil.Transaction, pa.Table], None], limit: str
) -> None:
    rows, width = 300_000, 200
    random = np.random.default_rng(7)
    data = pa.py_buffer(random.integers(65, 91, rows * width, dtype=np.uint8).tobytes())
    fixed = pa.Array.from_buffers(pa.binary(width), rows, [None, data])
    texts = fixed.cast(pa.binary()).cast(pa.string())
    ids = np.arange(rows)
    source = pa.table({"id": ids + rows // 2, "text": texts})
    limits: dict[str, Any] = {"memory_limit": limit, "threads": 1}
    with frazil.connect(tmp_path / "warehouse") as catalog:
        # DuckDB holds a column of a row group as a whole.
        small = {"write.parquet.row-group-size-bytes": str(4 << 20)}
        table = catalog.create_table("s.t", source.schema, properties=small)
        table.append(pa.table({"id": ids, "text": texts}))
        # The rows of the source that may meet others, 30 MB, do not fit where nothing may spill.
        with (
            pytest.raises(FrazilError, match="memory"),
            table.transaction(engine=DuckDbEngine(**limits, temp_directory="")) as tx,
        ):
            act(tx, source)
        with table.transaction(engine=DuckDbEngine(**limits)) as tx:
            act(tx, source)
        assert (tx.result.rows_updated, tx.result.rows_added) == (rows // 2, rows // 2)
        assert table.scan().count() == rows + rows // 2
        found = [each["text"] for each in table.scan(f"id = {rows - 1}")]
        assert found == [texts[rows // 2 - 1].as_py()]

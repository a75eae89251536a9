"""A column whose batches hold more text than 32-bit offsets reach: minutes, and 8 GB of memory."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

import frazil

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("s", pa.string())])


@pytest.mark.skipif("FRAZIL_SOAK_SECONDS" not in os.environ, reason="takes 8 GB of memory")
def test_a_column_of_more_than_2_gib_of_text(tmp_path: Path) -> None:
    table = frazil.connect(tmp_path).create_table("s.t", SCHEMA)
    texts = pa.chunked_array([pa.array(["x" * (1 << 20)] * 100)] * 22)
    rows = pa.table([pa.array(range(2_200)), pa.array([1] * 2_200), texts], schema=SCHEMA)
    table.append(rows)
    assert table.update({"n": frazil.expr("n + length(s)")}, "id >= 0").rows_updated == 2_200
    rows = rows.set_column(1, "n", pa.array([7] * 2_200))
    assert table.upsert(rows, on="id").rows_updated == 2_200
    assert table.scan("n = 7 and length(s) = 1048576").count() == 2_200
    read = table.scan("n = 7 and length(s) = 1048576").to_batches()
    assert sum(batch.num_rows for batch in read) == 2_200

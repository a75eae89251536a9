"""A merge of ten million rows in bounded memory: about a minute, and 2 GB."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

WORK = """
import sys
import numpy as np
import pyarrow as pa
import frazil
from frazil.rows.duckdb.duckdb_engine import DuckDbEngine

ROWS = 10_000_000

def rows(start, stop, salt):
    ids = np.arange(start, stop)
    return pa.table({"id": ids, "amount": ids * 1.5 + salt, "quantity": ids % 1000 + salt})

table = frazil.connect(sys.argv[1]).create_table("s.t", rows(0, 1, 0).schema)
for start in range(0, ROWS, ROWS // 10):
    table.append(rows(start, start + ROWS // 10, 0))
source = rows(ROWS // 2, ROWS + ROWS // 2, 1)
with table.transaction(engine=DuckDbEngine(memory_limit="1GB", threads=2)) as tx:
    tx.upsert(source, on=["id"])
assert (tx.result.rows_updated, tx.result.rows_added) == (ROWS // 2, ROWS // 2), tx.result
assert table.scan().count() == ROWS + ROWS // 2
(peak,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM:")]
print(int(peak.split()[1]) // 1024)
"""


@pytest.mark.skipif("FRAZIL_SOAK_SECONDS" not in os.environ, reason="takes minutes")
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
def test_a_merge_of_ten_million_rows_into_as_many_stays_below_2_gb(tmp_path: Path) -> None:
    work = tmp_path / "work.py"  # without a file, DuckDB takes it for a shell and shows progress
    work.write_text(WORK)
    command = [sys.executable, str(work), str(tmp_path / "lake")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 2048

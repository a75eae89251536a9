"""A table of 400,000 files in Spark, in a process of its own with little heap."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import frazil
from tests.support.orders import ROWS_PER_FILE, served_orders
from tests.support.project import ROOT

FILES = 400_000


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.skipif("FRAZIL_SOAK_SECONDS" not in os.environ, reason="part of make soak")
def test_a_task_for_each_of_400_000_files_fits_a_heap_of_480_mb(tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "warehouse") as catalog:
        served_orders(catalog, FILES, files_per_day=1_000)
    command = [sys.executable, "-m", "tests.support.spark_scale", str(tmp_path / "warehouse")]
    done = subprocess.run([*command, "480m"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["tasks"] == [FILES, FILES]
    assert found["rows"] == FILES * ROWS_PER_FILE
    assert found["one"] <= 1_000  # the files of one day: ids are spread over it
    assert found["held_mb"] < 200, found
    print(found)

"""A plan of 400,000 files, page by page, in a server of its own process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import frazil
from frazil.serve.limits import MAX_PLAN_FILES
from tests.support.orders import served_orders
from tests.support.project import ROOT

FILES = 400_000


@pytest.mark.soak
@pytest.mark.skipif("FRAZIL_SOAK_SECONDS" not in os.environ, reason="part of make soak")
def test_a_plan_of_all_files_takes_less_than_300_mb(tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "warehouse") as opened:
        served_orders(opened, FILES, files_per_day=1_000)
    command = [sys.executable, "-m", "tests.support.plan_memory", str(tmp_path / "warehouse")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["files"] == FILES
    assert found["largest_part_files"] <= MAX_PLAN_FILES
    assert found["grown_mb"] < 300, found
    print(found)

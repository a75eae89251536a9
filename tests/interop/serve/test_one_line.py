"""Spark in one line: a session on a catalog that is served from the same process."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import frazil
from tests.support.java import ICEBERG_RUNTIME, maven_jar
from tests.support.project import ROOT
from tests.support.venvs import ICEBERG_SPARK

SCRIPT = ROOT / "tests" / "interop" / "serve" / "one_line.py"


@pytest.mark.java
@pytest.mark.peers
def test_a_merge_works_in_a_session_made_in_one_line(tmp_path: Path) -> None:
    site = Path(pytest.__file__).parents[1]
    done = subprocess.run(
        [
            str(ICEBERG_SPARK.ready().python),
            str(SCRIPT),
            str(tmp_path / "warehouse"),
            str(maven_jar(ICEBERG_RUNTIME)),
            str(site),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={"PYTHONPATH": str(Path(frazil.__file__).parents[1]), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [0, 2, 7]

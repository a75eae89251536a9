"""Every statement of Spark SQL on Spark 4.2; `make test` runs 4.1 and 4.3."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.other_spark import statements_on
from tests.support.project import ROOT
from tests.support.venvs import SPARK_4_2


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.timeout(1800)
@pytest.mark.skipif("FRAZIL_SOAK_SECONDS" not in os.environ, reason="part of make soak")
def test_statements_on_spark_4_2(tmp_path: Path) -> None:
    files = sorted((ROOT / "tests" / "sql").glob("*.test"))
    names = [path.stem for path in files if path.stem not in ("transactions", "views")]
    found = statements_on(SPARK_4_2, tmp_path, names, patience_s=1500)
    windows = [True, False, True, False]
    assert found == {
        "version": "4.2.1",
        "done": names,
        "source": [2, 3, 4],
        "windows": windows,
    }

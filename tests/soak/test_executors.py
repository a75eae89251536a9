"""Every statement that writes, with an executor killed in each of its phases, on a cluster."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import frazil
from tests.cluster.killing import AFTER
from tests.support.spark_cluster import run_on, standalone_cluster


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.cluster
@pytest.mark.timeout(3600)
@pytest.mark.skipif("FRAZIL_SOAK_SECONDS" not in os.environ, reason="part of make soak")
def test_an_executor_may_die_in_any_phase_of_any_statement(tmp_path: Path) -> None:
    (tmp_path / "processes").mkdir()
    warehouse = tmp_path / "warehouse"
    with standalone_cluster(tmp_path / "processes") as cluster:
        arguments = ("tests.cluster.killing", str(warehouse), "all")
        printed = run_on(cluster, *arguments, patience_s=3000)
    (line,) = [line for line in printed.splitlines() if line.startswith("RESULTS ")]
    lost = json.loads(line.removeprefix("RESULTS "))
    print({kind: len(names) for kind, names in lost.items()})
    assert set(lost) == set(AFTER)
    assert all(len(names) > 1 for names in lost.values())
    with frazil.connect(warehouse) as catalog:
        for kind, names in lost.items():
            for name in names:
                rows = catalog.load_table(name).scan(columns=["id", "text"]).to_pylist()
                assert len(rows) == len(AFTER[kind]), name
                assert {each["id"]: each["text"] for each in rows} == AFTER[kind], name

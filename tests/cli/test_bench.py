"""`python -m bench`: JSON alone on standard output, and results that keep what was not run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = [sys.executable, "-m", "bench"]
DESIGNS = {
    "name": "designs",
    "title": "Designs",
    "settings": {},
    "figures": [],
    "series": {},
    "notes": [],
    "seconds": 0.0,
    "commit": "0000000",
    "when": "2026-01-01T00:00:00",
}
EARLIER = {
    "mode": "quick",
    "workloads": [DESIGNS],
    "peers": {"Another": {"version": "1", "settings": "none"}},
}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    out = tmp_path_factory.mktemp("results")
    (out / "quick.json").write_text(json.dumps(EARLIER))
    command = [*BENCH, "bitmaps", "--json", "--out", str(out)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return ran.stdout, out


def test_standard_output_is_json_alone(done: tuple[str, Path]) -> None:
    found = json.loads(done[0])
    assert [each["name"] for each in found["workloads"]] == ["designs", "bitmaps"]
    sizes = [each for each in found["workloads"][1]["figures"] if each["peer"] == "Raw bit set"]
    assert sizes[1]["value"] == 125  # a thousand bits


def test_named_workloads_take_their_place_in_the_results_there_are(done: tuple[str, Path]) -> None:
    kept = json.loads((done[1] / "quick.json").read_text())
    assert kept["workloads"][0]["commit"] == "0000000"
    assert "Another" in kept["peers"]
    assert (done[1] / "quick.html").is_file()


def test_a_workload_that_is_not_there_is_named(tmp_path: Path) -> None:
    command = [*BENCH, "nothing", "--out", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 2
    assert "no workload 'nothing'; there are: small_appends" in ran.stderr

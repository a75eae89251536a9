"""Compaction of data files from the command line, which starts Spark in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.mark.spark
def test_small_files_become_one(shop: Run, tmp_path: Path) -> None:
    for _ in range(3):
        assert shop("append", "shop.orders", "tuesday.csv").code == 0
    command = [
        "maintain",
        "rewrite-data-files",
        "shop.orders",
        "--all",
        "--sort-by",
        "price desc",
        "--json",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "from frazil.cli import main; main()", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["files_before"], report["files_after"], report["records"]) == (5, 2, 11)
    rows = shop("scan", "shop.orders", "--where", "day = '2024-01-16'", "--json").json
    assert [row["price"] for row in rows] == [7.5] * 4 + [5.0] * 4
    assert shop("check", "shop.orders", "--deep").code == 0


def test_two_orders_at_once_are_refused(shop: Run) -> None:
    done = shop(
        "maintain", "rewrite-data-files", "shop.orders", "--sort-by", "price", "--z-order-by", "day"
    )
    assert done.code == 2

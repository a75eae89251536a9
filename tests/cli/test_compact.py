"""Compaction of data files from the command line, here and on Spark in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run

COMMAND = ["maintain", "compact", "shop.orders", "--all", "--sort-by", "price desc", "--json"]


@pytest.fixture
def many(shop: Run) -> Run:
    for _ in range(3):
        assert shop("append", "shop.orders", "tuesday.csv").code == 0
    return shop


def check_sorted(shop: Run) -> None:
    rows = shop("scan", "shop.orders", "--where", "day = '2024-01-16'", "--json").json
    assert [row["price"] for row in rows] == [7.5] * 4 + [5.0] * 4
    assert shop("check", "shop.orders", "--deep").code == 0


def test_small_files_become_one_per_partition(many: Run) -> None:
    done = many(*COMMAND)
    assert done.code == 0
    assert (done.json["operation"], done.json["files"]["removed"]) == ("replace", 5)
    assert (done.json["files"]["added"], done.json["rows"]["added"]) == (2, 0)
    check_sorted(many)
    again = many("maintain", "compact", "shop.orders")
    assert again.code == 0
    assert "nothing committed" in again.out


@pytest.mark.spark
def test_spark_does_it_when_asked(many: Run, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from frazil.cli import main; main()", *COMMAND, "--spark"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["files_before"], report["files_after"], report["records"]) == (5, 2, 11)
    check_sorted(many)


def test_two_orders_at_once_are_refused(shop: Run) -> None:
    done = shop("maintain", "compact", "shop.orders", "--sort-by", "price", "--zorder-by", "day")
    assert done.code == 2


def test_files_with_deleted_rows_are_rewritten_and_no_others(shop: Run) -> None:
    before = len(shop("scan", "shop.orders", "--json").json)
    assert shop("delete", "shop.orders", "--where", "price = 7.5").code == 0
    done = shop("maintain", "purge-deleted", "shop.orders", "--json")
    assert done.code == 0
    assert (done.json["rows"], len(done.json["files-left"])) == (1, 1)
    assert len(shop("scan", "shop.orders", "--json").json) == before - 1
    again = shop("maintain", "purge-deleted", "shop.orders")
    assert "no data file has deleted rows" in again.out

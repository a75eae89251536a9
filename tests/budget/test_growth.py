"""How work grows: twice as much of something costs twice the calls, not four times."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frazil
from tests.support.history import new_table, rows

STATS = {
    "write.metadata.metrics.default": "full",
    "write.metadata.metrics.max-inferred-column-defaults": "10000",
}


def _calls(work: Callable[[], object]) -> int:
    """Calls of functions, Python's and C's, in this thread."""
    count = 0

    def called(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    usual = sys.getprofile()
    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(usual)
    return count


def _grows_evenly(cost: Callable[[int], int], size: int) -> None:
    """The second doubling adds about twice what the first one added."""
    cost(size)  # modules are loaded, what is worked out once per process is there
    small, double, fourfold = (cost(size * factor) for factor in (1, 2, 4))
    assert fourfold - double < 2.6 * (double - small)


def test_adding_files_costs_calls_in_proportion_to_them(tmp_path: Path) -> None:
    catalog = frazil.connect(tmp_path / "warehouse")
    schema = pa.schema([(f"c{number}", pa.int64()) for number in range(8)])
    numbers = itertools.count()

    def cost(files: int) -> int:
        name = f"s.t{next(numbers)}"
        table = catalog.create_table(name, schema)
        folder = tmp_path / name
        folder.mkdir()
        paths = [str(folder / f"{number}.parquet") for number in range(files)]
        for path in paths:  # without field ids: columns are matched by name
            pq.write_table(pa.table([[1]] * 8, schema=schema), path)
        with table._handle.storage.recording() as calls:
            spent = _calls(lambda: table.add_files(paths))
        reads = [call.path for call in calls if call.verb == "read" and str(folder) in call.path]
        assert len(set(reads)) == len(reads) == files  # the end of each file, once
        return spent

    _grows_evenly(cost, 25)


def test_checking_a_history_costs_calls_in_proportion_to_its_commits(tmp_path: Path) -> None:
    numbers = itertools.count()

    def cost(commits: int) -> int:
        table = new_table(tmp_path / str(next(numbers)))
        for number in range(commits):
            table.append(rows(number))
        table._handle.context.cache.clear()
        return _calls(lambda: table.check())

    _grows_evenly(cost, 40)  # roots have passed entries on to leaves


@pytest.mark.parametrize("work", ["append", "rewrite_manifests"])
def test_many_columns_cost_calls_in_proportion_to_them(work: str, tmp_path: Path) -> None:
    catalog = frazil.connect(tmp_path)
    numbers = itertools.count()

    def cost(columns: int) -> int:
        name = f"s.t{next(numbers)}"
        schema = pa.schema([(f"c{number}", pa.int64()) for number in range(columns)])
        small = {"write.root.max-data-entries": "3", "write.leaf.target-entries": "4"}
        table = catalog.create_table(name, schema, properties=STATS | small)
        row = pa.table([[1]] * columns, schema=schema)
        for _ in range(5):
            table.append(row)
        if work == "append":
            return _calls(lambda: table.append(row))
        return _calls(lambda: table.rewrite_manifests())

    _grows_evenly(cost, 50)

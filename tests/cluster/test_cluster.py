"""Work on a real standalone cluster: executors are other processes, and some of them die.

One driver does everything (`driver`); the tests look at what it reports and, without Spark, at the
tables it left.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import frazil
from tests.cluster.killing import AFTER
from tests.support.spark_cluster import Cluster, installed_wheel, run_on, standalone_cluster

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(900)]

ROWS = 40_000


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster") / "warehouse"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    package = installed_wheel(tmp_path_factory.mktemp("wheel"))
    with standalone_cluster(tmp_path_factory.mktemp("processes"), package=package) as cluster:
        yield cluster


def reported(cluster: Cluster, module: str, *arguments: str) -> dict[str, Any]:
    printed = run_on(cluster, module, *arguments)
    (line,) = [line for line in printed.splitlines() if line.startswith("RESULTS ")]
    results: dict[str, Any] = json.loads(line.removeprefix("RESULTS "))
    return results


@pytest.fixture(scope="module")
def results(cluster: Cluster, warehouse: Path) -> dict[str, Any]:
    return reported(cluster, "tests.cluster.driver", str(warehouse))


@pytest.fixture(scope="module")
def lost(cluster: Cluster, warehouse: Path) -> dict[str, Any]:
    """Tables whose statement lost an executor in its second phase; `make soak` tries them all."""
    return reported(cluster, "tests.cluster.killing", str(warehouse), "1")


def ids(warehouse: Path, name: str) -> list[int]:
    with frazil.connect(warehouse) as catalog:
        found = catalog.load_table(name).scan(columns=["id"]).to_arrow()
    return sorted(found.column("id").to_pylist())


def test_everything_runs_on_executors_that_are_other_processes(
    results: dict[str, Any], warehouse: Path
) -> None:
    done = results["ordinary"]
    assert done["processes"] == 2
    # 10 deleted, 10 updated, 10 merged over and 10 merged in, one taken by an equality delete.
    assert done["feed"] == {
        "insert": 1010,
        "delete": 11,
        "update_preimage": 20,
        "update_postimage": 20,
    }
    assert done["files_after"] == 4
    assert done["planned"] == 1
    assert ids(warehouse, "shop.events") == sorted([*(i for i in range(10, 1010) if i != 500), 42])
    assert done["count"] == 1000


def test_sql_runs_on_executors_that_have_nothing_but_the_wheel(results: dict[str, Any]) -> None:
    done = results["sql"]
    assert done["packaged"] is True
    assert done["rows"] == [[0, "zero"], [2, "c"], [3, "D"], [7, "g"]]


def test_a_task_that_fails_while_writing_neither_doubles_nor_loses_rows(
    results: dict[str, Any], warehouse: Path
) -> None:
    assert ids(warehouse, "shop.failing") == list(range(ROWS))
    assert results["failing"]["orphans_again"] == 0


def test_a_killed_executor_neither_doubles_nor_loses_rows_and_its_files_can_be_removed(
    results: dict[str, Any], warehouse: Path
) -> None:
    assert results["killed"]["executors"] == 2
    assert results["killed"]["killed"] == 1
    assert results["killed"]["orphans"] > 0
    assert results["killed"]["orphans_again"] == 0
    assert ids(warehouse, "shop.killed") == list(range(ROWS))


def test_a_merge_whose_source_is_lost_with_an_executor_matches_every_row_once(
    results: dict[str, Any], warehouse: Path
) -> None:
    assert results["lost source"]["killed"] == 1
    with frazil.connect(warehouse) as catalog:
        rows = catalog.load_table("shop.merged").scan(columns=["id", "text"]).to_pylist()
    assert sorted(each["id"] for each in rows) == list(range(3000))
    assert {each["id"] for each in rows if each["text"] == "merged"} == set(range(500, 3000))


@pytest.mark.parametrize("kind", AFTER)
def test_a_statement_that_loses_an_executor_leaves_the_rows_it_means(
    lost: dict[str, Any], warehouse: Path, kind: str
) -> None:
    (name,) = lost[kind]
    with frazil.connect(warehouse) as catalog:
        rows = catalog.load_table(name).scan(columns=["id", "text"]).to_pylist()
    assert len(rows) == len(AFTER[kind])
    assert {each["id"]: each["text"] for each in rows} == AFTER[kind]

"""dbt with the adapter, in its own environment: the guide, and dbt's tests of adapters."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

import frazil
from tests.docs.pages import DOCS, Page
from tests.support.project import ROOT
from tests.support.venvs import Venv

pytestmark = pytest.mark.peers

DBT = Venv(
    name="dbt",
    packages=(
        "dbt-core==1.11.16",
        "dbt-tests-adapter==1.20.0",
        "duckdb==2.0.0",
        "numpy==2.4.6",
        "pyarrow==26.0.1",
        "pyiceberg==0.12.0",
        "pyroaring==1.2.0",
        "pytest==9.2.0",
        "rich==15.0.0",
        "SQLAlchemy==2.1.8",
        "typer==0.29.1",
        "zstandard==0.25.0",
    ),
)

QUICK = ("basic",)
LONG = (
    "aliases", "caching", "column_types", "concurrency", "constraints", "dbt_clone", "dbt_debug",
    "dbt_show", "empty", "ephemeral", "hooks", "incremental", "persist_docs", "query_comment",
    "relations", "sample_mode", "simple_copy", "simple_seed", "simple_snapshot",
    "store_test_failures_tests", "unit_testing", "utils",
)  # fmt: skip


def _run(*command: str, folder: Path) -> str:
    paths = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    environment = {**os.environ, "PYTHONPATH": paths, "DBT_PROFILES_DIR": str(folder)}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (
        f"{shlex.join(command)}\n{done.stdout[-6000:]}{done.stderr[-2000:]}"
    )
    return done.stdout


def _suite(groups: tuple[str, ...], folder: Path) -> None:
    tests = DBT.ready().site_packages / "dbt" / "tests" / "adapter"
    plugins = ("-p", "dbt.tests.fixtures.project", "-p", "tests.interop.dbt.dbt_target")
    settings = ("-c", str(Path(__file__).parent / "pytest.ini"), "--rootdir", str(tests))
    _run(
        *(str(DBT.python), "-m", "pytest", "-q", "--tb=short", "--import-mode=importlib"),
        *(*settings, *plugins, "-p", "no:cacheprovider", f"--basetemp={folder / 'pytest'}"),
        *(str(tests / group) for group in groups),
        folder=folder,
    )


def test_dbt_s_basic_tests_pass(tmp_path: Path) -> None:
    _suite(QUICK, tmp_path)


@pytest.mark.skipif("FRAZIL_DBT" not in os.environ, reason="long: make test-dbt runs it")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("group", LONG)
def test_dbt_s_other_tests_pass(group: str, tmp_path: Path) -> None:
    _suite((group,), tmp_path)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of the guide, after all its commands have run in order."""
    folder = tmp_path_factory.mktemp("project")
    for block in Page.read(DOCS / "guides" / "dbt.md").blocks:
        head, _, rest = block.code.partition("\n")
        if block.language == "python":
            exec(block.code.replace('"dbt-warehouse"', repr(str(folder / "dbt-warehouse"))), {})
        elif block.language == "sh":
            for line in block.code.splitlines():
                if line.startswith("dbt "):
                    dbt = str(DBT.ready().path / "bin" / "dbt")
                    _run(dbt, *shlex.split(line)[1:], folder=folder)
        else:
            path = folder / head.strip("{}# ")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(rest + "\n")
    return folder


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT id FROM analytics.closed", [(1,)]),
        ("SELECT day, total FROM analytics.days", [("2026-01-01", 5.0), ("2026-01-02", 7.0)]),
        ("SELECT id, amount FROM analytics.latest", [(1, 5.0), (2, 7.0)]),
        ("SELECT id, day FROM analytics.replaced", [(1, "2026-01-01"), (2, "2026-01-02")]),
        ("SELECT id FROM analytics.rewritten", [(1,), (2,)]),
        ("SELECT id FROM analytics.added", [(1,), (1,), (2,), (2,)]),
        ("SELECT code, name FROM analytics.countries", [("de", "Germany"), ("fr", "France")]),
        ("SELECT id, dbt_valid_to FROM analytics.history", [(1, None), (2, None)]),
        ("SELECT id FROM analytics.audited", [(2,)]),
    ],
)
def test_the_guide_s_project_has_these_rows(
    project: Path, query: str, rows: list[tuple[Any, ...]]
) -> None:
    with frazil.connect(str(project / "dbt-warehouse")) as catalog:
        found = [tuple(row.values()) for row in catalog.sql(query).to_arrow().to_pylist()]
    assert sorted(found, key=str) == sorted(rows, key=str)


def test_a_rebuilt_table_keeps_its_history_and_every_table_is_sound(project: Path) -> None:
    with frazil.connect(str(project / "dbt-warehouse")) as catalog:
        assert catalog.load_table("analytics.days").inspect.snapshots.num_rows == 2
        for name in catalog.list_tables("analytics"):
            assert catalog.load_table(name).check(deep=True).ok, name


def test_the_guide_s_documentation_has_every_model_and_comment(project: Path) -> None:
    documented = json.loads((project / "target" / "catalog.json").read_text())
    names = {node.rpartition(".")[2] for node in documented["nodes"]}
    assert names >= {"closed", "days", "latest", "countries", "history"}
    latest = documented["nodes"]["model.shop.latest"]
    assert latest["metadata"]["comment"] == "One row for each order."
    assert latest["columns"]["id"]["comment"] == "The order."

"""The page on engines names the versions that the suites install, and scripts of guides fit."""

from __future__ import annotations

import ast
import re

import pytest

from tests.docs.pages import DOCS, ROOT, Page
from tests.interop.dbt.test_dbt import DBT
from tests.interop.engines.engine import CLICKHOUSE, DAFT, DLT
from tests.interop.serve.test_conformance_kit import PASSED
from tests.interop.serve.test_duckdb import DUCKDB_REST
from tests.soak.test_flink import FLINK
from tests.soak.test_flink import ICEBERG as FLINK_RUNTIME
from tests.soak.trino import VERSION as TRINO
from tests.support.java import ICEBERG_RUNTIME
from tests.support.venvs import ICEBERG_SPARK, Venv

PAGE = DOCS / "reference" / "engines.md"
INSTALLED = Venv(
    name="development",
    packages=tuple((ROOT / "constraints" / "development.txt").read_text().splitlines()),
)


def _rows() -> dict[str, list[str]]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    cells = [line.strip("|").split("|") for line in lines if line.startswith("| ")]
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in cells[1:]}


def _pin(venv: Venv, package: str) -> str:
    (pin,) = [pin for pin in venv.packages if re.match(rf"{re.escape(package)}(\[\w+\])?==", pin)]
    return pin.partition("==")[2]


@pytest.mark.parametrize(
    ("engine", "versions"),
    [
        ("PyIceberg", [_pin(INSTALLED, "pyiceberg")]),
        ("DuckDB, extension `iceberg`", [_pin(DUCKDB_REST, "duckdb")]),
        ("Polars", [_pin(INSTALLED, "polars")]),
        ("Daft", [_pin(DAFT, "daft")]),
        ("ClickHouse (chdb)", [_pin(CLICKHOUSE, "chdb")]),
        ("dlt, destination `filesystem`", [_pin(DLT, "dlt")]),
        (
            "Spark with Iceberg's runtime",
            [_pin(ICEBERG_SPARK, "pyspark"), ICEBERG_RUNTIME.rpartition(":")[2]],
        ),
        (
            "Flink with Iceberg's runtime",
            [_pin(FLINK, "apache-flink"), FLINK_RUNTIME.rpartition(":")[2]],
        ),
        ("Trino", [TRINO]),
        ("dbt", [_pin(DBT, "dbt-core")]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_versions_on_the_page_are_those_that_run(engine: str, versions: list[str]) -> None:
    named = _rows()[engine][0]
    assert all(each in named for each in versions), f"{engine}: {named}, run: {versions}"


def test_the_count_of_the_kit_is_that_of_its_test() -> None:
    assert f"{PASSED} of 157" in _rows()["Iceberg's REST Compatibility Kit"][2]


@pytest.mark.parametrize("guide", ["airflow", "dagster"])
def test_scripts_that_need_a_scheduler_call_what_the_page_has_run(guide: str) -> None:
    """The functions are run as printed; the scheduler itself is not installed here."""
    page = Page.read(DOCS / "guides" / f"{guide}.md")
    defined = {
        node.name
        for block in page.snippets()
        for node in ast.parse(block.code).body
        if isinstance(node, ast.FunctionDef)
    }
    scripts = [block for block in page.blocks if "no-run" in block.words]
    imported = {
        alias.name
        for block in scripts
        for node in ast.walk(ast.parse(block.code))
        if isinstance(node, ast.ImportFrom) and node.module == "shop_jobs"
        for alias in node.names
    }
    assert scripts
    assert imported
    assert imported <= defined


def test_code_that_is_not_run_is_python() -> None:
    for path in (ROOT / "README.md", *sorted(DOCS.rglob("*.md"))):
        for block in Page.read(path).blocks:
            if block.language == "python" and "no-run" in block.words:
                compile(block.code, f"{path}:{block.line}", "exec")

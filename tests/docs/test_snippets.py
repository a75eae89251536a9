"""Code in the README and on the pages below docs runs as it is printed, each in an empty folder.

A statement that ends with a comment `# → …` is an expression; its value must print as the comment
says.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import DOCS, ROOT, Block, Page
from tests.docs.paimon_table import lay_out
from tests.support.object_server import VERSITYGW

_ARROW = "# → "
_SPARK = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def _pages() -> list[Page]:
    return [Page.read(path) for path in (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))]


def _parameters() -> list[Any]:
    found = []
    for page in _pages():
        if page.snippets():
            uses_spark = any("pyspark" in block.code for block in page.snippets())
            marks = [pytest.mark.spark, pytest.mark.timeout(900)] if uses_spark else []
            if any("versitygw" in block.code for block in page.snippets()):
                marks.append(
                    pytest.mark.skipif(not VERSITYGW.exists(), reason="versitygw is not built")
                )
            found.append(pytest.param(page, id=page.name, marks=marks))
    return found


@pytest.fixture(scope="session")
def shared_spark() -> Iterator[None]:
    """The session that `SparkSession.builder…getOrCreate()` on a page finds."""
    from pyspark.sql import SparkSession

    source = str(ROOT / "src")
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = source if not before else f"{source}{os.pathsep}{before}"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[2]").appName("frazil-docs")
    for key, value in _SPARK.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield
    session.stop()


@pytest.mark.parametrize("page", _parameters())
def test_a_page_runs_as_it_is_printed(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if request.node.get_closest_marker("spark"):
        request.getfixturevalue("shared_spark")
    monkeypatch.chdir(tmp_path)
    if page.path.name == "paimon.md":
        lay_out(tmp_path / "paimon" / "shop.db" / "orders")
    names: dict[str, Any] = {"__name__": "__page__"}
    for block in page.snippets():
        _run(page, block, names)


def _run(page: Page, block: Block, names: dict[str, Any]) -> None:
    source = "\n" * (block.line - 1) + block.code
    lines = source.splitlines()
    for node in ast.parse(source, filename=page.name).body:
        last = lines[(node.end_lineno or node.lineno) - 1]
        _, arrow, wanted = last.partition(_ARROW)
        if not arrow:
            exec(compile(ast.Module([node], []), page.name, "exec"), names)
            continue
        where = f"{page.name}:{node.end_lineno}"
        assert isinstance(node, ast.Expr), f"{where}: only an expression has a value to show"
        value = eval(compile(ast.Expression(node.value), page.name, "eval"), names)
        assert repr(value) == wanted.strip(), where


def test_pages_that_are_followed_in_one_folder_do_not_collide() -> None:
    users: dict[str, str] = {}
    for page in _pages():
        code = "\n".join(block.code for block in page.snippets())
        for name in set(re.findall(r'(?:connect\(|sqlite:///)"?([\w.-]+)"', code)):
            assert users.setdefault(name, page.name) == page.name, f"{name} is used twice"


def test_every_guide_has_code_that_runs() -> None:
    without = [
        path.name
        for path in sorted((DOCS / "guides").glob("*.md"))
        if not Page.read(path).snippets()
    ]
    assert without == []

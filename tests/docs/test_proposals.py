"""What the page on the proposals names is there: modules, files and tests."""

from __future__ import annotations

import re

from tests.docs.pages import DOCS, ROOT

PAGE = (DOCS / "proposals.md").read_text(encoding="utf-8")
_NAME = re.compile(r"`([\w/.-]+\.(?:py|test))`")
_TEST = re.compile(r"`(test_\w+)`")


def test_files_named_are_there() -> None:
    named = _NAME.findall(PAGE)
    assert len(named) > 120
    elsewhere = ("tests/", "bench/", "tools/")
    paths = [ROOT / n if n.startswith(elsewhere) else ROOT / "src" / "frazil" / n for n in named]
    assert [str(path) for path in paths if not path.is_file()] == []


def test_tests_named_are_there() -> None:
    named = set(_TEST.findall(PAGE))
    assert len(named) > 60
    defined: set[str] = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        defined.update(re.findall(r"^ *def (test_\w+)", text, re.MULTILINE))
    assert sorted(named - defined) == []


def test_every_row_says_where_a_rule_is_or_why_not() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert [row for row in cells if len(row) != 3 or not all(row)] == []

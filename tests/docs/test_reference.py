"""The reference pages say what the code does."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.docs.pages import DOCS, ROOT

_PROPERTY = re.compile(
    r'"((?:write|commit|history|publish|cache|schema|gc)\.[a-z0-9.-]*[a-z0-9.])"'
)


@pytest.mark.parametrize("tool", ["cli_reference.py", "api_reference.py"])
def test_a_generated_page_is_up_to_date(tool: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / tool), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_table_property_in_the_code_is_on_its_page() -> None:
    page = (DOCS / "reference" / "properties.md").read_text(encoding="utf-8")
    known = set(re.findall(r"`([a-z0-9.-]+\.)(?:<name>)?`|`([a-z0-9.-]+)`", page))
    documented = {left or right for left, right in known}
    used = {
        found
        for path in (ROOT / "src").rglob("*.py")
        for found in _PROPERTY.findall(path.read_text(encoding="utf-8"))
    }
    assert used - documented == set()


def test_every_property_on_the_page_is_in_the_code() -> None:
    page = (DOCS / "reference" / "properties.md").read_text(encoding="utf-8")
    first_cells = re.findall(r"^\| `((?:write|commit|history|publish|cache)\.[^`<]+)", page, re.M)
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    assert [name for name in first_cells if f'"{name}"' not in code] == []


def test_the_tour_names_files_that_exist() -> None:
    page = (DOCS / "tour.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z_]+/[a-z_0-9]+\.py)`", page)
    assert len(named) > 20
    assert [name for name in named if not (ROOT / "src" / "frazil" / name).exists()] == []

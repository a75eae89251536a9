"""The reference pages say what the code does."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.docs.pages import DOCS, ROOT


@pytest.mark.parametrize("tool", ["cli_reference.py", "api_reference.py"])
def test_a_generated_page_is_up_to_date(tool: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / tool), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_tour_names_files_that_exist() -> None:
    page = (DOCS / "tour.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z_]+/[a-z_0-9]+\.py)`", page)
    assert len(named) > 20
    assert [name for name in named if not (ROOT / "src" / "frazil" / name).exists()] == []


def test_the_architecture_page_names_modules_that_exist() -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    drawn = "\n".join(re.findall(r"```\n(.*?)```", page, re.DOTALL))
    named = set(re.findall(r"(?<![\w.])([a-z]+(?:\.[a-z_]+)+)(?!\w)", drawn))
    source = ROOT / "src" / "frazil"
    ours = {name for name in named if (source / name.partition(".")[0]).is_dir()}
    assert len(ours) > 30
    at = [source / name.replace(".", "/") for name in sorted(ours)]
    assert [path for path in at if not (path.is_dir() or path.with_suffix(".py").exists())] == []

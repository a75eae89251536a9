"""The pictures of the tree are what the tables of their script look like today."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.docs.pages import DOCS, ROOT


def test_the_pictures_are_up_to_date(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, str(ROOT / "tools" / "tree_pictures.py"), str(tmp_path)], check=True
    )
    drawn = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.svg")}
    kept = {
        path.name: path.read_text(encoding="utf-8") for path in (DOCS / "assets").glob("tree-*.svg")
    }
    assert sorted(drawn) == sorted(kept)
    assert [name for name in drawn if drawn[name] != kept[name]] == []

"""Write the table properties of docs/reference/properties.md as the list that the explorer shows.

Usage: python tools/property_list.py [--check]
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "properties.md"
LIST = ROOT / "src" / "frazil" / "serve" / "explorer" / "properties.json"
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")


def listed(page: str) -> list[dict[str, str]]:
    """One entry for each property in the tables headed `table property`."""
    found: list[dict[str, str]] = []
    inside = False
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            inside = False
        elif cells[0] == "table property":
            inside = True
        elif inside and not cells[0].startswith("---"):
            for name in re.findall(r"`([^`]+)`", cells[0]):
                found.append({"name": name, "default": _plain(cells[1]), "doc": _plain(cells[2])})
    return found


def _plain(text: str) -> str:
    return _LINK.sub(r"\1", text).replace("`", "")


def rendered() -> str:
    """The list as it is stored."""
    return json.dumps(listed(PAGE.read_text(encoding="utf-8")), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(LIST.read_text(encoding="utf-8") != rendered())
    LIST.write_text(rendered(), encoding="utf-8")

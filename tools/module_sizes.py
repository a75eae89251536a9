"""Fails when a Python module is longer than the house limit."""

from __future__ import annotations

import sys
from pathlib import Path

LIMIT = 600


def main() -> int:
    long = []
    for folder in ("src", "tests", "bench", "tools", "examples"):
        for path in sorted(Path(folder).rglob("*.py")):
            lines = len(path.read_text(encoding="utf-8").splitlines())
            if lines > LIMIT:
                long.append(f"{path}: {lines} lines; the limit is {LIMIT}. Split the module.")
    print("\n".join(long) or "module sizes are fine")
    return 1 if long else 0


if __name__ == "__main__":
    sys.exit(main())

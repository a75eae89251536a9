"""Writes docs/reference/api.md from docstrings and signatures; `--check` fails when it is old."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import frazil
import frazil.spark
import frazil.spark.jobs
from frazil.paimon import PaimonSource
from frazil.paimon.scan.paimon_scan import PaimonScan
from frazil.scan.change_feed import Changes
from frazil.scan.plan import Plan
from frazil.sql import Result, Session
from frazil.table.columns.evolve import EvolvePartitions, EvolveSchema
from frazil.table.inspect import Inspect

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "api.md"

HEAD = """# Python API

<!-- Written by `python tools/api_reference.py` from the docstrings. -->

The public names are those in `frazil`, `frazil.spark` and `frazil.spark.jobs`, and the types their
functions return. PyIceberg's schemas, partition specs, sort orders and expressions are accepted
wherever a signature shows text for them.
"""
INTERNAL = {
    "Scan.reading",
    "Result.of",
    "Session.database",
    "Merge.has",
}
CLASSES = (
    frazil.Catalog,
    frazil.Table,
    frazil.Scan,
    Plan,
    Changes,
    frazil.Transaction,
    Result,
    Session,
    EvolveSchema,
    EvolvePartitions,
    Inspect,
    frazil.spark.Merge,
)


def main() -> int:
    """Write the page, or compare it."""
    text = _page()
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
            print(f"{PAGE} is not up to date; run python tools/api_reference.py")
            return 1
        return 0
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(text, encoding="utf-8")
    return 0


def _page() -> str:
    parts = [HEAD, _function("frazil.connect", frazil.connect, level=2)]
    for kind in CLASSES:
        parts.append(_class(kind))
    parts.append(_function("frazil.open_paimon", frazil.open_paimon, level=2))
    parts.append(_function("frazil.progress_bar", frazil.progress_bar, level=2))
    parts.append(_function("frazil.to_pyiceberg", frazil.to_pyiceberg, level=2))
    parts += [_class(kind) for kind in (PaimonSource, PaimonScan)]
    for module in (frazil.spark, frazil.spark.jobs):
        parts.append(f"## {module.__name__}\n\n{_doc(module)}\n")
        for name in sorted(module.__all__):
            value = getattr(module, name)
            if inspect.isfunction(value):
                parts.append(_function(f"{module.__name__}.{name}", value, level=3))
    parts.append(_errors())
    return "\n".join(parts)


def _class(kind: type[Any]) -> str:
    parts = [f"## {kind.__name__}\n\n{_doc(kind)}\n"]
    for name, value in _members(kind):
        if isinstance(value, property):
            parts.append(f"### {kind.__name__}.{name}\n\n{_doc(value)}\n")
        else:
            parts.append(_function(f"{kind.__name__}.{name}", value, level=3))
    return "\n".join(parts)


def _members(kind: type[Any]) -> Iterator[tuple[str, Any]]:
    seen: set[str] = set()
    for owner in kind.__mro__:
        if not owner.__module__.startswith("frazil"):
            continue
        for name, value in vars(owner).items():
            plain = value.__func__ if isinstance(value, staticmethod | classmethod) else value
            is_shown = inspect.isfunction(plain) or isinstance(plain, property)
            is_internal = name.startswith("_") or f"{kind.__name__}.{name}" in INTERNAL
            if is_internal or name in seen or not is_shown:
                continue
            seen.add(name)
            yield name, plain


def _function(name: str, value: Any, *, level: int) -> str:
    signature = inspect.signature(value)
    parameters = [each for each in signature.parameters.values() if each.name != "self"]
    shown = signature.replace(parameters=parameters)
    text = f"{name.rsplit('.', 1)[-1]}{shown}".replace("'", "")
    text = re.sub(r"<function ([\w.]+) at 0x[0-9a-f]+>", r"\1", text)
    return f"{'#' * level} {name}\n\n```text\n{_folded(text)}\n```\n\n{_doc(value)}\n"


def _folded(text: str) -> str:
    """A signature that is too long for one line, one parameter per line."""
    if len(text) <= 96:
        return text
    head, _, rest = text.partition("(")
    depth, start, parts = 0, 0, []
    end = rest.rindex(")")
    inside = rest[:end]
    for at, letter in enumerate(inside):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(inside[start:at].strip())
            start = at + 1
    parts.append(inside[start:].strip())
    return f"{head}(\n" + "".join(f"    {part},\n" for part in parts) + rest[end:]


def _doc(value: Any) -> str:
    """The docstring without its examples, which are in the guides."""
    text = inspect.getdoc(value) or ""
    kept = [line for line in text.splitlines() if not line.lstrip().startswith((">>>", "..."))]
    return "\n".join(kept).strip()


def _errors() -> str:
    rows = ["| error | kind | meaning |", "|---|---|---|"]
    for kind in sorted(frazil.FrazilError.__subclasses__(), key=lambda each: each.exit_code):
        rows.append(
            f"| `frazil.{kind.__name__}` | `{kind.kind}` | {_doc(kind).partition(chr(10))[0]} |"
        )
    return "## Errors\n\nAll derive from `frazil.FrazilError`.\n\n" + "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.exit(main())

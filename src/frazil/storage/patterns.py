"""Names of many files: folders, patterns with `*`, and values in paths as Hive writes them.

Knows paths as text; listing is the caller's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import unquote

NULL_IN_PATH: Final = "__HIVE_DEFAULT_PARTITION__"
_WILD: Final = re.compile(r"[*?\[]")


def is_pattern(path: str) -> bool:
    """Whether a path has `*`, `?` or `[` in it."""
    return _WILD.search(path) is not None


def root_of(pattern: str) -> str:
    """The folder to list for a pattern: what comes before its first wildcard."""
    first = _WILD.search(pattern)
    return pattern if first is None else pattern[: first.start()].rpartition("/")[0]


def matching(files: Iterable[str], pattern: str) -> list[str]:
    """Files that a pattern names, in order: `*` stands for any text without `/`, `**` for any."""
    expression = re.compile(_regex(pattern))
    return sorted(file for file in files if expression.fullmatch(file))


def visible(files: Iterable[str], folder: str, endings: Sequence[str]) -> list[str]:
    """Files below a folder with such endings, in order. What begins with `_` or `.` is hidden, as
    writers hide their own files and folders."""
    head = folder.rstrip("/") + "/"
    return sorted(
        file
        for file in files
        if file.lower().endswith(tuple(endings))
        and not any(part[:1] in ("_", ".") for part in file.removeprefix(head).split("/"))
    )


def values_in_path(path: str) -> dict[str, str | None]:
    """Values of folders such as `day=2024-01-01`; None for a folder of rows without a value."""
    pairs = [part.partition("=") for part in path.split("/")[:-1]]
    values = {unquote(name): unquote(value) for name, equals, value in pairs if equals and name}
    return {name: None if value == NULL_IN_PATH else value for name, value in values.items()}


def _regex(pattern: str) -> str:
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        if pattern.startswith("**/", at):
            parts.append("(?:.*/)?")
            at += 3
        elif pattern.startswith("**", at):
            parts.append(".*")
            at += 2
        elif pattern[at] == "*":
            parts.append("[^/]*")
            at += 1
        elif pattern[at] == "?":
            parts.append("[^/]")
            at += 1
        elif pattern[at] == "[" and (end := pattern.find("]", at + 1)) > 0:
            inside = pattern[at + 1 : end].replace("\\", r"\\")
            parts.append(f"[{'^' + inside[1:] if inside.startswith('!') else inside}]")
            at = end + 1
        else:
            parts.append(re.escape(pattern[at]))
            at += 1
    return "".join(parts)

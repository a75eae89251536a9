"""Cells in columns of text, as wide as they are or as a terminal allows.

Text folds at spaces. Where that is not enough, columns in the middle are left out, and a last line
names them. A value without spaces (an id, a number, a path) is never folded while another column
could be left out instead.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

_BETWEEN = " | "
_FOLDED_WIDTH = 16


def lay_out(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numeric: Sequence[bool],
    width: int | None = None,
) -> list[str]:
    """The lines of a table; no line is wider than `width` unless a single word is."""
    if not names:
        return ["(no columns)"]
    natural = [_natural(name, rows, at) for at, name in enumerate(names)]
    kept, widths = list(range(len(names))), natural
    if width is not None and _total(natural) > width:
        kept, widths = _fit(names, rows, natural, width)

    def line(cells: Sequence[str]) -> str:
        return _BETWEEN.join(
            _padded(cell, size, right=numeric[at])
            for at, cell, size in zip(kept, cells, widths, strict=True)
        ).rstrip()

    lines = [line([names[at] for at in kept]), "-+-".join("-" * size for size in widths)]
    for row in rows:
        folded = [_folded(row[at], size) for at, size in zip(kept, widths, strict=True)]
        for height in range(max(map(len, folded))):
            lines.append(line([cell[height] if height < len(cell) else "" for cell in folded]))
    if not rows:
        lines.append("(no rows)")
    hidden = [name for at, name in enumerate(names) if at not in kept]
    if hidden:
        lines += textwrap.wrap(
            f"… {len(hidden)} of {len(names)} columns do not fit: {', '.join(hidden)}",
            max(width or 0, 20),
            break_long_words=False,
            break_on_hyphens=False,
        )
    return lines


def columns_of(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def _natural(name: str, rows: Sequence[Sequence[str]], at: int) -> int:
    lines = (columns_of(part) for row in rows for part in row[at].split("\n"))
    return max(columns_of(name), 1, max(lines, default=0))


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_BETWEEN) * (len(widths) - 1)


def _fit(
    names: Sequence[str], rows: Sequence[Sequence[str]], widths: list[int], width: int
) -> tuple[list[int], list[int]]:
    """Which columns are shown, and how wide each is."""
    min_widths = []
    for at, name in enumerate(names):
        words = (columns_of(word) for row in rows for word in row[at].split())
        longest = max(columns_of(name), max(words, default=0))
        min_widths.append(min(widths[at], max(longest, _FOLDED_WIDTH)))
    kept = list(range(len(names)))
    dropped: list[int] = []
    while _total([min_widths[at] for at in kept]) > width and len(kept) > 2:
        dropped.append(kept.pop(len(kept) // 2))
    for at in reversed(dropped):  # a narrow one may fit where a wide one did not
        if _total([*(min_widths[column] for column in kept), min_widths[at]]) <= width:
            kept = sorted([*kept, at])
    if (
        _total([min_widths[at] for at in kept]) > width
    ):  # two columns at most: the wider one is folded
        wider = max(kept, key=lambda at: min_widths[at])
        rest = _total([min_widths[at] for at in kept]) - min_widths[wider]
        min_widths[wider] = max(width - rest, 1)
    return kept, _grown([min_widths[at] for at in kept], [widths[at] for at in kept], width)


def _grown(min_widths: list[int], natural: list[int], width: int) -> list[int]:
    """The widths, with the room that is left given out evenly."""
    widths = list(min_widths)
    left = width - _total(widths)
    while left > 0:
        growing = [at for at in range(len(widths)) if widths[at] < natural[at]]
        if not growing:
            break
        share = max(left // len(growing), 1)
        for at in growing[:left]:
            more = min(share, natural[at] - widths[at])
            widths[at] += more
            left -= more
    return widths


def _padded(text: str, width: int, *, right: bool) -> str:
    space = " " * max(width - columns_of(text), 0)
    return space + text if right else text + space


def _folded(text: str, width: int) -> list[str]:
    """The lines of a cell."""
    lines: list[str] = []
    for part in text.split("\n"):
        if columns_of(part) <= width:
            lines.append(part)
            continue
        folded = textwrap.wrap(part, width, break_on_hyphens=False, drop_whitespace=True)
        lines += folded or [""]
    return lines

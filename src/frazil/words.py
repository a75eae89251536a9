"""How values are shown: counts with the right plural, sizes, one line of text, a card of HTML.

Knows nothing of what it shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from html import escape

_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_STYLE = "border-collapse:collapse;font-size:13px"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun.

    >>> counted(1, "file"), counted(1200, "entry", "entries")
    ('1 file', '1,200 entries')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def size(number: int) -> str:
    """A number of bytes for people, in powers of 1,000.

    >>> size(1), size(999), size(4_211)
    ('1 byte', '999 bytes', '4.2 kB')
    """
    if number < 1000:
        return counted(number, "byte")
    value, unit = float(number), 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.1f} {_UNITS[unit]}"


def first_line(error: Exception) -> str:
    """What an error says first; its class when it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def listed(parts: Mapping[str, int], *, of: str) -> str:
    """What happened to things of one kind; empty when nothing did.

    >>> listed({"added": 3, "removed": 0, "updated": 1}, of="row")
    '3 rows added, 1 updated'
    """
    found = [(verb, number) for verb, number in parts.items() if number]
    texts = [f"{number:,} {verb}" for verb, number in found]
    if found:
        texts[0] = f"{counted(found[0][1], of)} {found[0][0]}"
    return ", ".join(texts)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question to add to a message about a name that is not there; empty when none is near.

    >>> did_you_mean("oders", ["orders", "items"])
    '. Did you mean orders?'
    """
    near = get_close_matches(name, list(known), n=2, cutoff=0.6)
    return f". Did you mean {' or '.join(near)}?" if near else ""


def card(title: str, facts: Mapping[str, object]) -> str:
    """A small HTML table: a title and a row per fact. Facts that are None or empty are left out."""
    rows = "".join(
        f"<tr><th style='text-align:left;padding:1px 12px 1px 0;font-weight:normal'>{escape(name)}"
        f"</th><td style='text-align:left'>{escape(str(value))}</td></tr>"
        for name, value in facts.items()
        if value is not None and value != ""
    )
    return f"<div><strong>{escape(title)}</strong><table style='{_STYLE}'>{rows}</table></div>"

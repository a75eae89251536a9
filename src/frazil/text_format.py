"""How values are shown: counts with the right plural, sizes, one line of text, cards of HTML.

Cards are for notebooks: markup without scripts, in colours that suit light and dark pages.

Knows nothing of what it shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

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
    counts = [(verb, number) for verb, number in parts.items() if number]
    texts = [f"{number:,} {verb}" for verb, number in counts]
    if counts:
        texts[0] = f"{counted(counts[0][1], of)} {counts[0][0]}"
    return ", ".join(texts)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question to add to a message about a name that is not there; empty when none is near.

    >>> did_you_mean("oders", ["orders", "items"])
    '. Did you mean orders?'
    """
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), n=2, cutoff=0.6)
    return f". Did you mean {' or '.join(near)}?" if near else ""


def escape(text: str) -> str:
    """`html.escape`, whose module makes a list of two thousand entities for its other function."""
    import html

    return html.escape(text)


def card(title: str, facts: Mapping[str, object], *pictures: str) -> str:
    """A small HTML table: a title and a row per fact, and HTML below it. Facts that are None or
    empty are left out."""
    rows = "".join(
        f"<tr><th style='text-align:left;padding:1px 12px 1px 0;font-weight:normal'>{escape(name)}"
        f"</th><td style='text-align:left'>{escape(str(value))}</td></tr>"
        for name, value in facts.items()
        if value is not None and value != ""
    )
    below = "".join(pictures)
    return (
        f"<div><strong>{escape(title)}</strong><table style='{_STYLE}'>{rows}</table>{below}</div>"
    )


def html_grid(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of HTML with a line of heads; None is an empty cell."""
    cell = "style='text-align:left;padding:2px 14px 2px 0'"
    head = "".join(f"<th {cell}>{escape(name)}</th>" for name in heads)
    body = "".join(
        "<tr>"
        + "".join(f"<td {cell}>{'' if v is None else escape(str(v))}</td>" for v in row)
        + "</tr>"
        for row in rows
    )
    return f"<table style='{_STYLE};margin-top:6px'><tr>{head}</tr>{body}</table>"


def html_bars(values: Sequence[int], label: str) -> str:
    """Numbers as small columns, oldest first; empty when there is nothing to see."""
    if not values or not any(values):
        return ""
    top, width = max(values), 5
    columns = "".join(
        f"<rect x='{at * width}' y='{24 - tall:.1f}' width='{width - 1}' height='{tall:.1f}'/>"
        for at, tall in enumerate(max(1.0, 24 * value / top) for value in values)
    )
    return (
        f"<svg width='{len(values) * width}' height='24' fill='#3b82c4' role='img' "
        f"style='display:block;margin-top:6px'><title>{escape(label)}</title>{columns}</svg>"
    )


def html_shares(parts: Mapping[str, tuple[int, str]]) -> str:
    """One bar in parts, and below it what each part is: counts and colours by name."""
    parts = {name: (count, colour) for name, (count, colour) in parts.items() if count}
    total = sum(count for count, _ in parts.values())
    if not total:
        return ""
    bar = "".join(
        f"<div title='{escape(f'{name}: {count:,}')}' style='background:{colour};"
        f"width:{100 * count / total:.2f}%'></div>"
        for name, (count, colour) in parts.items()
    )
    key = " ".join(
        f"<span style='margin-right:14px;white-space:nowrap'><span style='background:{colour};"
        f"display:inline-block;width:9px;height:9px;margin-right:5px'></span>"
        f"{count:,} {escape(name)}</span>"
        for name, (count, colour) in parts.items()
    )
    return (
        "<div style='display:flex;height:12px;max-width:520px;margin:4px 0 2px'>"
        f"{bar}</div><div style='font-size:12px'>{key}</div>"
    )

"""The demo's report: one HTML file with plots drawn as SVG inside it; nothing is fetched."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import accumulate
from typing import TYPE_CHECKING

from frazil.cli.terminal import render
from frazil.text_format import size
from frazil_demo.race import Lane, summed

if TYPE_CHECKING:
    from frazil_demo.story import Story

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP, _RIGHT = 640, 260, 64, 34, 30, 16

_STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --soft: #57606a; --line: #d0d7de;
  --paper: #ffffff; --sunk: #f6f8fa; --ours: #0969da; --theirs: #bc4c00 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9aa7b4; --line: #30363d;
  --paper: #0d1117; --sunk: #161b22; --ours: #58a6ff; --theirs: #f0883e } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 920px; margin: 2rem auto; padding: 0 1rem;
  color: var(--ink); background: var(--paper) }
h1 { font-size: 1.7rem; margin-bottom: .3rem }
h2 { margin-top: 2.2rem; padding-bottom: .2rem; border-bottom: 1px solid var(--line) }
.wide { overflow-x: auto } table { border-collapse: collapse; margin: 1rem 0 }
td, th { border: 1px solid var(--line); padding: .3rem .7rem; text-align: right }
td:first-child, th:first-child { text-align: left }
pre { background: var(--sunk); padding: .8rem; overflow-x: auto; font-size: 12px }
figure { margin: 1rem 0; overflow-x: auto } figcaption { color: var(--soft); font-size: 13px }
svg { max-width: 100%; height: auto } summary { cursor: pointer; color: var(--soft) }
ol { padding-left: 1.3rem } ol li { margin: .2rem 0 }
.tiles { display: grid; gap: 14px; grid-template-columns: repeat(auto-fit, minmax(260px, 1fr)) }
.tile { border: 1px solid var(--line); border-radius: 8px; padding: .7rem .9rem .8rem }
.tile b { display: block; font-size: 1.05rem } .tile p { margin: .1rem 0 .5rem }
.pair { display: grid; grid-template-columns: 6.5rem 1fr; gap: 3px 10px; align-items: center;
  font-size: 13px }
.bar { display: flex; align-items: center; gap: 8px; white-space: nowrap }
.bar i { height: 12px; min-width: 2px; border-radius: 2px; background: var(--theirs) }
.bar.ours i { background: var(--ours) }
svg text { fill: var(--ink) } svg text[fill="#57606a"] { fill: var(--soft) }
svg rect[fill="#f6f8fa"] { fill: var(--sunk) } svg rect[fill="#ffffff"] { fill: var(--paper) }
svg path[stroke="#d0d7de"], svg line { stroke: var(--line) }
svg polyline { stroke: var(--theirs) } svg rect.key { fill: var(--theirs) }
svg polyline.ours { stroke: var(--ours) } svg rect.key.ours { fill: var(--ours) }
"""


def write_report(story: Story) -> None:
    """Write `story.report`."""
    story.report.parent.mkdir(parents=True, exist_ok=True)
    story.report.write_text(_page(story), encoding="utf-8")


def _page(story: Story) -> str:
    parts = [
        "<h1>Frazil demo</h1>",
        "<p>Everything below was measured on this machine by <code>frazil demo</code>, Frazil and "
        "PyIceberg side by side in one process, on local disk with a SQLite catalog.</p>",
        _summary(story),
        _chapter(story, "1. Small commits"),
        _costs(story.lanes, "append"),
        _lines("Time of each append, milliseconds", _series(story.lanes, "ms")),
        _lines(
            "Metadata written so far, kilobytes", _series(story.lanes, "metadata_bytes", total=True)
        ),
        _lines("Metadata files written so far", _series(story.lanes, "metadata_files", total=True)),
        _chapter(story, "2. Deletes and updates"),
        _costs(story.lanes, "delete", "upsert"),
        "<h2>The tree as it adapts</h2>",
        "<p>How to read the drawings: <b>R</b> is the root, the one metadata file that a commit "
        "writes. <b>D</b> is a data file with rows. <b>M</b> is a leaf, a metadata file that lists "
        "older data files. ADDED, MODIFIED, REPLACED and "
        "DELETED say what the last commit did to an entry; EXISTING entries are older. DV is a "
        "deletion vector: rows of the file that are gone.</p>",
        *(
            _folded(title, _figure(title, render.svg(picture)), is_open=at == 1)
            for at, (title, picture) in enumerate(story.pictures.items())
        ),
    ]
    if story.plan is not None:
        parts += [_chapter(story, "3. A query that skips files"), _pre(str(story.plan))]
    if story.feed:
        rows = [(row["change"], f"{row['rows']:,}") for row in story.feed]
        parts += [_chapter(story, "4. The change feed"), _table(("change", "rows"), rows)]
    if story.upgrade:
        parts += [_chapter(story, "5. Upgrade in place"), _pre("\n".join(story.upgrade))]
    if story.pipeline:
        log = _folded("What the pipeline said", _pre("\n".join(story.pipeline)))
        parts += [_chapter(story, "6. The same on Spark"), log]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Frazil demo</title>'
        f"<style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )


def _summary(story: Story) -> str:
    """What to remember, and the largest differences as pictures."""
    items = "".join(f"<li>{escape(text)}</li>" for text in story.lessons)
    remember = f"<h2>To remember</h2><ol>{items}</ol>" if items else ""
    appends = len(story.lanes[0].of("append")) if story.lanes else 0
    tiles = "".join(
        _tile(story.lanes, what, name, title, unit)
        for what, name, title, unit in (
            ("append", "metadata-files", f"Metadata files of {appends} small commits", "files"),
            ("append", "metadata-bytes", f"Metadata of {appends} small commits", "bytes"),
            ("append", "median-ms", "Time of a small commit", "ms"),
            ("delete", "data-bytes", "Data written to delete one row", "bytes"),
            ("upsert", "data-bytes", "Data written to upsert 100 rows", "bytes"),
        )
        if story.lanes and all(lane.of(what) for lane in story.lanes)
    )
    return f'{remember}<div class="tiles">{tiles}</div>'


def _tile(lanes: Sequence[Lane], what: str, name: str, title: str, unit: str) -> str:
    """One number of both engines, as a pair of bars."""
    values = {lane.engine: float(summed(lane.of(what))[name]) for lane in lanes}
    top = max(values.values()) or 1.0
    bars = "".join(
        f"<span>{escape(engine)}</span>"
        f'<span class="bar{" ours" if at == 0 else ""}">'
        f'<i style="width:{62 * value / top:.1f}%"></i>{_worded(value, unit)}</span>'
        for at, (engine, value) in enumerate(values.items())
    )
    return f'<div class="tile"><p><b>{escape(title)}</b></p><div class="pair">{bars}</div></div>'


def _worded(value: float, unit: str) -> str:
    if unit == "bytes":
        return size(int(value))
    return f"{value:,.0f}" if unit == "files" else f"{value:,.1f} {unit}"


def _folded(title: str, content: str, *, is_open: bool = False) -> str:
    """Content behind a line that opens it."""
    opened = " open" if is_open else ""
    return f"<details{opened}><summary>{escape(title)}</summary>{content}</details>"


def _chapter(story: Story, title: str) -> str:
    """A heading, and what the demo said there."""
    told = escape(story.chapters.get(title, "")).replace("\n", "<br>")
    return f"<h2>{escape(title)}</h2><p>{told}</p>"


def _pre(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"


def _figure(title: str, picture: str) -> str:
    return f"<figure>{picture}<figcaption>{escape(title)}</figcaption></figure>"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def _costs(lanes: Sequence[Lane], *kinds: str) -> str:
    rows = []
    for what in kinds:
        for lane in lanes:
            cost = summed(lane.of(what))
            rows.append(
                (
                    f"{what} × {cost['calls']:.0f}, {lane.engine}",
                    f"{cost['median-ms']:,.1f} ms",
                    f"{cost['metadata-files']:.0f}",
                    size(int(cost["metadata-bytes"])),
                    size(int(cost["data-bytes"])),
                )
            )
    return _table(("work", "median time", "metadata files", "metadata", "data written"), rows)


def _series(
    lanes: Sequence[Lane], name: str, *, total: bool = False
) -> dict[str, tuple[float, ...]]:
    found = {}
    for lane in lanes:
        values = [float(getattr(step, name)) for step in lane.of("append")]
        if name.endswith("bytes"):
            values = [value / 1000 for value in values]
        found[lane.engine] = tuple(accumulate(values)) if total else tuple(values)
    return found


def _lines(title: str, series: dict[str, tuple[float, ...]]) -> str:
    """A line plot, one line per engine, from zero."""
    most = max((max(values, default=0.0) for values in series.values()), default=0.0) or 1.0
    count = max((len(values) for values in series.values()), default=1)
    step = _step(most)
    top = step * -(-most // step)
    wide, high = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def x(index: int) -> float:
        return _LEFT + wide * index / max(1, count - 1)

    def y(value: float) -> float:
        return _TOP + high * (1 - value / top)

    parts = []
    mark = 0.0
    while mark <= top * 1.0001:
        parts.append(
            f'<line x1="{_LEFT}" y1="{y(mark):.1f}" x2="{_WIDTH - _RIGHT}" y2="{y(mark):.1f}" '
            f'/><text x="{_LEFT - 6}" y="{y(mark) + 4:.1f}" '
            f'text-anchor="end">{mark:,.10g}</text>'
        )
        mark += step
    parts.append(
        f'<text x="{_LEFT}" y="{_HEIGHT - 10}">commit 1</text>'
        f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 10}" text-anchor="end">commit {count}</text>'
    )
    for index, (name, values) in enumerate(series.items()):
        kind = "" if index else "ours"
        points = " ".join(f"{x(i):.1f},{y(value):.1f}" for i, value in enumerate(values))
        parts.append(
            f'<polyline class="{kind}" points="{points}" fill="none" stroke-width="2"/>'
            f'<rect class="key {kind}" x="{_LEFT + 130 * index}" y="8" width="12" height="12"/>'
            f'<text x="{_LEFT + 130 * index + 17}" y="18">{escape(name)}</text>'
        )
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" font-family="system-ui, sans-serif" font-size="12" role="img" '
        f'aria-label="{escape(title)}">{"".join(parts)}</svg>'
    )
    return _figure(title, picture)


def _step(most: float) -> float:
    """A round distance between grid lines, four or five of them."""
    size = 1.0
    while size * 10 < most:
        size *= 10
    while size > most:
        size /= 10
    return next(size * part for part in (0.25, 0.5, 1, 2, 5) if size * part * 5 >= most)

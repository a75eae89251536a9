"""Results as text, Markdown, HTML and plots. Where Frazil is slower stands first."""

from __future__ import annotations

import html
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import plots
from bench.peers import FRAZIL
from bench.results import Outcome, Row

_TIED = 1.1
"""Ratios below are called a tie: two runs of one library differ by as much on a shared machine."""


def save(run: dict[str, Any], folder: Path) -> None:
    """The results as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{run['mode']}.json").write_text(json.dumps(run, indent=1) + "\n")


def write(run: dict[str, Any], folder: Path, *, docs: Path | None = None) -> None:
    """JSON, Markdown, HTML and plots of a run."""
    save(run, folder)
    mode = run["mode"]
    outcomes = [Outcome.from_dict(data) for data in run["workloads"]]
    images = plots.draw(outcomes, folder, prefix=f"{mode}-")
    page = markdown(run, outcomes, images, base="")
    (folder / f"{mode}.md").write_text(page)
    (folder / f"{mode}.html").write_text(_html(run, outcomes, images))
    if docs is not None:
        assets = docs.parent / "assets" / "bench"
        assets.mkdir(parents=True, exist_ok=True)
        for name in {name for names in images.values() for name in names}:
            shutil.copy(folder / name, assets / name)
        docs.write_text(markdown(run, outcomes, images, base="assets/bench/"))


def text(outcome: Outcome) -> str:
    """One workload for a terminal."""
    lines = [f"\n{outcome.title}  ({outcome.seconds:.0f} s)"]
    heads, body = _table(outcome)
    widths = [max(len(row[n]) for row in [heads, *body]) for n in range(len(heads))]
    for row in [heads, *body]:
        lines.append("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))
    lines += [f"  {note}" for note in outcome.notes]
    return "\n".join(lines)


def markdown(
    run: dict[str, Any], outcomes: Sequence[Outcome], images: dict[str, list[str]], *, base: str
) -> str:
    """The whole report."""
    where = run["machine"]
    lines = [
        "# Benchmarks",
        "",
        f"A {run['mode']} run, the newest part of {where['when'][:10]} at commit {where['commit']} "
        f"(each section names its own), on {where['cores']} cores of {where['processor']} with "
        f"{where['memory_gb']} GB, {where['system']}, Python {where['python']}, "
        f"pyarrow {where['pyarrow']}; load before the run {where['load_before']}. Times are "
        "medians unless a line says otherwise. The last column is the ratio Frazil ÷ best peer: "
        "below 1 means Frazil is faster (for rates, above 1).",
        "",
        *_busy(where),
        "## Where Frazil is slower",
        "",
        *_slower(outcomes),
        "",
        "## Who took part",
        "",
        "| peer | version | settings |",
        "|---|---|---|",
        *(
            f"| {name} | {about['version']} | {about['settings']} |"
            for name, about in run.get("peers", {}).items()
        ),
        "",
    ]
    for outcome in outcomes:
        lines += [f"## {outcome.title}", "", *_apart(outcome, where)]
        sizes = ", ".join(f"{name} {value}" for name, value in outcome.settings.items())
        lines += [f"`{outcome.name}`: {sizes}", ""]
        heads, body = _table(outcome)
        lines.append("| " + " | ".join(heads) + " |")
        lines.append("|" + "---|" * len(heads))
        lines += ["| " + " | ".join(row) + " |" for row in body]
        lines += ["", *(f"- {note}" for note in outcome.notes), ""]
        for image in images.get(outcome.name, []):
            lines += [f"![{outcome.title}]({base}{image})", ""]
    return "\n".join(lines).rstrip() + "\n"


def _busy(where: dict[str, Any]) -> list[str]:
    """A warning where the machine had more to do than it has cores."""
    if where["load_before"] <= where["cores"]:
        return []
    return [
        "**The machine was busy with other work during this run. Wall times are of that machine: "
        "they are no figures of any library, and ratios between them are rough. Counts and bytes "
        "are exact.**",
        "",
    ]


def slower(outcomes: Sequence[Outcome]) -> list[tuple[Outcome, Row]]:
    """Every time, rate or memory figure where a peer beats Frazil."""
    kinds = ("ms", "commits/s", "kB/file", "MB")
    return [
        (outcome, row)
        for outcome in outcomes
        for row in outcome.rows()
        if row.unit in kinds and row.is_slower
    ]


def _slower(outcomes: Sequence[Outcome]) -> list[str]:
    found = slower(outcomes)
    if not found:
        return ["Nowhere in this run."]
    lines = [
        "| workload | case | metric | Frazil | best peer | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for outcome, row in found:
        best = row.best_peer or ""
        ratio = row.ratio or 0.0
        tie = " (a tie)" if max(ratio, 1 / ratio) < _TIED else ""
        lines.append(
            f"| {outcome.name} | {row.case} | {row.metric} "
            f"| {number(row.values[FRAZIL], row.unit)} "
            f"| {best} {number(row.values[best], row.unit)} | {ratio:.2f}×{tie} |"
        )
    return lines


def _table(outcome: Outcome) -> tuple[list[str], list[list[str]]]:
    rows = outcome.rows()
    peers = list(dict.fromkeys([FRAZIL, *(name for row in rows for name in row.values)]))
    body = []
    for row in rows:
        cells = [number(row.values[p], row.unit) if p in row.values else "" for p in peers]
        ratio = row.ratio
        cells.append("" if ratio is None else f"{ratio:.2f}×")
        body.append([row.case, row.metric, *cells])
    return ["case", "metric", *peers, "ratio"], body


def number(value: float, unit: str) -> str:
    """A figure with its unit, short."""
    if unit == "B":
        for step, name in ((1e6, "MB"), (1e3, "kB")):
            if abs(value) >= step:
                return f"{value / step:,.1f} {name}"
        return f"{value:,.0f} B"
    if unit == "ms" and value >= 10_000:
        return f"{value / 1000:,.1f} s"
    digits = 0 if abs(value) >= 100 or value == int(value) else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f} {unit}".strip()


_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto;
  padding: 0 1rem; color: #1a2b3c }
table { border-collapse: collapse; margin: 1rem 0; width: 100%; font-size: 13px }
th, td { padding: .3rem .6rem; border-bottom: 1px solid #dde; text-align: right }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) { text-align: left }
tr.slower td:last-child { color: #b00; font-weight: 600 }
tr.faster td:last-child { color: #070; font-weight: 600 }
img { max-width: 100% }
li { color: #456 }
"""


def _apart(outcome: Outcome, where: dict[str, Any]) -> list[str]:
    """When a workload was run on its own, at another commit than the last one."""
    if outcome.commit in ("", where["commit"]):
        return []
    return [f"Run at {outcome.when[:16].replace('T', ' ')}, commit {outcome.commit}.", ""]


def _html(run: dict[str, Any], outcomes: Sequence[Outcome], images: dict[str, list[str]]) -> str:
    where = run["machine"]
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>Frazil benchmarks</title><style>{_STYLE}</style><h1>Frazil benchmarks</h1>",
        f"<p>{html.escape(run['mode'])} run, {html.escape(where['when'])}, commit "
        f"{html.escape(where['commit'])}, {where['cores']} cores, "
        f"{html.escape(where['processor'])}.</p><h2>Where Frazil is slower</h2>",
    ]
    found = slower(outcomes)
    parts.append(
        "<ul>"
        + "".join(
            f"<li>{html.escape(o.title)}: {html.escape(row.case)}, {html.escape(row.metric)}: "
            f"{row.ratio or 0:.2f}× {html.escape(row.best_peer or '')}</li>"
            for o, row in found
        )
        + "</ul>"
        if found
        else "<p>Nowhere in this run.</p>"
    )
    for outcome in outcomes:
        heads, body = _table(outcome)
        parts.append(f"<h2>{html.escape(outcome.title)}</h2><table><tr>")
        parts += [f"<th>{html.escape(head)}</th>" for head in heads]
        for row, cells in zip(outcome.rows(), body, strict=True):
            kind = "" if row.ratio is None else "slower" if row.is_slower else "faster"
            parts.append(f"</tr><tr class='{kind}'>")
            parts += [f"<td>{html.escape(cell)}</td>" for cell in cells]
        parts.append("</tr></table><ul>")
        parts += [f"<li>{html.escape(note)}</li>" for note in outcome.notes]
        parts.append("</ul>")
        parts += [
            f"<img src='{html.escape(image)}' alt='{html.escape(outcome.title)}'>"
            for image in images.get(outcome.name, [])
        ]
    return "".join(parts) + "</html>\n"

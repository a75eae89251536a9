"""Plots of a run: one image per workload that has something to see."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.peers import FRAZIL
from bench.results import Outcome

_COLOURS = ("#0b6e99", "#d9730d", "#6940a5", "#0f7b6c", "#ad1a72", "#9b9a97", "#787774")


def draw(outcomes: Sequence[Outcome], folder: Path, *, prefix: str) -> dict[str, list[str]]:
    """Write the images; names of files by workload."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    found: dict[str, list[str]] = {}
    for outcome in outcomes:
        figure = _lines(plt, outcome) if outcome.name == "small_appends" else _bars(plt, outcome)
        if figure is None:
            continue
        name = f"{prefix}{outcome.name}.png"
        figure.tight_layout()
        figure.savefig(folder / name, dpi=80)
        plt.close(figure)
        found[outcome.name] = [name]
    return found


def _colour(name: str, names: Sequence[str]) -> str:
    return _COLOURS[0] if name == FRAZIL else _COLOURS[1 + names.index(name) % 6]


def _lines(plt: Any, outcome: Outcome) -> Any:
    """Milliseconds per commit as the history grows."""
    series = outcome.series.get("ms per commit", {})
    if not series:
        return None
    figure, axis = plt.subplots(figsize=(9, 4))
    others = [name for name in series if name != FRAZIL]
    commits = outcome.settings["commits"]
    for name, values in series.items():
        step = commits / len(values)
        width = 2.4 if name == FRAZIL else 1.3
        at = [step * n for n in range(len(values))]
        axis.plot(at, values, label=name, linewidth=width, color=_colour(name, others))
    axis.set(xlabel="commit", ylabel="ms, log scale", yscale="log", title=outcome.title)
    axis.grid(visible=True, alpha=0.3)
    axis.legend()
    return figure


def _bars(plt: Any, outcome: Outcome) -> Any:
    """Times or rates of every peer, grouped by case; a log scale shows factors."""
    rows = [row for row in outcome.rows() if row.unit in ("ms", "commits/s") and row.ratio]
    if not rows:
        rows = [row for row in outcome.rows() if row.unit == "B" and row.ratio]
    if not rows:
        return None
    peers = list(dict.fromkeys(name for row in rows for name in row.values))
    peers.sort(key=lambda name: name != FRAZIL)
    others = [name for name in peers if name != FRAZIL]
    figure, axis = plt.subplots(figsize=(9, 1.2 + 0.17 * len(rows) * (len(peers) + 1)))
    height = 0.8 / len(peers)
    for number, name in enumerate(peers):
        at = [n + number * height for n, row in enumerate(rows) if name in row.values]
        values = [row.values[name] for row in rows if name in row.values]
        axis.barh(at, values, height=height, label=name, color=_colour(name, others))
    labels = [f"{row.case}, {row.metric}" for row in rows]
    axis.set_yticks([n + 0.4 - height / 2 for n in range(len(rows))], labels, fontsize=8)
    axis.invert_yaxis()
    axis.set(xscale="log", xlabel=f"{rows[0].unit}, log scale")
    axis.set_title(outcome.title, fontsize=10)
    axis.grid(visible=True, axis="x", alpha=0.3)
    axis.legend(fontsize=8)
    return figure


def draw_growth(costs: dict[str, Any], titles: dict[str, str], folder: Path) -> None:
    """Cost against size, both on log scales: one image per dimension, with a line in proportion."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    for name, by_operation in costs.items():
        figure, axis = plt.subplots(figsize=(9, 4))
        for number, (operation, by_size) in enumerate(by_operation.items()):
            sizes = [int(size) for size in by_size]
            colour = _COLOURS[number % len(_COLOURS)]
            axis.plot(sizes, list(by_size.values()), marker="o", label=operation, color=colour)
        low, high = axis.get_xlim()
        bottom, top = axis.get_ylim()
        reach = min(high / low, top / bottom)
        axis.plot([low, low * reach], [bottom, bottom * reach], ":", color="#9b9a97", label="size")
        axis.set(xscale="log", yscale="log", xlabel=titles[name], ylabel="ms of processor time")
        axis.grid(visible=True, alpha=0.3)
        axis.legend(fontsize=8)
        figure.tight_layout()
        figure.savefig(folder / f"growth-{name}.png", dpi=80)
        plt.close(figure)

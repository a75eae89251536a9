"""What a workload found: figures by case, metric and peer, and series for plots. Plain data."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.peers import FRAZIL


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number. `unit` says what; more is better only for rates."""

    case: str
    metric: str
    peer: str
    value: float
    unit: str

    @property
    def more_is_better(self) -> bool:
        return self.unit.endswith("/s")


@dataclass(slots=True, kw_only=True)
class Outcome:
    """All that one workload found."""

    name: str
    title: str
    settings: dict[str, Any] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)
    series: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    commit: str = ""
    when: str = ""

    def add(self, case: str, metric: str, peer: str, value: float | None, unit: str) -> None:
        """Record one number; None is not recorded."""
        if value is not None and not math.isnan(value):
            figure = Figure(case=case, metric=metric, peer=peer, value=float(value), unit=unit)
            self.figures.append(figure)

    def note(self, text: str) -> None:
        """Something a reader must know, said once."""
        if text not in self.notes:
            self.notes.append(text)

    def rows(self) -> list[Row]:
        """Figures gathered by case and metric, in order of appearance."""
        found: dict[tuple[str, str, str], dict[str, float]] = {}
        for figure in self.figures:
            key = (figure.case, figure.metric, figure.unit)
            found.setdefault(key, {})[figure.peer] = figure.value
        return [
            Row(case=case, metric=metric, unit=unit, values=values)
            for (case, metric, unit), values in found.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Outcome:
        """From JSON."""
        figures = [Figure(**figure) for figure in data["figures"]]
        return Outcome(**{**data, "figures": figures})


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a table: a case and metric, with every peer's value."""

    case: str
    metric: str
    unit: str
    values: dict[str, float]

    @property
    def more_is_better(self) -> bool:
        return self.unit.endswith("/s")

    @property
    def best_peer(self) -> str | None:
        """The best of the others."""
        others = [name for name in self.values if name != FRAZIL]
        if not others:
            return None
        choose = max if self.more_is_better else min
        return choose(others, key=lambda name: self.values[name])

    @property
    def ratio(self) -> float | None:
        """Frazil's value over the best peer's."""
        best = self.best_peer
        if best is None or FRAZIL not in self.values or not self.values[best]:
            return None
        return self.values[FRAZIL] / self.values[best]

    @property
    def is_slower(self) -> bool:
        """Whether Frazil loses here."""
        ratio = self.ratio
        return ratio is not None and (ratio < 1 if self.more_is_better else ratio > 1)


def quantile(values: Sequence[float], share: float) -> float:
    """A quantile by the nearest rank."""
    ordered = sorted(values)
    if not ordered:
        return math.nan
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def median(values: Iterable[float]) -> float:
    """The middle value."""
    return statistics.median(values)

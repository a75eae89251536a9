"""What a plan considered, pruned and read at each level, in numbers."""

from __future__ import annotations

from textwrap import wrap
from typing import Any, Final

from frazil.text_format import card, counted, escape, html_shares, size
from frazil.value_classes import field, frozen, summed

_WIDTH: Final = 64
_READ, _SKIPPED = "#3b82c4", "#aab4bd"
_MAX_SQUARES: Final = 1_000


@frozen
class LevelReport:
    """Entries of one level of the tree."""

    manifests_read: int = 0
    considered: int = 0
    dead: int = 0
    pruned_by_partition: int = 0
    pruned_by_derived: int = 0
    pruned_by_bounds: int = 0
    survived: int = 0
    bytes_read: int = 0
    ms: float = 0.0

    def plus(self, other: LevelReport) -> LevelReport:
        """The sum of two."""
        return summed(self, other)


@frozen
class LeafReport:
    """What became of one leaf: files of it to read, or what ruled it out without opening it.

    `pruned_by` names the columns of the predicate that did, and `evidence` says how it could tell:
    by partition, by a derived column, or by bounds.
    """

    location: str
    entries: int
    bytes: int
    pruned_by: tuple[str, ...] = ()
    evidence: str | None = None
    predicate: str | None = None
    files: int | None = None


@frozen
class ScanReport:
    """A plan in numbers."""

    snapshot_id: int | None
    filter: str
    root: LevelReport = field(default_factory=LevelReport)
    leaves: LevelReport = field(default_factory=LevelReport)
    files: int = 0
    records: int = 0
    bytes: int = 0
    files_with_vectors: int = 0
    equality_deletes: int = 0
    position_deletes: int = 0
    ms: float = 0.0
    per_leaf: tuple[LeafReport, ...] = ()
    """What became of each leaf, in the order of the root; empty unless it was asked for."""

    def __repr__(self) -> str:
        return (
            f"ScanReport({counted(self.files, 'file')}, {counted(self.records, 'row')} to read; "
            f"filter {self.filter})"
        )

    def _repr_html_(self) -> str:
        facts = {
            "snapshot": self.snapshot_id,
            "filter": self.filter,
            "files": f"{self.files:,}",
            "rows": f"{self.records:,}",
            "bytes": size(self.bytes),
        }
        levels = [
            f"<div style='margin-top:8px'>{counted(sum(n for n, _ in parts.values()), *nouns)} "
            f"of {name}</div>{html_shares(parts)}"
            for name, parts, nouns in (
                ("the root", _shares(self.root), ("entry", "entries")),
                ("its leaves", _shares(self.leaves), ("entry", "entries")),
            )
            if any(n for n, _ in parts.values())
        ]
        return card("scan report", facts, *levels, self._leaves_html())

    def _leaves_html(self) -> str:
        """Every leaf as a square: opened, or ruled out unread. Empty without `per_leaf`."""
        if not self.per_leaf:
            return ""
        opened = sum(leaf.files is not None for leaf in self.per_leaf)
        squares = "".join(
            f"<span title='{escape(_leaf_title(leaf))}' style='display:inline-block;width:12px;"
            f"height:12px;margin:1px;background:{_READ if leaf.files is not None else _SKIPPED}'>"
            "</span>"
            for leaf in self.per_leaf[:_MAX_SQUARES]
        )
        text = f"{opened:,} of {counted(len(self.per_leaf), 'leaf', 'leaves')} opened"
        return (
            f"<div style='margin-top:8px'>{text}</div><div style='max-width:520px'>{squares}</div>"
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        from dataclasses import asdict

        report = asdict(self)
        if not self.per_leaf:
            del report["per_leaf"]
        return report

    def __str__(self) -> str:
        snapshot = "no snapshot" if self.snapshot_id is None else f"snapshot {self.snapshot_id}"
        title = f"scan of {snapshot}"
        if self.filter != "true":
            title += f" where {self.filter}"
        summary = f"→ {counted(self.files, 'file')}, {counted(self.records, 'record')}, "
        summary += size(self.bytes)
        if self.files_with_vectors:
            summary += f"; {self.files_with_vectors:,} with deletion vectors"
        lines = [*wrap(title, _WIDTH, break_on_hyphens=False)]
        lines += [line for name, level in _levels(self) for line in _level_lines(name, level)]
        lines.append(summary)
        if self.equality_deletes or self.position_deletes:
            equality, position = self.equality_deletes, self.position_deletes
            lines.append(f"  delete files: {equality:,} equality, {position:,} position")
        return "\n".join([*lines, f"  planned in {self.ms:.1f} ms"])


def _leaf_title(leaf: LeafReport) -> str:
    if leaf.files is not None:
        return f"opened: {leaf.files:,} of {counted(leaf.entries, 'entry', 'entries')} left"
    return f"not opened: {leaf.predicate} cannot match by {leaf.evidence}"


def _shares(level: LevelReport) -> dict[str, tuple[int, str]]:
    """What became of the entries of a level, with a colour for each."""
    return {
        "left": (level.survived, _READ),
        "pruned by partition": (level.pruned_by_partition, "#8fb7a0"),
        "pruned by derived columns": (level.pruned_by_derived, "#b7a98f"),
        "pruned by bounds": (level.pruned_by_bounds, _SKIPPED),
        "dead": (level.dead, "#d08770"),
    }


def _levels(report: ScanReport) -> tuple[tuple[str, LevelReport], ...]:
    return ("root", report.root), ("leaves", report.leaves)


def _level_lines(name: str, level: LevelReport) -> list[str]:
    """What became of the entries of a level, in words; only what happened is said."""
    name = name.ljust(8)
    if not level.considered and not level.manifests_read:
        return [f"{name}none opened"] if name.startswith("leaves") else []
    parts = [
        f"{count:,} {what}"
        for what, count in (
            ("pruned by partition", level.pruned_by_partition),
            ("pruned by derived columns", level.pruned_by_derived),
            ("pruned by bounds", level.pruned_by_bounds),
        )
        if count
    ]
    text = f"{counted(level.considered, 'entry', 'entries')} considered: "
    text += ", ".join([*parts, f"{level.survived:,} left"])
    if level.dead:
        text += f"; {counted(level.dead, 'dead entry', 'dead entries')} skipped"
    cost = f"{level.ms:.1f} ms"
    if level.manifests_read:
        manifests = counted(level.manifests_read, "manifest")
        how = f"read, {size(level.bytes_read)}" if level.bytes_read else "from memory"
        cost = f"{manifests} {how}, {cost}"
    lines = wrap(f"{text}; {cost}", _WIDTH - len(name), break_on_hyphens=False)
    return [f"{name if not at else ' ' * len(name)}{line}" for at, line in enumerate(lines)]

"""What a plan considered, pruned and read at each level, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from frazil.words import card, counted


@dataclass(frozen=True, slots=True, kw_only=True)
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
        return LevelReport(**{name: getattr(self, name) + getattr(other, name) for name in _COUNTS})


@dataclass(frozen=True, slots=True, kw_only=True)
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


_COUNTS = tuple(each.name for each in fields(LevelReport))


@dataclass(frozen=True, slots=True, kw_only=True)
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
            "bytes": f"{self.bytes:,}",
        }
        return card("scan report", facts)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        found = asdict(self)
        if not self.per_leaf:
            del found["per_leaf"]
        return found

    def lines(self) -> list[tuple[str, Mapping[str, Any]]]:
        """The levels as rows of a table, root first."""
        return [("root", asdict(self.root)), ("leaves", asdict(self.leaves))]

    def __str__(self) -> str:
        heads = (
            ("read", "manifests_read"),
            ("considered", "considered"),
            ("dead", "dead"),
            ("by partition", "pruned_by_partition"),
            ("by derived", "pruned_by_derived"),
            ("by bounds", "pruned_by_bounds"),
            ("survived", "survived"),
            ("bytes", "bytes_read"),
            ("ms", "ms"),
        )
        widths = [max(len(title), 10) for title, _ in heads]
        rows = ["".ljust(8) + " ".join(t.rjust(w) for (t, _), w in zip(heads, widths, strict=True))]
        for name, values in self.lines():
            cells = [
                _shown(values[key]).rjust(w) for (_, key), w in zip(heads, widths, strict=True)
            ]
            rows.append(name.ljust(8) + " ".join(cells))
        snapshot = "no snapshot" if self.snapshot_id is None else f"snapshot {self.snapshot_id}"
        title = f"scan of {snapshot} where {self.filter}"
        total = (
            f"→ {counted(self.files, 'file')}, {counted(self.records, 'record')}, "
            f"{counted(self.bytes, 'byte')}; {self.files_with_vectors:,} with deletion vectors; "
            f"delete files: {self.equality_deletes:,} equality, {self.position_deletes:,} "
            f"position; planned in {self.ms:.1f} ms"
        )
        return "\n".join([title, *rows, total])


def _shown(value: float) -> str:
    return f"{value:.1f}" if isinstance(value, float) else f"{value:,}"

"""The snapshots of a table as a graph: parents, children, ancestors. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from frazil.format.metadata import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Ancestry:
    """Snapshots by id, oldest first, with their parents and children."""

    snapshots: dict[int, Snapshot]
    children: dict[int, tuple[int, ...]]

    @staticmethod
    def of(snapshots: Iterable[Snapshot]) -> Ancestry:
        """The graph of a history."""
        known = {int(snapshot.snapshot_id): snapshot for snapshot in snapshots}
        children: dict[int, tuple[int, ...]] = {}
        for id, snapshot in known.items():
            parent = snapshot.parent_snapshot_id
            if parent is not None:
                children[int(parent)] = (*children.get(int(parent), ()), id)
        return Ancestry(snapshots=known, children=children)

    def lineage(self, snapshot_id: int) -> Iterator[Snapshot]:
        """A snapshot and its ancestors, newest first, as far as they are kept."""
        current: int | None = snapshot_id
        seen: set[int] = set()
        while current is not None and current in self.snapshots and current not in seen:
            seen.add(current)
            snapshot = self.snapshots[current]
            yield snapshot
            parent = snapshot.parent_snapshot_id
            current = None if parent is None else int(parent)

    def neighbours(self, snapshot_ids: Iterable[int]) -> set[int]:
        """Parents and children of snapshots, without those themselves."""
        chosen = set(snapshot_ids)
        found: set[int] = set()
        for id in chosen:
            parent = self.snapshots[id].parent_snapshot_id
            if parent is not None and int(parent) in self.snapshots:
                found.add(int(parent))
            found.update(self.children.get(id, ()))
        return found - chosen

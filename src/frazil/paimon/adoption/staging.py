"""A table that is not in the catalog yet: a head in memory, so that a series of commits can be
built and then entered all at once, or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable

from frazil.commit.head import Draft, Landed, Outcome, State
from frazil.errors import NotFound
from frazil.format.metadata.metadata import History, Snapshot, TableMetadata


class StagedHead:
    """The head of a table that only this process knows."""

    def __init__(self, metadata: TableMetadata) -> None:
        self._metadata = metadata
        self._history = History()
        self._version = 0

    @property
    def history(self) -> History:
        """Every snapshot staged so far."""
        return self._history

    def load(self) -> State:
        """The state as staged."""
        named = {ref.snapshot_id for ref in self._metadata.refs.values()}
        return State(
            version=self._version,
            metadata=self._metadata,
            snapshots={s.snapshot_id: s for s in self._history.snapshots if s.snapshot_id in named},
        )

    def swap(self, base: State, draft: Draft) -> Outcome:
        """Take the draft; there are no other writers here."""
        self._history = self._history.advanced(
            base.metadata,
            draft.metadata,
            added=draft.added_snapshots,
            removed=draft.removed_snapshot_ids,
        )
        self._metadata = draft.metadata
        self._version += 1
        return Landed(states=(self.load(),))

    def landed(self, snapshot_id: int) -> State | None:
        """The state, if that snapshot is staged."""
        return self.load() if self._history.snapshot(snapshot_id) is not None else None

    def snapshot(self, snapshot_id: int) -> Snapshot:
        """One staged snapshot."""
        snapshot = self._history.snapshot(snapshot_id)
        if snapshot is None:
            raise NotFound(f"no snapshot {snapshot_id} is staged")
        return snapshot

    def snapshots(self) -> Iterable[Snapshot]:
        """Every staged snapshot, oldest first."""
        return self._history.snapshots

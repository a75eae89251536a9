"""Several changes that become one state of a table: each builds on what the one before it made."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

from frazil.commit.build import Builder, Built
from frazil.commit.change import Change
from frazil.commit.context import CommitContext
from frazil.commit.head import Draft, Head, State
from frazil.commit.result import CommitResult
from frazil.format.metadata.metadata import Snapshot
from frazil.value_classes import replace


class Chain:
    """Builds changes one after the other into one draft."""

    def __init__(self, changes: Sequence[Change], context: CommitContext, head: Head) -> None:
        self._head = head
        self._changes = changes
        self._builders = [Builder(change, context, head) for change in changes]

    def is_of(self, changes: Sequence[Change]) -> bool:
        """Whether it builds these very changes, so that what it wrote can be used again."""
        return len(changes) == len(self._changes) and all(map(is_, changes, self._changes))

    @property
    def written(self) -> dict[str, int]:
        """Every file that was written, with its size."""
        return {path: size for one in self._builders for path, size in one.written.items()}

    def build(self, state: State) -> Built:
        """The draft of all changes; the result is that of all of them."""
        at = state
        built: list[Built] = []
        if len(self._builders) == 1:
            return self._builders[0].build(state)
        for builder in self._builders:
            one = builder.build(at)
            built.append(one)
            at = self._after(at, one.draft)
        return Built(
            draft=Draft(
                metadata=at.metadata,
                added_snapshots=tuple(s for one in built for s in one.draft.added_snapshots),
                removed_snapshot_ids=tuple(
                    gone for one in built for gone in one.draft.removed_snapshot_ids
                ),
            ),
            result=CommitResult.sum([one.result for one in built]),
            used_paths=frozenset(path for one in built for path in one.used_paths),
        )

    def _after(self, state: State, draft: Draft) -> State:
        """The state that the next change starts from, as if the draft had landed."""
        known: dict[int, Snapshot] = dict(state.snapshots)
        known.update({s.snapshot_id: s for s in draft.added_snapshots})
        for ref in draft.metadata.refs.values():
            if ref.snapshot_id not in known:
                known[ref.snapshot_id] = self._head.snapshot(ref.snapshot_id)
        return replace(state, metadata=draft.metadata, snapshots=known)

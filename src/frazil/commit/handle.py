"""One table as the packages above see it: its head, its storage, and how to read and commit.

A handle is what maintenance, other formats and the facades are given; it holds no rules.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from frazil.commit.head import Head, ReadOnly, State
from frazil.commit.surroundings import Surroundings
from frazil.format.metadata import MAIN, Snapshot, TableMetadata
from frazil.storage import Storage
from frazil.tree.cache import ManifestCache
from frazil.tree.decoder import ManifestDecoder

if TYPE_CHECKING:
    from frazil.commit.change import Change
    from frazil.commit.loop import Committed
    from frazil.commit.result import CommitResult
    from frazil.tree.read import TreeReader


def now_ms() -> int:
    """The wall clock in milliseconds."""
    return time.time_ns() // 1_000_000


def new_snapshot_id() -> int:
    """A random positive id; Iceberg's readers take 63 bits."""
    import secrets

    return secrets.randbits(62) + 1


AfterCommit = Callable[["TableHandle", "Committed"], str | None]


@dataclass(slots=True)
class TableHandle:
    """A table's head with what is around it. `state` is what was seen last."""

    name: str
    head: Head
    around: Surroundings
    state: State = field(repr=False)
    has_rivals: bool = field(default=False, repr=False)
    """Whether others committed between this handle's last two commits. Then the state seen last is
    likely stale, and a first attempt on it would be written for nothing."""
    after_commit: tuple[AfterCommit, ...] = field(default=(), repr=False)
    """What follows a commit that has landed, e.g. publishing. It cannot undo the commit, so it must
    not raise; what the caller should know it returns as a note."""

    @staticmethod
    def of(
        name: str,
        head: Head,
        storage: Storage,
        *,
        state: State | None = None,
        cache: ManifestCache | None = None,
        decoder: ManifestDecoder | None = None,
    ) -> TableHandle:
        """A handle on a table, loaded now unless its state is given."""
        state = state if state is not None else head.load()
        around = Surroundings(
            storage=storage,
            location=state.metadata.location,
            cache=cache if cache is not None else ManifestCache(),
            now_ms=now_ms,
            new_snapshot_id=new_snapshot_id,
            decoder=decoder,
        )
        return TableHandle(name, head, around, state)

    @property
    def metadata(self) -> TableMetadata:
        """The metadata as seen last."""
        return self.state.metadata

    @property
    def location(self) -> str:
        """Where the table lives."""
        return self.around.location

    @property
    def storage(self) -> Storage:
        """Where its files are."""
        return self.around.storage

    def refresh(self) -> State:
        """Load the current state."""
        self.state = self.head.load()
        return self.state

    def reader(self, metadata: TableMetadata | None = None) -> TreeReader:
        """A reader of this table's trees."""
        return self.around.reader(metadata or self.metadata)

    def tip(self, branch: str = MAIN) -> Snapshot | None:
        """The snapshot a branch or tag pointed at when the table was seen last."""
        return self.state.tip(branch)

    def snapshot(self, snapshot_id: int) -> Snapshot:
        """A snapshot by id, from what is loaded or from the head."""
        return self.state.snapshots.get(snapshot_id) or self.head.snapshot(snapshot_id)

    def check_writable(self) -> None:
        """Refuse at once what no commit could land, before any file is written for it."""
        if isinstance(self.head, ReadOnly):
            raise self.head.refusal()

    def commit(self, change: Change) -> CommitResult:
        """Land a change and take the new state."""
        from frazil.commit.grouped import append_together
        from frazil.commit.loop import commit
        from frazil.commit.result import METADATA, CommitResult
        from frazil.commit.shared_turns import append_in_turn

        self.check_writable()
        began = time.perf_counter()
        done = append_together(
            change, head=self.head, base=self.state, new_id=self.around.new_snapshot_id
        )
        if done is None and self.has_rivals:
            done = append_in_turn(change, head=self.head, around=self.around, base=self.state)
        if done is None:
            base = None if self.has_rivals else self.state
            done = commit(change, head=self.head, around=self.around, base=base)
        self.has_rivals = done.state.version > self.state.version + 1 or done.shared_by > 1
        self.state = done.state
        notes = [note for note in (step(self, done) for step in self.after_commit) if note]
        return CommitResult(
            operation=METADATA if done.snapshot is None else change.operation,
            snapshot=done.snapshot,
            rows_added=done.counts.rows_added,
            rows_removed=done.counts.rows_removed,
            rows_updated=done.counts.rows_updated,
            files_added=done.counts.files_added,
            files_removed=done.counts.files_removed,
            files_updated=done.counts.files_updated,
            metadata_files=done.metadata_files,
            metadata_bytes=done.metadata_bytes,
            attempts=done.attempts,
            shared_by=done.shared_by,
            ms=(time.perf_counter() - began) * 1000,
            notes=tuple(notes),
        )

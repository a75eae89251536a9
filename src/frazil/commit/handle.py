"""One table as the packages above see it: its head, its storage, and how to read and commit.

A handle is what maintenance, other formats and the facades are given; it holds no rules. It knows
two things about the past: the state it loaded last, and for each branch the snapshot whose rows its
owner read last, which an overwrite of rows computed from them is held against.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from frazil.commit.context import CommitContext
from frazil.commit.head import Head, ReadOnly, State, Superseded
from frazil.format.metadata.metadata import MAIN, Snapshot, TableMetadata
from frazil.storage import Storage
from frazil.tree.cache import ManifestCache
from frazil.value_classes import dataclass, field, replace

if TYPE_CHECKING:
    from frazil.commit.change import Change
    from frazil.commit.result import CommitResult
    from frazil.tree.read import ManifestDecoder, TreeReader


def now_ms() -> int:
    """The wall clock in milliseconds."""
    return time.time_ns() // 1_000_000


def new_snapshot_id() -> int:
    """A random positive id; Iceberg's readers take 63 bits."""
    return (int.from_bytes(os.urandom(8)) >> 2) + 1


AfterCommit = Callable[["TableHandle", "CommitResult"], str | None]


@dataclass(slots=True)
class TableHandle:
    """A table's head with what is around it. `state` is what was seen last.

    A live handle is brought up to date by `current` before each use; any other stays where it is
    until it is refreshed or commits.
    """

    name: str
    head: Head
    context: CommitContext
    state: State = field(repr=False)
    has_rivals: bool = field(default=False, repr=False)
    """Whether others committed between this handle's last two commits. Then the state seen last is
    likely stale, and a first attempt on it would be written for nothing."""
    after_commit: tuple[AfterCommit, ...] = field(default=(), repr=False)
    """What follows a commit that has landed, e.g. publishing. It cannot undo the commit, so it must
    not raise; what the caller should know it returns as a note."""
    is_live: bool = field(default=False, repr=False)
    _read: dict[str, int | None] = field(default_factory=dict, repr=False)
    """The snapshot of each branch whose rows were read last."""
    remembered: dict[str, object] = field(default_factory=dict, repr=False, compare=False)
    """What the layers above know of the table from earlier calls, by a name of theirs."""

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
        context = CommitContext(
            storage=storage,
            location=state.metadata.location,
            cache=cache if cache is not None else ManifestCache(),
            now_ms=now_ms,
            new_snapshot_id=new_snapshot_id,
            decoder=decoder,
        )
        return TableHandle(name, head, context, state)

    @property
    def metadata(self) -> TableMetadata:
        """The metadata as seen last."""
        return self.state.metadata

    @property
    def location(self) -> str:
        """Where the table lives."""
        return self.context.location

    @property
    def storage(self) -> Storage:
        """Where its files are."""
        return self.context.storage

    def refresh(self) -> State:
        """Load the current state."""
        try:
            self.state = self.head.load()
        except Superseded as superseded:  # upgraded by someone else
            self.head = superseded.load()
            self.state = self.head.load()
            self.context = replace(self.context, location=self.state.metadata.location)
        return self.state

    def current(self) -> TableHandle:
        """This handle, up to date if it is live."""
        if self.is_live:
            self.refresh()
        return self

    def at_rest(self) -> TableHandle:
        """A copy that stays at the state seen last, whatever becomes of this handle."""
        return replace(self, is_live=False, _read=dict(self._read))

    # What its owner has read

    def note_read(self, branch: str) -> None:
        """The rows of a branch are read, or were offered to be, at the state seen last."""
        self._read[branch] = _tip_id(self.state, branch)

    def last_read(self, branch: str) -> int | None:
        """The snapshot of a branch that was read last; before any reading the one that was current
        when the branch was first used."""
        return self._read.setdefault(branch, _tip_id(self.state, branch))

    def follow(self, other: TableHandle, branch: str, result: CommitResult) -> None:
        """Take what a copy of this handle has committed to a branch."""
        self.state, self.has_rivals = other.state, other.has_rivals
        self._note_own(branch, result.snapshot, shared_by=result.shared_by)

    def reader(self, metadata: TableMetadata | None = None) -> TreeReader:
        """A reader of this table's trees."""
        return self.context.reader(metadata or self.metadata)

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
        from frazil.commit.group_append import append_together
        from frazil.commit.loop import commit
        from frazil.commit.shared_turns import append_in_turn

        self.check_writable()
        began = time.perf_counter()
        result = append_together(
            change, head=self.head, base=self.state, new_id=self.context.new_snapshot_id
        )
        if result is None:
            result = append_in_turn(
                change,
                head=self.head,
                context=self.context,
                base=self.state,
                has_rivals=self.has_rivals,
            )
        if result is None:
            base = None if self.has_rivals else self.state
            result = commit(change, head=self.head, context=self.context, base=base)
        result = self.took(result, change.branch)
        return replace(result, ms=(time.perf_counter() - began) * 1000)

    def took(self, result: CommitResult, branch: str) -> CommitResult:
        """Take the state that a commit to a branch left, and do what follows a commit."""
        assert result.state is not None
        self.has_rivals = result.state.version > self.state.version + 1 or result.shared_by > 1
        self.state = result.state
        self._note_own(branch, result.snapshot, shared_by=result.shared_by)
        notes = [note for note in (step(self, result) for step in self.after_commit) if note]
        return replace(result, notes=(*result.notes, *notes))

    def _note_own(self, branch: str, snapshot: Snapshot | None, *, shared_by: int) -> None:
        """What was read and then changed by this handle alone counts as read: its owner knows both.
        A snapshot that follows others', or holds appends of others, does not."""
        if snapshot is None or shared_by > 1 or branch not in self._read:
            return
        if snapshot.parent_snapshot_id == self._read[branch]:
            self._read[branch] = int(snapshot.snapshot_id)


def _tip_id(state: State, branch: str) -> int | None:
    """The newest snapshot of a branch; one that is not there yet starts from main."""
    tip = state.tip(branch if branch in state.metadata.refs else MAIN)
    return None if tip is None else int(tip.snapshot_id)

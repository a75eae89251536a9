"""The interface to the pointer to a table's current snapshot.

A `Head` loads the state of one table and swaps it for the next by compare-and-set. Catalogs
implement it; the commit loop uses nothing else of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from frazil.errors import CommitConflict, FrazilError
from frazil.format.metadata.metadata import MAIN, Snapshot, TableMetadata
from frazil.value_classes import field, frozen

if TYPE_CHECKING:
    from frazil.commit.result import CommitResult
    from frazil.format.entries.batch import EntryBatch


@frozen
class State:
    """A table as loaded: its metadata, the version to compare, and the snapshots its refs name."""

    version: int
    metadata: TableMetadata
    snapshots: Mapping[int, Snapshot] = field(default_factory=dict)
    metadata_location: str | None = None

    def tip(self, branch: str = MAIN) -> Snapshot | None:
        """The snapshot a branch or tag points at; None when there is none yet."""
        ref = self.metadata.refs.get(branch)
        return None if ref is None else self.snapshots[ref.snapshot_id]


@frozen
class Draft:
    """The next state of a table."""

    metadata: TableMetadata
    added_snapshots: tuple[Snapshot, ...] = ()
    removed_snapshot_ids: tuple[int, ...] = ()


@frozen
class Landed:
    """The drafts are the states of their tables now, in the order they were given."""

    states: tuple[State, ...]


@frozen
class Lost:
    """Another commit came first; nothing of the drafts is visible."""


@frozen
class Unknown:
    """The swap may or may not have happened: ask `landed` before doing anything else."""

    cause: Exception


Outcome = Landed | Lost | Unknown


class Head(Protocol):
    """The pointer to the current snapshot of one table."""

    def load(self) -> State:
        """The current state."""

    def swap(self, base: State, draft: Draft) -> Outcome:
        """Make the draft current if `base` still is.

        An error that is raised means that nothing landed; a doubt is returned as `Unknown`.
        """

    def landed(self, snapshot_id: int) -> State | None:
        """The state, if the table holds that snapshot; None if it does not."""

    def snapshot(self, snapshot_id: int) -> Snapshot:
        """One snapshot of the history; NotFound when it was expired."""

    def snapshots(self) -> Iterable[Snapshot]:
        """The whole history, oldest first."""


@runtime_checkable
class Queue(Protocol):
    """A head whose competing writers can wait for one another."""

    def turn(self) -> AbstractContextManager[None]:
        """Wait until it is this writer's turn to load and swap, first come, first served.

        A turn never blocks the table: a holder that died or takes too long is passed over.
        """


@runtime_checkable
class Neighbour(Protocol):
    """A head that knows where the other tables of its catalog keep their files."""

    def refuse_files_of_others(self, metadata: TableMetadata, locations: Sequence[str]) -> None:
        """InvalidInput if one of the locations, as the table's metadata spells them, is a file
        that another table may delete."""


@frozen
class Offer:
    """An append whose writer waits for its turn, and which whoever comes before may land too."""

    id: int
    branch: str
    summary: Mapping[str, str]
    entries: EntryBatch


class OffersChanged(CommitConflict):
    """An offer that a swap was about to land has been withdrawn; nothing has landed."""


class QueueSlot(Protocol):
    """A writer's place in a queue, with its offer."""

    def wait(self) -> bool:
        """Make the offer, and wait for this writer's turn; False when it got none."""

    def is_open(self) -> bool:
        """Whether the offer is still there: neither landed by another writer nor withdrawn."""

    def offers(self) -> list[Offer]:
        """The offers of all writers that wait, the oldest first."""

    def take(self, ids: Sequence[int]) -> None:
        """Have the next swap land these offers: it takes them away, or raises OffersChanged."""

    def withdraw(self) -> bool:
        """Take the offer back; False when it is not there any more."""


@runtime_checkable
class SharedQueue(Head, Protocol):
    """A head whose writers can land the appends of those that wait behind them."""

    queues_alone: bool
    """Whether a slot costs nothing, so that a writer takes one before it has met rivals."""

    def newest(self, known: State, *, has_rivals: bool) -> State:
        """What a writer whose turn it is builds on first. A state that may be older than the
        table's is told by the swap."""

    def slot(self, offer: Offer) -> AbstractContextManager[QueueSlot | None]:
        """A place in the queue; None where writers wait without offers."""

    def snapshot_holding(self, append_id: int, since: State) -> Snapshot | None:
        """The snapshot that holds an append, of those that were added since a state.

        CommitUnknown when one of them has expired and could be the one.
        """


@runtime_checkable
class Appender(Protocol):
    """A head behind which plain appends of many writers are committed together."""

    def append(
        self,
        base: State,
        entries: EntryBatch,
        *,
        branch: str,
        summary: Mapping[str, str],
        append_id: int,
    ) -> CommitResult | None:
        """Add files to a branch; None when this table's appends are not committed together.

        The result counts no rows and files, which the writer knows. `append_id` tells this append
        from every other, so that it lands once however often it has to be asked for. It is the
        snapshot's id when nobody else is in the snapshot. An error that is raised means that
        nothing landed, except for CommitUnknown.
        """


class Superseded(CommitConflict):
    """Another head has the table now: it was upgraded. `load` opens that one."""

    def __init__(self, message: str, load: Callable[[], Head]) -> None:
        self.load = load
        super().__init__(message)


class ReadOnly(ABC):
    """A head that can be read from and never committed to."""

    @abstractmethod
    def refusal(self) -> FrazilError:
        """Why, and what to do instead."""

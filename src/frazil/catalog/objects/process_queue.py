"""The writers of one process that compete for a table in a bucket: turns, and appends together.

A bucket has no queue, so writers of other processes are met at the swap. Those of one process need
not race each other: they take turns, first come, first served, and whoever's turn it is lands the
appends of those that wait (`frazil.commit.shared_turns`). A turn decides the order, never the
outcome; a writer that waits too long goes on without one.

An offer is open, taken by a writer that is about to land it, or settled: landed, withdrawn, or in
doubt when the store did not say whether the swap landed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, auto

from frazil.catalog.objects.head_object import StoredHead
from frazil.commit.head import Offer, OffersChanged
from frazil.errors import CommitUnknown, FrazilError

MAX_WAIT_S = 10.0
"""Who waits longer for a turn goes on without one."""


class _Offered(Enum):
    OPEN = auto()
    TAKEN = auto()
    LANDED = auto()
    WITHDRAWN = auto()
    DOUBTFUL = auto()


class ProcessQueue:
    """The queue of one table, and the last version of its head that this process has written."""

    def __init__(self, *, longest_s: float = MAX_WAIT_S) -> None:
        self._longest_s = longest_s
        self._changed = threading.Condition()
        self._waiting: list[object] = []
        """Who has the turn, then who waits for it."""
        self._slots: list[ProcessSlot] = []
        self._thread = threading.local()
        self._last: StoredHead | None = None
        self._is_contested = False

    def __reduce__(self) -> tuple[type[ProcessQueue], tuple[()]]:
        return (ProcessQueue, ())

    # The newest head

    @property
    def last(self) -> StoredHead | None:
        """The head that a writer of this process has left last."""
        return self._last

    @property
    def is_contested(self) -> bool:
        """Whether others have committed since: the last head is not likely to be the newest."""
        return self._is_contested

    def landed(self, stored_head: StoredHead) -> None:
        """A swap of this process has landed."""
        with self._changed:
            before = self._last
            if before is None or _is_later(stored_head, before):
                expected = stored_head if before is None else before
                self._is_contested = stored_head.document.version > expected.document.version + 1
                self._last = stored_head
        if self._slot is not None:
            self._slot.settle(_Offered.LANDED)

    def overtaken(self) -> None:
        """A swap of this process has landed, and others after it."""
        self._is_contested = True
        if self._slot is not None:
            self._slot.settle(_Offered.LANDED)

    def saw(self, stored_head: StoredHead) -> None:
        """A version of the last head that holds the same commit."""
        with self._changed:
            if (
                self._last is not None
                and self._last.document.version == stored_head.document.version
            ):
                self._last = stored_head

    def lost(self) -> None:
        """Another writer came first."""
        self._is_contested = True

    def doubted(self) -> None:
        """A swap may or may not have landed."""
        self._is_contested = True
        if self._slot is not None:
            self._slot.is_in_doubt = True

    # Turns

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for this writer's turn, which ends with the block."""
        if getattr(self._thread, "is_held", False):
            yield
            return
        place = object()
        self._enter(place)
        try:
            with self._changed:
                self._changed.wait_for(lambda: self._is_first(place), self._longest_s)
            with self._holding():
                yield
        finally:
            self._leave(place)

    @contextmanager
    def slot(self, offer: Offer) -> Iterator[ProcessSlot | None]:
        """A place in the queue with an offer."""
        if getattr(self._thread, "is_held", False):
            yield None
            return
        slot = ProcessSlot(self, offer)
        self._enter(slot)
        try:
            with self._holding(slot):
                yield slot
            slot.settle(_Offered.LANDED)  # what is still taken: the loop ended without an error
        except CommitUnknown:
            slot.settle(_Offered.DOUBTFUL)
            raise
        except FrazilError:
            slot.settle(_Offered.OPEN)
            raise
        except BaseException:
            slot.settle(_Offered.DOUBTFUL if slot.is_in_doubt else _Offered.OPEN)
            raise
        finally:
            self._leave(slot)

    @property
    def _slot(self) -> ProcessSlot | None:
        return getattr(self._thread, "slot", None)

    @contextmanager
    def _holding(self, slot: ProcessSlot | None = None) -> Iterator[None]:
        self._thread.is_held, self._thread.slot = True, slot
        try:
            yield
        finally:
            self._thread.is_held, self._thread.slot = False, None

    def _is_first(self, place: object) -> bool:
        return self._waiting[0] is place

    def _enter(self, place: object) -> None:
        with self._changed:
            self._waiting.append(place)
            if isinstance(place, ProcessSlot):
                self._slots.append(place)

    def _leave(self, place: object) -> None:
        with self._changed:
            self._waiting.remove(place)
            if isinstance(place, ProcessSlot):
                self._slots.remove(place)
            self._changed.notify_all()


def _is_later(stored_head: StoredHead, before: StoredHead) -> bool:
    is_other = stored_head.document.table_uuid != before.document.table_uuid
    return is_other or stored_head.document.version > before.document.version


class ProcessSlot:
    """A writer's place in the queue, with its offer. Its state changes under the queue's lock."""

    def __init__(self, queue: ProcessQueue, offer: Offer) -> None:
        self._queue = queue
        self._changed = queue._changed
        self.offer = offer
        self.state = _Offered.OPEN
        self.is_in_doubt = False
        """Whether a swap of this writer may have landed what it has taken."""
        self._taken: list[ProcessSlot] = []

    def wait(self) -> bool:
        deadline = time.monotonic() + self._queue._longest_s
        with self._changed:
            while not self._queue._is_first(self):
                if self.state in (_Offered.LANDED, _Offered.DOUBTFUL):
                    return False
                left_s = deadline - time.monotonic()
                if left_s <= 0 and self.state is _Offered.OPEN:
                    return False
                self._changed.wait(max(left_s, 0.1))
            # Its taker has left the queue, so that it is nobody's or settled.
            return self.state is _Offered.OPEN

    def is_open(self) -> bool:
        with self._changed:
            return self.state is _Offered.OPEN or self in self._taken

    def offers(self) -> list[Offer]:
        with self._changed:
            return [slot.offer for slot in self._queue._slots if slot.state is _Offered.OPEN]

    def take(self, ids: Sequence[int]) -> None:
        with self._changed:
            self._settle(_Offered.OPEN)
            open_slots = {
                slot.offer.id: slot for slot in self._queue._slots if slot.state is _Offered.OPEN
            }
            if not open_slots.keys() >= set(ids):
                raise OffersChanged("an append that was to be landed has been withdrawn")
            self._taken = [open_slots[number] for number in ids]
            for slot in self._taken:
                slot.state = _Offered.TAKEN

    def withdraw(self) -> bool:
        with self._changed:
            if self in self._taken:
                self._settle(_Offered.DOUBTFUL if self.is_in_doubt else _Offered.OPEN)
            settled = self._changed.wait_for(
                lambda: self.state is not _Offered.TAKEN, self._queue._longest_s
            )
            if not settled or self.state is _Offered.DOUBTFUL:
                raise CommitUnknown(
                    f"append {self.offer.id} shared a commit with others of this process, and "
                    "whether that has landed is not known. Look for its rows before trying again."
                )
            if self.state is _Offered.LANDED:
                return False
            self.state = _Offered.WITHDRAWN
            return True

    def settle(self, state: _Offered) -> None:
        """Say what became of everything that this writer has taken."""
        with self._changed:
            self._settle(state)

    def _settle(self, state: _Offered) -> None:
        for slot in self._taken:
            slot.state = state
        self._taken = []
        self._changed.notify_all()


__all__ = ["MAX_WAIT_S", "ProcessQueue", "ProcessSlot"]

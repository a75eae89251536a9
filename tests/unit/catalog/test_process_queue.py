"""The queue of one process: an offer is landed or withdrawn, never both."""

from __future__ import annotations

import contextlib
import pickle
import threading
import time
from collections.abc import Callable

import pytest

from frazil.catalog.objects.process_queue import ProcessQueue, ProcessSlot
from frazil.commit.head import Offer, OffersChanged
from frazil.errors import CommitConflict, CommitUnknown
from frazil.format.entries.batch import EntryBatch

_LIMIT_S = 30.0


def offer(number: int) -> Offer:
    entries = EntryBatch.from_rows([{"location": f"data/{number}.parquet"}])
    return Offer(id=number, branch="main", summary={}, entries=entries)


class Waiting:
    """A writer in a thread that waits with an offer, and then gives it up."""

    def __init__(self, queue: ProcessQueue, number: int) -> None:
        self.outcome: object = None
        self.slot: ProcessSlot | None = None
        self._thread = threading.Thread(target=self._run, args=(queue, number))
        self._thread.start()
        end = time.monotonic() + _LIMIT_S
        while self.slot is None:
            assert time.monotonic() < end
            time.sleep(0.001)

    def _run(self, queue: ProcessQueue, number: int) -> None:
        with queue.slot(offer(number)) as slot:
            self.slot = slot
            assert slot is not None
            try:
                self.outcome = slot.wait() or slot.withdraw()
            except CommitUnknown as error:
                self.outcome = error

    def end(self) -> object:
        self._thread.join(_LIMIT_S)
        assert not self._thread.is_alive()
        return self.outcome


def taken_by_first(queue: ProcessQueue, finish: Callable[[ProcessSlot], object]) -> object:
    """What becomes of an offer that a writer takes which ends in some way."""
    with queue.slot(offer(1)) as first:
        assert first is not None
        assert first.wait()
        second = Waiting(queue, 2)
        assert [one.id for one in first.offers()] == [1, 2]
        first.take([1, 2])
        assert first.is_open()
        assert first.offers() == []
        finish(first)
    return second.end()


def test_an_offer_that_was_taken_is_landed_when_its_taker_ends() -> None:
    assert taken_by_first(ProcessQueue(), lambda first: None) is False


def test_an_offer_that_is_let_go_gets_its_turn() -> None:
    assert taken_by_first(ProcessQueue(), lambda first: first.take([1])) is True


@pytest.mark.parametrize(
    ("error", "outcome"), [(CommitConflict("refused"), True), (CommitUnknown("no answer"), None)]
)
def test_the_error_of_a_taker_says_what_became_of_the_others(
    error: Exception, outcome: bool | None
) -> None:
    queue = ProcessQueue()
    with contextlib.suppress(type(error)), queue.slot(offer(1)) as first:
        assert first is not None
        assert first.wait()
        second = Waiting(queue, 2)
        first.take([1, 2])
        raise error
    found = second.end()
    assert found is outcome or (outcome is None and isinstance(found, CommitUnknown))


@pytest.mark.parametrize("is_in_doubt", [False, True])
def test_an_interruption_leaves_a_doubt_only_after_a_swap(is_in_doubt: bool) -> None:
    queue = ProcessQueue()
    with contextlib.suppress(KeyboardInterrupt), queue.slot(offer(1)) as first:
        assert first is not None
        assert first.wait()
        second = Waiting(queue, 2)
        first.take([1, 2])
        if is_in_doubt:
            queue.doubted()
            with pytest.raises(CommitUnknown):
                first.withdraw()
        else:
            assert first.withdraw()
        raise KeyboardInterrupt
    assert isinstance(second.end(), CommitUnknown) == is_in_doubt


def test_an_offer_that_is_withdrawn_cannot_be_taken() -> None:
    queue = ProcessQueue()
    with queue.slot(offer(1)) as first:
        assert first is not None
        assert first.wait()
        with pytest.raises(OffersChanged):
            first.take([1, 7])
        assert first.is_open()
        assert first.withdraw()
        assert not first.is_open()


def test_who_waits_too_long_goes_on_without_a_turn() -> None:
    queue = ProcessQueue(longest_s=0.01)
    with queue.turn():
        second = Waiting(queue, 2)
        assert second.end() is True  # withdrawn
        third = threading.Thread(target=lambda: queue.turn().__enter__())
        third.start()
        third.join(_LIMIT_S)
        assert not third.is_alive()


def test_a_turn_inside_a_turn_is_the_same_one() -> None:
    queue = ProcessQueue()
    with queue.turn(), queue.turn(), queue.slot(offer(1)) as slot:
        assert slot is None


def test_a_queue_stays_in_its_process() -> None:
    assert isinstance(pickle.loads(pickle.dumps(ProcessQueue())), ProcessQueue)

"""Work in threads: every result, in order, and few of them held at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from frazil.cancellation import Cancellation, Cancelled, check, under
from frazil.threads import as_they_come, in_threads


@pytest.mark.parametrize("count", [0, 1, 2, 7, 1_000, 40_000])
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_results_come_in_order(count: int, threads: int) -> None:
    results = in_threads(range(count), lambda number: number * 2, threads=threads)
    assert list(results) == [number * 2 for number in range(count)]


def test_only_a_few_results_wait_to_be_taken() -> None:
    begun = 0
    lock = threading.Lock()

    def work(number: int) -> int:
        nonlocal begun
        with lock:
            begun += 1
        return number

    results = in_threads(range(100_000), work, threads=2)
    assert next(results) == 0
    with lock:
        assert begun <= 2 * 4 * 256 + 2 * 256
    _closed(results)


def test_an_error_ends_the_work() -> None:
    done: list[int] = []

    def work(number: int) -> int:
        if number == 3:
            raise ValueError("three")
        done.append(number)
        return number

    with pytest.raises(ValueError, match="three"):
        list(in_threads(range(10_000), work, threads=2))
    assert len(done) < 10_000


def test_work_begins_while_later_items_are_waited_for() -> None:
    first_is_done = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        assert first_is_done.wait(10)
        yield 2

    def work(number: int) -> int:
        first_is_done.set()
        return number

    assert list(as_they_come(items(), work, threads=2)) == [1, 2]


def test_no_item_is_asked_for_while_threads_are_behind() -> None:
    asked: list[int] = []

    def items() -> Iterator[int]:
        for number in range(1_000):
            asked.append(number)
            yield number

    results = as_they_come(items(), lambda number: number, threads=2)
    assert next(results) == 0
    assert len(asked) <= 2 * 4
    _closed(results)


def _closed(results: Iterator[int]) -> None:
    close = getattr(results, "close", None)
    assert close is not None
    close()


def test_threads_work_in_the_context_of_the_caller() -> None:
    cancellation = Cancellation()
    with under(cancellation):
        results = in_threads(range(100), lambda _: check(), threads=2)
        next(results)
        cancellation.cancel()
        with pytest.raises(Cancelled):
            list(results)

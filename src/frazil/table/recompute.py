"""Changes that are computed from the table, computed again when others changed the same rows.

An update, delete, upsert or merge says what it wants of whatever rows there are, so after a
conflict it means the same on the state that the other writer left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pyarrow as pa

from frazil.commit.handle import TableHandle
from frazil.commit.head import Queue
from frazil.commit.loop import RetryLimits
from frazil.commit.result import CommitResult
from frazil.data.write.row_input import Rows
from frazil.errors import CommitConflict
from frazil.value_classes import replace

MAX_TURN_S = 1.0
"""A change that takes longer is computed outside the table's queue, where it would hold up all."""


def recomputed(
    handle: TableHandle, attempt: Callable[[], CommitResult], *, source: Rows = None
) -> CommitResult:
    """Run an attempt until it lands, within the table's limits for retries.

    An attempt starts from the state that a live handle loads for it. `source` are the rows it
    reads: if they can be read only once, so can the attempt be made only once.
    """
    began = time.perf_counter()
    limits: RetryLimits | None = None
    attempts = 0
    is_quick = False
    while True:
        started = time.perf_counter()
        try:
            with ExitStack() as turn:
                if is_quick and isinstance(handle.head, Queue):
                    turn.enter_context(handle.head.turn())
                result = attempt()
            break
        except CommitConflict as conflict:
            attempts += 1
            now = time.perf_counter()
            is_quick = now - started < MAX_TURN_S
            limits = limits or RetryLimits.of(handle.metadata.properties)
            is_late = (now - began) * 1000 > limits.total_timeout_ms
            if not _is_solved_by_a_retry(conflict, handle):
                raise
            if attempts > limits.num_retries or is_late:
                raise
            if is_read_once(source):
                raise CommitConflict(
                    "other writers changed the same rows, and the input can be read only once; "
                    "call again with the rows",
                    conflict.conflicts,
                ) from conflict
    ms = (time.perf_counter() - began) * 1000
    return replace(result, attempts=result.attempts + attempts, ms=ms)


def _is_solved_by_a_retry(conflict: CommitConflict, handle: TableHandle) -> bool:
    """Whether the conflict is with commits of others, which the next attempt will have seen. One
    that gave up waiting, or a handle that does not move, would meet the same again."""
    return handle.is_live and bool(conflict.conflicts)


def is_read_once(rows: Rows) -> bool:
    """Whether reading rows uses them up."""
    return isinstance(rows, pa.RecordBatchReader | Iterator) or (
        type(rows).__name__ == "Scanner" and type(rows).__module__.startswith("pyarrow")
    )

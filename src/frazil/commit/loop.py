"""The only retry loop: load the head, build, swap; again when the race was lost.

Ends with `Committed`, a CommitConflict (nothing visible, nothing left behind), or a CommitUnknown
(the outcome could not be told: nothing is deleted).
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from frazil.commit.build import Builder, Built
from frazil.commit.change import Change
from frazil.commit.head import Head, Landed, Queue, State, Unknown
from frazil.commit.result import Counts
from frazil.commit.surroundings import Surroundings
from frazil.errors import CommitConflict, CommitUnknown, FrazilError, InvalidInput, NotFound
from frazil.format.metadata import Snapshot
from frazil.storage import Storage

log = logging.getLogger("frazil.commit")

_QUESTIONS = 3
_QUESTION_WAIT_S = 0.05
_DOUBTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryLimits:
    """How long to try, by Iceberg's property names."""

    num_retries: int = 100
    min_wait_ms: int = 2
    max_wait_ms: int = 20
    total_timeout_ms: int = 1_800_000

    @staticmethod
    def of(properties: Mapping[str, str]) -> RetryLimits:
        """The limits that table properties ask for."""
        values = {}
        for field, name in (
            ("num_retries", "commit.retry.num-retries"),
            ("min_wait_ms", "commit.retry.min-wait-ms"),
            ("max_wait_ms", "commit.retry.max-wait-ms"),
            ("total_timeout_ms", "commit.retry.total-timeout-ms"),
        ):
            text = properties.get(name)
            if text is not None:
                if not text.isdigit():
                    raise InvalidInput(f"table property {name} is {text!r}; expected a number")
                values[field] = int(text)
        return RetryLimits(**values)

    def wait_ms(self, *, chance: float) -> float:
        """How long to wait before another attempt: any time between the two limits.

        It does not grow with the attempts, as that lets newcomers overtake whoever waited longest.
        """
        return self.min_wait_ms + max(0, self.max_wait_ms - self.min_wait_ms) * chance


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """A commit that landed: the new state, its snapshot, attempts and metadata written.

    `shared_by` is how many appends the snapshot holds.
    """

    state: State
    snapshot: Snapshot | None
    counts: Counts
    attempts: int
    metadata_files: int
    metadata_bytes: int
    shared_by: int = 1


def commit(
    change: Change,
    *,
    head: Head,
    around: Surroundings,
    base: State | None = None,
    sleep: Callable[[float], None] = time.sleep,
    chance: Callable[[], float] = random.random,
) -> Committed:
    """Land a change. `base` is a state known already: the first attempt trusts it.

    A writer that has none, or has lost its first race, waits for its turn, so that those that wait
    longest come first.
    """
    builder = Builder(change, around, head)
    swaps = _Swaps(head, builder.snapshot_id, sleep)
    landed: tuple[State, Built] | None = None
    attempt = 0
    try:
        with ExitStack() as turn:
            if base is None:
                _queue(head, turn)
            state = base if base is not None else head.load()
            limits = RetryLimits.of(state.metadata.properties)
            deadline = time.monotonic() + limits.total_timeout_ms / 1000
            while True:
                attempt += 1
                built = _build(builder, state, head)
                landed = None if built is None else swaps.attempt(state, built)
                if landed is not None:
                    break
                if attempt > limits.num_retries or time.monotonic() > deadline:
                    raise CommitConflict(
                        f"gave up after {attempt} attempts: other commits kept landing first. "
                        "Raise commit.retry.num-retries, or commit less often."
                    )
                if attempt > 1 or base is None or not _queue(head, turn):
                    wait_ms = limits.wait_ms(chance=chance())
                    log.debug("lost the race (attempt %d), waiting %.0f ms", attempt, wait_ms)
                    sleep(wait_ms / 1000)
                state = head.load()
        return _finished(*landed, builder, around, attempt)
    except CommitUnknown:
        raise
    except BaseException as interruption:
        if landed is None:
            discard(around.storage, builder.written.keys() - swaps.doubted_paths)
            raise
        raise CommitUnknown(
            f"snapshot {builder.snapshot_id} has landed, but what followed was interrupted "
            f"({interruption!r}). Do not repeat it."
        ) from interruption


def _build(builder: Builder, state: State, head: Head) -> Built | None:
    """The draft for a state; None when the state is old and its files are gone by now."""
    try:
        return builder.build(state)
    except NotFound:
        if head.load().version == state.version:
            raise
        return None


def _queue(head: Head, turn: ExitStack) -> bool:
    """Wait for this writer's turn, where the head has a queue."""
    if not isinstance(head, Queue):
        return False
    turn.enter_context(head.turn())
    return True


class _Swaps:
    """The swaps of one commit. Remembers attempts whose outcome was in doubt.

    A reply that was lost may belong to a swap that lands later than the question whether it has:
    from then on every lost race is checked twice, and no file of such an attempt is deleted.
    """

    def __init__(self, head: Head, snapshot_id: int, sleep: Callable[[float], None]) -> None:
        self._head = head
        self._snapshot_id = snapshot_id
        self._sleep = sleep
        self._doubted: list[Built] = []

    @property
    def doubted_paths(self) -> frozenset[str]:
        """Files of attempts that may yet land."""
        return frozenset(path for built in self._doubted for path in built.used_paths)

    def attempt(self, state: State, built: Built) -> tuple[State, Built] | None:
        """The state and the attempt that made it, or None when another commit came first."""
        try:
            outcome = self._head.swap(state, built.draft)
        except FrazilError:
            raise  # the head refused before anything landed
        except BaseException as interruption:
            raise CommitUnknown(
                f"the commit of snapshot {self._snapshot_id} was interrupted in the swap "
                f"({interruption!r}); check whether the snapshot exists before retrying"
            ) from interruption
        if isinstance(outcome, Landed):
            return outcome.state, built
        if isinstance(outcome, Unknown):
            if built.snapshot is None:
                raise CommitUnknown(
                    "the catalog did not answer whether a metadata change landed "
                    f"({outcome.cause}); load the table and check before retrying"
                ) from outcome.cause
            self._doubted.append(built)
            found = self._look(outcome.cause)
            if found is None and len(self._doubted) == _DOUBTS:
                raise CommitUnknown(
                    f"the catalog failed {_DOUBTS} times while committing snapshot "
                    f"{self._snapshot_id} ({outcome.cause}). It had not landed when last looked "
                    "for. Nothing was deleted; check whether the snapshot exists before retrying."
                ) from outcome.cause
            return found
        return self._look(None) if self._doubted else None

    def _look(self, cause: Exception | None) -> tuple[State, Built] | None:
        """After a lost reply: what landed, or None if nothing has so far."""
        for _ in range(_QUESTIONS):
            try:
                state = self._head.landed(self._snapshot_id)
                if state is None:
                    return None
                root = self._head.snapshot(self._snapshot_id).root_manifest
            except FrazilError as error:
                cause = error
                self._sleep(_QUESTION_WAIT_S)
                continue
            return state, next(
                built
                for built in self._doubted
                if built.snapshot is not None and built.snapshot.root_manifest == root
            )
        raise CommitUnknown(
            f"snapshot {self._snapshot_id} may or may not have landed: the catalog could not be "
            f"asked ({cause}). Nothing was deleted; check whether the snapshot exists before "
            "retrying."
        ) from cause


def _finished(
    state: State, built: Built, builder: Builder, around: Surroundings, attempt: int
) -> Committed:
    written = builder.written
    files = written.keys() & built.used_paths
    discard(around.storage, written.keys() - files)
    if built.snapshot is not None:
        log.info(
            "snapshot %d: %s, %d metadata bytes, attempt %d",
            built.snapshot.snapshot_id,
            built.snapshot.operation,
            built.metadata_bytes,
            attempt,
        )
    return Committed(
        state=state,
        snapshot=built.snapshot,
        counts=built.counts,
        attempts=attempt,
        metadata_files=sum(not path.endswith(".puffin") for path in files),
        metadata_bytes=built.metadata_bytes,
    )


@contextmanager
def undoing(undo: Callable[[], object]) -> Iterator[None]:
    """Call `undo` when what is inside fails, but never after an unknown outcome: what is to be
    undone may be part of the table by now."""
    try:
        yield
    except CommitUnknown:
        raise
    except BaseException:
        undo()
        raise


def discard(storage: Storage, written: Iterable[str]) -> None:
    """Remove files that no snapshot uses. What cannot be removed is left to orphan removal."""
    for path in written:
        try:
            storage.delete(path)
        except FrazilError as error:
            log.debug("left behind: %s (%s)", path, error)

"""The only retry loop: load the heads, plan, build, swap; again when the race was lost.

It commits to one table or to several at once: all of them land, or none. What is to be done with a
table is a plan, made again for each state that the loop meets; the plan of a `Change` that can be
replayed is always the same, and what it has written once is used again.

Ends with one `CommitResult` for each table, an error (nothing visible, nothing left behind), or a
CommitUnknown (the outcome could not be told: nothing is deleted).
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import NoReturn

from frazil.commit.build import Built
from frazil.commit.chain import Chain
from frazil.commit.change import Change
from frazil.commit.context import CommitContext
from frazil.commit.head import Draft, Head, Landed, Lost, Outcome, Queue, State, Unknown
from frazil.commit.result import CommitResult
from frazil.errors import CommitConflict, CommitUnknown, FrazilError, NotFound
from frazil.properties.registry import (
    NUM_RETRIES,
    RETRY_MAX_WAIT_MS,
    RETRY_MIN_WAIT_MS,
    RETRY_TOTAL_TIMEOUT_MS,
)
from frazil.storage import Storage
from frazil.storage.base import delete_reporting
from frazil.value_classes import frozen, replace

log = logging.getLogger("frazil.commit")

_QUESTIONS = 3
_QUESTION_WAIT_S = 0.05
_MAX_DOUBTS = 3


@frozen
class RetryLimits:
    """How long to try, by Iceberg's property names."""

    num_retries: int = NUM_RETRIES.default
    min_wait_ms: int = RETRY_MIN_WAIT_MS.default
    max_wait_ms: int = RETRY_MAX_WAIT_MS.default
    total_timeout_ms: int = RETRY_TOTAL_TIMEOUT_MS.default

    @staticmethod
    def of(properties: Mapping[str, str]) -> RetryLimits:
        """The limits that table properties ask for."""
        return RetryLimits(
            num_retries=NUM_RETRIES.of(properties),
            min_wait_ms=RETRY_MIN_WAIT_MS.of(properties),
            max_wait_ms=RETRY_MAX_WAIT_MS.of(properties),
            total_timeout_ms=RETRY_TOTAL_TIMEOUT_MS.of(properties),
        )

    def wait_ms(self, *, chance: float) -> float:
        """How long to wait before another attempt: any time between the two limits.

        It does not grow with the attempts, as that lets newcomers overtake whoever waited longest.
        """
        return self.min_wait_ms + max(0, self.max_wait_ms - self.min_wait_ms) * chance


Plan = Callable[[State], Sequence[Change]]


@frozen
class TableCommit:
    """What to do with one table. `plan` raises to refuse a state.

    `base` is a state known already, which the first attempt trusts: the swap tells whether it still
    is the newest. A plan that would refuse it raises `StaleBase`, and gets the newest instead.
    """

    head: Head
    context: CommitContext
    plan: Plan
    base: State | None = None


class StaleBase(Exception):
    """A plan wants the newest state rather than one that was known already."""


Swap = Callable[[Sequence[tuple[TableCommit, State, Draft]]], Outcome]


def replayed(change: Change) -> Plan:
    """The plan of a change that is the same on every state."""
    changes = (change,)
    return lambda state: changes


def commit(
    change: Change,
    *,
    head: Head,
    context: CommitContext,
    base: State | None = None,
    sleep: Callable[[float], None] = time.sleep,
    chance: Callable[[], float] = random.random,
) -> CommitResult:
    """Land a change. `base` is a state known already: the first attempt trusts it.

    A writer that has none waits for its turn before it begins.
    """
    table = TableCommit(head=head, context=context, plan=replayed(change), base=base)
    (result,) = commit_tables([table], in_turn=base is None, sleep=sleep, chance=chance)
    return result


def commit_tables(
    tables: Sequence[TableCommit],
    swap: Swap | None = None,
    *,
    in_turn: bool = False,
    sleep: Callable[[float], None] = time.sleep,
    chance: Callable[[], float] = random.random,
) -> tuple[CommitResult, ...]:
    """Plan, build and swap until it lands. `swap` is needed for several tables.

    A writer that has lost its first race waits for its turn, so that those that wait longest come
    first; with `in_turn` it begins with that.
    """
    if not tables:
        return ()
    running = _Commit(tables, swap or _swap_alone, sleep)
    try:
        with ExitStack() as turns:
            if in_turn:
                _take_turns(tables, turns)
            landed = running.land(turns, chance, is_queued=in_turn)
        return running.finished(landed)
    except CommitUnknown:
        raise
    except BaseException as error:
        running.fail(error)


@frozen
class _Attempt:
    """Drafts of all tables, built on the states they were planned for."""

    states: tuple[State, ...]
    built: tuple[Built, ...]

    @property
    def files(self) -> Iterator[str]:
        return (path for one in self.built for path in one.used_paths)


_Landed = tuple[_Attempt, tuple[State, ...]]


class _Commit:
    """One run of the loop: what its attempts have written, and which of them are in doubt."""

    def __init__(
        self, tables: Sequence[TableCommit], swap: Swap, sleep: Callable[[float], None]
    ) -> None:
        self._tables = tables
        self._swap = swap
        self._sleep = sleep
        self._chains: list[Chain | None] = [None] * len(tables)
        self._attempts = 0
        self._landed: _Landed | None = None
        self._doubts: list[_Attempt] = []
        """Attempts whose reply was lost. Such a swap may land later than the question whether it
        has: until it cannot any more, nothing it uses is deleted and no error is certain."""
        self._doubts_total = 0

    def land(self, turns: ExitStack, chance: Callable[[], float], *, is_queued: bool) -> _Landed:
        """Attempt until a swap lands."""
        bases = [table.base for table in self._tables]
        deadline: float | None = None
        while True:
            states = [
                table.head.load() if base is None else base
                for table, base in zip(self._tables, bases, strict=True)
            ]
            if self._doubts and (landed := self._settle_doubts()) is not None:
                return landed
            limits = RetryLimits.of(states[0].metadata.properties)
            deadline = deadline or time.monotonic() + limits.total_timeout_ms / 1000
            # A known state is trusted for one attempt only: what fails on it may be its age.
            is_trusting, bases = any(bases), [None] * len(self._tables)
            try:
                attempt: _Attempt | None = self._build(states)
            except StaleBase:
                if not is_trusting:
                    raise
                continue
            except FrazilError as error:
                # Files of an old state may be gone, and what it refuses the newest may allow.
                is_excused = is_trusting or isinstance(error, NotFound)
                if not is_excused or not self._has_moved(states):
                    raise
                if is_trusting:
                    continue
                attempt = None
            self._attempts += 1
            if attempt is not None and (landed := self._swapped(attempt)) is not None:
                return landed
            if self._attempts > limits.num_retries or time.monotonic() > deadline:
                raise CommitConflict(
                    f"gave up after {self._attempts} attempts: other commits kept landing first. "
                    "Raise commit.retry.num-retries, or commit less often."
                )
            # Who is in the queue, or has none, waits a random time.
            if is_queued or not _take_turns(self._tables, turns):
                wait_ms = limits.wait_ms(chance=chance())
                log.debug("lost the race (attempt %d), waiting %.0f ms", self._attempts, wait_ms)
                self._sleep(wait_ms / 1000)
            is_queued = True

    def _build(self, states: Sequence[State]) -> _Attempt:
        built: list[Built] = []
        for number, (table, state) in enumerate(zip(self._tables, states, strict=True)):
            changes = table.plan(state)
            chain = self._chains[number]
            if chain is None or not chain.is_of(changes):
                if chain is not None:
                    self._discard(table, chain)
                chain = self._chains[number] = Chain(changes, table.context, table.head)
            built.append(chain.build(state))
        return _Attempt(states=tuple(states), built=tuple(built))

    def _has_moved(self, states: Sequence[State]) -> bool:
        return any(
            table.head.load().version != state.version
            for table, state in zip(self._tables, states, strict=True)
        )

    def _swapped(self, attempt: _Attempt) -> _Landed | None:
        """What landed, or None when another commit came first."""
        drafts = [
            (table, state, one.draft)
            for table, state, one in zip(self._tables, attempt.states, attempt.built, strict=True)
        ]
        try:
            outcome = self._swap(drafts)
        except FrazilError:
            raise  # refused before anything landed
        except BaseException as interruption:
            raise CommitUnknown(
                f"the commit of {_named(attempt)} was interrupted in the swap ({interruption!r}); "
                "check whether it landed before retrying"
            ) from interruption
        if isinstance(outcome, Landed):
            self._landed = (attempt, outcome.states)
            return self._landed
        if isinstance(outcome, Lost):
            return self._settle_doubts()
        self._doubts.append(attempt)
        self._doubts_total += 1
        landed = self._settle_doubts(outcome)
        if landed is None and self._doubts_total == _MAX_DOUBTS:
            raise CommitUnknown(
                f"the catalog failed {_MAX_DOUBTS} times while committing {_named(attempt)} "
                f"({outcome.cause}). It had not landed at the last check. Nothing was deleted; "
                "check whether it landed before retrying."
            ) from outcome.cause
        return landed

    def _settle_doubts(self, outcome: Unknown | None = None) -> _Landed | None:
        """The attempt in doubt that has landed, if one has. Those that cannot land any more are in
        doubt no longer: their tables have moved on without them."""
        open_doubts: list[_Attempt] = []
        for attempt in self._doubts:
            states, can_land = self._asked(attempt, outcome)
            if states is not None:
                self._doubts = []
                self._landed = (attempt, states)
                return self._landed
            if can_land:
                open_doubts.append(attempt)
        self._doubts = open_doubts
        return None

    def _asked(
        self, attempt: _Attempt, outcome: Unknown | None
    ) -> tuple[tuple[State, ...] | None, bool]:
        """The states, if an attempt has landed; else whether it still can."""
        # One swap lands all tables, so that the snapshot of one of them speaks for all.
        table, state, snapshot = next(
            (
                (table, state, one.result.snapshot)
                for table, state, one in zip(
                    self._tables, attempt.states, attempt.built, strict=True
                )
                if one.result.snapshot is not None
            ),
            (self._tables[0], attempt.states[0], None),
        )
        cause: Exception | None = None if outcome is None else outcome.cause
        if snapshot is None:
            raise CommitUnknown(
                "the catalog did not answer whether a metadata change landed "
                f"({cause}); load the table and check before retrying"
            ) from cause
        for _ in range(_QUESTIONS):
            try:
                # Its version is read first: one that has moved on has moved on for the question.
                can_land = table.head.load().version == state.version
                if table.head.landed(int(snapshot.snapshot_id)) is None:
                    return None, can_land
                # The id may be another writer's as well, who was sent the same append.
                stored = table.head.snapshot(int(snapshot.snapshot_id))
                if stored.root_manifest != snapshot.root_manifest:
                    return None, can_land
                return tuple(table.head.load() for table in self._tables), False
            except FrazilError as error:
                cause = error
                self._sleep(_QUESTION_WAIT_S)
        raise CommitUnknown(
            f"{_named(attempt)} may or may not have landed: the catalog could not be asked "
            f"({cause}). Nothing was deleted; check whether it landed before retrying."
        ) from cause

    def finished(self, landed: _Landed) -> tuple[CommitResult, ...]:
        """What landed, once files that only other attempts used are gone."""
        attempt, states = landed
        results = []
        for number, (table, state, one) in enumerate(
            zip(self._tables, states, attempt.built, strict=True)
        ):
            chain = self._chains[number]
            assert chain is not None
            self._discard(table, chain, keep=one.used_paths)
            result = replace(one.result, state=state, attempts=self._attempts)
            if result.snapshot is not None:
                log.info(
                    "snapshot %d: %s, %d metadata bytes, attempt %d",
                    result.snapshot_id,
                    result.operation,
                    result.metadata_bytes,
                    self._attempts,
                )
            results.append(result)
        return tuple(results)

    def fail(self, error: BaseException) -> NoReturn:
        """End with an error: nothing is left behind that no swap can use any more."""
        if self._landed is not None:
            raise CommitUnknown(
                f"{_named(self._landed[0])} has landed, but what followed was interrupted "
                f"({error!r}). Do not repeat it."
            ) from error
        for table, chain in zip(self._tables, self._chains, strict=True):
            if chain is not None:
                self._discard(table, chain)
        if self._doubts:
            raise CommitUnknown(
                f"{_named(self._doubts[-1])} had not landed at the last check, but still may: the "
                f"catalog did not answer, and then the commit failed ({error}). Check whether it "
                "landed before retrying."
            ) from error
        raise error

    def _discard(self, table: TableCommit, chain: Chain, *, keep: Iterable[str] = ()) -> None:
        """Remove what a chain wrote; files of attempts in doubt may be in use and stay."""
        doubted = {path for attempt in self._doubts for path in attempt.files}
        discard(table.context.storage, chain.written.keys() - doubted - set(keep))


def _take_turns(tables: Sequence[TableCommit], turns: ExitStack) -> bool:
    """Wait for this writer's turn at every table that has a queue; whether one has."""
    # Everyone takes turns in one order, or two writers would wait for each other.
    queues = [
        table.head
        for table in sorted(tables, key=lambda table: table.context.location)
        if isinstance(table.head, Queue)
    ]
    for queue in queues:
        turns.enter_context(queue.turn())
    return bool(queues)


def _swap_alone(drafts: Sequence[tuple[TableCommit, State, Draft]]) -> Outcome:
    ((table, state, draft),) = drafts
    return table.head.swap(state, draft)


def _named(attempt: _Attempt) -> str:
    ids = [str(one.result.snapshot_id) for one in attempt.built if one.result.snapshots]
    if not ids:
        return "a metadata change"
    return f"snapshot{'s' if len(ids) > 1 else ''} {', '.join(ids)}"


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
    for path, error in delete_reporting(storage, list(written)).items():
        log.debug("left behind: %s (%s)", path, error)

"""The only retry loop: load the head, build, swap; again when the race was lost.

Ends with `Committed`, a CommitConflict (nothing visible, nothing left behind), or a CommitUnknown
(the outcome could not be told: nothing is deleted).
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from frazil.commit.build import Builder, Built, Surroundings
from frazil.commit.change import Change
from frazil.commit.head import Head, Landed, Lost, State
from frazil.errors import CommitConflict, CommitUnknown, FrazilError, InvalidInput, StorageError
from frazil.format.metadata import Snapshot
from frazil.storage import Storage

log = logging.getLogger("frazil.commit")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryLimits:
    """How long to try, by Iceberg's property names."""

    num_retries: int = 100
    min_wait_ms: int = 2
    max_wait_ms: int = 1_000
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

    def wait_ms(self, attempt: int, *, chance: float) -> float:
        """How long to wait before an attempt: exponential, with full jitter."""
        ceiling = min(self.max_wait_ms, self.min_wait_ms * 2 ** min(attempt, 30))
        return self.min_wait_ms + (ceiling - self.min_wait_ms) * chance


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """What a commit did: the new state, its snapshot, attempts and metadata written."""

    state: State
    snapshot: Snapshot | None
    attempts: int
    metadata_files: int
    metadata_bytes: int


def commit(
    change: Change,
    *,
    head: Head,
    around: Surroundings,
    base: State | None = None,
    sleep: Callable[[float], None] = time.sleep,
    chance: Callable[[], float] = random.random,
) -> Committed:
    """Land a change. `base` is a state known already: the first attempt trusts it."""
    builder = Builder(change, around, head)
    state = base if base is not None else head.load()
    limits = RetryLimits.of(state.metadata.properties)
    deadline = time.monotonic() + limits.total_timeout_ms / 1000
    attempt = 0
    try:
        while True:
            attempt += 1
            built = builder.build(state)
            outcome = head.swap(state, built.draft)
            if isinstance(outcome, Landed):
                return _landed(outcome.state, built, builder, around, attempt)
            if not isinstance(outcome, Lost):
                found = _ask(head, built, builder.snapshot_id, outcome.cause)
                if found is not None:
                    return _landed(found, built, builder, around, attempt)
            if attempt > limits.num_retries or time.monotonic() > deadline:
                raise CommitConflict(
                    f"gave up after {attempt} attempts: other commits kept landing first. "
                    "Raise commit.retry.num-retries, or commit less often."
                )
            wait_ms = limits.wait_ms(attempt, chance=chance())
            log.debug("lost the race (attempt %d), waiting %.0f ms", attempt, wait_ms)
            sleep(wait_ms / 1000)
            state = head.load()
    except CommitUnknown:
        raise
    except BaseException:
        discard(around.storage, builder.written)
        raise


def _ask(head: Head, built: Built, snapshot_id: int, cause: Exception) -> State | None:
    """After a lost reply: the state if the commit landed, None if it surely did not."""
    if built.snapshot is None:
        raise CommitUnknown(
            f"the catalog did not answer whether a metadata change landed ({cause}); "
            "load the table and look before trying again"
        ) from cause
    for _ in range(3):
        try:
            return head.landed(snapshot_id)
        except FrazilError as error:
            cause = error
            time.sleep(0.05)
    raise CommitUnknown(
        f"snapshot {snapshot_id} may or may not have landed: the catalog could not be asked "
        f"({cause}). Nothing was deleted; look for the snapshot before trying again."
    ) from cause


def _landed(
    state: State, built: Built, builder: Builder, around: Surroundings, attempt: int
) -> Committed:
    kept = {*built.used_paths, built.root_path}
    discard(around.storage, [path for path in builder.written if path not in kept])
    files = [path for path in builder.written if path in kept]
    if built.snapshot is not None:
        log.info(
            "snapshot %d: %s, %d metadata bytes, %d attempt(s)",
            built.snapshot.snapshot_id,
            built.snapshot.operation,
            built.metadata_bytes,
            attempt,
        )
    return Committed(
        state=state,
        snapshot=built.snapshot,
        attempts=attempt,
        metadata_files=sum(not path.endswith(".puffin") for path in files),
        metadata_bytes=built.metadata_bytes,
    )


def discard(storage: Storage, written: Mapping[str, int] | list[str]) -> None:
    """Remove files that no snapshot uses. What cannot be removed is left to orphan removal."""
    for path in written:
        try:
            storage.delete(path)
        except StorageError as error:
            log.debug("left behind: %s (%s)", path, error)

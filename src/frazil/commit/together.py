"""Commits that are planned again for every attempt, of one table or of several at once.

The loop of `frazil.commit.loop` replays a change on whatever head it meets. Here the caller decides
for each head what the change is: it checks the state it is given and says what to do with it. All
tables land, or none.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from frazil.commit.build import Built
from frazil.commit.chain import Chain
from frazil.commit.change import Change
from frazil.commit.head import AllLanded, Draft, Head, Outcomes, Queue, State, Unknown
from frazil.commit.loop import RetryLimits, discard
from frazil.commit.surroundings import Surroundings
from frazil.errors import CommitConflict, CommitUnknown, FrazilError

Plan = Callable[[State], Sequence[Change]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What to do with one table. `plan` raises to refuse a state.

    `base` is a state known already, which the first attempt trusts: the swap tells whether it still
    is the newest. A plan that would refuse it raises `StaleBase`, and gets the newest instead.
    """

    head: Head
    around: Surroundings
    plan: Plan
    base: State | None = None


class StaleBase(Exception):
    """A plan wants the newest state rather than one that was known already."""


Swap = Callable[[Sequence[tuple[Work, State, Draft]]], Outcomes]


def commit_together(works: Sequence[Work], swap: Swap) -> tuple[State, ...]:
    """Plan, build and swap until it lands; raises what a plan raises, and nothing has landed then.

    CommitUnknown when the outcome could not be told: nothing is deleted.
    """
    with ExitStack() as turns:
        return _landed(works, swap, turns)


def _landed(works: Sequence[Work], swap: Swap, turns: ExitStack) -> tuple[State, ...]:
    attempt = 0
    bases = [work.base for work in works]
    while True:
        attempt += 1
        states = [base or work.head.load() for work, base in zip(works, bases, strict=True)]
        is_trusting, bases = any(bases), [None] * len(works)
        chains: list[tuple[Work, Chain]] = []
        keep = False
        try:
            built: list[Built] = []
            for work, state in zip(works, states, strict=True):
                chain = Chain(work.plan(state), work.around, work.head)
                chains.append((work, chain))
                built.append(chain.build(state))
            drafts = [
                (work, state, one.draft)
                for work, state, one in zip(works, states, built, strict=True)
            ]
            outcome = _swapped(swap, drafts)
            if isinstance(outcome, Unknown):
                keep = True
                return _after_doubt(works, built, outcome)
            if isinstance(outcome, AllLanded):
                keep = True
                return outcome.states
        except CommitUnknown:
            keep = True
            raise
        except (StaleBase, FrazilError):
            if not is_trusting:
                raise
            attempt -= 1
            continue
        finally:
            if not keep:
                for work, chain in chains:
                    discard(work.around.storage, chain.written)
        limits = RetryLimits.of(states[0].metadata.properties)
        if attempt > limits.num_retries:
            raise CommitConflict(f"gave up after {attempt} attempts: other commits came first")
        if attempt == 1:
            # Everyone takes turns in one order, or two writers would wait for each other.
            for work in sorted(works, key=lambda work: work.around.location):
                if isinstance(work.head, Queue):
                    turns.enter_context(work.head.turn())
        else:
            time.sleep(min(attempt, 10) * random.random() * 0.01)


def _swapped(swap: Swap, drafts: Sequence[tuple[Work, State, Draft]]) -> Outcomes:
    try:
        return swap(drafts)
    except FrazilError:
        raise  # refused before anything landed
    except BaseException as interruption:
        raise CommitUnknown(
            f"the commit was interrupted in the swap ({interruption!r}); load the table and check "
            "before retrying"
        ) from interruption


def _after_doubt(
    works: Sequence[Work], built: Sequence[Built], doubt: Unknown
) -> tuple[State, ...]:
    """The states, if a snapshot of one table is there: then all have landed."""
    for work, one in zip(works, built, strict=True):
        if one.snapshot is not None:
            try:
                if work.head.landed(int(one.snapshot.snapshot_id)) is not None:
                    return tuple(each.head.load() for each in works)
            except FrazilError as error:
                raise CommitUnknown(str(error)) from error
    raise CommitUnknown(
        f"the catalog did not answer whether the commit landed ({doubt.cause}); load the table and "
        "check before retrying"
    ) from doubt.cause

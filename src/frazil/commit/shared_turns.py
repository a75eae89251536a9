"""Appends of writers that wait for their turn, landed by whoever's turn it is.

A writer that competes offers its append while it waits. The one whose turn comes builds one
snapshot of its own append and of all that were offered with the same branch and summary. A writer
whose turn comes later finds its offer gone, and the snapshot that holds it.

An offer is landed or withdrawn, never both: see `frazil.commit.head.Seat`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from frazil.commit.change import Change
from frazil.commit.grouped import GROUP_SIZE, group_summary, own_counts, shareable
from frazil.commit.head import Head, Offer, OffersChanged, Seat, SharedQueue, State
from frazil.commit.loop import Committed, commit
from frazil.commit.summary import LEAVES_WRITTEN, METADATA_BYTES_WRITTEN
from frazil.commit.surroundings import Surroundings
from frazil.errors import CommitUnknown, FrazilError
from frazil.format.batch import EntryBatch
from frazil.format.metadata import Snapshot

_TRIES = 3


def append_in_turn(
    change: Change, *, head: Head, around: Surroundings, base: State
) -> Committed | None:
    """Land an append with those that others offer; None when it has to go its own way."""
    if not isinstance(head, SharedQueue) or (added := shareable(change, base)) is None:
        return None
    offer = Offer(
        id=around.new_snapshot_id(),
        branch=change.branch,
        summary=change.summary,
        entries=added,
    )
    work = _Work(change=change, offer=offer, head=head, around=around)
    with head.seat(offer) as seat:
        if seat is None:
            return None
        try:
            landed = _landed(work, seat)
        except CommitUnknown:
            raise
        except BaseException as interruption:
            _take_back(work, seat, base, interruption)
            raise
    if isinstance(landed, Committed):
        return landed
    return None if landed else _found(work, base)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    change: Change
    offer: Offer
    head: SharedQueue
    around: Surroundings


def _landed(work: _Work, seat: Seat) -> Committed | bool:
    """The commit of the group; else whether the offer was taken back, because there was no turn.
    False means that it is gone: another writer has landed it."""
    if not seat.wait():
        return seat.withdraw()
    for last in (*(False,) * (_TRIES - 1), True):
        if not seat.is_open():
            return False
        try:
            return _committed(work, seat, [] if last else seat.offers())
        except OffersChanged:
            continue
        except CommitUnknown:
            raise
        except (FrazilError, pa.ArrowException):
            if not seat.is_open():
                return False
            return _committed(work, seat, [])  # one that cannot be landed must not fail this one
    return seat.withdraw()


def _committed(work: _Work, seat: Seat, offers: Sequence[Offer]) -> Committed:
    """Commit the append, and with it the offers that can share its snapshot."""
    own, head = work.offer, work.head
    summary = dict(own.summary)
    group = [own]
    group += [
        each
        for each in offers
        if each.id != own.id and each.branch == own.branch and each.summary == summary
    ]
    ids = tuple(each.id for each in group)
    seat.take(ids)
    together = replace(
        work.change,
        added=EntryBatch.concat([each.entries for each in group]),
        summary={**summary, **group_summary(ids)},
        snapshot_id=own.id,
    )
    done = commit(together, head=head, around=work.around, base=head.load())
    return replace(done, counts=own_counts(own.entries), shared_by=len(group))


def _found(work: _Work, base: State) -> Committed | None:
    """The commit that landed the offer; None when it was cleared away without being landed."""
    snapshot = work.head.holder(work.offer.id, base)
    return None if snapshot is None else _as_committed(work, snapshot, work.head.load())


def _as_committed(work: _Work, snapshot: Snapshot, state: State) -> Committed:
    summary = snapshot.summary
    return Committed(
        state=state,
        snapshot=snapshot,
        counts=own_counts(work.offer.entries),
        attempts=1,
        metadata_files=1 + int(summary.get(LEAVES_WRITTEN, "0")),
        metadata_bytes=int(summary.get(METADATA_BYTES_WRITTEN, "0")),
        shared_by=int(summary.get(GROUP_SIZE, "1")),
    )


def _take_back(work: _Work, seat: Seat, base: State, interruption: BaseException) -> None:
    """After an error or an interruption: nobody must land the append any more."""
    try:
        if seat.withdraw() or work.head.holder(work.offer.id, base) is None:
            return
    except FrazilError as error:
        raise CommitUnknown(
            f"append {work.offer.id} was interrupted ({interruption!r}), and whether another "
            f"writer has landed it could not be told ({error}). Look for its rows before trying "
            "again."
        ) from interruption
    raise CommitUnknown(
        f"append {work.offer.id} was interrupted ({interruption!r}), but another writer has landed "
        "it. Do not repeat it."
    ) from interruption


__all__ = ["append_in_turn"]

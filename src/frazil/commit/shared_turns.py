"""Appends of writers that wait for their turn, landed by whoever's turn it is.

A writer that competes offers its append while it waits. The one whose turn comes builds one
snapshot of its own append and of all that were offered with the same branch and summary. A writer
whose turn comes later finds its offer gone, and the snapshot that holds it.

An offer is landed or withdrawn, never both: see `frazil.commit.head.QueueSlot`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from frazil.commit.change import Change
from frazil.commit.context import CommitContext
from frazil.commit.group_append import GROUP_SIZE, group_summary, of_own, shareable
from frazil.commit.head import Head, Offer, OffersChanged, QueueSlot, SharedQueue, State
from frazil.commit.loop import commit
from frazil.commit.result import CommitResult
from frazil.commit.summary import LEAVES_WRITTEN, METADATA_BYTES_WRITTEN
from frazil.errors import CommitUnknown, FrazilError
from frazil.format.entries.batch import EntryBatch
from frazil.format.metadata.metadata import Snapshot
from frazil.value_classes import frozen, replace

_TRIES = 3


def append_in_turn(
    change: Change, *, head: Head, context: CommitContext, base: State, has_rivals: bool
) -> CommitResult | None:
    """Land an append with those that others offer; None when it has to go its own way."""
    if not isinstance(head, SharedQueue) or not (has_rivals or head.queues_alone):
        return None
    if (added := shareable(change, base)) is None:
        return None
    offer = Offer(
        id=context.new_snapshot_id(),
        branch=change.branch,
        summary=change.summary,
        entries=added,
    )
    work = _Work(
        change=change, offer=offer, head=head, context=context, base=base, has_rivals=has_rivals
    )
    with head.slot(offer) as slot:
        if slot is None:
            return None
        try:
            landed = _landed(work, slot)
        except CommitUnknown:
            raise
        except BaseException as interruption:
            _take_back(work, slot, base, interruption)
            raise
    if isinstance(landed, CommitResult):
        return landed
    return None if landed else _found(work, base)


@frozen
class _Work:
    change: Change
    offer: Offer
    head: SharedQueue
    context: CommitContext
    base: State
    has_rivals: bool


def _landed(work: _Work, slot: QueueSlot) -> CommitResult | bool:
    """The commit of the group; else whether the offer was taken back, because there was no turn.
    False means that it is gone: another writer has landed it."""
    if not slot.wait():
        return slot.withdraw()
    for last in (*(False,) * (_TRIES - 1), True):
        if not slot.is_open():
            return False
        others = [] if last else [offer for offer in slot.offers() if _can_share(work.offer, offer)]
        try:
            return _committed(work, slot, others)
        except OffersChanged:
            continue
        except CommitUnknown:
            raise
        except (FrazilError, pa.ArrowException):
            if not slot.is_open():
                return False
            if not others:
                raise
            return _committed(work, slot, [])  # one that cannot be landed must not fail this one
    return slot.withdraw()


def _can_share(own: Offer, other: Offer) -> bool:
    is_alike = other.branch == own.branch and dict(other.summary) == dict(own.summary)
    return other.id != own.id and is_alike


def _committed(work: _Work, slot: QueueSlot, others: Sequence[Offer]) -> CommitResult:
    """Commit the append, and with it the offers that can share its snapshot."""
    own, head = work.offer, work.head
    summary = dict(own.summary)
    group = [own, *others]
    ids = tuple(offer.id for offer in group)
    slot.take(ids)
    together = replace(
        work.change,
        added=EntryBatch.concat([offer.entries for offer in group]),
        summary={**summary, **group_summary(ids)},
        snapshot_id=own.id,
    )
    base = head.newest(work.base, has_rivals=work.has_rivals)
    result = commit(together, head=head, context=work.context, base=base)
    return replace(of_own(result, own.entries), shared_by=len(group))


def _found(work: _Work, base: State) -> CommitResult | None:
    """The commit that landed the offer; None when it was cleared away without being landed."""
    snapshot = work.head.snapshot_holding(work.offer.id, base)
    if snapshot is None:
        return None
    return _as_committed(work, snapshot, work.head.newest(base, has_rivals=True))


def _as_committed(work: _Work, snapshot: Snapshot, state: State) -> CommitResult:
    summary = snapshot.summary
    result = CommitResult(
        operation="append",
        state=state,
        snapshots=(snapshot,),
        attempts=1,
        metadata_files=1 + int(summary.get(LEAVES_WRITTEN, "0")),
        metadata_bytes=int(summary.get(METADATA_BYTES_WRITTEN, "0")),
        shared_by=int(summary.get(GROUP_SIZE, "1")),
    )
    return of_own(result, work.offer.entries)


def _take_back(work: _Work, slot: QueueSlot, base: State, interruption: BaseException) -> None:
    """After an error or an interruption: nobody must land the append any more."""
    try:
        if slot.withdraw() or work.head.snapshot_holding(work.offer.id, base) is None:
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

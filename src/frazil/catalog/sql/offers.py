"""Appends that wait in PostgreSQL's queue, where the writer whose turn it is can land them too.

An offer is a row with the entries of one append. The swap that lands it removes the row in the same
transaction, and so does its writer when it withdraws it: whoever removes the row decides. While a
writer waits it holds a lock with the number of its offer, so that an offer without a lock belongs
to a writer that has died. Such an offer is never landed: nobody knows whether the same rows were
appended again since.

The table is not logged. A database that crashes forgets the offers, and their writers with them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from frazil.catalog.database.database import Database, DatabaseTransaction
from frazil.commit.head import Offer, OffersChanged
from frazil.errors import CatalogError

if TYPE_CHECKING:
    import logging

    import pyarrow as pa

    from frazil.format.entries.batch import EntryBatch


MAX_OFFERS = 64
"""Appends that one swap lands; the others wait for the next."""

CREATE_OFFERS = """
CREATE UNLOGGED TABLE IF NOT EXISTS frazil_offers (
  offer_id BIGINT NOT NULL PRIMARY KEY, table_id BIGINT NOT NULL, since TIMESTAMP NOT NULL,
  branch TEXT NOT NULL, summary TEXT NOT NULL, entries BYTEA NOT NULL)
"""
_MAKE = """
INSERT INTO frazil_offers VALUES (:id, :table_id, clock_timestamp(), :branch, :summary, :entries)
RETURNING offer_id
"""
_IS_OPEN = "SELECT 1 FROM frazil_offers WHERE offer_id = :id"
_OPEN = f"""
SELECT offer_id, branch, summary, entries, pg_try_advisory_xact_lock(offer_id) FROM frazil_offers
WHERE table_id = :table_id ORDER BY since LIMIT {MAX_OFFERS}
"""
_WITHDRAW = "DELETE FROM frazil_offers WHERE offer_id = :id RETURNING offer_id"
_TAKE = "DELETE FROM frazil_offers WHERE offer_id = ANY(:ids)"


class OfferSlot:
    """A place in the queue of one table, with the two things only the queue can do: wait for the
    turn, and note which offers the next swap lands."""

    def __init__(
        self,
        database: Database,
        table_id: int,
        offer: Offer,
        *,
        wait: Callable[[], None],
        take: Callable[[tuple[int, ...]], None],
    ) -> None:
        self._database = database
        self._table_id = table_id
        self._offer = offer
        self._wait = wait
        self._take = take

    def wait(self) -> bool:
        """Make the offer and wait for the turn; False when the database gave none."""
        offer = self._offer
        values = {
            "id": offer.id,
            "table_id": self._table_id,
            "branch": offer.branch,
            "summary": json.dumps(dict(offer.summary), sort_keys=True),
            "entries": entries_bytes(offer.entries).to_pybytes(),
        }
        try:
            self._database.rows(_MAKE, values)
            self._wait()
        except CatalogError as error:
            _log().debug("no turn: %s", error)
            return False
        return True

    def is_open(self) -> bool:
        """Whether the offer is still there."""
        return bool(self._database.rows(_IS_OPEN, {"id": self._offer.id}))

    def offers(self) -> list[Offer]:
        """The offers of writers that live; those of others are cleared away."""
        import pyarrow as pa

        from frazil.format.entries.batch import EntryBatch

        offers: list[Offer] = []
        for number, branch, summary, entries, is_dead in self._database.rows(
            _OPEN, {"table_id": self._table_id}
        ):
            if is_dead:
                self._database.rows(_WITHDRAW, {"id": number})
                continue
            try:
                batch = EntryBatch(pa.ipc.open_stream(entries).read_all().combine_chunks())
            except (pa.ArrowException, OSError) as error:
                _log().debug("offer %d is left to its writer: %s", number, error)
                continue
            offers.append(
                Offer(id=number, branch=branch, summary=json.loads(summary), entries=batch)
            )
        return offers

    def take(self, ids: Sequence[int]) -> None:
        """Have the next swap land these offers."""
        self._take(tuple(ids))

    def withdraw(self) -> bool:
        """Take the offer back; False when it is not there."""
        return bool(self._database.rows(_WITHDRAW, {"id": self._offer.id}))


def land(transaction: DatabaseTransaction, ids: Sequence[int]) -> None:
    """Remove offers together with the swap that lands them."""
    if ids and transaction.run(_TAKE, {"ids": list(ids)}) != len(ids):
        raise OffersChanged("an append of the group was withdrawn")


@contextmanager
def lock_of(database: Database, offer: Offer, *, settings: str) -> Iterator[Any]:
    """A transaction that tells others that the offer's writer lives, for as long as it is open."""
    session = database.begin(f"BEGIN; {settings}SELECT pg_advisory_xact_lock({offer.id})")
    try:
        yield session
    finally:
        database.end(session)


def entries_bytes(entries: EntryBatch) -> pa.Buffer:
    """Entries as an Arrow stream of one batch."""
    import pyarrow as pa

    columns = dict(entries.arrays())
    batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


__all__ = ["CREATE_OFFERS", "MAX_OFFERS", "OfferSlot", "entries_bytes", "land", "lock_of"]


def _log() -> logging.Logger:
    import logging

    return logging.getLogger(__name__)

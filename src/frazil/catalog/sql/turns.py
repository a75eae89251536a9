"""Turns of writers that compete for one table: first come, first served.

A turn decides the order, never the outcome: a swap is a compare-and-set with or without one, so a
turn that is lost, skipped or not given costs fairness and nothing else. PostgreSQL keeps the queue
in its lock manager, which forgets a session that dies. SQLite has no queue of its own; writers take
numbered tickets from a table, and a ticket whose process died, or that is held for too long, is
passed over.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from frazil.catalog.database.database import Database, DatabaseTransaction, Row, UncertainCommit
from frazil.catalog.sql.offers import OfferSlot, land, lock_of
from frazil.commit.head import Offer
from frazil.errors import CatalogError

MAX_TURN_S = 10.0
"""A holder that needs longer loses its turn, and goes on without one."""

if TYPE_CHECKING:
    import logging

_LOCK_SPACE = 705210048
_POLL_S = 0.001
_MAX_POLL_S = 0.02

CREATE_QUEUE = """
CREATE TABLE IF NOT EXISTS frazil_queue (
  ticket INTEGER PRIMARY KEY AUTOINCREMENT, table_id BIGINT NOT NULL, process BIGINT NOT NULL)
"""
_TAKE = """
INSERT INTO frazil_queue (table_id, process) VALUES (:table_id, :process) RETURNING ticket
"""
_AHEAD = """
SELECT ticket, process FROM frazil_queue
WHERE table_id = :table_id AND ticket <= :ticket ORDER BY ticket
"""
_NOBODY_WAITS = " AND NOT EXISTS (SELECT 1 FROM frazil_queue WHERE table_id = :table_id)"
_LEAVE = "DELETE FROM frazil_queue WHERE ticket = :ticket"


class Turns:
    """The queue of one table."""

    def __init__(
        self,
        database: Database,
        table_id: int,
        *,
        longest_s: float = MAX_TURN_S,
    ) -> None:
        self._database = database
        self._table_id = table_id
        self._longest_s = longest_s
        self._key = f"{_LOCK_SPACE}, {table_id % 2**31}"
        self._held = threading.local()

    def __reduce__(self) -> tuple[type[Turns], tuple[Database, int]]:
        return (type(self), (self._database, self._table_id))

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for this writer's turn; it ends with the block, or with the swap that lands in it.

        A catalog that cannot queue, or a wait that takes too long, gives the block no turn.
        """
        if self.is_held:
            yield
            return
        wait = self._ticket if self._database.kind == "sqlite" else self._lock
        with wait():
            self._held.turn = True
            try:
                yield
            finally:
                self._held.turn = False

    @contextmanager
    def slot(self, offer: Offer) -> Iterator[OfferSlot | None]:
        """A place in the queue for a writer that lets others land its append. In SQLite writers
        wait without offers."""
        if self._database.kind == "sqlite":
            yield None
            return
        with ExitStack() as stack:
            try:
                session = stack.enter_context(
                    lock_of(self._database, offer, settings=self._settings())
                )
            except CatalogError as error:
                _log().debug("no slot: %s", error)
                yield None
                return

            def wait() -> None:
                self._database.ask(session, f"SELECT pg_advisory_xact_lock({self._key})")
                self._held.turn = True

            def take(ids: tuple[int, ...]) -> None:
                self._held.offers = ids

            try:
                yield OfferSlot(self._database, self._table_id, offer, wait=wait, take=take)
            finally:
                self._held.turn, self._held.offers = False, ()

    @property
    def is_held(self) -> bool:
        """Whether this thread is in a turn."""
        return bool(getattr(self._held, "turn", False))

    def guard(self) -> str:
        """A condition of the swap: outside a turn it must not overtake those that wait."""
        if self.is_held:
            return ""
        if self._database.kind == "postgresql":
            return f" AND pg_try_advisory_xact_lock({self._key})"
        return _NOBODY_WAITS

    def leave(self, transaction: DatabaseTransaction) -> None:
        """Give up this thread's ticket, or the offers it takes, together with a swap."""
        ticket = getattr(self._held, "ticket", None)
        if ticket is not None:
            transaction.run(_LEAVE, {"ticket": ticket})
        land(transaction, getattr(self._held, "offers", ()))

    def left(self) -> None:
        """The swap that gave them up has landed."""
        self._held.ticket, self._held.offers = None, ()

    # PostgreSQL

    @contextmanager
    def _lock(self) -> Iterator[None]:
        session = None
        try:
            session = self._database.begin(
                f"BEGIN; {self._settings()}SELECT pg_advisory_xact_lock({self._key})"
            )
        except CatalogError as error:
            _log().debug("no turn: %s", error)
        try:
            yield
        finally:
            if session is not None:
                self._database.end(session)

    def _settings(self) -> str:
        limit = f"'{int(self._longest_s * 1000)}ms'"
        return (
            f"SET LOCAL lock_timeout = {limit}; "
            f"SET LOCAL idle_in_transaction_session_timeout = {limit}; "
        )

    # SQLite

    @contextmanager
    def _ticket(self) -> Iterator[None]:
        try:
            self._held.ticket = self._take()
            self._wait(self._held.ticket)
        except (CatalogError, UncertainCommit) as error:
            _log().debug("no turn: %s", error)
        try:
            yield
        finally:
            ticket, self._held.ticket = getattr(self._held, "ticket", None), None
            if ticket is not None:
                self._remove(ticket)

    def _take(self) -> int:
        with self._database.transaction() as transaction:
            ((ticket,),) = transaction.rows(
                _TAKE, {"table_id": self._table_id, "process": os.getpid()}
            )
        return int(ticket)

    def _wait(self, ticket: int) -> None:
        seen, since = None, 0.0
        while True:
            ahead = self._database.rows(_AHEAD, {"table_id": self._table_id, "ticket": ticket})
            if not ahead or ahead[0][0] == ticket:
                return
            now = time.monotonic()
            if ahead[0] != seen:
                seen, since = ahead[0], now
            # Passing over a writer that still lives is safe: its swap is compared with its base, so
            # at worst it loses the race and tries again.
            elif _is_dead(ahead[0]) or now - since > self._longest_s:
                self._remove(ahead[0][0])
                continue
            time.sleep(min(_MAX_POLL_S, _POLL_S * len(ahead)))

    def _remove(self, ticket: int) -> None:
        try:
            with self._database.transaction() as transaction:
                transaction.run(_LEAVE, {"ticket": ticket})
        except (CatalogError, UncertainCommit) as error:
            _log().debug("ticket %d stays until it is passed over: %s", ticket, error)


def _is_dead(holder: Row) -> bool:
    """Whether a ticket's process is gone; a process that cannot be seen from here counts as gone.

    Writers of one SQLite database share a machine.
    """
    if os.name != "posix":
        return False
    try:
        os.kill(int(holder[1]), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


__all__ = ["CREATE_QUEUE", "MAX_TURN_S", "Turns"]


def _log() -> logging.Logger:
    import logging

    return logging.getLogger(__name__)

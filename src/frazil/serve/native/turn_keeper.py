"""Turns that the server holds for its clients.

Clients wait in the server, by table, without a thread each. A turn of the catalog belongs to the
thread that waits for it, so each table with waiting clients has one thread: it waits for the turn,
hands it to the client that is next, and does what this client sends until the swap has landed, the
client ends the turn, or its time is up. Clients of different owners (principals, or the names that
writers gave themselves) are served in rotation, and an owner that lets turns expire gets none for a
while. How long a turn may last follows from how long those took that were used: who takes turns and
does nothing makes no turn longer. Without a turn a client goes on all the same: a turn decides the
order, never the outcome.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
import uuid
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from frazil.catalog.sql.sql_head import SqlHead
from frazil.errors import NotFound, Overloaded
from frazil.serve.limits import (
    FIRST_TURN_S,
    MAX_TURN_EXPIRIES,
    MAX_TURN_S,
    MAX_TURNS,
    MAX_TURNS_PER_PRINCIPAL,
    TURN_REST_S,
    TURN_THREADS,
)

_log = logging.getLogger("frazil.serve")

_REMEMBERED = 64
"""Turns from which the time for the next ones follows."""
_ROOM = 4
"""How many times as long as the slowest of them a turn may last."""

_Work = tuple[Callable[[], Any], "Future[Any]"]


class Turn:
    """A client's turn: waited for, then held, then over."""

    def __init__(self, owner: str) -> None:
        self.id = uuid.uuid4().hex
        self.owner = owner
        self.granted_at = 0.0
        self.granted: Future[str | None] = Future()
        """The turn's id when the client has it; None when it goes on without one."""
        self._works: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._is_over = False

    @property
    def is_over(self) -> bool:
        """Whether it was refused, given up or has ended."""
        return self._is_over

    def grant(self) -> bool:
        """Give it to its client, unless the client has gone."""
        with self._lock:
            if self._is_over:
                return False
            self.granted_at = time.monotonic()
            self.granted.set_result(self.id)
            return True

    def refuse(self) -> None:
        """Let the client go on without it; one that has its turn keeps it."""
        with self._lock:
            if self.granted.done():
                return
            self._is_over = True
            self.granted.set_result(None)

    def send(self, work: Callable[[], Any]) -> Future[Any]:
        """Have something done by the thread that holds the turn; NotFound when it is over."""
        outcome: Future[Any] = Future()
        with self._lock:
            if self._is_over or not self.granted.done():
                raise NotFound("the turn has ended")
            self._works.put((work, outcome))
        return outcome

    def end(self) -> None:
        """Give it up, waited for or held."""
        with self._lock:
            if not self.granted.done():
                self._is_over = True
                self.granted.set_result(None)
            self._works.put(None)

    def hold(self, max_s: float) -> bool:
        """Do what the client sends; whether it ended its turn before the time was up."""
        deadline = time.monotonic() + max_s
        try:
            while True:
                work = self._next(deadline - time.monotonic())
                if work is None:
                    return True
                do, outcome = work
                try:
                    outcome.set_result(do())
                except BaseException as error:
                    outcome.set_exception(error)
        except queue.Empty:
            return False
        finally:
            self._close()

    def _next(self, left_s: float) -> _Work | None:
        if left_s <= 0:
            return self._works.get_nowait()
        return self._works.get(timeout=left_s)

    def _close(self) -> None:
        """Answer what came too late. Nothing comes afterwards: `send` holds the same lock."""
        with self._lock:
            self._is_over = True
            while True:
                try:
                    work = self._works.get_nowait()
                except queue.Empty:
                    return
                if work is not None:
                    work[1].set_exception(NotFound("the turn has ended"))


class _Waiting:
    """The clients that wait for turns of one table, owners in rotation."""

    def __init__(self, head: SqlHead) -> None:
        self.head = head
        self._by_owner: OrderedDict[str, deque[Turn]] = OrderedDict()

    def add(self, turn: Turn) -> None:
        self._by_owner.setdefault(turn.owner, deque()).append(turn)

    def next(self) -> Turn | None:
        """Who is next; its owner goes to the end of the rotation."""
        while self._by_owner:
            owner, turns = self._by_owner.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._by_owner[owner] = turns
            if not turn.is_over:
                return turn
        return None

    def drop(self, owner: str) -> list[Turn]:
        """Take an owner's turns out."""
        return list(self._by_owner.pop(owner, ()))

    @property
    def is_empty(self) -> bool:
        return not any(not turn.is_over for turns in self._by_owner.values() for turn in turns)


class TurnKeeper:
    """Holds turns for clients."""

    def __init__(
        self,
        *,
        first_s: float = FIRST_TURN_S,
        max_s: float = MAX_TURN_S,
        rest_s: float = TURN_REST_S,
        max_turns: int = MAX_TURNS,
        max_per_owner: int = MAX_TURNS_PER_PRINCIPAL,
    ) -> None:
        self._first_s, self._max_s = first_s, max_s
        self._took_s: deque[float] = deque(maxlen=_REMEMBERED)
        """How long turns took that were used, those whose commit came late among them."""
        self._lapsed: OrderedDict[str, Turn] = OrderedDict()
        """Turns that expired lately."""
        self._rest_s = rest_s
        self._max_turns = max_turns
        self._max_per_owner = max_per_owner
        self._turns: dict[str, Turn] = {}
        self._owners: Counter[str] = Counter()
        self._expiries: deque[tuple[float, str]] = deque()
        """When turns expired lately, and whose they were."""
        self._tables: dict[str, _Waiting] = {}
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(TURN_THREADS, thread_name_prefix="frazil-turn")

    @property
    def waiting(self) -> int:
        """Clients that have no turn yet."""
        with self._lock:
            return sum(not turn.granted.done() for turn in self._turns.values())

    @property
    def turn_s(self) -> float:
        """How long a client may have a turn now."""
        usual_s = max(list(self._took_s), default=0.0)
        return min(self._max_s, max(self._first_s, _ROOM * usual_s))

    def take(self, head: SqlHead, owner: str) -> Turn:
        """A turn of a table, waited for. Overloaded when too many wait, or the owner may not."""
        turn = Turn(owner)
        with self._lock:
            self._check(owner)
            self._turns[turn.id] = turn
            self._owners[owner] += 1
            waiting = self._tables.get(head.key)
            is_first = waiting is None
            if waiting is None:
                waiting = self._tables[head.key] = _Waiting(head)
            waiting.add(turn)
        turn.granted.add_done_callback(lambda _: self._forget_refused(turn))
        if is_first:
            self._threads.submit(self._serve, head.key, waiting)
        return turn

    def within(self, turn_id: str, work: Callable[[], Any], *, owner: str | None = None) -> Any:
        """Do something inside a turn of this owner; NotFound when it has ended."""
        turn = self._turn(turn_id, owner)
        if turn is None:
            self.note_late(turn_id, owner=owner)
            raise NotFound("the turn has ended")
        return turn.send(work).result()

    def end(self, turn_id: str, *, owner: str | None = None) -> None:
        """Give a turn of this owner up."""
        turn = self._turn(turn_id, owner)
        if turn is not None:
            turn.end()

    def note_late(self, turn_id: str, *, owner: str | None = None) -> None:
        """A commit has come. If its turn is over, turns are too short, and it was not wasted."""
        with self._lock:
            turn = self._lapsed.get(turn_id)
            if turn is None or (owner is not None and owner != turn.owner):
                return
            del self._lapsed[turn_id]
            self._took_s.append(time.monotonic() - turn.granted_at)
            wasted = next((expiry for expiry in self._expiries if expiry[1] == turn.owner), None)
            if wasted is not None:
                self._expiries.remove(wasted)

    def _turn(self, turn_id: str, owner: str | None) -> Turn | None:
        turn = self._turns.get(turn_id)
        return None if turn is None or (owner is not None and owner != turn.owner) else turn

    def _check(self, owner: str) -> None:
        if self._is_resting(owner):
            raise Overloaded("several turns expired unused; ask for another later", is_own=True)
        if self._owners[owner] >= self._max_per_owner:
            raise Overloaded(f"too many turns (limit {self._max_per_owner})", is_own=True)
        if len(self._turns) >= self._max_turns:
            raise Overloaded(f"too many writers wait for a turn (limit {self._max_turns})")

    def _serve(self, key: str, waiting: _Waiting) -> None:
        """Hand out turns of a table until nobody waits."""
        while True:
            with self._lock:
                if waiting.is_empty:
                    del self._tables[key]
                    return
            try:
                with waiting.head.turn():
                    self._hand_out(waiting)
            except Exception:
                _log.exception("no turn of %s", waiting.head.identifier)
                with self._lock:
                    turn = waiting.next()
                if turn is not None:  # one less waits, so that this ends
                    turn.refuse()

    def _hand_out(self, waiting: _Waiting) -> None:
        with self._lock:
            turn = waiting.next()
        if turn is None or not turn.grant():
            return
        try:
            if turn.hold(self.turn_s):
                self._took_s.append(time.monotonic() - turn.granted_at)
                return
            with self._lock:
                dropped = self._expired(turn, waiting)
            for other in dropped:
                other.refuse()
        finally:
            self._forget(turn)

    def _expired(self, turn: Turn, waiting: _Waiting) -> list[Turn]:
        """Note that an owner let a turn expire; which of its turns it loses therefore."""
        now = time.monotonic()
        self._expiries.append((now, turn.owner))
        self._lapsed[turn.id] = turn
        while len(self._lapsed) > _REMEMBERED:
            self._lapsed.popitem(last=False)
        while now - self._expiries[0][0] > self._rest_s:
            self._expiries.popleft()
        return waiting.drop(turn.owner) if self._is_resting(turn.owner) else []

    def _is_resting(self, owner: str) -> bool:
        recent = [
            expired for at, expired in self._expiries if time.monotonic() - at <= self._rest_s
        ]
        return recent.count(owner) >= MAX_TURN_EXPIRIES

    def _forget_refused(self, turn: Turn) -> None:
        if turn.is_over:
            self._forget(turn)

    def _forget(self, turn: Turn) -> None:
        with self._lock:
            if self._turns.pop(turn.id, None) is not None:
                self._owners[turn.owner] -= 1
                if not self._owners[turn.owner]:
                    del self._owners[turn.owner]


__all__ = ["Turn", "TurnKeeper"]

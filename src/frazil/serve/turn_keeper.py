"""Turns that the server holds for its clients.

A turn belongs to the thread that waits for it, so each has a thread of its own: it waits, then does
what the client sends until the client ends the turn or takes too long. Without a turn a client goes
on all the same; a turn decides the order, never the outcome.
"""

from __future__ import annotations

import queue
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from frazil.catalog.sql_head import SqlHead
from frazil.catalog.turns import LONGEST_TURN_S
from frazil.errors import CatalogError, NotFound

MOST_TURNS = 64
"""Turns that are waited for or held at once; a client that comes later gets none."""

_Work = tuple[Callable[[], Any], "Future[Any]"]


class _Held:
    def __init__(self) -> None:
        self.works: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()


class TurnKeeper:
    """Holds turns for clients."""

    def __init__(self, *, longest_s: float = LONGEST_TURN_S) -> None:
        self._longest_s = longest_s
        self._held: dict[str, _Held] = {}
        self._lock = threading.Lock()

    def take(self, head: SqlHead) -> str:
        """Wait for a turn; returns the name it is used and ended by."""
        turn, held = uuid.uuid4().hex, _Held()
        with self._lock:
            if len(self._held) >= MOST_TURNS:
                raise CatalogError(f"{MOST_TURNS} writers wait for a turn already")
            self._held[turn] = held
        given: Future[None] = Future()
        threading.Thread(target=self._hold, args=(head, turn, held, given), daemon=True).start()
        given.result()
        return turn

    def within(self, turn: str, work: Callable[[], Any]) -> Any:
        """Do something inside a turn; NotFound when it has ended."""
        held = self._held.get(turn)
        if held is None:
            raise NotFound("the turn has ended")
        done: Future[Any] = Future()
        held.works.put((work, done))
        return done.result()

    def end(self, turn: str) -> None:
        """Give a turn up."""
        held = self._held.get(turn)
        if held is not None:
            held.works.put(None)

    def _hold(self, head: SqlHead, turn: str, held: _Held, given: Future[None]) -> None:
        try:
            with head.turn():
                given.set_result(None)
                self._serve(held)
        except BaseException as error:
            if not given.done():
                given.set_exception(error)
        finally:
            with self._lock:
                self._held.pop(turn, None)
            _refuse(held)

    def _serve(self, held: _Held) -> None:
        while True:
            try:
                work = held.works.get(timeout=self._longest_s)
            except queue.Empty:
                return
            if work is None:
                return
            do, done = work
            try:
                done.set_result(do())
            except BaseException as error:
                done.set_exception(error)


def _refuse(held: _Held) -> None:
    """Answer what came after the end."""
    while True:
        try:
            work = held.works.get_nowait()
        except queue.Empty:
            return
        if work is not None:
            work[1].set_exception(NotFound("the turn has ended"))

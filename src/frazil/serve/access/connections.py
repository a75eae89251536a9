"""Connections and their limits, before anything is known of the sender.

A connection that sends its headers slowly, reads its answer slowly or says nothing is closed after
a while; when there are too many, the one that has wasted the most time goes first. Bodies are
bounded where they are received (`bodies`).
"""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from frazil.serve.limits import (
    MAX_BODY_S,
    MAX_HEADER_BYTES,
    MAX_HEADER_S,
    MAX_UNREAD_BYTES,
    MAX_UNREAD_S,
    MAX_UNWANTED_BYTES,
)

_WATCH_S = 1.0


class _Phase(Enum):
    NEW = "nothing has arrived"
    HEADERS = "headers arrive"
    BODY = "a body arrives"
    WORK = "the request is worked on"
    IDLE = "between two requests"


class Connections:
    """The connections of one server, looked after once a second."""

    def __init__(
        self,
        max_connections: int,
        *,
        max_header_s: float = MAX_HEADER_S,
        max_unread_s: float = MAX_UNREAD_S,
        max_unread_bytes: int = MAX_UNREAD_BYTES,
    ) -> None:
        self.max_connections = max_connections
        self.max_header_s = max_header_s
        self.max_unread_s = max_unread_s
        self.max_unread_bytes = max_unread_bytes
        self.all: set[_Bounded] = set()
        self._watch: asyncio.TimerHandle | None = None

    def enter(self, connection: _Bounded) -> None:
        """Take a new connection; when there are too many, one that wastes time makes room."""
        if len(self.all) >= self.max_connections:
            wasting = [connection for connection in self.all if connection.phase is not _Phase.WORK]
            oldest = min(wasting, key=lambda connection: connection.since, default=connection)
            oldest.cut_off()
            self.leave(oldest)
            if oldest is connection:
                return
        self.all.add(connection)
        if self._watch is None:
            self._watch = connection.loop.call_later(_WATCH_S, self._look, connection.loop)

    def leave(self, connection: _Bounded) -> None:
        """A connection that was closed."""
        self.all.discard(connection)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for connection in list(self.all):
            connection.look(now)
        self.bound_unread()
        self._watch = loop.call_later(_WATCH_S, self._look, loop) if self.all else None

    def bound_unread(self) -> None:
        """Cut clients off while the answers that wait for them are too large, those that have read
        nothing for longest first."""
        waiting = sorted(
            (connection for connection in self.all if connection.unread),
            key=lambda connection: connection.unread_since,
        )
        size = sum(connection.unread for connection in waiting)
        for connection in waiting:
            if size <= self.max_unread_bytes:
                return
            size -= connection.unread
            connection.cut_off()
            self.leave(connection)


class _Writable:
    """A transport that drops what is written once it is closed: a client that leaves is noticed a
    moment later, and uvloop raises until then."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport

    def write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _Bounded(HttpToolsProtocol):
    """HTTP/1.1 of one connection, with its limits."""

    watched: Connections
    phase = _Phase.NEW
    since = 0.0
    """When the phase began."""
    unread_since = 0.0
    _unread_before = 0
    _header_bytes = 0
    _unwanted_bytes = 0
    _is_first_piece = False

    def connection_made(self, transport: Any) -> None:
        writable: Any = _Writable(transport)
        super().connection_made(writable)
        self._cycles: set[Any] = set()
        self._enter(_Phase.NEW)
        self.watched.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.watched.leave(self)
        self._stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.phase is _Phase.NEW:
            self._enter(_Phase.HEADERS)  # the limit of the headers begins with their first byte
        self._is_first_piece = False
        super().data_received(data)
        if self.phase is _Phase.HEADERS and not self._is_first_piece:
            self._header_bytes += len(data)
            if self._header_bytes > MAX_HEADER_BYTES:
                self.send_400_response("The headers of the request are too large.")

    def on_message_begin(self) -> None:
        self._enter(_Phase.HEADERS)
        self._is_first_piece = True
        self._header_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._enter(_Phase.BODY)
        self._unwanted_bytes = 0
        super().on_headers_complete()
        self._cycles = {cycle for cycle in self._cycles if not cycle.response_complete}
        self._cycles.add(self.cycle)

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        if self.cycle is not None and self.cycle.response_complete:
            self._unwanted_bytes += len(body)
            if self._unwanted_bytes > MAX_UNWANTED_BYTES:
                self.cut_off()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        is_answered = self.cycle is not None and self.cycle.response_complete
        self._enter(_Phase.IDLE if is_answered else _Phase.WORK)

    def on_response_complete(self) -> None:
        self._enter(_Phase.IDLE if self.phase is _Phase.WORK else self.phase)
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.unread_since, self._unread_before = self.loop.time(), self.unread
        self.watched.bound_unread()

    @property
    def unread(self) -> int:
        """Bytes of answers that the client has not taken."""
        return self.transport.get_write_buffer_size()

    def look(self, now: float) -> None:
        """Close the connection when it has taken too long for what it does."""
        size = self.unread
        if size < self._unread_before or not size:
            self.unread_since = now
        self._unread_before = size
        limit_s = None
        if self.phase in (_Phase.NEW, _Phase.HEADERS):
            limit_s = self.watched.max_header_s
        elif self.phase is _Phase.BODY:
            # What still arrives after the answer is thrown away, but not for long.
            is_answered = self.cycle is not None and self.cycle.response_complete
            limit_s = self.watched.max_header_s if is_answered else 2 * MAX_BODY_S
        is_slow = limit_s is not None and now - self.since > limit_s
        if is_slow or (size and now - self.unread_since > self.watched.max_unread_s):
            self.cut_off()

    def cut_off(self) -> None:
        """Close the connection at once. Nothing that waits to be sent is kept."""
        self._stop()
        self.transport.abort()

    def _stop(self) -> None:
        """Tell the requests that are answered, or wait for their turn, that the client is gone:
        uvicorn tells the last of them alone."""
        for cycle in self._cycles:
            cycle.disconnected = True
            cycle.message_event.set()

    def _enter(self, phase: _Phase) -> None:
        self.phase, self.since = phase, self.loop.time()


def bounded(max_connections: int, **limits: Any) -> type[HttpToolsProtocol]:
    """The protocol of one server's connections."""
    return type("Bounded", (_Bounded,), {"watched": Connections(max_connections, **limits)})


__all__ = ["Connections", "bounded"]
